"""A budget, spent one epoch at a time: every promise of the scheduler."""

from __future__ import annotations

from collections import Counter, namedtuple
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from scheduler_runs import INFOS, Scripted, ask, finish, pulls, scripted

from risingsearch.arms import Job
from risingsearch.budget import Budget
from risingsearch.errors import InvalidParameterError, PolicyError
from risingsearch.policies import CureUCB
from risingsearch.policies.base import arm_arrays
from risingsearch.scheduling.scheduler import Scheduler


def test_a_job_says_who_trains_from_where_and_how_long() -> None:
    scheduler = Scheduler(
        "random-search", n_arms=2, budget=10, max_epochs=6, epochs_per_job=4
    )
    first = ask(scheduler)
    assert first == Job(arm=0, from_epoch=0, n_epochs=4, id=0)
    scheduler.tell(first, [0.1, 0.2, 0.3, 0.4])
    assert scheduler.ask() == Job(arm=0, from_epoch=4, n_epochs=2, id=1)


def test_without_a_slice_the_policy_decides_the_length() -> None:
    made = {"policy": scripted(length=3), "n_arms": 2, "budget": 20}
    jobs = finish(Scheduler(**made))
    assert [job.n_epochs for job in jobs] == [3, 3, 3, 3, 3, 3, 2]
    assert [job.id for job in jobs] == list(range(7))
    overruled = finish(Scheduler(**made, epochs_per_job=5))
    assert [job.n_epochs for job in overruled] == [5, 5, 5, 5]


@pytest.mark.parametrize("length", [2, 3, 5, 10])
def test_whatever_the_slice_the_default_looks_at_some_and_trains_the_best(
    length: int,
) -> None:
    budget, tops = 240, np.random.default_rng(0).permutation(240) / 240
    scheduler = Scheduler(
        n_arms=240, budget=budget, max_epochs=20, epochs_per_job=length
    )
    while (job := scheduler.ask()) is not None:
        epochs = job.from_epoch + 1 + np.arange(job.n_epochs)
        scheduler.tell(job, tops[job.arm] * (1 - 0.8**epochs))
    trained = np.array([arm.epochs for arm in scheduler.explain()])
    opened = trained > 0
    assert 0.35 * budget <= length * opened.sum() <= 0.5 * budget
    assert trained[np.argmax(np.where(opened, tops, 0))] == 20
    assert trained.sum() == budget


@pytest.mark.parametrize("policy", ["cure-ucb", "r-ed-ucb", "round-robin", "random"])
def test_the_papers_policies_decide_after_every_epoch(policy: str) -> None:
    scheduler = Scheduler(policy, n_arms=3, budget=12)
    assert {job.n_epochs for job in finish(scheduler)} == {1}


def test_no_arm_goes_beyond_its_max_epochs() -> None:
    scheduler = Scheduler(
        "cure-ucb", n_arms=3, budget=100, max_epochs=7, epochs_per_job=4
    )
    finish(scheduler)
    arms = scheduler.explain()
    assert [arm.epochs for arm in arms] == [7, 7, 7]
    assert {arm.status for arm in arms} == {"finished"}
    assert {arm.reason for arm in arms} == {"has used all its epochs"}


def test_without_max_epochs_an_arm_may_use_the_whole_budget() -> None:
    scheduler = Scheduler("random-search", n_arms=3, budget=50)
    assert [(job.arm, job.n_epochs) for job in finish(scheduler)] == [(0, 50)]


def test_more_arms_than_the_budget_can_try() -> None:
    scheduler = Scheduler("round-robin", n_arms=100, budget=7)
    assert pulls(finish(scheduler)) == [0, 1, 2, 3, 4, 5, 6]
    assert scheduler.statuses()[6:8] == ["paused", "unopened"]


def test_arms_are_opened_in_the_given_order() -> None:
    scheduler = Scheduler("round-robin", n_arms=4, budget=6, opening_order=[2, 0, 3, 1])
    assert pulls(finish(scheduler)) == [2, 0, 3, 1, 2, 0]


@pytest.mark.parametrize("name", [n for n, info in INFOS.items() if info.needs])
def test_a_default_that_fits_simulated_rewards_only_is_refused(
    name: str, live_params: Any
) -> None:
    for missing in INFOS[name].needs:
        params = {key: p for key, p in live_params(name).items() if key != missing}
        with pytest.raises(InvalidParameterError, match=f"the default {missing} of"):
            Scheduler(name, 2, 10, policy_params=params)


def test_a_policy_that_needs_a_range_takes_it_as_a_parameter() -> None:
    kl = Scheduler("kl-ucb", 2, 10, policy_params={"reward_range": (0.0, 1.0)})
    assert kl.ask() == Job(id=0, arm=0, from_epoch=0, n_epochs=1)


def test_a_job_that_was_cut_short_leaves_its_arm_paused() -> None:
    scheduler = Scheduler(
        "round-robin", n_arms=2, budget=9, max_epochs=5, epochs_per_job=3
    )
    scheduler.tell(ask(scheduler), [0.5], ended=False)
    first = scheduler.explain()[0]
    assert (first.status, first.epochs, scheduler.spent) == ("paused", 1, 1)
    finish(scheduler)
    assert [arm.epochs for arm in scheduler.explain()] == [4, 5]


def test_the_seed_decides_the_draws() -> None:
    def run(seed: int) -> list[int]:
        return pulls(finish(Scheduler("random", 5, 30, seed=seed)))

    assert run(1) == run(1) != run(2)


@pytest.mark.parametrize(
    "policy",
    [
        "cure-ucb",
        CureUCB,
        CureUCB.create,
        lambda n_arms, horizon, max_pulls: CureUCB.create(n_arms, horizon, max_pulls),
    ],
    ids=["name", "class", "create", "function"],
)
def test_a_policy_may_be_given_in_any_form(policy: Any) -> None:
    scheduler = Scheduler(policy, n_arms=4, budget=30, max_epochs=12)
    assert finish(scheduler) == finish(Scheduler("cure-ucb", 4, 30, 12))
    registered = policy in ("cure-ucb", CureUCB, CureUCB.create)
    assert scheduler.policy_name == ("cure-ucb" if registered else "CureUCB")


def test_auto_stands_for_the_default_for_tuning() -> None:
    name = "looks-then-slope"
    scheduler = Scheduler(n_arms=4, budget=30)
    assert scheduler.policy_name == name
    assert finish(scheduler) == finish(Scheduler(name, n_arms=4, budget=30))


@pytest.mark.parametrize("arm", [3, -2, 1])
def test_a_policy_must_choose_an_available_arm(arm: int) -> None:
    scheduler = Scheduler(
        scripted(say={1: 1, 2: arm}), n_arms=3, budget=9, epochs_per_job=2
    )
    scheduler.tell(ask(scheduler), [0.5])
    with pytest.raises(PolicyError) as raised:
        scheduler.ask()
    assert str(raised.value) == (
        f"Scripted chose arm {arm}, which is not available; "
        "select must return an available arm or WAIT"
    )
    assert scheduler.in_flight == ()
    assert scheduler.spent == 1


def test_a_policy_needs_the_arrays_that_the_scheduler_keeps() -> None:
    with pytest.raises(PolicyError) as raised:
        Scheduler(lambda *sizes: scripted()(2, 9, None), n_arms=3, budget=9)
    assert str(raised.value) == (
        "Scripted needs an array available of type bool and length n_arms=3, which its "
        "caller keeps up to date; it has bool of shape (2,)"
    )


class Plain:
    """As a policy, without its fields."""

    def __init__(self) -> None:
        self.available, self.pulls_left, self.horizon, self.pulls = arm_arrays(3, 9, 9)

    def select(self, t: int, rng: Any) -> int:
        return 0

    def update(self, *facts: Any) -> None:
        pass


def without(*names: str) -> Any:
    kind = namedtuple("Kind", "available pulls_left horizon pulls")
    for name in {"select", "update"} - set(names):
        setattr(kind, name, getattr(Plain, name))
    return kind(*arm_arrays(3, 9, 9))


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Plain(), "with select and update; Plain lacks _asdict: derive it from"),
        (arm_arrays(3, 9, 9), "tuple lacks _asdict, select, update"),
        (without("select", "update"), "Kind lacks select, update"),
        (without()._replace(available=[True] * 3), "array available .* it has none"),
        (without()._replace(pulls_left=(9, 9, 9)), "array pulls_left .* it has none"),
        (without()._replace(pulls_left=np.ones((3, 1))), "float64 of shape .3, 1."),
    ],
)
def test_what_is_no_policy_is_refused_before_a_job(policy: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Scheduler(lambda *sizes: policy, n_arms=3, budget=9)


def test_a_part_of_an_index_cannot_be_called_like_a_column() -> None:
    class Explaining(Scripted):
        def explain(self, arm: int) -> dict[str, float]:
            return {"score": 0.5}

    scheduler = Scheduler(
        lambda *sizes: Explaining(*scripted()(*sizes)), n_arms=1, budget=5
    )
    scheduler.tell(ask(scheduler), 0.5)
    with pytest.raises(PolicyError) as raised:
        scheduler.ask()
    assert str(raised.value) == (
        "Explaining explains a part of its index called 'score', "
        "which is a column of the history: give it another name"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_arms": None}, "give both n_arms and budget; got n_arms=None and budget=9"),
        ({"budget": None}, "give both n_arms and budget; got n_arms=3 and budget=None"),
        ({"n_arms": 0}, "n_arms must be a whole number of at least 1; got 0"),
        ({"budget": 9.5}, "budget must be a whole number of at least 1; got 9.5"),
        ({"budget": Budget(seconds=9)}, "a budget in seconds needs max_epochs: how "),
        ({"budget": Budget(wall_seconds=9)}, "a budget in time (or a timeout alone) "),
        ({"seed": -1}, "seed must be a whole number of at least 0; got -1"),
        (
            {"opening_order": [0, 1]},
            "opening_order must name each of the 3 arms once; got [0, 1]",
        ),
        ({"policy": 5}, "policy must be a registered name or a factory; got 5"),
        (
            {"policy": lambda n: 0},
            "<lambda> must take (n_arms, horizon, max_pulls) and",
        ),
        (
            {"policy": CureUCB.create(3, 9)},
            "policy must be a registered name or a factory, which can plan anew for a "
            "larger budget; got a CureUCB made already",
        ),
        (
            {"policy": "cure-ucb", "policy_params": {"sigma": -1}},
            "sigma must be a finite number of at least 0; got -1",
        ),
    ],
)
def test_an_argument_outside_its_range_is_refused(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidParameterError) as raised:
        Scheduler(**({"n_arms": 3, "budget": 9} | arguments))
    assert str(raised.value).startswith(message)


def test_an_unknown_name_is_answered_with_the_closest() -> None:
    with pytest.raises(InvalidParameterError) as raised:
        Scheduler("hyper-band", 3, 9)
    message = "unknown policy 'hyper-band'; did you mean 'hyperband'? Known: "
    assert str(raised.value).startswith(message)
    with pytest.raises(InvalidParameterError) as raised:
        Scheduler("cure-ucb", 3, 9, policy_params={"epsilon": 0.1})
    assert "'epsilon'; did you mean 'eps'? Known: " in str(raised.value)


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("at", range(1, 12, 2))
@pytest.mark.parametrize(
    "broken", ["select", "started", "update", "slice_length", "explain", "projection"]
)
def test_a_policy_that_raises_leaves_no_job_that_nobody_got(
    broken: str, at: int, deterministic: bool
) -> None:
    n_calls = Counter[str]()

    def method(name: str, result: Any) -> Any:
        def called(self: Scripted, *args: Any) -> Any:
            n_calls[name] += 1
            if name == broken and n_calls[name] >= at:
                raise ZeroDivisionError
            usual = getattr(Scripted, name, None)
            return result if usual is None else usual(self, *args)

        return called

    unknown = {"started": None, "explain": {}, "projection": 0.5}
    names = dict.fromkeys(["select", "update", "slice_length"]) | unknown
    methods = {name: method(name, result) for name, result in names.items()}
    raising = type("Raising", (Scripted,), methods)
    scheduler = Scheduler(
        lambda *sizes: raising(*scripted(length=2)(*sizes)),
        n_arms=4,
        budget=12,
        n_jobs=3,
        deterministic=deterministic,
    )
    jobs: list[Job] = []
    for step in range(20):
        with suppress(PolicyError):
            while (job := scheduler.ask()) is not None:
                jobs.append(job)
        assert set(scheduler.in_flight) == set(jobs)
        if jobs:
            job = jobs.pop(-(step % 2))
            with suppress(PolicyError):
                scheduler.tell(job, [0.5] * job.n_epochs)
