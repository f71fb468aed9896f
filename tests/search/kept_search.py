"""Searches in a directory, and processes that end too early."""

import math
from pathlib import Path

import pytest

from risingsearch.search.search import RisingSearch
from risingsearch.storage.journal import read

CANDIDATES = [
    {"arm": i, "top": round(0.5 + 0.4 * math.sin(7 * i), 3), "speed": 1 + i % 4}
    for i in range(8)
]


class CrashError(Exception):
    """Ends a process, as far as the directory can tell."""


class Rising:
    """Counts its epochs; fails, ends, or goes on in an arm and epoch as it is told."""

    def __init__(self, **events):
        self.trained = []
        self.events = events

    def start(self, params, seed):
        return {"epochs": 0, "noise": seed % 97 / 970, **params}

    def train(self, state):
        arm, epoch = state["arm"], state["epochs"] + 1
        event = self.events.get(f"arm_{arm}_epoch_{epoch}")
        if event is StopIteration:
            raise event
        self.trained.append((arm, epoch))
        if isinstance(event, BaseException):
            raise event
        state["epochs"] = epoch
        if event is not None:
            return event
        score = state["top"] * (1 - state["speed"] / (state["speed"] + epoch))
        return {"score": score + state["noise"], "own": (arm, epoch)}


class Peaked(Rising):
    """Arm 0 is best at its second epoch, all else is worse."""

    def train(self, state):
        result = super().train(state)
        peak = state["arm"] == 0 and state["epochs"] == 2
        return {**result, "score": 9.0 if peak else result["score"]}


def a_search(folder, trainable=None, candidates=CANDIDATES, **options):
    defaults = {"budget": 24, "max_epochs": 6, "seed": 3, "deterministic": True}
    return RisingSearch(
        trainable or Rising(), candidates, run_dir=folder, **defaults | options
    )


def crashing(at):
    def callback(epoch):
        if epoch.number >= at:
            raise CrashError

    return [callback]


def crashed(folder, trainable=None, at=11, **options):
    """Run a search until so many epochs are told."""
    with pytest.raises(CrashError):
        a_search(folder, trainable, callbacks=crashing(at), **options).run()


def facts(result):
    """Return what does not differ between a search and the same one in pieces."""
    rows = [
        {name: repr(value) for name, value in row.items() if name != "seconds"}
        for row in result.history
    ]
    best = [result.best_params, result.best_score, result.best_epoch]
    ends = [result.n_epochs, result.n_calls, result.stop_reason]
    return [rows, best, ends, repr(result.arms)]


def whole(tmp_path, trainable=None, **options):
    return a_search(tmp_path / "whole", trainable, **options).run()


def files(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in Path(folder).rglob("*")
        if path.is_file() and path.name != "lock"
    }


def kept(folder):
    """Return the epochs of every arm that have a checkpoint."""
    epochs = {}
    for path in sorted(Path(folder, "checkpoints").iterdir()):
        _, arm, _, epoch = path.stem.split("-")
        epochs.setdefault(int(arm), []).append(int(epoch))
    return epochs


def n_told(folder):
    """Return how many epochs are in the journal."""
    events = read(Path(folder, "journal.jsonl")).events
    return sum(len(event.get("scores", ())) for event in events)


def damage(folder, arm, epoch):
    path = Path(folder, "checkpoints", f"arm-{arm:06d}-epoch-{epoch:06d}.ckpt")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


TO_THE_END = {"policy": "round-robin", "budget": 48}
