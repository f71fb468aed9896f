"""Of every arm that may train on there is a checkpoint, whatever room there is."""

import math
import random
from collections.abc import Set

import pytest
from curve_search import FLAT, RISING, Recorded, a_search

from risingsearch.arms import Job, Report
from risingsearch.errors import RunDirError
from risingsearch.search.retention import RetainedCheckpoints
from risingsearch.search.training import Outcome, Task
from risingsearch.storage.checkpoints import Folder, Key, Store

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


def note(states, outcome):
    """Note that an outcome was recorded."""
    arm = outcome.report.job.arm
    states.note_last(Key(arm, outcome.last_epoch))
    if outcome.snapshot is not None:
        states.note_best(Key(arm, outcome.snapshot[0]), outcome.report.scores[0])


def trained(states, arm, epoch, **options):
    job = Job(arm, epoch - 1, 1, 0)
    outcome = outcome_of(job, **options)
    states.save(outcome)
    note(states, outcome)
    states.drop_unneeded(0.5)


def task_of(arm, epoch):
    return Task(
        job=Job(arm, epoch, 1, 0),
        params={},
        seed=0,
        state=None,
        as_bytes=False,
        may_retry=False,
        sign=1.0,
        best_reward=0.5,
        wants_checkpoint=True,
    )


@pytest.fixture
def make(tmp_path):
    """Return retained checkpoints with room for so many."""

    def states(room):
        most = None if room == math.inf else int(1200 * room)
        store = Store(Folder(tmp_path / "checkpoints"), most)
        return RetainedCheckpoints(store, 1.0)

    return states


def test_where_room_is_short_the_older_ones_go_first(make):
    states = make(4)
    trained(states, 0, 1, best=1)
    for epoch in (2, 3):
        trained(states, 0, epoch, score=0.1)
    for arm in (1, 2):
        trained(states, arm, 1, score=0.1)
    assert states.store.keys() == {Key(0, 1), Key(0, 3), Key(1, 1), Key(2, 1)}
    with pytest.raises(RunDirError, match="max_checkpoint_bytes"):
        trained(states, 3, 1, score=0.1)
    assert states.store.keys() == {Key(0, 1), Key(0, 3), Key(1, 1), Key(2, 1)}


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_the_last_two_of_an_arm_are_kept_and_the_best(make, seed):
    rng = random.Random(seed)
    states = make(math.inf)
    epochs, latest, scores = [0] * 5, [[] for _ in range(5)], {}
    for _ in range(80):
        arm = rng.randrange(5)
        if rng.random() < 0.1:
            states.retire(arm)
            latest[arm].clear()
        else:
            epochs[arm] += 1
            key, score = Key(arm, epochs[arm]), rng.random()
            is_best = score > max(scores.values(), default=0.0)
            job = Job(arm, key.epoch - 1, 1, 0)
            outcome = outcome_of(job, score, best=key.epoch if is_best else None)
            states.save(outcome)
            if rng.random() < 0.1:  # it could not be recorded
                epochs[arm] -= 1
            else:
                note(states, outcome)
                latest[arm].append(key)
                scores |= {key: score} if is_best else {}
        states.drop_unneeded(max(scores.values(), default=math.nan))
        kept = {key for keys in latest for key in keys[-2:]}
        if scores:
            kept.add(max(scores, key=scores.get))
        assert states.store.keys() == kept


class Unlisted(Set):
    """Keys that can be asked for, but not gone through."""

    def __init__(self, keys):
        self._keys = keys

    def __contains__(self, key):
        return key in self._keys

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        raise AssertionError


def test_a_job_costs_the_same_however_many_checkpoints_there_are(make, monkeypatch):
    states = make(math.inf)
    keys = states.store.keys
    monkeypatch.setattr(states.store, "keys", lambda: Unlisted(keys()))
    for epoch in (1, 2, 3):
        for arm in range(4):
            trained(states, arm, epoch, best=epoch)
            assert states.resumed(task_of(arm, epoch)).state == STATE
    states.retire(0)
    states.drop_unneeded(0.6)
    assert set(keys()) == {Key(arm, epoch) for arm in (1, 2, 3) for epoch in (2, 3)}


class TestMemory:
    def test_arms_that_are_over_let_go_of_their_state(self):
        trainable = Recorded()
        alive = []
        a_search(
            RISING,
            FLAT[:2],
            [0.2, ValueError("x")],
            [0.1, math.nan],
            trainable=trainable,
            callbacks=[lambda epoch: alive.append(trainable.n_alive())],
            max_epochs=4,
            budget=11,
        ).run()
        assert max(alive) == 4
        assert trainable.n_alive() == 0

    def test_of_a_failure_no_frame_is_kept(self):
        trainable = Recorded()
        error = ValueError("x")
        error.__cause__ = OSError("y")
        result = a_search(FLAT, [0.1, error], trainable=trainable, max_epochs=6).run()
        assert result.failures[0].failure is error
        assert trainable.n_alive() == 0
