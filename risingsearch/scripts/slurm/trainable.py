"""Training scripts as jobs of a Slurm cluster, or on this machine after such jobs."""

import math
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from risingsearch.arms import Report
from risingsearch.errors import RisingSearchError, RunDirError, ScriptError, SetupError
from risingsearch.scripts.slurm.jobs import SlurmJobs
from risingsearch.scripts.slurm.slices import (
    SliceOutcome,
    SlurmSlice,
    SubmittedSlice,
    claimed,
    slices_in,
)
from risingsearch.scripts.trainable import (
    Attempt,
    CommandTrainable,
    NothingReportedError,
    Reports,
    ScriptRun,
    checkpoint_name,
)
from risingsearch.search.search import RisingSearch
from risingsearch.search.training import StartedEpochs, count_seconds

FAILURES = {
    kind.__name__: kind for kind in (NothingReportedError, RunDirError, ScriptError)
}


class AfterSlurm(CommandTrainable):
    """Scripts on this machine, where jobs may have trained before."""

    # Epochs that a job has brought back are recorded. Those that one still trains, or
    # has failed at, are trained here: only Slurm knows how that job ended.

    def __init__(self, *args: Any, slices: Path, **options: Any) -> None:
        super().__init__(*args, **options)
        self._slices = slices
        self._numbers: Counter[int] = Counter()  # of slices that were told, by arm

    def resume(self, search: RisingSearch) -> None:
        """Drop the slices that a resumed search has recorded."""
        self._numbers = Counter(each.job.arm for each in search.reports.values())
        for submitted in slices_in(self._slices):
            _, part = submitted.spec
            if part.number < self._numbers[part.arm]:
                submitted.close()

    def after_job(self, report: Report) -> None:
        """Drop the files of a slice that the search has recorded."""
        self._numbers[report.job.arm] += 1
        for submitted in slices_in(self._slices, report.job.arm):
            submitted.close()

    def _trained(self, run: ScriptRun, n_epochs: int, home: Path) -> Reports:
        part = self._slice(run, n_epochs)
        submitted = claimed(self._slices, part)
        if submitted is not None:
            (_, part) = submitted.spec
            outcome = submitted.outcome
            if outcome and outcome.error is None and self._is_there(submitted, outcome):
                return self._taken(run, submitted, outcome)
            submitted.close()
            msg = (
                f"arm {run.arm} trains from epoch {part.epoch + 1} on here: "
                f"scancel --jobname={submitted.folder.name} ends its job of Slurm"
            )
            warnings.warn(msg, RuntimeWarning, stacklevel=2)
        return super()._trained(run, n_epochs, home)

    def _slice(self, run: ScriptRun, n_epochs: int) -> SlurmSlice:
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
        submitted: SubmittedSlice,
        outcome: SliceOutcome,
    ) -> StartedEpochs:
        """Return the epochs that a job has brought back, or raise its error."""
        count_seconds(outcome.seconds)
        if outcome.error is not None:
            failure = FAILURES.get(outcome.error, SetupError)(outcome.message)
            if isinstance(failure, ScriptError):
                failure.n_reported = outcome.n_reported
            self._fail(run.arm, submitted, failure)
        work = self.home(run.arm) / Path(outcome.work).name
        startup = math.nan if outcome.startup is None else outcome.startup
        _, part = submitted.spec
        attempt = Attempt(outcome.results, work, startup)
        return self._kept(run, part.begin, part.to_epoch, attempt)

    def _fail(
        self,
        arm: int,
        submitted: SubmittedSlice,
        failure: RisingSearchError,
    ) -> NoReturn:
        """Raise the failure of a slice, or a RunDirError if the disk is full."""
        try:
            with self._blaming_the_disk(arm):
                raise failure
        except (RunDirError, SetupError):
            submitted.close()
            raise

    def _is_there(self, submitted: SubmittedSlice, outcome: SliceOutcome) -> bool:
        """Whether the checkpoint has arrived along with the results."""
        _, part = submitted.spec
        home = self.home(part.arm)
        after = home / checkpoint_name(part.begin + len(outcome.results))
        work = home / Path(outcome.work).name
        return outcome.error is not None or work.is_dir() or after.is_dir()


class SlurmTrainable(AfterSlurm):
    """Scripts as Slurm jobs: one per slice, which ends with its checkpoint."""

    def __init__(self, *args: object, jobs: SlurmJobs, **options: Any) -> None:
        super().__init__(*args, slices=jobs.home, **options)
        self._jobs = jobs

    def _trained(self, run: ScriptRun, n_epochs: int, home: Path) -> Reports:
        self._make_home(home)
        part = self._slice(run, n_epochs)
        with self._slots.taken() as slot:
            submitted, outcome = self._outcome(part._replace(slot=slot))
        results = self._taken(run, submitted, outcome)
        self._drop_work(home)
        return results

    def _outcome(self, part: SlurmSlice) -> tuple[SubmittedSlice, SliceOutcome]:
        """Return the outcome of the first job that no machine has ended."""
        n_starts = 0
        while True:
            submitted, end = self._jobs.run(part)
            if isinstance(end, SliceOutcome):
                if self._is_there(submitted, end):
                    return submitted, end
            else:
                n_starts += end.is_of_the_start
                failure = end.failure(n_starts)
                if failure is not None:
                    count_seconds(end.seconds)
                    self._fail(part.arm, submitted, failure)
                msg = (
                    f"{end.message}; arm {part.arm} trains epochs {part.epoch + 1} to "
                    f"{part.to_epoch} again, which is not charged"
                )
                warnings.warn(msg, RuntimeWarning, stacklevel=2)
            submitted.close()

    def progress_note(self) -> str:
        """Return why Slurm keeps jobs waiting; empty if it does not."""
        return self._jobs.note

    def end(self) -> None:
        """Stop waiting for jobs."""
        super().end()
        self._jobs.close()
