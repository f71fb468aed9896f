"""Scripts that cannot resume: one process per arm, which lives from epoch to epoch."""
# Between two jobs of its arm a process is stopped by a signal: a pipe that is not read
# holds some thousand lines, and a script would train that many epochs ahead.

from __future__ import annotations

import math
import shutil
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from risingsearch.arms import sign_of
from risingsearch.json_values import Json
from risingsearch.scripts.ended import HAS_ENDED, MADE_ROOM
from risingsearch.scripts.processes import Script, end_left_over
from risingsearch.scripts.readers import Reader, reader_of
from risingsearch.scripts.trainable import (
    CommandTrainable,
    Reports,
    ScriptRun,
    counted,
    has_lost,
)
from risingsearch.search.training import StartedEpochs

FILES = "files"  # in an arm's folder: the checkpoint directory of its process


@dataclass(eq=False, kw_only=True)
class LivingTrainable(CommandTrainable):
    """A command whose processes live as long as their arms."""

    # Of at most max_alive those with the best scores stay; other arms have ended.

    max_epochs: int
    max_alive: int
    direction: str

    def __post_init__(self, slots: Sequence[Mapping[str, str]]) -> None:
        super().__post_init__([{"PYTHONUNBUFFERED": "1", **slot} for slot in slots])
        self._alive: dict[int, _Living] = {}  # by arm, the longest paused ones first
        self._evicted: set[int] = set()

    def _trained(self, run: ScriptRun, n_epochs: int, home: Path) -> Reports:
        living = self._claimed(run)
        if living is None:
            why = HAS_ENDED
            if run.arm in self._evicted:
                why = MADE_ROOM
            return StartedEpochs([], 0.0, why)
        is_over = True
        try:
            results = self._continued(living, run, n_epochs, home)
            run.epoch += len(results)
            is_last = run.epoch == self.max_epochs
            is_over = is_last or len(results) < n_epochs or has_lost(results)
            sign = sign_of(self.direction)
            rewards = [sign * result["score"] for result in results]
            living.best = max(living.best, *(r for r in rewards if r == r), -math.inf)
            return results
        finally:
            if is_over:
                with self._lock:
                    self._alive.pop(run.arm, None)
                living.close()
            living.in_use.release()

    def _claimed(self, run: ScriptRun) -> _Living | None:
        """Return the process of an arm, or a new one; None where it is gone."""
        with self._lock:
            living = self._alive.pop(run.arm, None)
            if living is None and run.epoch > 0:
                if run.arm not in self._evicted:
                    msg = (
                        f"arm {run.arm} trains no further: its process has ended, and "
                        f"its progress of epochs 1 to {run.epoch} is lost"
                    )
                    warnings.warn(msg, RuntimeWarning, stacklevel=2)
                return None
            over = self._least() if len(self._alive) >= self.max_alive else []
            living = living or _Living()
            living.in_use.acquire()
            self._alive[run.arm] = living
        for evicted in over:
            with evicted.in_use:
                evicted.close()
        return living

    def _least(self) -> list[_Living]:
        """Evict the worst paused processes until there is room for one more."""
        paused = [
            arm for arm, process in self._alive.items() if not process.in_use.locked()
        ]
        paused.sort(key=lambda arm: self._alive[arm].best)
        least = paused[: len(self._alive) + 1 - self.max_alive]
        self._evicted.update(least)
        return [self._alive.pop(arm) for arm in least]

    def _continued(
        self,
        living: _Living,
        run: ScriptRun,
        n_epochs: int,
        home: Path,
    ) -> Reports:
        """Return the reports of the next epochs, and pause the process."""
        results: Reports = []
        with self._slots.taken(living.slot) as slot, counted(results):
            if living.slot is None:
                end_left_over(home)
                work = home / FILES
                shutil.rmtree(work, ignore_errors=True)
                work.mkdir(mode=0o700)
                living.reader = reader_of(self.metric, self._suffixes)
                living.script, living.records = living.open.enter_context(
                    self._launched(
                        run,
                        0,
                        self.max_epochs,
                        work,
                        slot,
                        living.reader,
                    )
                )
                living.slot = slot
            else:
                living.script.resume()
            try:
                for record in islice(living.records, n_epochs):
                    epoch = run.epoch + len(results) + 1
                    last = self.max_epochs
                    results.append(self._checked(record, living.reader, 0, epoch, last))
                    if has_lost(results):
                        return results
                if run.epoch + len(results) == self.max_epochs:
                    next(living.records, None)  # it may save its model at the end
            finally:
                living.script.pause()
        if not results and run.epoch == 0:
            raise self._nothing_reported(living.reader)
        return results

    def checkpoint_from(self, arm: int, epoch: int) -> Path:
        """Return the folder in which the process of an arm saves."""
        return self.home(arm) / FILES

    def end(self) -> None:
        """Terminate all processes, the paused ones too, and start no other."""
        super().end()
        for living in list(self._alive.values()):
            with living.in_use:  # until its job has seen that it has ended
                living.close()


class _Living:
    """A process from its first epoch to its last."""

    def __init__(self) -> None:
        self.in_use = threading.Lock()
        self.slot: int | None = None  # which stays its own, once it has begun
        self.best = -math.inf  # score, the higher the better
        self.open = ExitStack()
        self.script: Script
        self.records: Iterator[Json]
        self.reader: Reader

    def close(self) -> None:
        """End the process if it still runs; only who has it in use may do so."""
        self.open.close()
