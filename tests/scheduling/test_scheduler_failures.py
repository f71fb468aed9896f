"""Failures, scores that are not finite, and errors that change nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scheduler_runs import ask, finish, pulls, saved, scripted

from risingsearch.arms import Job
from risingsearch.budget import Budget
from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.scheduler import Scheduler


# ----------------------------------------------------------- errors that change nothing
def in_the_middle() -> tuple[Scheduler, Job, Job]:
    """Return a search with a job told and another in flight."""
    scheduler = Scheduler("cure-ucb", n_arms=3, budget=20, epochs_per_job=2)
    told, open_job = ask(scheduler), ask(scheduler)
    scheduler.tell(told, [0.1, math.nan])
    return scheduler, told, open_job


Wrong = Callable[[Scheduler, Job, Job], None]
WRONG: dict[str, tuple[Wrong, type[Exception], str]] = {
    "told twice": (
        lambda s, told, _: s.tell(told, [0.1, 0.2]),
        InvalidParameterError,
        "Job(arm=0, from_epoch=0, n_epochs=2, id=0) was told before; a job is told "
        "once",
    ),
    "failed after it was told": (
        lambda s, told, _: s.fail(told, "late"),
        InvalidParameterError,
        "was told before",
    ),
    "never asked for": (
        lambda s, _, __: s.tell(Job(0, 0, 2, 7), [0.1]),
        InvalidParameterError,
        "tell and fail take a Job from ask; Job(arm=0, from_epoch=0, n_epochs=2, id=7) "
        "was never asked for",
    ),
    "of another search": (
        lambda s, _, open_job: s.tell(Job(2, 5, 2, open_job.id), [0.1]),
        InvalidParameterError,
        "was never asked for",
    ),
    "not a job": (
        lambda s, _, __: s.tell(1, [0.1]),  # type: ignore[arg-type]
        InvalidParameterError,
        "tell and fail take a Job from ask; 1 was never asked for",
    ),
    "too many scores": (
        lambda s, _, open_job: s.tell(open_job, [0.1, 0.2, 0.3]),
        InvalidParameterError,
        "has 2 epochs; got 3 scores",
    ),
    "too many scores before a failure": (
        lambda s, _, open_job: s.fail(open_job, "late", [0.1, 0.2, 0.3]),
        InvalidParameterError,
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
    "text in an array without dimensions": (
        lambda s, _, open_job: s.tell(open_job, np.array("0.5")),
        InvalidParameterError,
        "scores must be numbers, one per epoch; got '0.5'",
    ),
    "a negative cost": (
        lambda s, _, open_job: s.tell(open_job, [0.1, 0.2], cost=-1.0),
        InvalidParameterError,
        "cost must be a finite number of at least 0 and at most 1e+150; got -1.0",
    ),
    "a cost that is not finite": (
        lambda s, _, open_job: s.fail(open_job, "late", cost=math.nan),
        InvalidParameterError,
        "cost must be a finite number of at least 0 and at most 1e+150; got nan",
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
    scheduler = Scheduler("round-robin", 5, 10, deterministic=True, n_jobs=3)
    jobs = [ask(scheduler) for _ in range(3)]
    scheduler.tell(jobs[2], 0.5)
    before = saved(scheduler)
    with pytest.raises(InvalidParameterError, match="was told before"):
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
@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_score_that_is_not_finite_is_charged_and_retires_the_arm(
    score: float, direction: str
) -> None:
    calls: list[tuple[Any, ...]] = []
    scheduler = Scheduler(scripted(calls), 2, 4, direction=direction, error_score=0.25)
    scheduler.tell(ask(scheduler), score)
    sign = 1 if direction == "maximize" else -1
    assert calls[-1] == ("update", 1, 0, sign * 0.25)
    arm = scheduler.explain()[0]
    assert (arm.status, arm.reason) == ("failed", "retired: score is not finite")
    assert (arm.charged, arm.epochs, arm.failures) == (1, 1, 1)
    assert math.isnan(arm.best_score)
    assert scheduler.best_arm is None
    assert math.isnan(scheduler.best_score)
    assert scheduler.best_epoch == 0
    assert pulls(finish(scheduler)) == [1, 1, 1]


def test_without_an_error_score_a_failure_counts_as_the_worst_so_far() -> None:
    calls: list[tuple[Any, ...]] = []
    scheduler = Scheduler(scripted(calls), 9, 9)
    for score in (0.7, 0.3, 0.5, math.nan):
        scheduler.tell(ask(scheduler), score)
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


@pytest.mark.parametrize(("charged", "n_lost"), [(None, 1), (2, 1), (4, 3)])
def test_the_policy_is_told_every_epoch_that_a_failure_costs(
    charged: int | None, n_lost: int
) -> None:
    calls: list[tuple[Any, ...]] = []
    scheduler = Scheduler(scripted(calls), 2, 9, epochs_per_job=4, error_score=-1.0)
    scheduler.fail(ask(scheduler), "crash", [0.5], charged=charged)
    rewards = [call[3] for call in calls if call[0] == "update"]
    assert rewards == [0.5, *[-1.0] * n_lost]


def test_an_arm_is_retried_up_to_max_failures() -> None:
    scheduler = Scheduler(
        scripted(), n_arms=1, budget=9, epochs_per_job=2, max_failures=2
    )
    from_epochs = []
    while (job := scheduler.ask()) is not None:
        from_epochs.append(job.from_epoch)
        scheduler.fail(job, "crash", [0.5])
    assert from_epochs == [0, 1, 2]  # a retry goes on where the arm got to
    arm = scheduler.explain()[0]
    assert (arm.status, arm.failures, arm.charged, arm.epochs) == ("failed", 3, 6, 3)


def test_scores_that_are_not_finite_count_as_failures_one_by_one() -> None:
    scheduler = Scheduler(scripted(), 1, 9, epochs_per_job=3, max_failures=3)
    job = ask(scheduler)
    scheduler.tell(job, [math.nan, 0.5, math.inf])
    assert scheduler.status(0) == "paused"
    job = ask(scheduler)
    scheduler.fail(job, "crash", [math.nan])
    assert scheduler.explain()[0].failures == 4
    assert scheduler.status(0) == "failed"


def test_a_failure_charges_what_was_trained() -> None:
    scheduler = Scheduler("round-robin", n_arms=3, budget=12, epochs_per_job=5)
    failed, _ = ask(scheduler), ask(scheduler)
    scheduler.fail(failed, MemoryError("no room"), scores=[0.4, 0.6])
    arm = scheduler.explain()[0]
    assert (scheduler.spent, arm.charged, arm.epochs) == (3, 3, 2)
    assert (arm.status, arm.reason) == ("failed", "retired: no room")
    assert (arm.best_score, arm.best_epoch, arm.failures) == (0.6, 2, 1)
    rows = scheduler.history
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert ["failure" in row for row in rows] == [False, False, True]
    assert ask(scheduler).n_epochs == 4  # of 12, beside 3 charged and 5 in flight


@pytest.mark.parametrize("charged", [0, 1, 6, 2.5])
def test_a_failure_charges_from_its_scores_to_its_job(charged: Any) -> None:
    scheduler = Scheduler("round-robin", n_arms=3, budget=12, epochs_per_job=5)
    job = ask(scheduler)
    before = saved(scheduler)
    with pytest.raises(InvalidParameterError, match="charged must be a whole number"):
        scheduler.fail(job, "crash", [0.4, 0.6], charged=charged)
    assert saved(scheduler) == before


def test_a_last_score_that_is_not_finite_is_a_failure_and_no_end() -> None:
    scheduler = Scheduler(scripted(), 1, 9, epochs_per_job=3, max_failures=1)
    scheduler.tell(ask(scheduler), [0.5, math.nan])
    arm = scheduler.explain()[0]
    assert (arm.status, arm.charged, arm.failures) == ("paused", 2, 1)
    scheduler.tell(ask(scheduler), [0.6, 0.7])
    assert scheduler.explain()[0].status == "finished"


def test_an_arm_that_fails_after_a_score_has_failed_for_a_model() -> None:
    scheduler = Scheduler(scripted(), 3, 12, epochs_per_job=3, max_failures=1)
    scheduler.fail(ask(scheduler), "crash", [0.9, 0.95])  # is tried again
    scheduler.tell(ask(scheduler), [0.2, math.nan, 0.3])  # goes on
    scheduler.fail(ask(scheduler), "crash", [0.8], attempts=2)
    opened = scheduler.opened()
    assert opened.failed.tolist() == [2]
    assert [curve.tolist() for curve in opened.curves] == [
        [0.9, 0.95],
        [0.2, 0.2, 0.3],
        [0.8],
    ]
    assert opened.ends.tolist() == [0.95, 0.3, 0.2]


def test_a_state_of_a_release_that_charged_whole_jobs_is_loaded() -> None:
    arguments: dict[str, Any] = {"deterministic": True, "n_jobs": 2}
    scheduler = Scheduler("round-robin", 3, 12, epochs_per_job=4, **arguments)
    _, second = ask(scheduler), ask(scheduler)
    scheduler.fail(second, "crash", [0.5])
    state = saved(scheduler)
    [held] = state["arms"]["held"]
    assert held.pop() == 2
    again = Scheduler("round-robin", 3, 12, epochs_per_job=4, **arguments)
    again.load_state_dict(state)
    again.tell(again.in_flight[0], [0.1] * 4)
    assert again.with_all_results().spent == 8


def test_a_failure_after_the_last_epoch_keeps_its_reason() -> None:
    scheduler = Scheduler("round-robin", n_arms=2, budget=4, epochs_per_job=2)
    scheduler.fail(ask(scheduler), OSError("disk full"), scores=[0.4, 0.6])
    assert scheduler.explain()[0].reason == "retired: disk full"
    assert [row.get("failure") for row in scheduler.history] == [None, "disk full"]
    assert scheduler.best_score == 0.6


def test_a_failure_without_a_message_goes_by_its_name() -> None:
    scheduler = Scheduler("round-robin", n_arms=2, budget=4)
    scheduler.fail(ask(scheduler), MemoryError())
    assert scheduler.explain()[0].reason == "retired: MemoryError"
