"""Training scripts as jobs of a Slurm cluster, or on this machine after such jobs."""

import tempfile
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from risingsearch.arms import Job
from risingsearch.json_values import Json
from risingsearch.scripts.trainable import CommandTrainable, Reports, ScriptRun
from risingsearch.search.slurm.executor import SlurmExecutor
from risingsearch.search.slurm.slices import claimed, drop_job, received
from risingsearch.search.training import Outcome, Task
from risingsearch.search.workers import Pool


class SlurmTrainable(CommandTrainable):
    """A command that nodes of a cluster start; the search keeps their checkpoints."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Its slots are left out: a job has its variables already.
        names = ("metric", "report_file", "timeout", "cwd", "cost")
        options = {name: getattr(self, name) for name in names}
        make = partial(NodeTrainable, self.command, self.folder, **options)
        return make, (), {"arms": self.arms}


class NodeTrainable(CommandTrainable):
    """A command on a node: it leaves its checkpoint for the search to keep."""

    left: Json | None = None

    def train_epochs(self, run: ScriptRun, n_epochs: int) -> Reports:
        """Run the script for some epochs; markers of it are of this node alone."""
        with tempfile.TemporaryDirectory(prefix="risingsearch-") as markers:
            self.markers = Path(markers)
            return super().train_epochs(run, n_epochs)

    def keep(self, arm: int, work: str, epoch: int) -> bool:
        """Note the folder and its epoch."""
        self.left = {"arm": arm, "work": work, "epoch": epoch}
        return True


class SlurmScripts(SlurmExecutor):
    """Scripts as Slurm jobs: one per slice, which ends with its checkpoint."""

    def train(self, trainable: Any, task: Task) -> Future[Outcome]:
        """Start a job; warn here if its checkpoint is missing."""
        job = task.job
        trainable.last_checkpoint(ScriptRun(job.arm, {}, task.seed, job.from_epoch))
        return super().train(trainable, task)


class AfterSlurm(Pool):
    """Scripts on this machine, where jobs may have trained before."""

    # Epochs that a job has brought back are recorded. Those that one still trains, or
    # has failed at, are trained here: only Slurm knows how that job ended.

    def __init__(self, n_workers: int, slices: Path) -> None:
        threads = ThreadPoolExecutor(n_workers)
        super().__init__(threads)
        self.shutdown = threads.shutdown
        self._home = slices

    def train(self, trainable: Any, task: Task) -> Future[Outcome]:
        """Take in the result of a job, or start one here."""
        left = claimed(self._home, task)
        if left is None:
            return super().train(trainable, task)
        if (outcome := left.trained) and (
            outcome := received(trainable, task, left, outcome)
        ):
            future: Future[Outcome] = Future()
            future.set_result(outcome)
            return future
        left.close()
        msg = (
            f"arm {task.job.arm} trains from epoch {task.job.from_epoch + 1} on here: "
            f"scancel --jobname={left.folder.name} ends its job of Slurm"
        )
        warnings.warn(msg, RuntimeWarning, stacklevel=2)
        return super().train(trainable, task)

    def recorded(self, job: Job) -> None:
        """Drop the files of a slice that the search has recorded."""
        drop_job(self._home, job)
