"""What a scheduler is given from outside: numbers it can use, or one clear sentence."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scheduler_runs import INFOS, ask, saved

from risingsearch.checks import LARGEST_SCORE
from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.scheduler import Scheduler

HUGE = 10**5000  # more digits than Python turns into text


def kind(value: object) -> str:
    """Name a value that has too many digits to be a test's name."""
    return value if isinstance(value, str) else type(value).__name__


def refused(call: Callable[[], object]) -> str:
    """Return the one short sentence that a call is refused with."""
    with pytest.raises(InvalidParameterError) as raised:
        call()
    text = str(raised.value)
    assert len(text) < 400
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    "scores",
    ["1", True, 1j, np.array([[0.5]]), [[0.5]], [None], HUGE, np.float64(1e200)],
    ids=kind,
)
@pytest.mark.parametrize("deterministic", [False, True])
def test_what_is_no_score_changes_nothing(scores: Any, deterministic: str) -> None:
    scheduler = Scheduler("cure-ucb", 3, 9, deterministic=deterministic, seed=0)
    job = ask(scheduler)
    before = saved(scheduler)
    refused(lambda: scheduler.tell(job, scores))
    refused(lambda: scheduler.fail(job, "late", [scores]))
    assert saved(scheduler) == before
    scheduler.tell(job, 0.5)


@pytest.mark.parametrize(
    ("scores", "taken"),
    [
        (1, 1.0),
        (Fraction(1, 4), 0.25),
        (np.float32(0.5), 0.5),
        (np.uint64(3), 3.0),
        (np.array(0.5), 0.5),
        ([np.array(1)], 1.0),
        ([5e-324], 5e-324),
        ((0.5,), 0.5),
        (np.array([0.5]), 0.5),
        (iter([0.5]), 0.5),
        (-LARGEST_SCORE, -LARGEST_SCORE),
    ],
)
def test_every_kind_of_number_is_a_score(scores: Any, taken: float) -> None:
    scheduler = Scheduler("cure-ucb", 3, 9, seed=0)
    scheduler.tell(ask(scheduler), scores)
    [row] = scheduler.history
    assert row["score"] == taken
    assert type(row["score"]) is float


def test_the_message_says_how_large_a_score_may_be() -> None:
    scheduler = Scheduler("cure-ucb", 3, 9, seed=0)
    job = ask(scheduler)
    assert refused(lambda: scheduler.tell(job, 1e308)) == (
        "a score must be at most 1e+150 in magnitude, so that policies can add up "
        "squares of it; got 1e+308"
    )


LARGEST = (LARGEST_SCORE, -LARGEST_SCORE)
MIXTURES = (
    LARGEST,
    (LARGEST_SCORE, 0.0, 1.0),
    (*LARGEST, 0.0, 1.0, 5e-324, -5e-324, 1e-310, math.nan),
    (5e-324, 1e-310, 0.0, 2e-308),
)


@pytest.mark.parametrize("policy", INFOS)
def test_policies_work_with_all_magnitudes(policy: str, live_params: Any) -> None:
    for seed in range(4):
        draw = random.Random(seed)
        params = live_params(policy)
        if "reward_range" in params and draw.random() < 0.5:
            params |= {"reward_range": (-LARGEST_SCORE, LARGEST_SCORE)}
        scheduler = Scheduler(
            policy,
            n_arms=draw.choice([1, 2, 5]),
            budget=40,
            max_epochs=draw.choice([None, 14]),
            direction=draw.choice(["maximize", "minimize"]),
            error_score=draw.choice([None, *LARGEST]),
            max_failures=4,
            policy_params=params,
            seed=seed,
        )
        mixture = MIXTURES[seed % len(MIXTURES)]
        while (job := scheduler.ask()) is not None:
            scores = draw.choices(mixture, k=job.n_epochs)
            if draw.random() < 0.1:
                scheduler.fail(job, "broken", scores)
            else:
                scheduler.tell(job, scores)
        scheduler.explain()
        saved(scheduler)
        assert scheduler.done
