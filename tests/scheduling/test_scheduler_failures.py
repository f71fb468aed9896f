"""A budget, spent one epoch at a time: every promise of the scheduler."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from risingsearch.arms import Budget, Job
from risingsearch.errors import (
    InvalidParameterError,
    JobError,
    PolicyError,
    StateError,
    UnknownNameError,
)
from risingsearch.policies import (
    POLICIES,
    WAIT,
    CureUCB,
    list_policies,
    make_policy,
)
from risingsearch.policies.base import arm_arrays, least_pulled
from risingsearch.scheduling.scheduler import Scheduler

INFOS = {info.name: info for info in list_policies()}
ADAPTIVE = [name for name, info in INFOS.items() if info.adaptive]


# ----------------------------------------------------------------------- what is driven


def rising(arm: int, epoch: int) -> float:
    """Curves that cross: the later the arm, the slower and the higher."""
    return (1 + arm / 10) * (1 - 1 / (1 + epoch / (1 + arm)))


def ask(scheduler: Scheduler) -> Job:
    """Return the next job where there must be one."""
    job = scheduler.ask()
    assert job is not None
    return job


def scores_of(job: Job, curve: Callable[[int, int], float] = rising) -> list[float]:
    first = job.from_epoch + 1
    return [curve(job.arm, epoch) for epoch in range(first, first + job.n_epochs)]


def finish(
    scheduler: Scheduler, curve: Callable[[int, int], float] = rising
) -> list[Job]:
    """Ask and tell one job after the other until the search is done."""
    jobs = []
    while (job := scheduler.ask()) is not None:
        scheduler.tell(job, scores_of(job, curve))
        jobs.append(job)
    assert scheduler.done
    return jobs


def pulls(jobs: Iterable[Job]) -> list[int]:
    """The arm of every single epoch."""
    return [job.arm for job in jobs for _ in range(job.n_epochs)]


def saved(scheduler: Scheduler) -> dict[str, Any]:
    """The state after a trip through JSON."""
    text = json.dumps(scheduler.state_dict(), allow_nan=False)
    return json.loads(text)  # type: ignore[no-any-return]


class Scripted(NamedTuple):
    """Takes turns among the arms it may pull, and writes down what it is called with.

    ``say`` may name another answer at a round.
    """

    available: NDArray[np.bool_]
    pulls_left: NDArray[np.int64]
    horizon: NDArray[np.float64]
    pulls: NDArray[np.int64]
    calls: list[tuple[Any, ...]]
    say: dict[int, int]
    length: int

    def select(self, t: int, rng: np.random.Generator) -> int:
        self.calls.append(("select", t))
        turn = least_pulled(self.available, self.pulls, 10**9)
        return self.say.get(t, turn)

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        self.pulls[arm] += 1
        self.calls.append(("update", t, arm, reward))

    def slice_length(self, arm: int) -> int:
        return self.length


def scripted(
    calls: list[tuple[Any, ...]] | None = None,
    say: dict[int, int] | None = None,
    length: int = 1,
) -> Callable[..., Scripted]:
    """Return the factory of a scripted policy."""

    def build(n_arms: int, horizon: int, max_pulls: int | None) -> Scripted:
        return Scripted(
            *arm_arrays(n_arms, horizon, max_pulls),
            calls=[] if calls is None else calls,
            say=say or {},
            length=length,
        )

    return build


# --------------------------------------------------------------------------------- jobs


def test_a_job_says_who_trains_from_where_and_how_long() -> None:
    scheduler = Scheduler("random-search", n_arms=2, budget=10, max_epochs=6, slice=4)
    first = ask(scheduler)
    assert first == Job(arm=0, from_epoch=0, n_epochs=4, id=0)
    scheduler.tell(first, [0.1, 0.2, 0.3, 0.4])
    assert scheduler.ask() == Job(arm=0, from_epoch=4, n_epochs=2, id=1)


def test_job_ids_are_unique_and_count_the_decisions() -> None:
    jobs = finish(Scheduler("cure-ucb", n_arms=3, budget=20))
    assert [job.id for job in jobs] == list(range(20))


def test_without_a_slice_the_policy_decides_the_length() -> None:
    scheduler = Scheduler(scripted(length=3), n_arms=2, budget=20)
    assert [job.n_epochs for job in finish(scheduler)] == [3, 3, 3, 3, 3, 3, 2]


def test_a_slice_overrules_the_policy() -> None:
    scheduler = Scheduler(scripted(length=3), n_arms=2, budget=20, slice=5)
    assert [job.n_epochs for job in finish(scheduler)] == [5, 5, 5, 5]


@pytest.mark.parametrize("policy", ["cure-ucb", "r-ed-ucb", "round-robin", "random"])
def test_the_papers_policies_decide_after_every_epoch(policy: str) -> None:
    scheduler = Scheduler(policy, n_arms=3, budget=12)
    assert {job.n_epochs for job in finish(scheduler)} == {1}


def test_a_job_gets_at_least_one_epoch() -> None:
    scheduler = Scheduler(scripted(length=0), n_arms=2, budget=3)
    assert [job.n_epochs for job in finish(scheduler)] == [1, 1, 1]


def test_no_arm_goes_beyond_its_max_epochs() -> None:
    scheduler = Scheduler("cure-ucb", n_arms=3, budget=100, max_epochs=7, slice=4)
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


@pytest.mark.parametrize("policy", INFOS)
def test_an_opening_order_only_renames_the_arms(policy: str, live_params: Any) -> None:
    order = [3, 0, 4, 1, 2]
    plain = Scheduler(policy, 5, 40, 12, seed=3, policy_params=live_params(policy))
    renamed = Scheduler(
        policy,
        5,
        40,
        12,
        seed=3,
        opening_order=order,
        policy_params=live_params(policy),
    )
    there = finish(plain)
    here = finish(renamed, lambda arm, epoch: rising(order.index(arm), epoch))
    assert [job.arm for job in here] == [order[job.arm] for job in there]
    assert renamed.best_arm == order[plain.best_arm or 0]


@pytest.mark.parametrize("name", [n for n, info in INFOS.items() if info.needs])
def test_a_default_that_fits_simulated_rewards_only_is_refused(
    name: str, live_params: Any
) -> None:
    for missing in INFOS[name].needs:
        params = {key: p for key, p in live_params(name).items() if key != missing}
        with pytest.raises(InvalidParameterError, match=f"the default {missing} of"):
            Scheduler(name, 2, 10, policy_params=params)


def test_a_score_range_is_the_reward_range() -> None:
    kl = Scheduler("kl-ucb", 2, 10, score_range=(0.0, 1.0))
    assert kl.ask() == Job(id=0, arm=0, from_epoch=0, n_epochs=1)


# ------------------------------------------------------------------------------- budget


def test_epochs_are_reserved_at_once() -> None:
    scheduler = Scheduler("round-robin", n_arms=20, budget=10, slice=4)
    assert [ask(scheduler).n_epochs for _ in range(3)] == [4, 4, 2]
    assert scheduler.ask() is None
    assert scheduler.spent == 0
    assert not scheduler.done


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


def test_a_search_that_goes_on_has_no_reason_to_stop() -> None:
    scheduler = Scheduler("round-robin", n_arms=2, budget=2)
    assert scheduler.stop_reason is None
    scheduler.ask()
    scheduler.ask()
    assert scheduler.stop_reason is None


def test_fewer_scores_than_epochs_end_the_arm_and_return_the_rest() -> None:
    calls: list[tuple[Any, ...]] = []
    scheduler = Scheduler(scripted(calls), n_arms=2, budget=10, slice=5)
    first = ask(scheduler)
    scheduler.tell(first, [0.1, 0.2])
    assert scheduler.spent == 2
    assert scheduler.status(0) == "finished"
    assert scheduler.explain()[0].reason == "ended by itself"
    second = ask(scheduler)
    assert second == Job(arm=1, from_epoch=0, n_epochs=5, id=1)
    scheduler.tell(second, [0.1] * 5)
    assert scheduler.ask() == Job(arm=1, from_epoch=5, n_epochs=3, id=2)
    assert [call[1] for call in calls if call[0] == "update"] == [1, 2, 3, 4, 5, 6, 7]


def test_no_score_at_all_ends_an_arm_that_costs_nothing() -> None:
    scheduler = Scheduler("round-robin", n_arms=2, budget=4)
    job = ask(scheduler)
    scheduler.tell(job, [])
    assert (scheduler.spent, scheduler.status(0)) == (0, "finished")
    assert pulls(finish(scheduler)) == [1, 1, 1, 1]


def test_a_single_score_needs_no_list() -> None:
    scheduler = Scheduler("round-robin", n_arms=2, budget=4)
    scores: list[Any] = [0.5, np.float32(0.25), 1]
    for score in scores:
        job = ask(scheduler)
        scheduler.tell(job, score)
    assert [row["score"] for row in scheduler.history] == [0.5, 0.25, 1.0]


def test_a_failure_charges_what_was_reserved() -> None:
    scheduler = Scheduler("round-robin", n_arms=3, budget=12, slice=5)
    job = ask(scheduler)
    scheduler.fail(job, MemoryError("no room"), scores=[0.4, 0.6])
    arm = scheduler.explain()[0]
    assert (scheduler.spent, arm.charged, arm.epochs) == (5, 5, 2)
    assert (arm.status, arm.reason) == ("failed", "retired: no room")
    assert (arm.best_score, arm.best_epoch, arm.failures) == (0.6, 2, 1)
    rows = scheduler.history
    assert [row["epoch"] for row in rows] == [1, 2, 3, 3, 3]
    assert ["failure" in row for row in rows] == [False, False, True, True, True]


def test_a_failure_after_the_last_epoch_keeps_its_reason() -> None:
    scheduler = Scheduler("round-robin", n_arms=2, budget=4, slice=2)
    job = ask(scheduler)
    scheduler.fail(job, OSError("disk full"), scores=[0.4, 0.6])
    assert scheduler.explain()[0].reason == "retired: disk full"
    assert [row.get("failure") for row in scheduler.history] == [None, "disk full"]
    assert scheduler.best_score == 0.6


def test_a_failure_without_a_message_goes_by_its_name() -> None:
    scheduler = Scheduler("round-robin", n_arms=2, budget=4)
    job = ask(scheduler)
    scheduler.fail(job, MemoryError())
    assert scheduler.explain()[0].reason == "retired: MemoryError"


# ----------------------------------------------------------- errors that change nothing


def in_the_middle() -> tuple[Scheduler, Job, Job]:
    """Return a search with a job told and another in flight."""
    scheduler = Scheduler("cure-ucb", n_arms=3, budget=20, slice=2)
    told, open_job = ask(scheduler), ask(scheduler)
    scheduler.tell(told, [0.1, math.nan])
    return scheduler, told, open_job


Wrong = Callable[[Scheduler, Job, Job], None]
WRONG: dict[str, tuple[Wrong, type[Exception], str]] = {
    "told twice": (
        lambda s, told, _: s.tell(told, [0.1, 0.2]),
        JobError,
        "Job(arm=0, from_epoch=0, n_epochs=2, id=0) was told before; a job is told "
        "once",
    ),
    "failed after it was told": (
        lambda s, told, _: s.fail(told, "late"),
        JobError,
        "was told before",
    ),
    "never asked for": (
        lambda s, _, __: s.tell(Job(0, 0, 2, 7), [0.1]),
        JobError,
        "id=7) was never asked for; tell and fail take the jobs ask gave",
    ),
    "of another search": (
        lambda s, _, open_job: s.tell(Job(2, 5, 2, open_job.id), [0.1]),
        JobError,
        "was never asked for",
    ),
    "not a job": (
        lambda s, _, __: s.tell(1, [0.1]),  # type: ignore[arg-type]
        JobError,
        "tell and fail take a Job from ask; got 1",
    ),
    "too many scores": (
        lambda s, _, open_job: s.tell(open_job, [0.1, 0.2, 0.3]),
        JobError,
        "has 2 epochs; got 3 scores",
    ),
    "too many scores before a failure": (
        lambda s, _, open_job: s.fail(open_job, "late", [0.1, 0.2, 0.3]),
        JobError,
        "has 2 epochs; got 3 scores",
    ),
    "a score that is no number": (
        lambda s, _, open_job: s.tell(open_job, [0.1, "good"]),  # type: ignore[list-item]
        InvalidParameterError,
        "scores must be numbers, one per epoch; got 'good'",
    ),
    "no scores": (
        lambda s, _, open_job: s.tell(open_job, None),  # type: ignore[arg-type]
        InvalidParameterError,
        "scores must be numbers, one per epoch; got None",
    ),
    "an array without a length": (
        lambda s, _, open_job: s.tell(open_job, np.array(0.5)),
        InvalidParameterError,
        "scores must be numbers, one per epoch; got array(0.5)",
    ),
    "a negative cost": (
        lambda s, _, open_job: s.tell(open_job, [0.1, 0.2], cost=-1.0),
        InvalidParameterError,
        "cost must be a finite number of at least 0; got -1.0",
    ),
    "a cost that is not finite": (
        lambda s, _, open_job: s.fail(open_job, "late", cost=math.nan),
        InvalidParameterError,
        "cost must be a finite number of at least 0; got nan",
    ),
    "an extension by nothing": (
        lambda s, _, __: s.extend(0),
        InvalidParameterError,
        "budget must be a whole number of at least 1; got 0",
    ),
    "an extension in another unit": (
        lambda s, _, __: s.extend(Budget(seconds=5)),
        InvalidParameterError,
        "the budget is in epochs: extend it by a whole number",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_error_changes_nothing(wrong: str) -> None:
    scheduler, told, open_job = in_the_middle()
    before = saved(scheduler)
    act, error, message = WRONG[wrong]
    with pytest.raises(error) as raised:
        act(scheduler, told, open_job)
    assert message in str(raised.value)
    assert saved(scheduler) == before
    scheduler.tell(open_job, [0.1, 0.2])


def test_a_buffered_job_was_told_too() -> None:
    scheduler = Scheduler("round-robin", 5, 10, order="ask", n_jobs=3)
    jobs = [ask(scheduler) for _ in range(3)]
    scheduler.tell(jobs[2], 0.5)
    before = saved(scheduler)
    with pytest.raises(JobError, match="was told before"):
        scheduler.tell(jobs[2], 0.5)
    assert saved(scheduler) == before


def test_a_missing_cost_changes_nothing() -> None:
    scheduler = Scheduler("round-robin", 2, Budget(seconds=9), max_epochs=5)
    job = ask(scheduler)
    before = saved(scheduler)
    with pytest.raises(InvalidParameterError) as raised:
        scheduler.tell(job, 0.5)
    assert (
        str(raised.value) == f"the budget is in seconds: tell needs the cost of {job}"
    )
    assert saved(scheduler) == before


# ------------------------------------------------------------------ direction, failures


@pytest.mark.parametrize("policy", INFOS)
def test_minimising_is_maximising_the_negated_scores(
    policy: str, live_params: Any
) -> None:
    params = live_params(policy)
    params.pop("reward_range", None)  # taken from the score range
    up = Scheduler(
        policy,
        5,
        40,
        12,
        seed=1,
        score_range=(0.0, 3.0),
        policy_params=params,
    )
    down = Scheduler(
        policy,
        5,
        40,
        12,
        seed=1,
        score_range=(-3.0, 0.0),
        direction="minimize",
        policy_params=params,
    )
    assert finish(up) == finish(down, lambda arm, epoch: -rising(arm, epoch))
    assert down.best_score == -up.best_score
    assert (down.best_arm, down.best_epoch) == (up.best_arm, up.best_epoch)
    for here, there in zip(down.explain(), up.explain(), strict=True):
        assert here.index == there.index


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_score_that_is_not_finite_is_charged_and_retires_the_arm(
    score: float, direction: str
) -> None:
    calls: list[tuple[Any, ...]] = []
    scheduler = Scheduler(scripted(calls), 2, 4, direction=direction, error_score=0.25)
    job = ask(scheduler)
    scheduler.tell(job, score)
    arm = scheduler.explain()[0]
    assert (arm.status, arm.reason) == ("failed", "retired: score is not finite")
    assert (arm.charged, arm.epochs, arm.failures) == (1, 1, 1)
    assert math.isnan(arm.best_score)
    assert scheduler.best_arm is None
    assert math.isnan(scheduler.best_score)
    assert scheduler.best_epoch == 0
    sign = 1 if direction == "maximize" else -1
    assert calls[-1] == ("update", 1, 0, sign * 0.25)
    assert pulls(finish(scheduler)) == [1, 1, 1]


def test_without_an_error_score_a_failure_counts_as_the_worst_so_far() -> None:
    calls: list[tuple[Any, ...]] = []
    scheduler = Scheduler(scripted(calls), 9, 9)
    for score in (0.7, 0.3, 0.5, math.nan):
        job = ask(scheduler)
        scheduler.tell(job, score)
    assert [call[3] for call in calls if call[0] == "update"] == [0.7, 0.3, 0.5, 0.3]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_what_fails_before_the_first_score_is_no_better_than_that(
    direction: str,
) -> None:
    calls: list[tuple[Any, ...]] = []
    scheduler = Scheduler(scripted(calls), 9, 9, direction=direction)
    scheduler.fail(ask(scheduler), "crash")
    scheduler.tell(ask(scheduler), math.nan)
    assert [call[3] for call in calls if call[0] == "update"] == [0, 0]
    calls.clear()
    score = -2.0 if direction == "maximize" else 2.0
    scheduler.tell(ask(scheduler), score)
    assert calls[1:] == [("update", t, t - 1, -2.0) for t in (1, 2, 3)]
    scheduler.tell(ask(scheduler), 2 * score)
    assert calls[-1] == ("update", 4, 3, -4.0)


def test_an_arm_that_failed_first_stops_no_other() -> None:
    scheduler = Scheduler("median-stopping", 4, 9, 3, policy_params={"min_arms": 1})
    scheduler.fail(ask(scheduler), "crash")
    finish(scheduler, lambda arm, epoch: -2.0 + arm)
    assert [arm.epochs for arm in scheduler.explain()] == [0, 3, 3, 2]


def test_the_policy_is_told_every_epoch_that_a_failure_costs() -> None:
    calls: list[tuple[Any, ...]] = []
    scheduler = Scheduler(scripted(calls), 2, 9, slice=4, error_score=-1.0)
    job = ask(scheduler)
    scheduler.fail(job, "crash", [0.5])
    rewards = [call[3] for call in calls if call[0] == "update"]
    assert rewards == [0.5, -1.0, -1.0, -1.0]


def test_an_arm_is_retried_up_to_max_failures() -> None:
    scheduler = Scheduler(scripted(), n_arms=1, budget=9, slice=2, max_failures=2)
    from_epochs = []
    while (job := scheduler.ask()) is not None:
        from_epochs.append(job.from_epoch)
        scheduler.fail(job, "crash", [0.5])
    assert from_epochs == [0, 1, 2]  # a retry goes on where the arm got to
    arm = scheduler.explain()[0]
    assert (arm.status, arm.failures, arm.charged, arm.epochs) == ("failed", 3, 6, 3)


def test_scores_that_are_not_finite_count_as_failures_one_by_one() -> None:
    scheduler = Scheduler(scripted(), 1, 9, slice=3, max_failures=3)
    job = ask(scheduler)
    scheduler.tell(job, [math.nan, 0.5, math.inf])
    assert scheduler.status(0) == "paused"
    job = ask(scheduler)
    scheduler.fail(job, "crash", [math.nan])
    assert scheduler.explain()[0].failures == 4
    assert scheduler.status(0) == "failed"


def test_a_search_goes_on_until_every_arm_has_failed() -> None:
    scheduler = Scheduler("cure-ucb", n_arms=3, budget=20)
    while (job := scheduler.ask()) is not None:
        scheduler.fail(job, "crash")
    assert scheduler.done
    assert scheduler.spent == 3
    assert scheduler.best_arm is None
    assert scheduler.stop_reason == "no arm can train any more, 17 of 20 epochs left"


@pytest.mark.parametrize("policy", INFOS)
def test_any_finite_score_is_taken(policy: str, live_params: Any) -> None:
    scheduler = Scheduler(policy, 4, 30, 10, seed=0, policy_params=live_params(policy))
    finish(scheduler, lambda arm, epoch: (-1) ** (arm + epoch) * 1e300)
    assert scheduler.best_score == 1e300
    json.dumps(scheduler.state_dict(), allow_nan=False)


def test_a_declared_score_range_caps_the_projection() -> None:
    def jobs(score_range: tuple[float, float] | None) -> list[Job]:
        scheduler = Scheduler(
            "screened-damped-slope", 3, 60, 30, score_range=score_range
        )
        return finish(scheduler, lambda arm, epoch: min(1.0, (0.3 + 0.1 * arm) * epoch))

    assert jobs((0.0, 1.0)) != jobs(None)
    assert jobs((0.0, 1e9)) == jobs(None)


# --------------------------------------------------------------- several jobs in flight


def test_arms_in_flight_are_not_given_out_again() -> None:
    scheduler = Scheduler("cure-ucb", n_arms=3, budget=50)
    assert {ask(scheduler).arm for _ in range(3)} == {0, 1, 2}
    assert scheduler.ask() is None
    assert scheduler.statuses() == ["running"] * 3
    assert [arm.reason for arm in scheduler.explain()] == ["in training"] * 3


def test_n_jobs_limits_the_jobs_in_flight() -> None:
    scheduler = Scheduler(
        "round-robin", n_arms=9, budget=50, n_jobs=2, order="completion"
    )
    jobs = [ask(scheduler) for _ in range(2)]
    assert scheduler.ask() is None
    assert scheduler.in_flight == tuple(jobs)
    scheduler.tell(jobs[1], 0.5)
    assert scheduler.ask() is not None


def test_one_job_in_flight_is_the_default_in_ask_order() -> None:
    scheduler = Scheduler("round-robin", n_arms=9, budget=50, order="ask")
    assert scheduler.ask() is not None
    assert scheduler.ask() is None


def run_shuffled(
    scheduler: Scheduler, seed: int | None, curve: Callable[[int, int], float] = rising
) -> list[Job]:
    """Keep all workers busy; jobs finish in random order, or in that of the asks."""
    rng = np.random.default_rng(seed)
    jobs = []
    while not scheduler.done:
        while (job := scheduler.ask()) is not None:
            jobs.append(job)
        in_flight = scheduler.in_flight
        job = in_flight[0 if seed is None else int(rng.integers(len(in_flight)))]
        scheduler.tell(job, scores_of(job, curve), cost=float(1 + job.arm))
    return jobs


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_in_ask_order_decision_k_sees_exactly_the_results_up_to_k_minus_n_jobs(
    n_jobs: int, seed: int | None
) -> None:
    calls: list[tuple[Any, ...]] = []
    scheduler = Scheduler(scripted(calls), 6, 20, order="ask", n_jobs=n_jobs)
    jobs = run_shuffled(scheduler, seed)
    expected: list[tuple[Any, ...]] = []
    results = [
        ("update", k, job.arm, *scores_of(job)) for k, job in enumerate(jobs, start=1)
    ]
    for k in range(1, 21):
        if k > n_jobs:
            expected.append(results[k - n_jobs - 1])
        expected.append(("select", k))
    expected += results[20 - n_jobs :]
    assert calls == expected


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize("policy", ["cure-ucb", "epsilon-greedy", "round-robin"])
def test_in_ask_order_the_run_equals_one_driven_by_hand(
    policy: str, n_jobs: int
) -> None:
    n_arms, budget, max_epochs = 5, 40, 12
    by_hand: Any = make_policy(policy, n_arms, budget, max_epochs)
    rng = np.random.default_rng(7)
    arms: list[int] = []
    told = [0] * n_arms

    def take_in(k: int) -> None:
        arm = arms[k]
        told[arm] += 1
        by_hand.pulls_left[arm] -= 1
        by_hand.update(k + 1, arm, rising(arm, told[arm]), rng)

    for k in range(budget):
        if k >= n_jobs:
            take_in(k - n_jobs)
        busy = arms[max(0, k + 1 - n_jobs) :]
        for arm in range(n_arms):
            by_hand.available[arm] = arm not in busy and told[arm] < max_epochs
        arms.append(by_hand.select(k + 1, rng))

    scheduler = Scheduler(
        policy, n_arms, budget, max_epochs, order="ask", n_jobs=n_jobs, seed=7
    )
    assert pulls(run_shuffled(scheduler, seed=0)) == arms


@pytest.mark.parametrize("policy", INFOS)
@pytest.mark.parametrize("n_jobs", [2, 5])
def test_in_ask_order_it_does_not_matter_what_finishes_first(
    policy: str, live_params: Any, n_jobs: int
) -> None:
    def run(seed: int | None) -> tuple[list[Job], dict[str, Any]]:
        scheduler = Scheduler(
            policy,
            6,
            50,
            15,
            seed=2,
            order="ask",
            n_jobs=n_jobs,
            policy_params=live_params(policy),
        )
        return run_shuffled(scheduler, seed), scheduler.state_dict()

    assert run(None) == run(0) == run(1)


@pytest.mark.parametrize("policy", INFOS)
def test_in_completion_order_the_same_tells_give_the_same_run(
    policy: str, live_params: Any
) -> None:
    def run() -> tuple[list[Job], dict[str, Any]]:
        scheduler = Scheduler(
            policy, 6, 50, 15, seed=2, n_jobs=3, policy_params=live_params(policy)
        )
        return run_shuffled(scheduler, seed=0), scheduler.state_dict()

    assert run() == run()


def test_in_completion_order_a_result_counts_at_once() -> None:
    calls: list[tuple[Any, ...]] = []
    scheduler = Scheduler(
        scripted(calls), n_arms=4, budget=9, n_jobs=2, order="completion"
    )
    jobs = [ask(scheduler) for _ in range(2)]
    scheduler.tell(jobs[1], 0.5)
    assert calls == [("select", 1), ("select", 2), ("update", 2, 1, 0.5)]


def test_n_jobs_makes_the_run_independent_of_what_finishes_first() -> None:
    assert Scheduler(n_arms=4, budget=9, n_jobs=2).order == "ask"
    assert Scheduler(n_arms=4, budget=9).order == "completion"


def test_a_policy_may_wait_for_a_result() -> None:
    scheduler = Scheduler(scripted(say={3: WAIT}), n_arms=9, budget=9)
    job, _ = ask(scheduler), ask(scheduler)
    assert scheduler.ask() is None
    assert not scheduler.done
    scheduler.tell(job, [])  # its round comes back
    assert scheduler.ask() is not None


def test_a_policy_is_asked_once_per_result() -> None:
    calls: list[tuple[Any, ...]] = []
    scheduler = Scheduler(scripted(calls, say={2: WAIT}), n_arms=9, budget=9)
    scheduler.ask()
    for _ in range(3):
        assert scheduler.ask() is None
    assert calls == [("select", 1), ("select", 2)]


def test_an_ask_in_vain_draws_nothing() -> None:
    class Hesitant(Scripted):
        def select(self, t: int, rng: np.random.Generator) -> int:
            rng.random()
            return super().select(t, rng)

    def build(*sizes: Any) -> Hesitant:
        return Hesitant(*scripted(say={2: WAIT})(*sizes))

    scheduler = Scheduler(build, n_arms=9, budget=9, seed=0)
    ask(scheduler)
    before = scheduler.state_dict()["rng"]
    assert scheduler.ask() is None
    assert scheduler.state_dict()["rng"] == before


def test_flush_takes_in_what_ask_order_holds_back() -> None:
    scheduler = Scheduler("round-robin", 9, 20, order="ask", n_jobs=4)
    jobs = [ask(scheduler) for _ in range(4)]
    for job in (jobs[3], jobs[1], jobs[0]):
        scheduler.tell(job, 0.1 * (1 + job.id))
    assert scheduler.spent == 0
    scheduler.flush()
    assert [row["job"] for row in scheduler.history] == [0, 1]
    scheduler.tell(jobs[2], 0.3)
    scheduler.flush()
    assert [row["job"] for row in scheduler.history] == [0, 1, 2, 3]
    assert scheduler.best_arm == 3
    finish(scheduler)
    assert scheduler.spent == 20


def test_flush_in_completion_order_has_nothing_to_do() -> None:
    scheduler = Scheduler("round-robin", 9, 20)
    job, _ = ask(scheduler), ask(scheduler)
    scheduler.tell(job, 0.5)
    before = saved(scheduler)
    scheduler.flush()
    assert saved(scheduler) == before


# --------------------------------------------------------------------- seconds and cost


def run_by_cost(scheduler: Scheduler, cost: Sequence[float]) -> list[Job]:
    jobs = []
    while (job := scheduler.ask()) is not None:
        scheduler.tell(job, scores_of(job), cost=cost[job.arm] * job.n_epochs)
        jobs.append(job)
    return jobs


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


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_jobs_start_only_while_their_expected_cost_fits(n_jobs: int) -> None:
    scheduler = Scheduler("round-robin", 4, Budget(cost=30), 50, slice=4, n_jobs=n_jobs)
    for job in [ask(scheduler) for _ in range(n_jobs)]:
        scheduler.tell(job, [0.5] * 4, cost=8.0)
    run_shuffled(scheduler, seed=0, curve=lambda arm, epoch: 0.5)
    overrun = scheduler.spent - scheduler.budget
    assert overrun <= 4.0  # arm 3 was expected to cost no more than the others
    assert scheduler.done


def test_a_job_is_cut_to_what_it_can_pay() -> None:
    scheduler = Scheduler("random-search", 1, Budget(cost=10), max_epochs=50, slice=4)
    assert [job.n_epochs for job in run_by_cost(scheduler, [1.5])] == [4, 2]
    assert scheduler.spent == 9.0
    assert scheduler.stop_reason == "the budget of 10 cost is spent"


def test_where_the_cost_is_known_the_budget_is_not_overrun() -> None:
    scheduler = Scheduler("round-robin", 3, Budget(seconds=50), max_epochs=40, seed=0)
    run_by_cost(scheduler, [1.0, 3.0, 7.0])
    assert 49.0 < scheduler.spent <= 50.0


def test_a_failed_job_costs_what_it_took_or_what_was_expected() -> None:
    scheduler = Scheduler("round-robin", 3, Budget(seconds=50), max_epochs=9, slice=2)
    jobs = [ask(scheduler) for _ in range(3)]
    scheduler.tell(jobs[0], [0.1, 0.2], cost=6.0)
    scheduler.fail(jobs[1], "crash")
    assert scheduler.spent == 12.0
    scheduler.fail(jobs[2], "crash", [0.1], cost=1.0)
    assert scheduler.spent == 13.0
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


# ---------------------------------------------------------------------------- extension

# Their choice does not depend on the horizon, so a budget that comes later is the same.
MYOPIC = [
    "asha",
    "epsilon-greedy",
    "r-ed-ucb",
    "random",
    "random-search",
    "round-robin",
]


@pytest.mark.parametrize("max_epochs", [None, 11])
@pytest.mark.parametrize("policy", MYOPIC)
@pytest.mark.parametrize("extra", [14, Budget(epochs=14)])
def test_an_extended_search_equals_one_with_the_larger_budget(
    policy: str, max_epochs: int | None, extra: int | Budget
) -> None:
    if (policy, max_epochs) == ("asha", None):
        max_epochs = 20  # its rungs depend on what an arm can use
    extended = Scheduler(policy, 4, 26, max_epochs, seed=5)
    jobs = finish(extended)
    extended.extend(extra)
    assert not extended.done
    jobs += finish(extended)
    whole = Scheduler(policy, 4, 40, max_epochs, seed=5)
    assert pulls(jobs) == pulls(finish(whole))
    assert extended.spent == extended.budget == whole.budget
    assert [row["score"] for row in extended.history] == [
        row["score"] for row in whole.history
    ]


@pytest.mark.parametrize("policy", INFOS)
@pytest.mark.parametrize("max_epochs", [None, 12])
def test_an_extension_retrains_nothing(
    policy: str, live_params: Any, max_epochs: int | None
) -> None:
    scheduler = Scheduler(
        policy, 5, 20, max_epochs, seed=0, policy_params=live_params(policy)
    )
    jobs = finish(scheduler)
    for _ in range(2):
        scheduler.extend(9)
        jobs += finish(scheduler)
    assert [job.id for job in jobs] == list(range(len(jobs)))
    trained = [
        (job.arm, job.from_epoch + k) for job in jobs for k in range(job.n_epochs)
    ]
    assert len(trained) == len(set(trained)) == scheduler.spent


def test_a_search_can_be_extended_while_jobs_are_in_flight() -> None:
    scheduler = Scheduler("cure-ucb", 3, budget=6)
    jobs = [ask(scheduler) for _ in range(3)]
    scheduler.extend(4)
    for job in jobs:
        scheduler.tell(job, scores_of(job))
    finish(scheduler)
    assert scheduler.spent == 10


def test_a_search_by_cost_is_extended_by_cost() -> None:
    scheduler = Scheduler("round-robin", 2, Budget(cost=5), max_epochs=50)
    run_by_cost(scheduler, [1.0, 1.0])
    scheduler.extend(Budget(cost=3))
    run_by_cost(scheduler, [1.0, 1.0])
    assert scheduler.spent == scheduler.budget == 8
    with pytest.raises(InvalidParameterError, match="has a budget in cost; extend it"):
        scheduler.extend(3)


def test_a_ready_made_policy_cannot_be_extended() -> None:
    scheduler = Scheduler(CureUCB.create(2, 10), n_arms=2, budget=10)
    with pytest.raises(InvalidParameterError) as raised:
        scheduler.extend(5)
    assert str(raised.value) == (
        "a ready-made policy cannot plan anew for a larger budget: "
        "give its name or its factory to the Scheduler"
    )
    assert scheduler.budget == 10


def test_a_factory_can_be_extended() -> None:
    by_factory = Scheduler(CureUCB, 3, 20, policy_params={"sigma": 0.0})
    by_name = Scheduler("cure-ucb", 3, 20, policy_params={"sigma": 0.0})
    for scheduler in (by_factory, by_name):
        finish(scheduler)
        scheduler.extend(20)
    assert finish(by_factory) == finish(by_name)


def test_an_arm_that_ended_stays_ended_after_an_extension() -> None:
    scheduler = Scheduler("round-robin", n_arms=2, budget=4, slice=4)
    job = ask(scheduler)
    scheduler.tell(job, [0.5])
    finish(scheduler)
    scheduler.extend(5)
    assert {job.arm for job in finish(scheduler)} == {1}


# ------------------------------------------------------------------------- saved states


@pytest.mark.parametrize("policy", INFOS)
@pytest.mark.parametrize("order", ["completion", "ask"])
def test_a_saved_search_goes_on_as_if_never_interrupted(
    policy: str, live_params: Any, order: str
) -> None:
    def build() -> Scheduler:
        return Scheduler(
            policy,
            6,
            45,
            12,
            seed=4,
            order=order,
            n_jobs=3,
            max_failures=1,
            policy_params=live_params(policy),
        )

    rng = np.random.default_rng(1)
    whole, broken = build(), build()
    while True:
        state = saved(broken)
        broken = build()
        broken.load_state_dict(state)
        assert saved(broken) == state
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
    assert repr(broken.explain()) == repr(whole.explain())


class Drawing(Scripted):
    """Draws wherever the contract lets it."""

    def select(self, t: int, rng: np.random.Generator) -> int:
        free = np.flatnonzero(self.available)
        return int(free[int(rng.random() * len(free))])

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        rng.random()

    @classmethod
    def create(cls, *sizes: Any) -> Drawing:
        return cls(*scripted()(*sizes))


def test_a_look_at_done_between_tell_and_save_repeats_no_draw() -> None:
    def build() -> Scheduler:
        return Scheduler(Drawing, 20, 40, seed=0, order="ask", n_jobs=3)

    looked, plain = build(), build()
    for scheduler in (looked, plain):
        for job in [ask(scheduler) for _ in range(3)]:
            scheduler.tell(job, 0.5)
    assert not looked.done  # takes two results in, and decides
    restored = build()
    restored.load_state_dict(saved(looked))
    assert finish(restored) == finish(looked) == finish(plain)


@pytest.mark.parametrize(
    "look",
    [
        lambda s: s.done,
        lambda s: s.stop_reason,
        lambda s: s.explain(),
        lambda s: s.statuses(),
        lambda s: (s.best_arm, s.best_score, s.best_epoch),
        lambda s: (s.history, s.in_flight, s.spent, s.n_epochs, s.policy_name),
        lambda s: s.state_dict(),
    ],
    ids=["done", "stop_reason", "explain", "statuses", "best", "history", "state"],
)
@pytest.mark.parametrize("policy", [*INFOS, Drawing])
def test_looking_changes_nothing(
    policy: Any, live_params: Any, look: Callable[[Scheduler], Any]
) -> None:
    def run(look: Callable[[Scheduler], Any]) -> tuple[list[Job], dict[str, Any]]:
        scheduler = Scheduler(
            policy, 6, 40, 12, seed=4, n_jobs=2, policy_params=live_params(policy)
        )
        rng = np.random.default_rng(1)
        jobs = []
        while True:
            look(scheduler)
            job = scheduler.ask()
            look(scheduler)
            if job is not None:
                jobs.append(job)
            if job is None or rng.random() < 0.5:
                if not scheduler.in_flight:
                    return jobs, saved(scheduler)
                told = scheduler.in_flight[int(rng.integers(len(scheduler.in_flight)))]
                scores = scores_of(told)
                if told.id % 7 == 3:
                    scheduler.fail(told, "crash")
                else:
                    scheduler.tell(told, scores[: len(scores) - (told.id % 9 == 4)])

    assert run(look) == run(lambda scheduler: None)


def test_a_state_shows_no_trace_of_a_look() -> None:
    looked, plain = (Scheduler("cure-ucb", 4, 20, seed=0) for _ in range(2))
    assert ask(looked) == ask(plain)
    looked.explain()
    assert saved(looked) == saved(plain)


def test_a_look_at_done_before_a_flush_decides_nothing() -> None:
    looked, plain = (
        Scheduler(Drawing, 20, 40, seed=0, order="ask", n_jobs=3) for _ in range(2)
    )
    for scheduler in (looked, plain):
        for job in [ask(scheduler) for _ in range(3)]:
            scheduler.tell(job, 0.5)
    assert not looked.done
    for scheduler in (looked, plain):
        scheduler.flush()
    assert finish(looked) == finish(plain)


def test_numpy_numbers_and_open_ranges_are_saved_as_json() -> None:
    def build() -> Scheduler:
        return Scheduler(
            "screened-damped-slope",
            np.int64(3),  # type: ignore[arg-type]
            np.int64(20),  # type: ignore[arg-type]
            np.int64(9),  # type: ignore[arg-type]
            slice=np.int64(2),  # type: ignore[arg-type]
            n_jobs=np.int64(2),  # type: ignore[arg-type]
            max_failures=np.int64(1),  # type: ignore[arg-type]
            error_score=np.float32(0.5),  # type: ignore[arg-type]
            score_range=(-math.inf, 1.0),
            opening_order=np.array([2, 0, 1]),
        )

    scheduler, restored = build(), build()
    job = ask(scheduler)
    scheduler.tell(job, np.array([0.5, np.nan], dtype=np.float32))
    restored.load_state_dict(saved(scheduler))
    assert finish(restored) == finish(scheduler)


def test_a_state_of_an_extended_search_brings_its_budget() -> None:
    extended = Scheduler("cure-ucb", 3, 10)
    finish(extended)
    extended.extend(10)
    restored = Scheduler("cure-ucb", 3, 10)
    restored.load_state_dict(saved(extended))
    assert restored.budget == 20
    assert finish(restored) == finish(extended)


def test_a_saved_ready_made_policy_goes_on() -> None:
    def build() -> Scheduler:
        return Scheduler(CureUCB.create(3, 20), n_arms=3, budget=20)

    scheduler, restored = build(), build()
    for _ in range(7):
        job = ask(scheduler)
        scheduler.tell(job, scores_of(job))
    restored.load_state_dict(saved(scheduler))
    assert finish(restored) == finish(scheduler)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"policy": "asha"}, "policy='cure-ucb', the scheduler has policy='asha'"),
        ({"policy_params": {"sigma": 0.1}}, "policy_params="),
        ({"n_arms": 4}, "n_arms=3, the scheduler has n_arms=4"),
        ({"budget": Budget(cost=10)}, "budget_unit='epochs'"),
        ({"max_epochs": 9}, "max_epochs=8"),
        ({"slice": 2}, "slice=None"),
        ({"direction": "minimize"}, "direction='maximize'"),
        ({"order": "ask"}, "order='completion'"),
        ({"n_jobs": 4, "order": "completion"}, "n_jobs=None"),
        ({"error_score": 0.0}, "error_score=None"),
        ({"max_failures": 1}, "max_failures=0"),
        ({"score_range": (0, 1)}, "score_range=None"),
        ({"opening_order": [1, 0, 2]}, "opening_order=[0, 1, 2]"),
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
    with pytest.raises(StateError) as raised:
        other.load_state_dict(state)
    assert message in str(raised.value)
    assert str(raised.value).startswith("this state was saved with ")
    assert saved(other) == before


def test_a_state_of_another_version_is_refused() -> None:
    scheduler = Scheduler("cure-ucb", 3, 10)
    state = saved(scheduler) | {"version": 99}
    with pytest.raises(StateError) as raised:
        scheduler.load_state_dict(state)
    assert str(raised.value) == (
        "this state has version 99, this release reads version 2: "
        "load it with the release that saved it"
    )


def test_the_seed_decides_the_draws() -> None:
    def run(seed: int) -> list[int]:
        return pulls(finish(Scheduler("random", 5, 30, seed=seed)))

    assert run(1) == run(1) != run(2)


# ---------------------------------------------------------------- what the search tells


def test_explain_says_where_every_arm_stands_and_why() -> None:
    scheduler = Scheduler(scripted(say={6: 0}), n_arms=6, budget=30, max_epochs=2)
    for score in (0.5, math.nan, 0.7):
        job = ask(scheduler)
        scheduler.tell(job, score)
    jobs = [ask(scheduler) for _ in range(3)]
    assert jobs[2].arm == 0
    scheduler.tell(jobs[2], 0.6)
    assert [(arm.status, arm.reason) for arm in scheduler.explain()] == [
        ("finished", "has used all its epochs"),
        ("failed", "retired: score is not finite"),
        ("paused", "paused: Scripted preferred arm 0"),
        ("running", "in training"),
        ("running", "in training"),
        ("unopened", "not opened: the policy opens arms when it sees fit"),
    ]
    assert [arm.arm for arm in scheduler.explain()] == [0, 1, 2, 3, 4, 5]
    assert scheduler.explain()[0].last_score == 0.6
    assert scheduler.explain()[0].best_epoch == 2
    assert math.isnan(scheduler.explain()[5].last_score)


def test_the_arm_told_last_is_not_waiting_for_another() -> None:
    scheduler = Scheduler("round-robin", n_arms=2, budget=9)
    job = ask(scheduler)
    scheduler.tell(job, 0.5)
    assert scheduler.explain()[0].reason == "trained last"


def test_explain_says_that_the_policy_waits_for_what_is_in_training() -> None:
    scheduler = Scheduler("screened-damped-slope", 2, budget=8, max_epochs=6, n_jobs=2)
    for _ in range(4):
        job = ask(scheduler)
        scheduler.tell(job, scores_of(job))
    job = ask(scheduler)  # it could get all that is left
    assert scheduler.ask() is None
    reasons = [arm.reason for arm in scheduler.explain()]
    reasons.remove("in training")
    assert reasons == ["paused: screened-damped-slope waits for what is in training"]
    scheduler.tell(job, scores_of(job))
    assert scheduler.ask() is not None


def test_explain_names_the_parts_of_the_index() -> None:
    scheduler = Scheduler("cure-ucb", 3, 20, policy_params={"sigma": 0.1})
    for _ in range(4):
        job = ask(scheduler)
        scheduler.tell(job, scores_of(job))
    opened, unopened = scheduler.explain()[0], scheduler.explain()[2]
    assert set(opened.index) == {"recent_average", "expected_gain", "bonus"}
    assert all(type(part) is float for part in opened.index.values())
    assert opened.index["recent_average"] == pytest.approx(rising(0, opened.epochs))
    assert scheduler.status(2) == "paused" or unopened.index == {}


def test_history_tells_why_every_epoch_was_chosen() -> None:
    params = {"sigma": 0.0, "eps": 0.05}
    scheduler = Scheduler("cure-ucb", 2, 12, policy_params=params)
    finish(scheduler)
    rows = scheduler.history
    assert [row["round"] for row in rows] == list(range(1, 13))
    assert [row["reason"] for row in rows[:4]] == [
        "opened",
        "opened",
        "revived",
        "revived",
    ]
    assert {row["reason"] for row in rows[4:]} <= {"continued", "revived"}
    assert all(math.isnan(row["cost"]) for row in rows)
    for row in rows[4:]:
        last, before = (rising(row["arm"], row["epoch"] - k) for k in (1, 2))
        assert row["recent_average"] == pytest.approx(last)
        gain = (12 - row["round"]) / 2 * (last - before)
        assert row["expected_gain"] == pytest.approx(gain)
        assert row["bonus"] == 0.0


def test_history_keeps_the_cost_of_an_epoch() -> None:
    scheduler = Scheduler("random-search", 2, 6, slice=3)
    job = ask(scheduler)
    scheduler.tell(job, [0.1, 0.2, 0.3], cost=6.0)
    assert [row["cost"] for row in scheduler.history] == [2.0, 2.0, 2.0]


def test_the_best_is_the_best_epoch_of_any_arm() -> None:
    scheduler = Scheduler("round-robin", 2, 6, direction="minimize")
    finish(scheduler, lambda arm, epoch: [[3, 1, 2], [5, 4, 2]][arm][epoch - 1])
    assert scheduler.best_arm == 0
    assert (scheduler.best_score, scheduler.best_epoch) == (1, 2)


# ----------------------------------------------------------------------------- policies


@pytest.mark.parametrize(
    "policy",
    [
        "cure-ucb",
        CureUCB,
        CureUCB.create,
        lambda n_arms, horizon, max_pulls: CureUCB.create(n_arms, horizon, max_pulls),
        CureUCB.create(4, 30, 12),
    ],
    ids=["name", "class", "create", "function", "instance"],
)
def test_a_policy_may_be_given_in_any_form(policy: Any) -> None:
    scheduler = Scheduler(policy, n_arms=4, budget=30, max_epochs=12)
    assert finish(scheduler) == finish(Scheduler("cure-ucb", 4, 30, 12))
    registered = policy in ("cure-ucb", CureUCB, CureUCB.create)
    assert scheduler.policy_name == ("cure-ucb" if registered else "CureUCB")


def test_a_registered_factory_is_treated_as_its_name() -> None:
    with pytest.raises(InvalidParameterError, match="budget must be in epochs"):
        Scheduler(POLICIES["be"], 3, Budget(seconds=3), max_epochs=3)
    with pytest.raises(UnknownNameError, match="did you mean 'sigma'"):
        Scheduler(CureUCB, 3, 9, policy_params={"sigma_": 1})


def test_a_damaged_state_changes_nothing() -> None:
    scheduler = Scheduler("round-robin", n_arms=3, budget=9)
    scheduler.tell(ask(scheduler), 0.5)
    before = scheduler.state_dict()
    for part in ("ledger", "policy", "history", "rng"):
        damaged = json.loads(json.dumps(before))
        (damaged["standings"] if part == "history" else damaged)[part] = {"x": 1}
        damaged["rounds"] = 7
        with pytest.raises(StateError):
            scheduler.load_state_dict(damaged)
        assert scheduler.state_dict() == before


@pytest.mark.parametrize(
    ("objective", "name"), [("best", "screened-damped-slope"), ("sum", "cure-ucb")]
)
def test_auto_stands_for_the_policy_of_the_objective(objective: str, name: str) -> None:
    scheduler = Scheduler(n_arms=4, budget=30, objective=objective)
    assert scheduler.policy_name == name
    assert finish(scheduler) == finish(Scheduler(name, n_arms=4, budget=30))


def test_a_ready_made_policy_is_left_as_it_was() -> None:
    policy = CureUCB.create(3, 20)
    first, second = (finish(Scheduler(policy, 3, 20)) for _ in range(2))
    assert first == second
    assert policy.pulls.tolist() == [0, 0, 0]


@pytest.mark.parametrize("arm", [3, -2, 1])
def test_a_policy_must_choose_an_available_arm(arm: int) -> None:
    scheduler = Scheduler(scripted(say={1: 1, 2: arm}), n_arms=3, budget=9, slice=2)
    scheduler.tell(ask(scheduler), [0.5])
    with pytest.raises(PolicyError) as raised:
        scheduler.ask()
    assert str(raised.value) == (
        f"Scripted chose arm {arm}, which is not available; "
        "select must return an available arm or WAIT"
    )
    assert scheduler.in_flight == ()
    assert scheduler.spent == 1


def test_a_policy_needs_the_arrays_of_the_caller() -> None:
    with pytest.raises(PolicyError) as raised:
        Scheduler(scripted()(2, 9, None), n_arms=3, budget=9)
    assert str(raised.value) == (
        "Scripted needs an array available of length n_arms=3, which the scheduler "
        "keeps up to date; it has one of length 2"
    )
    with pytest.raises(PolicyError, match="NoneType needs an array available"):
        Scheduler(lambda *sizes: None, n_arms=3, budget=9)  # type: ignore[arg-type]


def test_a_ready_made_policy_must_have_room_for_all_epochs() -> None:
    with pytest.raises(PolicyError) as raised:
        Scheduler(CureUCB.create(3, 20, 5), n_arms=3, budget=20, max_epochs=8)
    assert str(raised.value) == (
        "this CureUCB was made for 5 pulls of an arm, the scheduler allows 8: "
        "make it with max_pulls=8"
    )


def test_a_part_of_an_index_cannot_be_called_like_a_column() -> None:
    class Explaining(Scripted):
        def explain(self, arm: int) -> dict[str, float]:
            return {"score": 0.5}

    scheduler = Scheduler(
        lambda *sizes: Explaining(*scripted()(*sizes)), n_arms=1, budget=5
    )
    job = ask(scheduler)
    scheduler.tell(job, 0.5)
    with pytest.raises(PolicyError) as raised:
        scheduler.ask()
    assert str(raised.value) == (
        "Explaining explains a part of its index called 'score', "
        "which is a column of the history: give it another name"
    )


# ------------------------------------------------------------------------ bad arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_arms": None}, "give both n_arms and budget; got n_arms=None and budget=9"),
        ({"budget": None}, "give both n_arms and budget; got n_arms=3 and budget=None"),
        ({"n_arms": 0}, "n_arms must be a whole number of at least 1; got 0"),
        ({"n_arms": 2.0}, "n_arms must be a whole number of at least 1; got 2.0"),
        ({"budget": 0}, "budget must be a whole number of at least 1; got 0"),
        ({"budget": 9.5}, "budget must be a whole number of at least 1; got 9.5"),
        ({"budget": Budget()}, "a Budget has one of epochs, seconds and cost; got "),
        ({"budget": Budget(seconds=9)}, "a budget in seconds needs max_epochs: how "),
        ({"max_epochs": 0}, "max_epochs must be a whole number of at least 1; got 0"),
        ({"slice": 0}, "slice must be a whole number of at least 1; got 0"),
        ({"n_jobs": 0}, "n_jobs must be a whole number of at least 1; got 0"),
        ({"n_jobs": -1}, "n_jobs must be a whole number of at least 1; got -1"),
        ({"max_failures": -1}, "max_failures must be a whole number of at least 0; "),
        ({"seed": -1}, "seed must be a whole number of at least 0; got -1"),
        ({"seed": "lucky"}, "seed must be a whole number of at least 0; got 'lucky'"),
        ({"objective": "max"}, "objective must be one of 'best', 'sum'; got 'max'"),
        (
            {"direction": "up"},
            "direction must be one of 'maximize', 'minimize'; got 'up'",
        ),
        ({"order": "fifo"}, "order must be one of 'completion', 'ask'; got 'fifo'"),
        ({"error_score": "raise"}, "error_score must be a finite number; got 'raise'"),
        ({"error_score": math.nan}, "error_score must be a finite number; got nan"),
        ({"score_range": (1, 0)}, "score_range must be (lowest, highest); got (1, 0)"),
        ({"score_range": (0, 1, 2)}, "score_range must be (lowest, highest); got "),
        ({"score_range": 1.0}, "score_range must be (lowest, highest); got 1.0"),
        ({"score_range": (math.nan, 1)}, "score_range must be (lowest, highest); got"),
        (
            {"opening_order": [0, 1]},
            "opening_order must name each of the 3 arms once; got [0, 1]",
        ),
        ({"opening_order": [0, 1, 1]}, "opening_order must name each of the 3 arms "),
        ({"opening_order": [0, 1, 2.5]}, "opening_order must name each of the 3 arms "),
        ({"opening_order": "012"}, "opening_order must name each of the 3 arms once; "),
        ({"opening_order": 3}, "opening_order must name each of the 3 arms once; got "),
        (
            {"policy": None},
            "policy must be a registered name, a factory or a policy; got None",
        ),
        ({"policy": 5}, "policy must be a registered name, a factory or a policy; got"),
        (
            {"policy": CureUCB.create(3, 9), "policy_params": {"sigma": 0.1}},
            "a ready-made policy takes no policy_params; got {'sigma': 0.1}",
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


@pytest.mark.parametrize(
    ("policy", "closest"),
    [("cure", "cure-ucb"), ("hyper-band", "hyperband"), ("ashaa", "asha")],
)
def test_an_unknown_policy_is_answered_with_the_closest(
    policy: str, closest: str
) -> None:
    with pytest.raises(UnknownNameError) as raised:
        Scheduler(policy, 3, 9)
    message = f"unknown policy {policy!r}; did you mean {closest!r}? Known: "
    assert str(raised.value).startswith(message)


def test_an_unknown_parameter_is_answered_with_the_closest() -> None:
    with pytest.raises(UnknownNameError) as raised:
        Scheduler("cure-ucb", 3, 9, policy_params={"epsilon": 0.1})
    assert "'epsilon'; did you mean 'eps'? Known: " in str(raised.value)


# --------------------------------------------------------------- CURE-UCB, pull by pull


def cure_pulls(
    table: NDArray[np.float64],
    horizons: Sequence[int],
    eps: float,
    sigma: float | None,
    max_epochs: int,
) -> list[int]:
    """CURE-UCB computed directly: every window summed afresh, at every round.

    ``horizons``: the budgets, each known once the one before is spent.
    """
    seen: list[list[float]] = [[] for _ in table]
    chosen: list[int] = []

    def noise() -> float:
        if sigma is not None:
            return sigma
        bends = [y[k] - 2 * y[k - 1] + y[k - 2] for y in seen for k in range(2, len(y))]
        return math.sqrt(math.fsum(d * d for d in bends) / (6 * max(1, len(bends))))

    def index(rewards: list[float], t: int, horizon: int) -> float:
        n = len(rewards)
        h = max(1, math.floor(eps * n))
        recent = math.fsum(rewards[n - h :])
        before = math.fsum(rewards[n - 2 * h : n - h])
        left = horizon - t
        projection = recent / h + left / 2 * (recent - before) / h**2
        spread = (3 * left**2 + 8 * h**2) / (4 * h**3)
        return projection + noise() * math.sqrt(6 * math.log(t) * spread)

    for horizon in horizons:
        while len(chosen) < horizon:
            t = len(chosen) + 1
            arms = [i for i, rewards in enumerate(seen) if len(rewards) < max_epochs]
            if not arms:
                return chosen
            fresh = [i for i in arms if len(seen[i]) < 2]
            if fresh:
                arm = min(fresh, key=lambda i: (len(seen[i]), i))
            else:
                indices = {i: index(seen[i], t, horizon) for i in arms}
                arm = max(arms, key=lambda i: (indices[i], -len(seen[i]), -i))
            seen[arm].append(float(table[arm, len(seen[arm])]))
            chosen.append(arm)
    return chosen


def recorded_curves(n_arms: int, n_epochs: int, seed: int) -> NDArray[np.float64]:
    """Noise-free concave rising curves; on a dyadic grid, so that sums are exact."""
    rng = np.random.default_rng(seed)
    top = rng.uniform(0.3, 1.0, size=(n_arms, 1))
    speed = rng.uniform(0.2, 1.5, size=(n_arms, 1))
    curves = top * (1 - (1 + np.arange(1, n_epochs + 1)) ** -speed)
    return np.round(curves * 2**24) / 2**24


def play(scheduler: Scheduler, table: NDArray[np.float64]) -> list[int]:
    return pulls(finish(scheduler, lambda arm, epoch: float(table[arm, epoch - 1])))


@pytest.mark.parametrize("eps", [1 / 32, 0.25, 0.5])
@pytest.mark.parametrize("sigma", [0.0, 0.003, 0.1, None])
@pytest.mark.parametrize("max_epochs", [None, 40])
def test_cure_ucb_equals_its_formula_pull_by_pull(
    eps: float, sigma: float | None, max_epochs: int | None
) -> None:
    table = recorded_curves(n_arms=6, n_epochs=220, seed=1)
    scheduler = Scheduler(
        "cure-ucb", 6, 220, max_epochs, policy_params={"eps": eps, "sigma": sigma}
    )
    expected = cure_pulls(table, [220], eps, sigma, max_epochs or 220)
    assert play(scheduler, table) == expected
    assert len(set(expected[12:])) > 1


@pytest.mark.parametrize("max_epochs", [None, 40])
def test_an_extended_cure_ucb_looks_to_the_new_horizon(max_epochs: int | None) -> None:
    table = recorded_curves(n_arms=5, n_epochs=150, seed=2)
    scheduler = Scheduler("cure-ucb", 5, 60, max_epochs, policy_params={"sigma": 0.01})
    actual = play(scheduler, table)
    scheduler.extend(90)
    actual += play(scheduler, table)
    horizons = [60, 150]
    assert actual == cure_pulls(table, horizons, 0.25, 0.01, max_epochs or 150)


@pytest.mark.parametrize("policy_params", [{"sigma": 0.0, "eps": 0.1}, {}])
def test_the_sum_objective_is_cure_ucb(policy_params: dict[str, float]) -> None:
    table = recorded_curves(n_arms=4, n_epochs=80, seed=3)
    scheduler = Scheduler(
        n_arms=4, budget=80, objective="sum", policy_params=policy_params
    )
    eps, sigma = policy_params.get("eps", 0.25), policy_params.get("sigma")
    assert play(scheduler, table) == cure_pulls(table, [80], eps, sigma, 80)


# -------------------------------------------------------------------------- real curves

DATA = os.environ.get("RISINGSEARCH_DATA")
TASKS = [
    sorted(Path(DATA or "", "hpo_curves", family).glob("*.npz"))[0]
    for family in (("taskset", "deepobs") if DATA else ())
]

if TASKS:

    def normalised_regret(path: Path, policy: str, seed: int) -> float:
        """Search a recorded task with its configurations in random order."""
        with np.load(path) as task:
            valid, length = task["valid"].astype(float), task["length"]
        order = np.random.default_rng(seed).permutation(len(valid))
        valid, length = valid[order], length[order]
        max_epochs = int(length.max())
        budget = 5 * max_epochs
        scheduler = Scheduler(policy, len(valid), budget, max_epochs, seed=seed)
        while (job := scheduler.ask()) is not None:
            end = min(job.from_epoch + job.n_epochs, int(length[job.arm]))
            scheduler.tell(job, valid[job.arm, job.from_epoch : end])
        assert scheduler.done
        assert scheduler.spent <= budget
        if INFOS[scheduler.policy_name].adaptive:
            assert scheduler.spent == budget
        best = np.nanmax(valid, axis=1)
        assert scheduler.best_score <= best.max()
        regret = (best.max() - scheduler.best_score) / (best.max() - np.median(best))
        return float(min(1.0, regret))

    @pytest.mark.parametrize("path", TASKS, ids=lambda path: path.parent.name)
    def test_the_default_beats_random_search_on_recorded_tasks(path: Path) -> None:
        regret = {
            policy: np.mean([normalised_regret(path, policy, s) for s in range(10)])
            for policy in ("auto", "random-search", "asha", "successive-halving")
        }
        assert regret["auto"] < regret["random-search"]
        assert regret["auto"] < 0.5


def test_a_job_that_was_cut_short_leaves_its_arm_paused() -> None:
    scheduler = Scheduler("round-robin", n_arms=2, budget=9, max_epochs=5, slice=3)
    scheduler.tell(ask(scheduler), [0.5], ended=False)
    first = scheduler.explain()[0]
    assert (first.status, first.epochs, scheduler.spent) == ("paused", 1, 1)
    finish(scheduler)
    assert [arm.epochs for arm in scheduler.explain()] == [4, 5]
