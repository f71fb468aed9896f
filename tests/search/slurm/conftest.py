"""A Slurm that has no cluster, for what a real one does not do when it is asked to."""

import sys
import textwrap
import threading
from pathlib import Path

import pytest

from risingsearch.arms import Job, Report
from risingsearch.errors import ScriptError
from risingsearch.scripts.slurm import SlurmScripts, SlurmTrainable
from risingsearch.search.slurm import executor as executor_module
from risingsearch.search.slurm.clients import Element, NoAnswerError
from risingsearch.search.slurm.job import trained
from risingsearch.search.slurm.slices import FOLDER, Slice
from risingsearch.search.training import Outcome, Task

SCRIPT = """
    import json, os, pathlib
    state = pathlib.Path(os.environ["RISINGSEARCH_CHECKPOINT_DIR"], "epoch")
    epoch = int(state.read_text()) if state.exists() else 0
    for _ in range(int(os.environ["RISINGSEARCH_EPOCHS"])):
        epoch += 1
        print(json.dumps({"epoch": epoch, "score": epoch / 10}))
    state.write_text(str(epoch))
"""


class PretendedSlurm:
    """Has the fate ready of every slice that is submitted, one after the other.

    ``None``: it trains. A state: its job has begun and ends so. ``(state, "early")``:
    before it has begun. ``(state, "killed")``: its script is killed first.
    ``(state, "told")``: it was told to end.
    ``"unanswered"``: it is submitted, and the answer is lost.
    ``"lost"``: it is not, and there is no answer either.
    """

    def __init__(self):
        self.fates = []
        self.listing = {}
        self.n_submitted = 0
        self.last = None  # slice that was submitted
        self.cancelled = []
        self.has_submitted = threading.Event()

    def submit(self, arguments, command):
        self.n_submitted += 1
        fate = self.fates.pop(0) if self.fates else None
        if fate != "lost":
            self._meet(fate, Slice(Path(command[4])))
        self.has_submitted.set()
        if fate in ("unanswered", "lost"):
            raise NoAnswerError("timed out")
        return str(self.n_submitted)

    def bring_back(self, submitted=None):
        """Do what the job of a slice does, by default of the last one."""
        submitted = submitted or self.last
        submitted.note_end(*trained(submitted))

    def _meet(self, fate, submitted):
        self.last = submitted
        state = "COMPLETED" if fate in (None, "unanswered") else fate
        state, how = state if isinstance(state, tuple) else (state, "")
        if how != "early" and state != "PENDING":
            submitted.note()
        if how == "told":
            submitted.note(signalled_to_end=True)
        if how == "killed":
            failure = ScriptError("killed by 15")
            report = Report(submitted.parcel.task.job, failure=failure)
            submitted.note_end(Outcome(report, charged=1), None)
        if state == "COMPLETED":
            self.bring_back(submitted)
        reason = "launch failed requeued held" if how == "held" else "None"
        self.listing[submitted.folder.name] = Element(
            str(self.n_submitted), state, 7.0, reason
        )

    def listed(self):
        return dict(self.listing)

    def cancel(self, *arguments):
        self.cancelled.append(arguments)


@pytest.fixture
def pretended(monkeypatch):
    """Put a pretended Slurm in the place of the clients, which is asked often."""
    slurm = PretendedSlurm()
    for name in ("submit", "listed", "cancel"):
        monkeypatch.setattr(executor_module.clients, name, getattr(slurm, name))
    monkeypatch.setattr(executor_module.clients, "check_commands", lambda: None)
    monkeypatch.setattr(executor_module, "ASK_EVERY", 0.01)
    monkeypatch.setattr(executor_module, "LOOK_EVERY", 0.01)
    return slurm


class Training:
    """Trains arms by an executor, as a search does that records every result."""

    def __init__(self, trainable, executor):
        self.trainable = trainable
        self.executor = executor
        self.n_jobs = 0
        self.elapsed = None

    def task(self, arm, epoch, n_epochs, state=None):
        return Task(
            job=Job(arm, epoch, n_epochs, self.n_jobs),
            params={"lr": 0.1},
            seed=70 + arm,
            state=state,
            as_bytes=True,
            may_retry=False,
            sign=1.0,
            best_reward=0.0,
            wants_checkpoint=True,
        )

    def train(self, n_epochs, epoch=0, state=None, arm=0):
        """Return the outcome of a job of an arm; raise its failure."""
        task = self.task(arm, epoch, n_epochs, state)
        outcome = self.executor.train(self.trainable, task).result()
        self.elapsed = outcome.elapsed
        if outcome.report.failure is not None:
            raise outcome.report.failure
        return outcome

    def recorded(self, arm=0):
        """Do what a search does once it has written down what a job has brought."""
        self.executor.recorded(Job(arm, 0, 1, self.n_jobs))
        self.n_jobs += 1

    def end(self):
        self.executor.shutdown()


@pytest.fixture
def training(tmp_path):
    """Return a function: a trainable that runs a script in jobs, as a new process."""
    made = []

    def make(program=SCRIPT, workers=1, **options):
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(program))
        command = [sys.executable, str(script)]
        options = {"metric": "score", "cwd": str(tmp_path)} | options
        trainable = SlurmTrainable(command, tmp_path / "run" / "arms", **options)
        trainable.arms |= {70 + arm: arm for arm in range(workers)}
        executor = SlurmScripts(tmp_path / "run" / FOLDER, workers)
        own = Training(trainable, executor)
        made.append(own)
        return own

    yield make
    for own in made:
        own.end()
