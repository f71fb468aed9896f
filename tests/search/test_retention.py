"""Of every arm that may train on there is a checkpoint, whatever room there is."""

import pytest

from risingsearch.arms import Job, Report
from risingsearch.errors import CheckpointError
from risingsearch.search.retention import KeptStates
from risingsearch.search.trainable import Outcome, Task
from risingsearch.storage.checkpoints import DirectoryStore, Key

STATE = b"x" * 1000


def outcome_of(job, score=0.5, best=None):
    return Outcome(
        report=Report(job, (score,), (0.0,), ({},)),
        ended=False,
        resume_from=None,
        snapshot=None if best is None else (best, STATE),
        n_calls=1,
        elapsed=0.0,
        checkpoint=STATE,
    )


def trained(states, arm, epoch, **options):
    job = Job(arm, epoch - 1, 1, 0)
    outcome = outcome_of(job, **options)
    states.save(job, outcome)
    states.note(job, outcome)
    states.forget(0.5)


def task_of(arm, epoch):
    return Task(
        job=Job(arm, epoch, 1, 0),
        params={},
        seed=0,
        state=None,
        travels=False,
        protected=False,
        sign=1.0,
        best_reward=0.5,
        kept=True,
    )


@pytest.fixture
def make(tmp_path):
    """Return kept states with room for so many."""

    def states(room):
        store = DirectoryStore(tmp_path / "checkpoints", int(1200 * room))
        return KeptStates(store, lambda state: state, 1.0)

    return states


def test_the_last_two_are_kept_and_the_best(make):
    states = make(9)
    trained(states, 0, 1, best=1)
    for epoch in (2, 3, 4):
        trained(states, 0, epoch, score=0.1)
    assert states.store.keys() == {Key(0, 1), Key(0, 3), Key(0, 4)}
    assert states.best(Key(0, 1)) == STATE
    assert states.best(Key(0, 4)) is None


def test_where_room_is_short_the_older_ones_go_first(make):
    states = make(4)
    trained(states, 0, 1, best=1)
    for epoch in (2, 3):
        trained(states, 0, epoch, score=0.1)
    for arm in (1, 2):
        trained(states, arm, 1, score=0.1)
    assert states.store.keys() == {Key(0, 1), Key(0, 3), Key(1, 1), Key(2, 1)}
    with pytest.raises(CheckpointError, match="max_checkpoint_bytes"):
        trained(states, 3, 1, score=0.1)
    assert states.store.keys() == {Key(0, 1), Key(0, 3), Key(1, 1), Key(2, 1)}


def test_an_arm_goes_on_from_its_last_checkpoint_that_is_whole(make):
    states = make(9)
    for epoch in (1, 2):
        trained(states, 0, epoch, score=0.1)
    task = states.resumed(task_of(0, 2))
    assert (task.state, task.behind) == (STATE, 0)
    states.store.path(Key(0, 2)).write_bytes(b"damaged")
    with pytest.warns(RuntimeWarning, match="arm 0 trains again from epoch 1 to 2"):
        task = states.resumed(task_of(0, 2))
    assert (task.state, task.behind) == (STATE, 1)
    states.store.path(Key(0, 1)).unlink()
    with pytest.warns(RuntimeWarning, match="from epoch 0 to 2, which is not charged"):
        task = states.resumed(task_of(0, 2))
    assert (task.state, task.behind) == (None, 2)


def test_a_live_state_comes_first_until_it_is_let_go(make):
    states = make(9)
    trained(states, 0, 1)
    states.hold(0, "live")
    assert states.resumed(task_of(0, 1)).state == "live"
    states.let_go(0)
    assert states.resumed(task_of(0, 1)).state == STATE
