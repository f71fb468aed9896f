"""A saved search goes on as if it had never been interrupted."""

from __future__ import annotations

import copy
import math
import pickle
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scheduler_runs import INFOS, Gambler, ask, finish, saved, scores_of

from risingsearch.budget import Budget
from risingsearch.errors import PolicyError, RunDirError
from risingsearch.policies.base import arm_arrays
from risingsearch.policies.stationary.baselines import RoundRobin
from risingsearch.scheduling.scheduler import Scheduler


def reloaded(scheduler: Scheduler, build: Callable[[], Scheduler]) -> Scheduler:
    """Return a new scheduler with the saved state, which is saved as it was."""
    state = saved(scheduler)
    restored = build()
    restored.load_state_dict(state)
    assert saved(restored) == state
    return restored


COPIES: dict[str, Callable[[Scheduler, Callable[[], Scheduler]], Scheduler]] = {
    "reload": reloaded,
    "pickle": lambda one, _: pickle.loads(pickle.dumps(one)),
    "deepcopy": lambda one, _: copy.deepcopy(one),
}
COPIED = [
    (policy, deterministic, way)
    for way in COPIES
    for policy in ("cure-ucb", "looks-then-slope", Gambler.create)
    for deterministic in (False, True)
]


@pytest.mark.parametrize(
    ("policy", "deterministic", "way"),
    dict.fromkeys([*((policy, False, "reload") for policy in INFOS), *COPIED]),
)
def test_a_saved_or_copied_search_goes_on_as_if_never_interrupted(
    policy: Any, live_params: Any, deterministic: bool, way: str
) -> None:
    params = None if callable(policy) else live_params(policy)

    def build() -> Scheduler:
        return Scheduler(
            policy,
            6,
            20,
            12,
            seed=4,
            deterministic=deterministic,
            n_jobs=3,
            max_failures=1,
            policy_params=params,
        )

    rng = np.random.default_rng(1)
    whole, broken = build(), build()
    while True:
        broken.peek()  # a choice that has not started
        broken = COPIES[way](broken, build)
        assert broken.in_flight == whole.in_flight
        assert repr(broken.history) == repr(whole.history)
        job = whole.ask()
        assert broken.ask() == job
        if job is None and not whole.in_flight:
            break
        if job is None or rng.random() < 0.5:
            told = whole.in_flight[int(rng.integers(len(whole.in_flight)))]
            scores = scores_of(told)
            scores[-1] = math.nan if rng.random() < 0.1 else scores[-1]
            for scheduler in (whole, broken):
                if told.id % 10 == 3:
                    scheduler.fail(told, "crash", scores[:-1])
                else:
                    scheduler.tell(told, scores)
    assert saved(broken) == saved(whole)
    assert broken.stop_reason == whole.stop_reason
    assert repr([*broken.explain()]) == repr([*whole.explain()])


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: state["arms"]["epochs"].__setitem__(0, 10**40),
        lambda state: state["arms"]["decisions"].append(7),
        lambda state: state.update(rng={"bit_generator": "PCG64", "state": 1}),
        lambda state: state["policy"].update(arm_at=[10**40]),
        lambda state: state.update(ledger=None),
    ],
)
def test_whatever_is_damaged_in_a_state_changes_nothing(
    damage: Callable[[Any], Any],
) -> None:
    scheduler = Scheduler("looks-then-slope", 4, 20, 5, seed=0)
    ask(scheduler)
    before, damaged = saved(scheduler), saved(scheduler)
    damage(damaged)
    with pytest.raises(RunDirError):
        scheduler.load_state_dict(damaged)
    assert saved(scheduler) == before


def test_a_state_shows_no_trace_of_a_look() -> None:
    looked, plain = (Scheduler("cure-ucb", 4, 20, seed=0) for _ in range(2))
    assert ask(looked) == ask(plain)
    looked.explain()
    assert saved(looked) == saved(plain)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"policy": "asha"}, "policy='cure-ucb', the scheduler has policy='asha'"),
        ({"policy_params": {"sigma": 0.1}}, "policy_params.sigma=None"),
        ({"n_arms": 4}, "n_arms=3, the scheduler has n_arms=4"),
        ({"budget": Budget(cost=10)}, "budget_unit='epochs'"),
        ({"max_epochs": 9}, "max_epochs=8"),
        ({"direction": "minimize"}, "direction='maximize'"),
        ({"deterministic": True}, "deterministic=False"),
        ({"opening_order": [1, 0, 2]}, "opening_order[0]=0"),
        ({"enqueue": [0]}, "len(enqueue)=0"),
    ],
)
def test_a_state_of_another_search_is_refused(
    changed: dict[str, Any], message: str
) -> None:
    same: dict[str, Any] = {
        "policy": "cure-ucb",
        "n_arms": 3,
        "budget": 10,
        "max_epochs": 8,
    }
    state = saved(Scheduler(**same))
    other = Scheduler(**(same | changed))
    before = saved(other)
    with pytest.raises(RunDirError) as raised:
        other.load_state_dict(state)
    assert message in str(raised.value)
    assert str(raised.value).startswith("this state was saved with ")
    assert saved(other) == before


def test_a_state_of_another_version_is_refused() -> None:
    scheduler = Scheduler("cure-ucb", 3, 10)
    state = saved(scheduler) | {"version": 99}
    with pytest.raises(RunDirError) as raised:
        scheduler.load_state_dict(state)
    assert str(raised.value) == (
        "this state has version 99, this release reads version 4: "
        "load it with the release that saved it"
    )


class Factory:
    """Makes policies, and cannot be copied."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, n_arms: int, horizon: int, max_pulls: int | None) -> RoundRobin:
        return RoundRobin.create(n_arms, horizon, max_pulls)


def test_a_factory_that_cannot_be_copied_serves_loaded_states_and_copies() -> None:
    scheduler, again = (Scheduler(Factory(), 4, 20, 5) for _ in range(2))
    job = ask(scheduler)
    again.load_state_dict(saved(scheduler))
    assert again.in_flight == scheduler.in_flight
    again.copy().tell(job, scores_of(job))
    assert again.in_flight == (job,)


class Holder(NamedTuple):
    available: Any
    pulls_left: Any
    horizon: Any
    pulls: Any
    held: Any

    select = RoundRobin.select
    update = RoundRobin.update


class Loose(Holder):
    """Has attributes as well."""


def holding(held: Any, kind: Any = Holder) -> Scheduler:
    def create(n_arms: int, horizon: int, max_pulls: int | None) -> Holder:
        policy = kind(*arm_arrays(n_arms, horizon, max_pulls), held=held)
        if kind is Loose:
            policy.again = held
        return policy  # type: ignore[no-any-return]

    return Scheduler(create, n_arms=3, budget=9, max_epochs=4)


@pytest.mark.parametrize(
    ("held", "kind"),
    [
        ([0], Holder),
        ({}, Holder),
        (bytearray(b"1"), Holder),
        (("a", [0]), Holder),
        ((np.zeros(1),), Holder),
        (np.array([[]], dtype=object), Holder),
        (np.random.default_rng(0), Holder),
        (0, Loose),
    ],
)
def test_what_a_policy_holds_besides_its_arrays_is_refused_by_name(
    held: Any, kind: Any
) -> None:
    scheduler = holding(held, kind)
    with pytest.raises(PolicyError, match=f"{kind.__name__} holds (held|again), a "):
        scheduler.state_dict()
    state = holding(0).state_dict()
    state["search"]["policy"] = kind.__name__
    with pytest.raises(PolicyError, match="which no saved state has"):
        scheduler.load_state_dict(state)


@pytest.mark.parametrize(
    "held",
    [None, 0.5, "a", (True, ("b", None)), frozenset({1}), np.float64(1), ask, Holder],
)
def test_constants_of_a_policy_need_not_be_saved(held: Any) -> None:
    scheduler = holding(held)
    finish(scheduler)
    assert reloaded(scheduler, lambda: holding(held)).done
