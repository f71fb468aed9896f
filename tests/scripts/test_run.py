"""What a sweep keeps while its scripts go on."""

from types import SimpleNamespace

import pytest

from risingsearch.arms import Job, Report
from risingsearch.scripts.run import _CheckpointCleaner
from risingsearch.scripts.trainable import CommandTrainable, checkpoint_name

ARM = 3


class AddsOneAsOneLooks(CommandTrainable):
    """A job of another thread ends right after somebody has listed the checkpoints."""

    def checkpoint_epochs(self, arm):
        found = super().checkpoint_epochs(arm)
        self.add(found[-1] + 1)
        return found

    def add(self, epoch):
        (self.home(ARM) / checkpoint_name(epoch)).mkdir(parents=True)


@pytest.mark.parametrize("best_arm", [ARM, 7])
def test_a_checkpoint_that_comes_as_others_are_dropped_is_kept(tmp_path, best_arm):
    own = AddsOneAsOneLooks(["true"], tmp_path)
    for epoch in (1, 2, 3):
        own.add(epoch)
    scheduler = SimpleNamespace(
        best_arm=best_arm, best_epoch=1, status=lambda arm: "running"
    )
    told = Report(Job(ARM, 2, 1, 5), [0.1])
    _CheckpointCleaner(own, scheduler).after_job(told)
    kept = {path.name for path in own.home(ARM).iterdir()}
    needed = {1, 2, 3, 4} if best_arm == ARM else {2, 3, 4}
    assert kept == {checkpoint_name(epoch) for epoch in needed}
