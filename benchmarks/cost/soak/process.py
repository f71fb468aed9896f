"""One process of a long search, which writes down what it uses and may be killed."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import IO, Any

import psutil

from benchmarks.cost.soak.fleeting import Fleeting, candidates
from risingsearch import RisingSearch

MAX_EPOCHS = 81
N_WORKERS = 2
LONGEST_WAIT = 0.01  # seconds, from the epoch of a kill to the kill


@dataclass(frozen=True)
class Part:
    """The part of a search that one process plays."""

    epochs: int
    arms: int
    seed: int
    workers: str  # "in process", "threads" or "processes"
    every: int  # so many epochs there is a sample
    samples: str  # the file they are added to
    run_dir: str | None
    kill_at: int | None  # so many epochs of the search


def play(part: Part) -> None:
    """Search until the end, or until the process is killed."""
    begin = time.perf_counter()
    with executor(part.workers) as workers, open(part.samples, "a") as file:
        sampler = Sampler(part, file)
        search = RisingSearch(
            Fleeting(),
            candidates(part.arms, part.seed),
            budget=part.epochs,
            max_epochs=MAX_EPOCHS,
            executor=workers,
            seed=part.seed,
            run_dir=part.run_dir,
        )
        search.callbacks = [lambda epoch: sampler.sample(search)]
        sampler.write(search, start=time.perf_counter() - begin)
        result = search.run()
        sampler.write(search, ended=result.stop_reason, digest=digest(result.history))


@contextmanager
def executor(workers: str) -> Iterator[Executor | None]:
    """Make the executor of a search; None where it trains by itself."""
    if workers == "in process":
        yield None
    elif workers == "threads":
        with ThreadPoolExecutor(N_WORKERS) as threads:
            all_there = threading.Barrier(N_WORKERS)
            list(threads.map(lambda _: all_there.wait(), range(N_WORKERS)))
            yield threads
    else:
        with ProcessPoolExecutor(N_WORKERS, get_context("spawn")) as processes:
            yield processes


def digest(history: Any) -> str:
    """Return what tells two searches apart: every epoch and its score, in order."""
    rows = [(row["arm"], row["epoch"], repr(row["score"])) for row in history]
    return hashlib.sha256(repr(rows).encode()).hexdigest()


class Sampler:
    """Writes samples, and ends the process where it is to be killed."""

    def __init__(self, part: Part, file: IO[str]) -> None:
        self._part = part
        self._file = file
        self._process = psutil.Process()
        self._n_epochs = 0  # at the last sample
        self._clocks = (time.perf_counter(), time.process_time())
        self._killer: threading.Timer | None = None

    def sample(self, search: RisingSearch) -> None:
        """Take a sample if it is time to, and arrange the kill."""
        n_epochs = len(search.scheduler.history)
        if self._killer is None and n_epochs - self._n_epochs >= self._part.every:
            self.write(search)
        kill_at = self._part.kill_at
        if kill_at is not None and n_epochs >= kill_at and self._killer is None:
            wait = random.Random(kill_at).uniform(0.0, LONGEST_WAIT)
            self._killer = threading.Timer(wait, os.kill, (os.getpid(), signal.SIGKILL))
            self._killer.start()

    def write(self, search: RisingSearch, **more: Any) -> None:
        """Write what the search uses now, and the time since the last sample."""
        wall, cpu = time.perf_counter(), time.process_time()
        n_epochs = len(search.scheduler.history)
        sample = {
            "process": self._process.pid,
            "epochs": n_epochs,
            "new epochs": 0 if more else n_epochs - self._n_epochs,
            "seconds": wall - self._clocks[0],
            "CPU seconds": cpu - self._clocks[1],
            **self._resources(),
            **_on_disk(self._part.run_dir),
            **_arms(search),
            "failed epochs": sum(
                not math.isfinite(row["score"]) for row in search.scheduler.history
            ),
            **more,
        }
        print(json.dumps(sample), file=self._file, flush=True)
        self._n_epochs = n_epochs
        self._clocks = (time.perf_counter(), time.process_time())

    def _resources(self) -> dict[str, float]:
        workers = self._process.children(recursive=True)
        both = [self._process, *workers]
        return {
            "MB": self._process.memory_info().rss / 1e6,
            "MB of workers": sum(w.memory_info().rss for w in workers) / 1e6,
            "descriptors": sum(process.num_fds() for process in both),
            "threads": sum(process.num_threads() for process in both),
        }


def _on_disk(run_dir: str | None) -> dict[str, int]:
    if run_dir is None:
        return {"journal": 0, "state": 0, "checkpoints": 0, "checkpoint bytes": 0}
    folder = Path(run_dir)
    state = folder / "state.json"
    sizes = [entry.stat().st_size for entry in os.scandir(folder / "checkpoints")]
    return {
        "journal": (folder / "journal.jsonl").stat().st_size,
        "state": state.stat().st_size if state.exists() else 0,
        "checkpoints": len(sizes),
        "checkpoint bytes": sum(sizes),
    }


def _arms(search: RisingSearch) -> dict[str, int]:
    counts = Counter(search.scheduler.statuses())
    return {
        "arms that may train on": counts["paused"] + counts["running"],
        "failed arms": counts["failed"],
        "finished arms": counts["finished"],
    }


def command(part: Part) -> list[str]:
    """Return the command that plays a part in a process of its own."""
    return [sys.executable, "-m", __name__, json.dumps(asdict(part))]


if __name__ == "__main__":
    play(Part(**json.loads(sys.argv[1])))
