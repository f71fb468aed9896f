"""Training scripts as jobs of a Slurm cluster, and the way back from there."""

from __future__ import annotations

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from risingsearch.arms import Report
from risingsearch.errors import ScriptError, SetupError
from risingsearch.scripts.plain_files import make_folder
from risingsearch.scripts.slurm.batches import LeftOpen, Outcome, Placed, Slice
from risingsearch.scripts.slurm.ends import End
from risingsearch.scripts.slurm.jobs import Jobs
from risingsearch.scripts.trainable import (
    Attempt,
    CommandTrainable,
    ScriptRun,
    checkpoint_name,
)
from risingsearch.search.search import RisingSearch
from risingsearch.search.trainable import StartedEpochs, count_seconds


class AfterSlurm(CommandTrainable):
    """Scripts on this machine, where jobs may have trained before.

    The epochs that a job has brought back are taken in. What one still trains, or has
    failed at, is trained here: only Slurm knows how that job ended. As a callback it
    learns what the search knows.
    """

    def __init__(self, *args: Any, left: LeftOpen, **options: Any) -> None:
        super().__init__(*args, **options)
        self._left = left
        self._numbers: Counter[int] = Counter()  # of slices that were told, by arm
        self._taken_in: defaultdict[int, list[Placed]] = defaultdict(list)

    def go_on(self, search: RisingSearch) -> None:
        """Go on from what a search knows."""
        self._numbers = Counter(each.job.arm for each in search.reports.values())
        self._left.drop_told(self._numbers)

    def __call__(self, search: RisingSearch, report: Report) -> None:
        """Drop the files of a slice that the search has written down."""
        arm = report.job.arm
        self._numbers[arm] += 1
        for placed in self._taken_in.pop(arm, []):
            placed.close()

    def _trained(
        self, run: ScriptRun, n_epochs: int, home: Path
    ) -> list[dict[str, Any]]:
        left = self._left.claim(self._slice(run, n_epochs))
        if left is not None:
            part, placed = left
            outcome = placed.outcome
            if outcome and outcome.error is None and self._is_there(part, outcome):
                return self._taken(run, part, placed, outcome)
            placed.close()
            warnings.warn(
                f"arm {run.arm} trains epochs {part.epoch + 1} to {part.to_epoch} "
                "here; the job of Slurm that was to train them is waited for no more: "
                f"scancel --jobname={placed.batch.name} ends it",
                RuntimeWarning,
                stacklevel=2,
            )
        return super()._trained(run, n_epochs, home)

    def _slice(self, run: ScriptRun, n_epochs: int) -> Slice:
        """Return what is to be trained."""
        return Slice(
            run.arm,
            self._numbers[run.arm],
            run.seed,
            run.params,
            run.epoch,
            self._last_checkpoint(run),
            run.epoch + n_epochs,
        )

    def _taken(
        self, run: ScriptRun, part: Slice, placed: Placed, outcome: Outcome
    ) -> StartedEpochs:
        """Return the epochs that a job has brought back, or raise what it has met."""
        placed.check(part, outcome)
        count_seconds(outcome.seconds)
        if outcome.error == SetupError.__name__:
            placed.close()
            raise SetupError(outcome.message)
        if outcome.error is not None:
            self._fail(run.arm, placed, ScriptError(outcome.message))
        self._taken_in[run.arm].append(placed)
        work = self.home(run.arm) / Path(outcome.work).name
        startup = math.nan if outcome.startup is None else outcome.startup
        return self._kept(run, part.begin, Attempt(outcome.results, work, startup))

    def _fail(self, arm: int, placed: Placed, failure: ScriptError) -> NoReturn:
        """Raise what a slice has failed with, and how the search sees it.

        A full disk is no failure of the configuration, not even once there is room.
        """
        try:
            with self._blaming_the_disk(arm):
                raise failure
        except SetupError:
            placed.close()
            raise
        except ScriptError:
            self._taken_in[arm].append(placed)
            raise

    def _is_there(self, part: Slice, outcome: Outcome) -> bool:
        """Return whether the checkpoint has come along with the results."""
        home = self.home(part.arm)
        after = home / checkpoint_name(part.begin + len(outcome.results))
        work = home / Path(outcome.work).name
        return outcome.error is not None or work.is_dir() or after.is_dir()


class SlurmTrainable(AfterSlurm):
    """Scripts as jobs: every slice is one, which ends with its checkpoint."""

    def __init__(self, *args: Any, jobs: Jobs, **options: Any) -> None:
        super().__init__(*args, left=jobs.left, **options)
        self._jobs = jobs

    def _trained(
        self, run: ScriptRun, n_epochs: int, home: Path
    ) -> list[dict[str, Any]]:
        make_folder(home)
        part = self._slice(run, n_epochs)
        with self._slots.taken() as slot:
            part, placed, outcome = self._outcome(part._replace(slot=slot))
        results = self._taken(run, part, placed, outcome)
        self._drop_work(home)
        return results

    def _outcome(self, part: Slice) -> tuple[Slice, Placed, Outcome]:
        """Return what a job brings back, the first one that no machine has ended."""
        n_starts = 0
        while True:
            part, placed, end = self._jobs.run(part)
            if isinstance(end, Outcome):
                if self._is_there(part, end):
                    return part, placed, end
            else:
                n_starts += end.is_of_the_start
                self._judge(part, placed, end, n_starts)
            placed.close()

    def _judge(self, part: Slice, placed: Placed, end: End, n_starts: int) -> None:
        """Raise what an end means for the search; say that the slice runs again."""
        failure = end.failure(n_starts)
        if failure is None:
            warnings.warn(
                f"{end.in_words}; arm {part.arm} trains epochs {part.epoch + 1} to "
                f"{part.to_epoch} again, which is not charged",
                RuntimeWarning,
                stacklevel=2,
            )
            return
        count_seconds(end.seconds)
        if isinstance(failure, ScriptError):
            self._fail(part.arm, placed, failure)
        placed.close()
        raise failure

    def end(self) -> None:
        """Wait for no job any more."""
        super().end()
        self._jobs.close()


def facts_of(
    options: Mapping[str, Any],
    command: list[str],
    arms: Path,
    environment: Path | None,
) -> dict[str, Any]:
    """Return what the jobs of a sweep are told of it, as JSON values."""
    metric = options["metric"]
    return {
        "command": command,
        "arms": str(arms.absolute()),
        "metric": metric if isinstance(metric, str) else {"regex": metric.pattern},
        "report_file": options["report_file"],
        "timeout": options["timeout"],
        "cwd": str(Path(options["cwd"]).absolute()),
        "cost": options["cost"],
        "environment": None if environment is None else str(environment.absolute()),
    }
