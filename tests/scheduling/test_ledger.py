"""The ledger: exact in epochs, expected in anything else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from risingsearch import Budget, InvalidParameterError, Scheduler
from risingsearch.arms import Job
from risingsearch.scheduling.ledger import Ledger, Result

COSTS = [0.5, 1.0, 2.0, 4.0]


class Account:
    """A ledger whose jobs are numbered, and charged as they are told."""

    def __init__(self, budget: Any, n_arms: int = 3, **options: Any) -> None:
        self.ledger = Ledger(Budget.of(budget), n_arms, **options)
        self._n_jobs = 0

    def reserve(self, arm: int = 0, n_epochs: int = 1, from_epoch: int = 0) -> Job:
        job = Job(arm, from_epoch, n_epochs, self._n_jobs)
        self._n_jobs += 1
        self.ledger.reserve(job)
        return job

    def charge(
        self, job: Job, cost: float | None = None, n_scores: int | None = None
    ) -> None:
        charged = job.n_epochs if n_scores is None else n_scores
        scores = (0.5,) * charged
        self.ledger.charge(Result(job, scores, cost, None, False, 1, charged))

    def fail(self, job: Job, cost: float | None = None, n_scores: int = 0) -> None:
        scores = (0.5,) * n_scores
        self.ledger.charge(Result(job, scores, cost, "broken", False, 1, job.n_epochs))

    def train(self, arm: int, cost: float, n_epochs: int = 1) -> None:
        self.charge(self.reserve(arm, n_epochs), cost)


# ------------------------------------------------------------------------------- epochs
def test_the_horizon_in_epochs_is_the_budget() -> None:
    account = Account(10)
    account.reserve(n_epochs=6)
    assert account.ledger.horizon(6).tolist() == [10.0, 10.0, 10.0]
    account.ledger.extend(5)
    assert account.ledger.horizon(6).tolist() == [15.0, 15.0, 15.0]


def test_arms_whose_epochs_all_cost_one_share_an_account() -> None:
    few, many = (Ledger(Budget.of(10), n_arms).state_dict() for n_arms in (1, 9999))
    assert few == many


# ----------------------------------------------------------- epochs with their own cost
def by_cost(**changes: Any) -> Scheduler:
    arguments = {"n_arms": 12, "budget": 20, "max_epochs": 4, "epoch_costs": COSTS}
    return Scheduler(**arguments | {"seed": 0, "policy": "asha"} | changes)


def train(search: Scheduler) -> list[Job]:
    jobs = []
    while (job := search.ask()) is not None:
        jobs.append(job)
        search.tell(job, [0.1 + job.arm / 100] * job.n_epochs)
    return jobs


def cost_of(jobs: list[Job]) -> float:
    return sum(sum(COSTS[j.from_epoch : j.from_epoch + j.n_epochs]) for j in jobs)


@pytest.mark.parametrize("policy", ["asha", "auto", "cure-ucb", "random"])
def test_the_budget_is_charged_the_costs_of_epochs_and_never_exceeded(
    policy: str,
) -> None:
    search = by_cost(policy=policy)
    jobs = train(search)
    assert search.spent == pytest.approx(cost_of(jobs))
    assert search.spent <= 20
    assert search.stop_reason == "the budget of 20 epochs is spent"


def test_costs_in_flight_are_reserved() -> None:
    search = by_cost(budget=3, n_jobs=9)
    jobs = []
    while (job := search.ask()) is not None:
        jobs.append(job)
    assert cost_of(jobs) <= 3
    for job in jobs:
        search.fail(job, "broken")
    assert search.spent == pytest.approx(cost_of(jobs))


def test_epochs_lost_to_a_failure_are_trained_at_their_own_cost() -> None:
    costs = [4.0, 2.0, 1.0, 1.0]
    account = Account(9, 1, epoch_costs=costs)
    account.fail(account.reserve(n_epochs=2), n_scores=0)
    assert account.ledger.spent == 6.0
    assert account.ledger.affordable().tolist() == [0]  # the next one costs 4 again


def test_an_arm_can_use_no_more_than_the_rest_of_the_budget_pays() -> None:
    search = by_cost(budget=3, n_arms=1)
    assert [job.n_epochs for job in train(search)] == [1, 1]
    assert search.spent == 1.5
    search.extend(1)
    assert len(train(search)) == 1
    assert search.spent == 3.5


@pytest.mark.parametrize(("seconds", "epochs"), [(13.9, 3), (15.1, 4)])
def test_other_costs_are_expected_in_proportion(seconds: float, epochs: int) -> None:
    search = by_cost(budget=Budget(seconds=seconds), n_arms=1)
    n_epochs = 0
    while (job := search.ask()) is not None:
        n_epochs += job.n_epochs
        search.tell(job, [0.1] * job.n_epochs, cost=2 * cost_of([job]))
    assert n_epochs == epochs  # 1, 2, 4 and 8 seconds
    assert search.spent <= seconds


def test_a_plan_of_all_rounds_needs_epochs_that_cost_the_same() -> None:
    with pytest.raises(InvalidParameterError, match="do not all cost the same"):
        by_cost(policy="successive-halving")


def test_an_arm_that_trains_anew_counts_by_its_last_score() -> None:
    search = by_cost(n_arms=3, trains_anew=True, budget=40)
    for arm, scores in enumerate([[0.9, 0.2], [0.5, 0.6], [0.6]]):
        search.tell(search.start(arm, len(scores)), scores)
    assert (search.best_arm, search.best_epoch, search.best_score) == (1, 2, 0.6)
    search.tell(search.start(1, 1), [0.1])
    assert (search.best_arm, search.best_score) == (2, 0.6)
    assert [arm.best_score for arm in search.explain()] == [0.2, 0.1, 0.6]
    search.fail(search.start(2, 1), "too many rows")
    assert (search.best_arm, search.best_score) == (0, 0.2)
    copy = by_cost(n_arms=3, trains_anew=True, budget=40)
    copy.load_state_dict(search.state_dict())
    assert (copy.best_arm, copy.best_score) == (0, 0.2)


@pytest.mark.parametrize("policy", ["asha", "auto", "random", "round-robin"])
@pytest.mark.parametrize("budget", [8, 13, 30])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_best_arm_keeps_what_its_last_epoch_costs(
    policy: str, budget: int, direction: str
) -> None:
    search = by_cost(
        policy=policy, budget=budget, direction=direction, trains_anew=True
    )
    while (job := search.ask()) is not None:
        search.tell(job, [-search.sign * job.arm / 100] * job.n_epochs)
    assert (search.best_arm, search.best_epoch) == (0, 4)
    assert search.spent <= budget


@pytest.mark.parametrize("costs", [[1, 2], [1, 2, 3, 0], [1, 2, 3, np.inf]])
def test_costs_are_one_above_0_for_each_epoch(costs: list[float]) -> None:
    with pytest.raises(InvalidParameterError, match="for each of max_epochs=4; got"):
        by_cost(epoch_costs=costs)


def test_another_cost_is_another_search() -> None:
    with pytest.raises(Exception, match="epoch_costs"):
        by_cost().load_state_dict(by_cost(epoch_costs=[1, 1, 1, 2]).state_dict())


def test_rounding_does_not_cost_an_epoch() -> None:
    account = Account(1, 1, epoch_costs=[0.1] * 10)
    account.charge(account.reserve(n_epochs=7))
    assert account.ledger.affordable().tolist() == [3]


@pytest.mark.parametrize("n_jobs", [1, 7, None])
@pytest.mark.parametrize("cost", [9e-10, 1e-10, 1e-13, 1e-300])
def test_epochs_that_cost_less_than_rounding_end_with_the_budget(
    cost: float, n_jobs: int | None
) -> None:
    search = Scheduler(
        "round-robin", 200, 1, 2, epoch_costs=[cost, 1.0 - cost], n_jobs=n_jobs
    )
    search.tell(search.start(0, 2), [0.5, 0.5])
    assert search.spent == 1.0
    assert search.ask() is None
    assert search.done
    search.extend(1)
    jobs = []
    while (job := search.ask()) is not None and len(jobs) < 7:
        jobs.append(job)
    assert len(jobs) == (n_jobs or 7)


# --------------------------------------------------------------------------- any cost
def test_an_arm_costs_its_own_average() -> None:
    account = Account(Budget(seconds=100))
    account.train(0, 8.0, n_epochs=2)
    account.train(1, 1.0)
    ledger = account.ledger
    # Arm 2 is expected to cost the average epoch, 9 seconds for 3.
    assert ledger.cost_per_epoch().tolist() == [4.0, 1.0, 3.0]
    assert ledger.spent == 9.0
    assert ledger.affordable().tolist() == [22, 91, 30]
    assert ledger.horizon(3).tolist() == [3 + 91 / 4, 3 + 91, 3 + 91 / 3]


def test_nothing_is_known_before_the_first_cost() -> None:
    account = Account(Budget(seconds=1))
    account.reserve(n_epochs=100)
    assert account.ledger.reserved == 0.0
    assert (account.ledger.affordable() > 10**9).all()
    assert np.isfinite(account.ledger.horizon(0)).all()


def test_jobs_in_flight_are_expected_to_cost_the_average_known_by_now() -> None:
    account = Account(Budget(seconds=25), n_arms=4)
    first, *_ = [account.reserve(k, n_epochs=1 + k) for k in range(4)]
    account.charge(first, cost=10.0)
    assert account.ledger.reserved == 90.0
    assert account.ledger.affordable().tolist() == [0, 0, 0, 0]


def test_a_job_without_an_epoch_changes_no_expectation() -> None:
    account = Account(Budget(seconds=100), n_arms=2)
    account.charge(account.reserve(), cost=7.0, n_scores=0)
    assert account.ledger.spent == 7.0
    assert account.ledger.cost_per_epoch().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("cost", [0.0, 1e-310])
def test_epochs_that_cost_nothing_are_affordable_without_end(cost: float) -> None:
    account = Account(Budget(cost=1), n_arms=1)
    account.train(0, cost)
    assert account.ledger.affordable()[0] > 10**9
    assert np.isfinite(account.ledger.horizon(1)).all()


@pytest.mark.parametrize(
    ("budget", "extra", "message"),
    [
        (10, Budget(seconds=5), "is in epochs: extend it by a whole number"),
        (10, 1.5, "budget must be a whole number of at least 1; got 1.5"),
        ("1h", 5, r"is in hours: extend it by Budget\(hours=...\), not 5"),
        ("1h", "1wall-h", r"is in hours: extend it by Budget\(hours=...\)"),
        ("1h", "1gpu-h", r"is in hours: extend it by Budget\(hours=...\)"),
        ("1h", Budget(cost=5), r"is in hours: extend it by Budget\(hours=...\)"),
    ],
)
def test_a_budget_grows_by_its_own_kind(budget: Any, extra: Any, message: str) -> None:
    ledger = Ledger(Budget.of(budget), 3)
    before = ledger.total
    with pytest.raises(InvalidParameterError, match=message):
        ledger.extend(extra)
    assert ledger.total == before
    if ledger.unit == "hours":
        ledger.extend("1800s")
        assert ledger.total == before + 0.5


# --------------------------------------------------------------------------- wall clock
def test_the_clock_stands_where_the_last_job_came_back() -> None:
    account = Account(Budget(wall_seconds=100), n_jobs=2)
    ledger = account.ledger
    first, second = account.reserve(0), account.reserve(1)
    ledger.pass_until(4.0)
    assert ledger.away(first, 4.0) == 4.0
    account.charge(first, cost=3.0)
    assert (ledger.spent, ledger.reserved) == (4.0, 0.0)
    third = account.reserve(2, n_epochs=2)
    ledger.pass_until(7.0)
    ledger.pass_until(6.0)
    assert (ledger.away(third, 7.0), ledger.away(second, 6.0)) == (3.0, 6.0)
    account.charge(second, cost=6.0)
    account.charge(third, cost=3.0)
    assert ledger.spent == 7.0
    assert ledger.cost_per_epoch().tolist() == [3.0, 6.0, 1.5]


def test_one_arm_has_the_time_left_and_all_workers_together_so_often_that() -> None:
    account = Account(Budget(wall_seconds=100), n_arms=2, n_jobs=4)
    job = account.reserve()
    account.ledger.pass_until(10.0)
    account.charge(job, cost=10.0)
    affordable = account.ledger.affordable()
    assert affordable.tolist() == [9, 9]
    assert account.ledger.horizon(1).tolist() == [1 + 4 * 9.0] * 2
    busy = np.array([True, False])
    left = account.ledger.pulls_left(np.array([50, 3]), busy, affordable)
    assert left.tolist() == [9, 3]


def test_as_many_workers_as_were_ever_in_flight() -> None:
    account = Account(Budget(wall_seconds=100))
    for job in [account.reserve(k) for k in range(3)]:
        account.charge(job, cost=1.0)
    assert account.ledger.horizon(0).tolist() == [3 * 100.0] * 3


def test_the_clock_of_a_scheduler_is_in_the_unit_of_its_budget() -> None:
    scheduler = Scheduler(n_arms=2, budget="2wall-h", max_epochs=3)
    job = scheduler.ask()
    assert job is not None
    scheduler.tell(job, 0.5, now=0.5)
    assert scheduler.spent == 0.5
    scheduler.advance(2.0)
    assert scheduler.stop_reason == "the budget of 2 wall-clock hours is spent"


# ------------------------------------------------------------------------- saved states
