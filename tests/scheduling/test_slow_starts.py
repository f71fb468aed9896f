"""Jobs that start slowly are long enough for it, and their starts are paid for."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from scheduler_runs import ask, saved, scores_of

from risingsearch.arms import Budget, Job
from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.budgets import CostBudget, WallClockBudget
from risingsearch.scheduling.jobs import Result
from risingsearch.scheduling.replay import Event, replay, told
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.scheduling.slow_starts import UNKNOWN, SlowStarts, Start, job_lengths

SLOW = 20.0


def search(budget: Any = None, **options: Any) -> Scheduler:
    given = {"n_arms": 60, "max_epochs": 81, "seed": 0, **options}
    return Scheduler(budget=budget or Budget(seconds=1500), **given)


def result(job: Job, cost: float, start: Start) -> Result:
    scores = (0.5,) * job.n_epochs
    return Result(job, scores, cost, failure=None, ended=False, start=start)


def train(
    scheduler: Scheduler,
    start: float,
    n_jobs: int = 10_000,
    *,
    measured: bool = True,
    events: list[Event] | None = None,
) -> list[Job]:
    """Tell jobs that start so slowly and train an epoch per second."""
    jobs: list[Job] = []
    while len(jobs) < n_jobs and (job := scheduler.ask()) is not None:
        cost, scores = start + job.n_epochs, scores_of(job)
        startup = start if measured else None
        if events is not None:
            event = told(job, scores, scheduler.n_asked) | {"cost": cost}
            events.append(event | ({"startup": startup} if measured else {}))
        scheduler.tell(job, scores, cost, ended=False, startup=startup)
        jobs.append(job)
    return jobs


# ----------------------------------------------------------------------------- the rule


@pytest.mark.parametrize(
    ("worth", "lengths"),
    [
        (1.0, (1, 1)),
        (2.0, (1, 1)),
        (3.0, (1, 2)),
        (9.5, (3, 5)),
        (40.0, (10, 20)),
        (40.5, (81, 81)),
        (1e9, (81, 81)),
    ],
)
def test_later_jobs_train_half_as_long_as_they_start_and_first_ones_a_quarter(
    worth: float, lengths: tuple[int, int]
) -> None:
    assert job_lengths(worth, max_epochs=81) == lengths


def test_arms_of_one_epoch_have_jobs_of_one() -> None:
    assert job_lengths(1.0, max_epochs=1) == (1, 1)
    assert job_lengths(50.0, max_epochs=1) == (1, 1)
    assert job_lengths(UNKNOWN, max_epochs=1) == (1, 1)


def test_while_starts_are_not_known_jobs_have_two_epochs() -> None:
    assert job_lengths(UNKNOWN, max_epochs=3) == (2, 2)


def test_the_same_estimate_once_more_changes_nothing() -> None:
    starts = SlowStarts().known(30.0).compared(epoch=1.0)
    assert starts.known(50.0).known(50.0).compared(epoch=1.0).worth == 30.0
    assert starts.known(65.0).known(65.0).compared(epoch=1.0).worth == 65.0
    assert starts.known(15.0).compared(epoch=1.0).worth == 15.0
    assert starts.compared(epoch=100.0).worth == 1.0


def test_one_slow_start_alone_is_not_expected_again() -> None:
    starts = SlowStarts().known(0.1)
    for seconds in (40.0, 0.1, 40.0, 0.2, 0.1):
        starts = starts.known(seconds).compared(epoch=1.0)
        assert starts.expected <= 0.2
        assert starts.worth == 1.0


def test_starts_that_have_become_quick_are_forgotten_soon() -> None:
    starts = SlowStarts()
    for seconds in (30.0, 30.0, 30.0, 0.1, 0.1, 0.1):
        starts = starts.known(seconds)
    assert starts.expected == 0.1


def test_starts_of_less_than_two_epochs_change_nothing() -> None:
    assert SlowStarts().known(1.9).compared(epoch=1.0).worth == 1.0


def test_epochs_that_cost_nothing_are_worth_any_number() -> None:
    assert job_lengths(SlowStarts().known(1.0).compared(epoch=0.0).worth, 9) == (9, 9)
    assert SlowStarts().known(0.0).compared(epoch=0.0).worth == 1.0


# -------------------------------------------------------------------------- the default


def test_the_first_start_that_is_known_makes_jobs_longer() -> None:
    jobs = train(search(), SLOW)
    assert [job.n_epochs for job in jobs[:1]] == [1]
    looks = [job for job in jobs[2:] if job.from_epoch == 0]
    assert looks
    assert all(job.n_epochs >= SLOW / 4 for job in looks)
    later = [j for j in jobs[2:-1] if j.from_epoch and j.from_epoch + j.n_epochs < 81]
    assert all(job.n_epochs >= SLOW / 2 for job in later)


def test_the_search_trains_more_than_with_jobs_for_quick_starts() -> None:
    told, untold = search(), search()
    train(told, SLOW)
    train(untold, SLOW, measured=False)
    assert told.n_epochs > 2 * untold.n_epochs
    assert told.spent <= 1500 + 1e-6
    assert untold.spent <= 1500 + 1e-6


def test_a_start_longer_than_half_an_arm_is_worth_no_pause() -> None:
    jobs = train(search(Budget(seconds=2000)), 60.0)
    whole = [job for job in jobs[1:-1] if job.from_epoch == 0]
    assert whole
    assert {job.n_epochs for job in whole} == {81}


@pytest.mark.parametrize("start", [0.0, 0.4])
def test_quick_starts_change_no_decision(start: float) -> None:
    plain = train(search(Budget(seconds=300)), 0.0, measured=False)
    assert plain == train(search(Budget(seconds=300)), 0.0)
    quick = [job.n_epochs for job in train(search(Budget(seconds=300)), start)]
    assert quick[:20] == [job.n_epochs for job in plain[:20]]


def test_nobody_measures_starts_where_epochs_are_counted() -> None:
    counted, plain = search(400), search(400)
    assert train(counted, SLOW) == train(plain, SLOW, measured=False)
    assert counted.state_dict()["policy"] == plain.state_dict()["policy"]


def test_a_slice_that_a_user_has_chosen_is_kept() -> None:
    jobs = train(search(epochs_per_job=3), SLOW)
    assert {job.n_epochs for job in jobs[:-1]} == {3}


def test_a_policy_that_plans_no_looks_keeps_its_jobs() -> None:
    jobs = train(search(policy="asha"), SLOW)
    assert jobs[0].n_epochs == jobs[1].n_epochs == 1


def test_min_epochs_can_be_more_than_a_start_wants() -> None:
    jobs = train(search(min_epochs=30), SLOW)
    assert {job.n_epochs for job in jobs if job.from_epoch == 0} == {30}


def test_jobs_become_shorter_again_where_later_starts_are_quick() -> None:
    scheduler = search(Budget(seconds=5000))
    train(scheduler, SLOW, n_jobs=3)
    later = train(scheduler, 0.1)
    assert later[0].n_epochs >= SLOW / 4
    assert min(job.n_epochs for job in later) <= 2


# --------------------------------------------------------------------- unknown starts


def unmeasured(scheduler: Scheduler, job: Job) -> None:
    """Tell a job of a script: one epoch alone does not say how long it has started."""
    startup = math.nan if job.n_epochs == 1 else SLOW
    cost = SLOW + job.n_epochs
    scheduler.tell(job, scores_of(job), cost, ended=False, startup=startup)


def test_a_start_that_one_epoch_hides_is_found_by_two() -> None:
    scheduler = search()
    lengths = []
    while (job := scheduler.ask()) is not None:
        unmeasured(scheduler, job)
        lengths.append(job.n_epochs)
    assert lengths[0] == 1
    assert 2 in lengths[:4]
    assert min(lengths[4:-1]) >= SLOW / 4
    assert scheduler.spent <= 1500 + 1e-6


def test_what_is_hidden_is_spent_and_expected_again() -> None:
    spending = CostBudget(100.0, 2, "seconds")
    for k in range(2):
        spending.reserve(Job(k, 0, 1, k))
    spending.settle(result(Job(0, 0, 1, 0), 21.0, Start(math.nan)))
    assert (spending.spent, spending.reserved) == (21.0, 21.0)
    spending.settle(result(Job(1, 0, 1, 1), 21.0, Start(20.0)))
    assert spending.spent == 42.0
    assert spending.cost_per_epoch().tolist() == [1.0, 1.0]
    assert spending.affordable().tolist() == [38, 38]  # 20 of 58 for the start


def test_later_a_hidden_start_has_its_share_of_the_cost() -> None:
    spending = CostBudget(200.0, 1, "seconds")
    for k, (n_epochs, start) in enumerate([(2, 20.0), (1, math.nan)]):
        spending.reserve(Job(0, 2 * k, n_epochs, k))
        cost = 20.0 + n_epochs
        spending.settle(result(Job(0, 2 * k, n_epochs, k), cost, Start(start)))
    assert spending.cost_per_epoch().tolist() == [pytest.approx(1.0)]
    assert spending.spent == 43.0


# ----------------------------------------------------------------- what it is paid from


def test_no_job_starts_whose_start_is_more_than_what_is_left() -> None:
    spending = CostBudget(50.0, 1, "seconds")
    spending.reserve(Job(0, 0, 4, 0))
    spending.settle(result(Job(0, 0, 4, 0), 24.0, Start(20.0)))
    assert spending.affordable().tolist() == [6]
    spending.total = 44.5
    assert spending.affordable().tolist() == [0]


def test_by_the_clock_all_that_is_not_training_is_the_start() -> None:
    spending = WallClockBudget(100.0, 1, n_workers=1)
    spending.reserve(Job(0, 0, 4, 0))
    spending.advance(Job(0, 0, 4, 0), now=24.0)
    spending.settle(result(Job(0, 0, 4, 0), 9.0, Start(5.0, besides=15.0)))
    assert spending.cost_per_epoch().tolist() == [1.0]
    assert spending.starts.expected == 20.0
    assert spending.affordable().tolist() == [56]


def test_a_queue_counts_by_the_clock() -> None:
    scheduler, now = search(Budget(wall_seconds=1500)), 0.0
    while (job := scheduler.ask()) is not None:
        now += SLOW + job.n_epochs
        cost = float(job.n_epochs)
        scheduler.tell(job, scores_of(job), cost, ended=False, now=now, startup=0.0)
        last = job
    assert last.id < 60
    assert now <= 1500 + 1e-6


def test_without_a_word_about_starts_they_are_not_guessed_by_the_clock() -> None:
    """Journals of earlier releases have none, and are replayed to the same jobs."""
    scheduler, now, lengths = search(Budget(wall_seconds=1500)), 0.0, []
    while (job := scheduler.ask()) is not None:
        now += SLOW + job.n_epochs
        cost = float(job.n_epochs)
        scheduler.tell(job, scores_of(job), cost, ended=False, now=now)
        lengths.append(job.n_epochs)
    assert lengths[:4] == [1, 1, 1, 1]


def test_what_failed_says_nothing_of_starts() -> None:
    scheduler = search(max_failures=3)
    scheduler.fail(ask(scheduler), "no machine", cost=50.0)
    assert scheduler.spent == 50.0
    assert ask(scheduler).n_epochs == 1


@pytest.mark.parametrize("startup", [-1.0, 21.5, math.inf])
def test_a_start_is_part_of_the_cost(startup: float) -> None:
    scheduler = search()
    job, before = ask(scheduler), saved(scheduler)
    with pytest.raises(InvalidParameterError, match="startup is the part of the cost"):
        scheduler.tell(job, scores_of(job), 21.0, startup=startup)
    assert saved(scheduler) == before


# -------------------------------------------------------------------- to go on later


@pytest.mark.parametrize("n_jobs", [1, 2, 9])
def test_a_saved_search_goes_on_with_jobs_as_long(n_jobs: int) -> None:
    scheduler, again = search(), search()
    train(scheduler, SLOW, n_jobs)
    again.load_state_dict(saved(scheduler))
    assert saved(again) == saved(scheduler)
    assert train(again, SLOW) == train(scheduler, SLOW)


def test_where_nobody_measures_starts_a_state_is_that_of_an_earlier_release() -> None:
    scheduler, again = search(), search()
    train(scheduler, 0.0, 9, measured=False)
    state = saved(scheduler)
    assert "starts" not in state["ledger"]
    again.load_state_dict(state)
    assert train(again, 0.0) == train(scheduler, 0.0)


def test_a_journal_repeats_the_decisions() -> None:
    live, again = search(), search()
    events: list[Event] = []
    train(live, SLOW, events=events)
    replay(again, json.loads(json.dumps(events)))
    assert saved(again) == saved(live)


def test_results_that_wait_for_their_decision_keep_their_starts() -> None:
    scheduler = search(order="ask", n_jobs=3)
    jobs = [ask(scheduler) for _ in range(3)]
    cost = 1.0 + SLOW
    scheduler.tell(jobs[2], scores_of(jobs[2]), cost, ended=False, startup=math.nan)
    scheduler.tell(jobs[1], scores_of(jobs[1]), cost, ended=False, startup=SLOW)
    again = search(order="ask", n_jobs=3)
    again.load_state_dict(saved(scheduler))
    for each in (scheduler, again):
        each.tell(jobs[0], scores_of(jobs[0]), cost, ended=False, startup=SLOW)
    assert saved(again) == saved(scheduler)
    assert train(again, SLOW) == train(scheduler, SLOW)
