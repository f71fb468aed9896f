"""When a search ends that has budget left."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import pytest
from scheduler_runs import ask, finish, saved

from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.events import Event, Returned
from risingsearch.scheduling.replay import replay
from risingsearch.scheduling.scheduler import Scheduler

MADE: dict[str, Any] = {"policy": "round-robin", "n_arms": 3, "budget": 30, "seed": 0}


def stopping(
    patience: int | None = None, target_score: float | None = None, **changes: Any
) -> Scheduler:
    search = Scheduler(**MADE | changes)
    search.stop_when(patience, target_score)
    return search


def rises_for(n_epochs: int) -> Any:
    """A curve that stands still after so many epochs."""
    return lambda arm, epoch: float(min(epoch, n_epochs))


def test_patience_ends_a_search_that_finds_nothing_better() -> None:
    search = stopping(patience=5)
    finish(search, rises_for(2))
    assert search.n_epochs == 9  # the second epoch of the first arm is the fourth
    assert search.stop_reason == (
        "the patience of 5 epochs without a new best is exhausted, 21 of 30 epochs left"
    )
    assert search.peek() is None


def test_the_target_ends_a_search_in_the_direction_of_its_scores() -> None:
    for sign, direction in ((1.0, "maximize"), (-1.0, "minimize")):
        search = stopping(direction=direction, target_score=sign * 3.0)
        finish(search, lambda arm, epoch, sign=sign: sign * epoch)
        assert search.best_score == sign * 3.0
        assert search.stop_reason == (
            f"the target_score of {sign * 3:g} is reached, 23 of 30 epochs left"
        )


def test_jobs_in_flight_are_told_and_can_let_the_search_go_on() -> None:
    search = stopping(patience=2)
    jobs = [ask(search) for _ in range(3)]
    search.tell(jobs[0], [0.5])
    search.tell(jobs[1], [0.5])
    search.tell(ask(search), [0.4])
    assert search.ask() is None
    assert not search.done
    search.tell(jobs[2], [0.6])
    assert ask(search) is not None


def test_failures_and_scores_that_are_none_count_against_the_patience() -> None:
    search = stopping(patience=4, max_failures=9)
    search.tell(ask(search), [0.5])
    search.fail(ask(search), "out of memory")
    search.tell(ask(search), [math.nan])
    search.tell(ask(search), [0.5])
    assert not search.done
    search.fail(ask(search), "out of memory")
    assert search.done


def test_patience_waits_for_what_is_enqueued() -> None:
    search = stopping(patience=1, enqueue=[2, 1], min_epochs=4)
    finish(search, lambda arm, epoch: -float(epoch))
    assert [arm.epochs for arm in search.explain()] == [0, 4, 4]


def test_a_spent_budget_is_the_reason_whatever_the_patience() -> None:
    search = stopping(patience=5, budget=6)
    finish(search, rises_for(1))
    assert search.stop_reason == "the budget of 6 epochs is spent"


def test_a_search_goes_on_under_other_rules() -> None:
    search = stopping(patience=5)
    finish(search, rises_for(2))
    other = stopping(patience=8)
    other.load_state_dict(saved(search))
    assert len(finish(other, rises_for(2))) == 3
    search.stop_when(target_score=1.0)
    assert search.done
    search.stop_when()
    finish(search, rises_for(2))
    assert search.n_epochs == 30


def test_a_larger_budget_begins_the_count_anew() -> None:
    search = stopping(patience=5)
    finish(search, rises_for(2))
    search.extend(3)
    again = stopping(patience=5)
    again.load_state_dict(saved(search))
    assert finish(again, rises_for(2)) == finish(search, rises_for(2))
    assert search.n_epochs == 9 + 5
    assert "19 of 33 epochs left" in (search.stop_reason or "")


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_decisions_that_were_made_are_repeated_under_any_rules(
    deterministic: bool, seed: int
) -> None:
    draw = random.Random(seed)
    made = {"policy": "auto", "n_arms": 9, "deterministic": deterministic, "n_jobs": 3}
    search = stopping(**made, patience=draw.randint(2, 6), target_score=0.95)
    events: list[Event] = []
    while not search.done:
        while draw.random() < 0.7 and (job := search.ask()) is not None:
            events.append(search.why(job))
        if search.in_flight:
            job = draw.choice(search.in_flight)
            scores = [draw.random() for _ in range(job.n_epochs)]
            events.append(Returned(job=job, scores=tuple(scores)))
            search.tell(job, scores, ended=False)
    for rules in ({}, {"patience": 1}, {"target_score": 0.0}):
        again = stopping(**made, **rules)
        replay(again, events)
        assert again.state_dict() == search.state_dict()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"patience": 0}, "patience must be a whole number of at least 1; got 0"),
        ({"target_score": math.nan}, "target_score must be a finite number; got nan"),
        ({"target_score": 1e200}, "target_score must be at most 1e+150 in magnitude"),
    ],
)
def test_rules_that_are_none_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        stopping(**given)
