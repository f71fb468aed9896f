"""A copy of a scheduler decides as the one that it was made of."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scheduler_runs import INFOS, Gambler, finish, saved, scores_of

from risingsearch.policies import CureUCB
from risingsearch.scheduling.scheduler import Scheduler

Copy = Callable[[Scheduler], Scheduler]


def pickled(protocol: int) -> Copy:
    return lambda one: pickle.loads(pickle.dumps(one, protocol))


@pytest.mark.parametrize("copied", [pickled(4), copy.deepcopy])
@pytest.mark.parametrize("policy", [*INFOS, Gambler.create])
def test_copies_go_on_alike(policy: Any, live_params: Any, copied: Copy) -> None:
    params = None if callable(policy) else live_params(policy)
    whole = Scheduler(
        policy, 20, 45, 12, seed=4, n_jobs=3, max_failures=1, policy_params=params
    )
    other = copied(whole)
    rng = np.random.default_rng(1)
    while True:
        if whole.n_asked % 8 == 3:
            other.peek()  # and a choice that has not started
            other = copied(other)
        job = whole.ask()
        assert other.ask() == job
        if job is None and not whole.in_flight:
            break
        if job is None or rng.random() < 0.5:
            told = whole.in_flight[int(rng.integers(len(whole.in_flight)))]
            for scheduler in (whole, other):
                if told.id % 10 == 3:
                    scheduler.fail(told, "crash", scores_of(told)[:-1])
                else:
                    scheduler.tell(told, scores_of(told))
    assert saved(other) == saved(whole)
    assert repr(other.explain()) == repr(whole.explain())
    assert other.stop_reason == whole.stop_reason


@pytest.mark.parametrize("copied", [pickled(4), pickled(5), copy.deepcopy])
def test_a_copy_shares_nothing(copied: Copy) -> None:
    policy = CureUCB.create(6, 40, 40)
    whole, again = (Scheduler(policy, 6, 40, seed=0) for _ in range(2))
    whole.explain()  # what is kept for a way back is copied as well
    other = copied(whole)
    jobs = finish(other)
    assert finish(whole) == jobs == finish(again)
