"""Several jobs in flight."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler_runs import ask, run_shuffled, saved, scores_of, scripted

from risingsearch.budget import Budget
from risingsearch.errors import InvalidParameterError
from risingsearch.policies import WAIT
from risingsearch.scheduling.scheduler import Scheduler


def test_n_jobs_limits_the_jobs_in_flight() -> None:
    scheduler = Scheduler(
        "round-robin", n_arms=9, budget=50, n_jobs=2, deterministic=False
    )
    jobs = [ask(scheduler) for _ in range(2)]
    assert scheduler.ask() is None
    assert scheduler.in_flight == tuple(jobs)
    scheduler.tell(jobs[1], 0.5)
    assert scheduler.ask() is not None


def test_one_job_in_flight_is_the_default_if_deterministic() -> None:
    scheduler = Scheduler("round-robin", n_arms=9, budget=50, deterministic=True)
    assert scheduler.ask() is not None
    assert scheduler.ask() is None


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_if_deterministic_decision_k_sees_exactly_the_results_up_to_k_minus_n_jobs(
    n_jobs: int, seed: int | None
) -> None:
    calls: list[tuple[Any, ...]] = []
    scheduler = Scheduler(scripted(calls), 6, 20, deterministic=True, n_jobs=n_jobs)
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


def test_in_completion_order_a_result_counts_at_once() -> None:
    calls: list[tuple[Any, ...]] = []
    scheduler = Scheduler(
        scripted(calls), n_arms=4, budget=9, n_jobs=2, deterministic=False
    )
    jobs = [ask(scheduler) for _ in range(2)]
    scheduler.tell(jobs[1], 0.5)
    assert calls == [("select", 1), ("select", 2), ("update", 2, 1, 0.5)]


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


def test_a_copy_has_results_that_no_decision_may_see_yet() -> None:
    scheduler = Scheduler("round-robin", 9, 20, deterministic=True, n_jobs=4)
    jobs = [ask(scheduler) for _ in range(4)]
    assert scheduler.with_all_results() is scheduler
    for job in (jobs[3], jobs[1], jobs[0]):
        scheduler.tell(job, 0.1 * (1 + job.id))
    before = saved(scheduler)
    assert [row["job"] for row in scheduler.history] == [0]  # decision 4 has to see it
    settled = scheduler.with_all_results()
    assert [row["job"] for row in settled.history] == [0, 1, 3]
    assert settled.best_arm == 3
    assert saved(scheduler) == before


# ------------------------------------------------------------------ time by the clock
def until(seconds: float, scheduler: Scheduler, n_jobs: int) -> int:
    """Train on a virtual clock, an epoch a second; return how often nothing started."""
    n_idle, ends = 0, []
    while True:
        now = min(end for end, _ in ends) if ends else 0.0
        for end in [end for end in ends if end[0] == now]:
            ends.remove(end)
            scheduler.tell(end[1], scores_of(end[1]), now=now)
        if now >= seconds:
            return n_idle
        while len(ends) < n_jobs:
            job = scheduler.ask()
            if job is None:
                n_idle += n_jobs - len(ends)
                break
            ends.append((now + job.n_epochs, job))


@pytest.mark.parametrize("n_jobs", [1, 4, 16])
def test_no_worker_idles_where_time_is_the_budget(n_jobs: int) -> None:
    scheduler = Scheduler(
        n_arms=200, budget=Budget(wall_seconds=40.0), max_epochs=20, n_jobs=n_jobs
    )
    assert until(40.0, scheduler, n_jobs) == 0
    assert scheduler.done
    assert scheduler.n_epochs == n_jobs * 40
    assert scheduler.spent == 40.0


def test_a_saved_scheduler_knows_what_the_clock_says() -> None:
    given = {
        "n_arms": 50,
        "budget": Budget(wall_seconds=30.0),
        "max_epochs": 10,
        "n_jobs": 2,
        "deterministic": False,
        "seed": 0,
    }
    scheduler, restored = Scheduler(**given), Scheduler(**given)
    first, second = ask(scheduler), ask(scheduler)
    scheduler.tell(first, scores_of(first), now=2.0)
    restored.load_state_dict(saved(scheduler))
    for each in (scheduler, restored):
        third = ask(each)
        each.tell(second, scores_of(second), cost=1.0, now=3.5)
        each.tell(third, scores_of(third), now=6.0)
    assert restored.spent == scheduler.spent == 6.0
    assert restored.ask() == scheduler.ask()


def test_the_time_is_needed_by_the_clock_and_refused_otherwise() -> None:
    by_clock = Scheduler(n_arms=3, budget=Budget(wall_seconds=9.0), max_epochs=5)
    job = ask(by_clock)
    with pytest.raises(InvalidParameterError, match="tell needs now"):
        by_clock.tell(job, scores_of(job))
    with pytest.raises(InvalidParameterError, match="now must be"):
        by_clock.tell(job, scores_of(job), now=-1.0)
    assert by_clock.in_flight == (job,)
    by_epochs = Scheduler(n_arms=3, budget=9)
    job = ask(by_epochs)
    with pytest.raises(InvalidParameterError, match="this is in epochs"):
        by_epochs.tell(job, scores_of(job), now=1.0)
    by_epochs.tell(job, scores_of(job))
