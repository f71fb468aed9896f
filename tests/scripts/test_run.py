"""What a sweep keeps while its scripts train, and when it ends."""

from types import SimpleNamespace

import pytest

from risingsearch.arms import Job, Report
from risingsearch.errors import ScriptError, SearchFailedError
from risingsearch.scripts import run, trainable
from risingsearch.scripts.readers import reader_of

ARM = 3


class AddsOneAsOneLooks(trainable.CommandTrainable):
    """A job of another thread ends right after somebody has listed the checkpoints."""

    def checkpoint_epochs(self, arm):
        found = super().checkpoint_epochs(arm)
        self.add(found[-1] + 1)
        return found

    def add(self, epoch):
        (self.home(ARM) / trainable.checkpoint_name(epoch)).mkdir(parents=True)


@pytest.mark.parametrize("best_arm", [ARM, 7])
def test_a_checkpoint_that_comes_as_others_are_dropped_is_kept(tmp_path, best_arm):
    own = AddsOneAsOneLooks(["true"], tmp_path)
    for epoch in (1, 2, 3):
        own.add(epoch)
    scheduler = SimpleNamespace(
        best_arm=best_arm, best_epoch=1, status=lambda arm: "running"
    )
    told = Report(Job(ARM, 2, 1, 5), [0.1])
    search = SimpleNamespace(scheduler=scheduler)
    run.CheckpointCleaner(own, search, resumes=True).after_job(told)
    kept = {path.name for path in own.home(ARM).iterdir()}
    needed = {1, 2, 3, 4} if best_arm == ARM else {2, 3, 4}
    assert kept == {trainable.checkpoint_name(epoch) for epoch in needed}


def a_search(began, resumed):
    """Return a search by how its jobs have ended, + or -."""
    told = [(0, one) for one in began] + [(1, one) for one in resumed]
    reports = {
        k: Report(Job(k, after, 1, k), [0.1])
        if sign == "+"
        else Report(Job(k, after, 1, k), failure=ScriptError("it is flaky"))
        for k, (after, sign) in enumerate(told)
    }
    return SimpleNamespace(reports=reports)


@pytest.mark.parametrize(
    ("began", "resumed", "chance", "ends"),
    [
        ("+++", "---", run.UNLIKELY, True),  # what begins anew never fails
        ("++++++++", "--", run.UNLIKELY, False),
        ("++", "--", run.DOUBTFUL, True),
        ("+", "-", run.DOUBTFUL, False),
        ("++++", "---+", run.UNLIKELY, False),
        ("+-+--+", "---", run.UNLIKELY, False),  # three of three, by chance
        ("+-+--+", "---", run.DOUBTFUL, False),
        ("+-+--+", "-" * 7, run.UNLIKELY, True),
        ("+++-", "----", run.UNLIKELY, False),
        ("+++-", "-----", run.UNLIKELY, True),
    ],
)
def test_a_flaky_script_is_none_that_cannot_resume(began, resumed, chance, ends):
    if not ends:
        run._check_resumed(a_search(began, resumed), chance)
        return
    with pytest.raises(SearchFailedError, match="no script has resumed from its"):
        run._check_resumed(a_search(began, resumed), chance)


def test_only_the_first_success_without_a_score_is_a_mistake_of_all(tmp_path):
    failures = trainable.NothingReportedError("no line"), ScriptError("exit code 1")
    first, other = (Report(Job(0, 0, 1, 0), failure=error) for error in failures)
    own, search = (
        trainable.CommandTrainable(["true"], tmp_path),
        SimpleNamespace(reports={}),
    )
    cleaner = run.CheckpointCleaner(own, search, resumes=True)
    with pytest.raises(SearchFailedError, match="no line; no script of this sweep"):
        cleaner._check_reported(first)
    cleaner._check_reported(other)
    own._checked({"epoch": 1, "score": 0.1}, reader_of("score"), 0, 1, 9)
    cleaner._check_reported(first)
