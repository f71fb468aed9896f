"""Results are held back and handed over in the order of the decisions."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler_runs import ask, saved, scores_of

from risingsearch.errors import RunDirError
from risingsearch.scheduling.scheduler import Scheduler


def with_a_held_result(**changes: Any) -> Scheduler:
    """Return a search of three jobs, of which the last one is told."""
    scheduler = Scheduler("round-robin", 6, 20, deterministic=True, n_jobs=3, **changes)
    jobs = [ask(scheduler) for _ in range(3)]
    scheduler.tell(jobs[2], scores_of(jobs[2]))
    return scheduler


def test_a_held_result_changes_nothing_but_what_is_in_flight() -> None:
    scheduler = with_a_held_result()
    assert [job.id for job in scheduler.in_flight] == [0, 1]
    assert scheduler.history == []
    assert scheduler.spent == 0
    assert scheduler.status(2) == "running"
    assert scheduler.ask() is None


def test_every_start_says_how_many_results_it_has_seen() -> None:
    scheduler = with_a_held_result()
    assert [scheduler.why(job).seen for job in scheduler.in_flight] == [0, 0]
    first = scheduler.in_flight[0]
    scheduler.tell(first, scores_of(first))
    assert scheduler.why(ask(scheduler)).seen == 1
    told = Scheduler("round-robin", 6, 20, n_jobs=3)
    assert told.why(ask(told)).seen is None


def test_held_results_are_saved_and_restored() -> None:
    scheduler = with_a_held_result()
    again = Scheduler("round-robin", 6, 20, deterministic=True, n_jobs=3)
    again.load_state_dict(saved(scheduler))
    for one in (scheduler, again):
        for job in one.in_flight:
            one.tell(job, scores_of(job))
        assert [row["job"] for row in one.history] == [0]
    assert saved(again) == saved(scheduler)


@pytest.mark.parametrize("held", [[[]], [None], 3, [[[0, 0, 1, "x"], [], 1]]])
def test_damaged_results_change_nothing(held: Any) -> None:
    scheduler = with_a_held_result()
    before, damaged = saved(scheduler), saved(scheduler)
    damaged["arms"]["held"] = held
    with pytest.raises(RunDirError, match="the state is damaged"):
        scheduler.load_state_dict(damaged)
    assert saved(scheduler) == before
