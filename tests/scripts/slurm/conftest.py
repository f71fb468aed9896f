"""A Slurm that has no cluster, for what a real one does not do when it is asked to."""

import sys
import textwrap
import threading
from pathlib import Path

import pytest

from risingsearch.scripts.slurm import jobs as jobs_module
from risingsearch.scripts.slurm.clients import Element, NoAnswerError
from risingsearch.scripts.slurm.job import outcome_of
from risingsearch.scripts.slurm.jobs import SlurmJobs
from risingsearch.scripts.slurm.slices import FOLDER, SliceOutcome, SubmittedSlice
from risingsearch.scripts.slurm.trainable import SlurmTrainable

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
            self._meet(fate, SubmittedSlice(Path(command[4])))
        self.has_submitted.set()
        if fate in ("unanswered", "lost"):
            raise NoAnswerError("timed out")
        return str(self.n_submitted)

    def bring_back(self, submitted=None):
        """Do what the job of a slice does, by default of the last one."""
        submitted = submitted or self.last
        outcome = outcome_of(*submitted.spec)
        submitted.note(outcome=outcome._asdict())

    def _meet(self, fate, submitted):
        self.last = submitted
        state = "COMPLETED" if fate in (None, "unanswered") else fate
        state, how = state if isinstance(state, tuple) else (state, "")
        if how != "early" and state != "PENDING":
            submitted.note()
        if how == "told":
            submitted.note(signalled_to_end=True)
        if how == "killed":
            killed = SliceOutcome(1.0, [], "", "ScriptError", "killed by 15")
            submitted.note(outcome=killed._asdict())
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
        monkeypatch.setattr(jobs_module.clients, name, getattr(slurm, name))
    monkeypatch.setattr(jobs_module, "ASK_EVERY", 0.01)
    monkeypatch.setattr(jobs_module, "LOOK_EVERY", 0.01)
    return slurm


@pytest.fixture
def training(tmp_path):
    """Return a function: a trainable that runs a script in jobs, as a new process."""
    made = []

    def make(program=SCRIPT, workers=1, **options):
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(program))
        command = [sys.executable, str(script)]
        options = {"metric": "score", "cwd": str(tmp_path)} | options
        arms = tmp_path / "run" / "arms"
        more = {"command": command, "folder": str(arms), "environment": None}
        jobs = SlurmJobs(tmp_path / "run" / FOLDER, options | more, [])
        own = SlurmTrainable(command, arms, jobs=jobs, slots=[{}] * workers, **options)
        own.arms |= {70 + arm: arm for arm in range(workers)}
        made.append(own)
        return own

    yield make
    for own in made:
        own.end()
