"""A Slurm that has no cluster, for what a real one does not do when it is asked to."""

import json
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from risingsearch.scripts.slurm import jobs as jobs_module
from risingsearch.scripts.slurm.batches import (
    SliceOutcome,
    SubmittedSlice,
    make_home,
    read_batch,
)
from risingsearch.scripts.slurm.clients import Element, NoAnswerError
from risingsearch.scripts.slurm.job import outcome_of
from risingsearch.scripts.slurm.jobs import SlurmJobs
from risingsearch.scripts.slurm.trainable import SlurmTrainable, facts_of

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
        self.submitted = []  # how many slices, each time
        self.cancelled = []
        self.has_submitted = threading.Event()

    def submit(self, script, arguments, command):
        folder = Path(command[4])
        facts, parts = read_batch(folder)
        self.submitted.append(len(parts))
        answers = True
        for number, part in enumerate(parts):
            fate = self.fates.pop(0) if self.fates else None
            answers &= fate not in ("unanswered", "lost")
            if fate != "lost":
                self._meet(fate, SubmittedSlice(folder, number), facts, part)
        self.has_submitted.set()
        if not answers:
            raise NoAnswerError("timed out")
        return str(len(self.submitted))

    def _meet(self, fate, submitted, facts, part):
        state = "COMPLETED" if fate in (None, "unanswered") else fate
        how = ""
        if isinstance(state, tuple):
            state, how = state
        if how != "early" and state != "PENDING":
            submitted.note_begin()
        if how == "told":
            submitted.note_told()
        if how == "killed":
            submitted.leave(SliceOutcome(1.0, [], "", "ScriptError", "killed by 15"))
        if state == "COMPLETED":
            submitted.leave(outcome_of(facts, part))
        job_id, reason = str(len(self.submitted)), "None"
        if how == "held":
            reason = "launch failed requeued held"
        self.listing[submitted.job_name, submitted.number] = Element(
            job_id, state, 7.0, reason
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
        options = {
            "metric": "score",
            "report_file": None,
            "timeout": None,
            "cwd": tmp_path,
            "cost": None,
        } | options
        arms = tmp_path / "run" / "arms"
        facts = json.loads(json.dumps(facts_of(options, command, arms, None)))
        jobs = SlurmJobs(make_home(tmp_path / "run"), facts, [])
        own = SlurmTrainable(command, arms, jobs=jobs, slots=[{}] * workers, **options)
        own.arms |= {70 + arm: arm for arm in range(workers)}
        made.append(own)
        return own

    yield make
    for own in made:
        own.end()
