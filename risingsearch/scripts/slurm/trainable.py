"""Training scripts as jobs of a Slurm cluster, or on this machine after such jobs."""

from __future__ import annotations

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from risingsearch.arms import Report
from risingsearch.errors import ScriptError, SetupError
from risingsearch.scripts.slurm.batches import (
    LeftOpen,
    SliceOutcome,
    SlurmSlice,
    SubmittedSlice,
)
from risingsearch.scripts.slurm.ends import JobEnd
from risingsearch.scripts.slurm.jobs import SlurmJobs
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

    The epochs that a job has brought back are recorded. Those that one still trains, or
    has failed at, are trained here: only Slurm knows how that job ended.
    ``after_job`` removes the files of slices that the search has recorded.
    """

    def __init__(self, *args: Any, left: LeftOpen, **options: Any) -> None:
        super().__init__(*args, **options)
        self._left = left
        self._numbers: Counter[int] = Counter()  # of slices that were told, by arm
        self._taken_in: defaultdict[int, list[SubmittedSlice]] = defaultdict(list)

    def go_on(self, search: RisingSearch) -> None:
        """Drop the slices that a resumed search has recorded."""
        self._numbers = Counter(each.job.arm for each in search.reports.values())
        self._left.drop_told(self._numbers)

    def after_job(self, report: Report) -> None:
        """Drop the files of a slice that the search has recorded."""
        arm = report.job.arm
        self._numbers[arm] += 1
        for submitted in self._taken_in.pop(arm, []):
            submitted.close()

    def _trained(
        self, run: ScriptRun, n_epochs: int, home: Path
    ) -> list[dict[str, Any]]:
        left = self._left.claim(self._slice(run, n_epochs))
        if left is not None:
            part, submitted = left
            outcome = submitted.outcome
            if outcome and outcome.error is None and self._is_there(part, outcome):
                return self._taken(run, part, submitted, outcome)
            submitted.close()
            warnings.warn(
                f"arm {run.arm} trains epochs {part.epoch + 1} to {part.to_epoch} "
                "here; the job of Slurm that was to train them is waited for no more: "
                f"scancel --jobname={submitted.job_name} ends it",
                RuntimeWarning,
                stacklevel=2,
            )
        return super()._trained(run, n_epochs, home)

    def _slice(self, run: ScriptRun, n_epochs: int) -> SlurmSlice:
        """Return the slice to be trained."""
        return SlurmSlice(
            run.arm,
            self._numbers[run.arm],
            run.seed,
            run.params,
            run.epoch,
            self._last_checkpoint(run),
            run.epoch + n_epochs,
        )

    def _taken(
        self,
        run: ScriptRun,
        part: SlurmSlice,
        submitted: SubmittedSlice,
        outcome: SliceOutcome,
    ) -> StartedEpochs:
        """Return the epochs that a job has brought back, or raise its error."""
        count_seconds(outcome.seconds)
        if outcome.error == SetupError.__name__:
            submitted.close()
            raise SetupError(outcome.message)
        if outcome.error is not None:
            self._fail(run.arm, submitted, ScriptError(outcome.message))
        self._taken_in[run.arm].append(submitted)
        work = self.home(run.arm) / Path(outcome.work).name
        startup = math.nan if outcome.startup is None else outcome.startup
        return self._kept(run, part.begin, Attempt(outcome.results, work, startup))

    def _fail(
        self, arm: int, submitted: SubmittedSlice, failure: ScriptError
    ) -> NoReturn:
        """Raise the failure of a slice, or a SetupError if the disk is full."""
        try:
            with self._blaming_the_disk(arm):
                raise failure
        except SetupError:
            submitted.close()
            raise
        except ScriptError:
            self._taken_in[arm].append(submitted)
            raise

    def _is_there(self, part: SlurmSlice, outcome: SliceOutcome) -> bool:
        """Whether the checkpoint has arrived along with the results."""
        home = self.home(part.arm)
        after = home / checkpoint_name(part.begin + len(outcome.results))
        work = home / Path(outcome.work).name
        return outcome.error is not None or work.is_dir() or after.is_dir()


class SlurmTrainable(AfterSlurm):
    """Scripts as Slurm jobs: one per slice, which ends with its checkpoint."""

    def __init__(self, *args: Any, jobs: SlurmJobs, **options: Any) -> None:
        super().__init__(*args, left=jobs.left, **options)
        self._jobs = jobs

    def _trained(
        self, run: ScriptRun, n_epochs: int, home: Path
    ) -> list[dict[str, Any]]:
        self._make_home(home)
        part = self._slice(run, n_epochs)
        with self._slots.taken() as slot:
            part, submitted, outcome = self._outcome(part._replace(slot=slot))
        results = self._taken(run, part, submitted, outcome)
        self._drop_work(home)
        return results

    def _outcome(
        self, part: SlurmSlice
    ) -> tuple[SlurmSlice, SubmittedSlice, SliceOutcome]:
        """Return the outcome of the first job that no machine has ended."""
        n_starts = 0
        while True:
            part, submitted, end = self._jobs.run(part)
            if isinstance(end, SliceOutcome):
                if self._is_there(part, end):
                    return part, submitted, end
            else:
                n_starts += end.is_of_the_start
                self._judge(part, submitted, end, n_starts)
            submitted.close()

    def _judge(
        self, part: SlurmSlice, submitted: SubmittedSlice, end: JobEnd, n_starts: int
    ) -> None:
        """Raise the failure that an end means, or warn that the slice runs again."""
        failure = end.failure(n_starts)
        if failure is None:
            warnings.warn(
                f"{end.message}; arm {part.arm} trains epochs {part.epoch + 1} to "
                f"{part.to_epoch} again, which is not charged",
                RuntimeWarning,
                stacklevel=2,
            )
            return
        count_seconds(end.seconds)
        if isinstance(failure, ScriptError):
            self._fail(part.arm, submitted, failure)
        submitted.close()
        raise failure

    def end(self) -> None:
        """Stop waiting for jobs."""
        super().end()
        self._jobs.close()


def facts_of(
    options: Mapping[str, Any],
    command: list[str],
    arms: Path,
    environment: Path | None,
) -> dict[str, Any]:
    """Return the facts that the jobs of a sweep need, as JSON values."""
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
