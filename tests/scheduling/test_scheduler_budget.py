"""What a search may spend, in epochs, seconds or any cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scheduler_runs import INFOS, Scripted, ask, finish, pulls, run_by_cost, scripted

from risingsearch.arms import Job
from risingsearch.budget import Budget
from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.scheduler import Scheduler

ADAPTIVE = [name for name, info in INFOS.items() if info.adaptive]


def test_epochs_are_reserved_at_once() -> None:
    scheduler = Scheduler("round-robin", n_arms=20, budget=10, epochs_per_job=4)
    assert [ask(scheduler).n_epochs for _ in range(3)] == [4, 4, 2]
    assert scheduler.ask() is None
    assert scheduler.spent == 0
    assert not scheduler.done
    assert scheduler.stop_reason is None


@pytest.mark.parametrize("policy", ADAPTIVE)
@pytest.mark.parametrize("max_epochs", [None, 9])
def test_an_adaptive_policy_spends_every_epoch(
    policy: str, live_params: Any, max_epochs: int | None
) -> None:
    params = live_params(policy)
    scheduler = Scheduler(policy, 4, 31, max_epochs, policy_params=params)
    finish(scheduler)
    assert scheduler.spent == scheduler.n_epochs == scheduler.budget == 31
    assert scheduler.stop_reason == "the budget of 31 epochs is spent"


@pytest.mark.parametrize("policy", ADAPTIVE)
def test_an_adaptive_policy_stops_early_only_when_no_arm_can_train(
    policy: str, live_params: Any
) -> None:
    scheduler = Scheduler(policy, 4, 31, 5, policy_params=live_params(policy))
    finish(scheduler)
    assert scheduler.spent == 20
    assert scheduler.stop_reason == ("no arm can train any more, 11 of 31 epochs left")


@pytest.mark.parametrize(
    ("policy", "params", "spent"),
    [("successive-halving", {}, 10), ("median-stopping", {"min_arms": 1}, 6)],
)
def test_a_policy_that_stops_by_its_own_rule_leaves_budget(
    policy: str, params: dict[str, Any], spent: int
) -> None:
    scheduler = Scheduler(policy, 4, 20, 3, policy_params=params)
    finish(scheduler, lambda arm, epoch: 0.5 - 0.1 * arm)
    assert scheduler.done
    assert scheduler.ask() is None
    assert scheduler.spent == spent
    assert scheduler.stop_reason == (
        f"{policy} stopped by its own rule, {20 - spent} of 20 epochs left"
    )


def test_fewer_scores_than_epochs_end_the_arm_and_return_the_rest() -> None:
    calls: list[tuple[Any, ...]] = []
    scheduler = Scheduler(scripted(calls), n_arms=2, budget=10, epochs_per_job=5)
    scheduler.tell(ask(scheduler), [0.1, 0.2])
    assert scheduler.spent == 2
    assert scheduler.status(0) == "finished"
    assert scheduler.explain()[0].reason == "ended before its last epoch"
    second = ask(scheduler)
    assert second == Job(arm=1, from_epoch=0, n_epochs=5, id=1)
    scheduler.tell(second, [0.1] * 5)
    assert scheduler.ask() == Job(arm=1, from_epoch=5, n_epochs=3, id=2)
    assert [call[1] for call in calls if call[0] == "update"] == [1, 2, 3, 4, 5, 6, 7]


def test_the_horizon_of_an_arm_is_what_is_left_by_its_own_cost() -> None:
    horizons = []

    class Watching(Scripted):
        def select(self, t: int, rng: np.random.Generator) -> int:
            horizons.append((t, *self.horizon.tolist(), *self.pulls_left.tolist()))
            return super().select(t, rng)

    def build(n_arms: int, horizon: int, max_pulls: int | None) -> Watching:
        return Watching(*scripted()(n_arms, horizon, max_pulls))

    run_by_cost(Scheduler(build, 2, Budget(seconds=20), max_epochs=6), [1.0, 4.0])
    assert horizons[2:4] == [
        (3, 2 + 15 / 1, 2 + 15 / 4, 5, 3),
        (4, 3 + 14 / 1, 3 + 14 / 4, 4, 3),
    ]


def test_an_expensive_arm_gets_fewer_epochs() -> None:
    scheduler = Scheduler("cure-ucb", 2, Budget(seconds=60), max_epochs=50)
    jobs = run_by_cost(scheduler, [1.0, 10.0])
    assert pulls(jobs).count(0) > 20
    assert 2 <= pulls(jobs).count(1) <= 4
    assert scheduler.spent <= 60


def test_a_job_is_cut_to_what_it_can_pay() -> None:
    scheduler = Scheduler(
        "random-search", 1, Budget(cost=10), max_epochs=50, epochs_per_job=4
    )
    assert [job.n_epochs for job in run_by_cost(scheduler, [1.5])] == [4, 2]
    assert scheduler.spent == 9.0
    assert scheduler.stop_reason == "the budget of 10 cost is spent"


def test_a_failed_job_costs_what_it_took_or_what_was_expected() -> None:
    scheduler = Scheduler(
        "round-robin", 3, Budget(seconds=50), max_epochs=9, epochs_per_job=2
    )
    jobs = [ask(scheduler) for _ in range(3)]
    scheduler.tell(jobs[0], [0.1, 0.2], cost=6.0)
    scheduler.fail(jobs[1], "crash")
    assert scheduler.spent == 9.0  # one epoch, at 3.0 each
    scheduler.fail(jobs[2], "crash", [0.1], cost=1.0)
    assert scheduler.spent == 10.0
    assert [row["cost"] for row in scheduler.history[:2]] == [3.0, 3.0]
    assert math.isnan(scheduler.history[2]["cost"])


@pytest.mark.parametrize("name", [n for n, info in INFOS.items() if info.plans_rounds])
def test_a_policy_that_plans_rounds_needs_a_budget_in_epochs(
    name: str, live_params: Any
) -> None:
    params = live_params(name)
    with pytest.raises(InvalidParameterError) as raised:
        Scheduler(name, 2, Budget(seconds=9), max_epochs=5, policy_params=params)
    assert str(raised.value) == (
        f"{name} plans all its rounds ahead, so its budget must be in epochs; "
        "got a budget in seconds"
    )
