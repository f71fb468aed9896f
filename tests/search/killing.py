"""Kill a search at its writes, resume it, and print what came of it.

Killed are the first and the last write of every place in the source that writes, and
``N_SAMPLED`` of the others, drawn from a seed. ``python killing.py FOLDER WORKERS``
forks, so that nothing is imported twice.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import random
import shutil
import signal
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import filelock  # noqa: F401 - here, so that no fork imports it again
import numpy.random  # noqa: F401 - the same

from risingsearch.search.results import SearchResult
from risingsearch.search.search import RisingSearch
from risingsearch.search.trainable import Functions
from risingsearch.storage.journal import read

BUDGET, EXTRA = 42, 8
N_SAMPLED = 8
WRITES = ("fsync", "replace", "unlink", "write")
CANDIDATES = [
    {"arm": i, "top": 0.5 + 0.4 * math.sin(7 * i), "speed": 1 + i % 4}
    for i in range(12)
]
TRAINED = Path("trained")  # in the working directory: one line per epoch


def start(params, seed):
    return {"epochs": 0, "noise": seed % 97 / 970, **params}


def train(state):
    """Rise; arm 1 scores NaN in the end, arm 2 ends early, arm 9 fails."""
    arm, epoch = state["arm"], state["epochs"] + 1
    if arm == 2 and epoch == 5:
        raise StopIteration
    with TRAINED.open("a") as file:
        file.write(f"{arm} {epoch}\n")
    if arm == 9 and epoch == 2:
        raise ValueError("arm 9 cannot do more than one epoch")
    state["epochs"] = epoch
    if arm == 1 and epoch > 9:
        return math.nan
    score = state["top"] * (1 - state["speed"] / (state["speed"] + epoch))
    return {"score": score + state["noise"], "own": (arm, epoch)}


def run(n_workers: int) -> SearchResult:
    """Run the search, or go on with it, and extend it once it is over."""
    with contextlib.ExitStack() as stack:
        executor = (
            stack.enter_context(ThreadPoolExecutor(n_workers)) if n_workers else None
        )
        search = RisingSearch(
            Functions(start, train),
            CANDIDATES,
            budget=BUDGET,
            max_epochs=12,
            max_failures=1,
            seed=5,
            executor=executor,
            deterministic=True,
            run_dir="run",
        )
        search.run()
        if search.scheduler.budget == BUDGET:
            search.extend(EXTRA)
        return search.run()


def kill_at(number: int) -> None:
    """Kill this process right before the write of that number."""
    numbers = count()

    def killing(write):
        def wrapped(*args, **kwargs):
            if next(numbers) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return write(*args, **kwargs)

        return wrapped

    for name in WRITES:
        setattr(os, name, killing(getattr(os, name)))


def note_writes() -> list[str]:
    """Return a list to which each write from now on adds where it is made."""
    places = []

    def noting(name, write):
        def wrapped(*args, **kwargs):
            stack = traceback.extract_stack(sys._getframe(1), 4)
            places.append(" ".join([name, *(f"{at.name}:{at.lineno}" for at in stack)]))
            return write(*args, **kwargs)

        return wrapped

    for name in WRITES:
        setattr(os, name, noting(name, getattr(os, name)))
    return places


def forked(work) -> bool:
    """Do the work in a process of its own; return whether it came to its end."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    if status:
        sys.exit("the search failed")
    return True


def told() -> list[list[int]]:
    """Return (arm, epoch) of every epoch in the journal."""
    journal = Path("run", "journal.jsonl")
    events = read(journal).events if journal.exists() else []
    return [
        [event["job"][0], event["job"][1] + i + 1]
        for event in events
        if event["event"] in ("result", "failed")
        for i in range(len(event["scores"]))
    ]


def finish(n_workers: int) -> None:
    """Run to the end and write down what came of it."""
    result = run(n_workers)
    rows = [{**row, "seconds": None} for row in result.history]
    found = {
        "history": repr(rows),
        "best": [repr(result.best_params), result.best_score, result.best_epoch],
        "state": result.best_state(),
        "arms": [arm.status for arm in result.arms],
        "calls": result.n_calls,
        "epochs": result.n_epochs,
    }
    Path("found").write_text(json.dumps(found))


def case(n_workers: int, number: int | None) -> dict:
    """Return what comes of a search that is killed at a write, and then resumed."""
    for name in ("run", "trained", "found"):
        shutil.rmtree(name, ignore_errors=True)
        Path(name).unlink(missing_ok=True)

    def killed():
        if number is not None:
            kill_at(number)
            finish(n_workers)
        else:
            places = note_writes()
            finish(n_workers)
            Path("places").write_text(json.dumps(places))

    ended = forked(killed)
    before = told()
    n_before = len(TRAINED.read_text().split("\n")) - 1 if TRAINED.exists() else 0
    if not ended:
        forked(lambda: finish(n_workers))
    lines = TRAINED.read_text().splitlines()
    again = [list(map(int, line.split())) for line in lines[n_before:]]
    found = json.loads(Path("found").read_text())
    return {
        "killed": not ended,
        "told": before,
        "trained_before": n_before,
        "trained_again": again,
        **found,
    }


def sampled() -> list[int]:
    """Return the numbers of the writes to be killed at, as the docstring says."""
    places = json.loads(Path("places").read_text())
    first = {place: i for i, place in reversed(list(enumerate(places)))}
    last = {place: i for i, place in enumerate(places)}
    ends = {0, len(places) - 1, *first.values(), *last.values()}
    others = sorted(set(range(len(places))) - ends)
    return sorted([*ends, *random.Random(0).sample(others, N_SAMPLED)])


def main() -> None:
    """Print one line of JSON per case: first the search that nobody kills."""
    os.chdir(sys.argv[1])
    n_workers = int(sys.argv[2])
    os.fsync = lambda descriptor: None  # what is written outlives its process
    gc.freeze()  # else every fork copies what it only looks at
    print(json.dumps(case(n_workers, None)), flush=True)
    for number in sampled():
        print(json.dumps(case(n_workers, number)), flush=True)


if __name__ == "__main__":
    main()
