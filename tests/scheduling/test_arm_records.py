"""What every arm has shown, and the one rule for scores that are not finite."""

from __future__ import annotations

import json
import math

import pytest

from risingsearch.arms import Job
from risingsearch.scheduling.arm_records import Standings


def enter(
    standings: Standings, arm: int, *scores: float, trained: bool = True
) -> list[float]:
    first = len(standings.history)
    return [
        standings.record(
            Job(arm, 0, len(scores), first), first + k + 1, score, {}, trained=trained
        )
        for k, score in enumerate(scores)
    ]


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1), ("minimize", -1)])
def test_rewards_are_scores_with_the_sign_of_the_direction(
    direction: str, sign: int
) -> None:
    standings = Standings(2, direction, None)
    assert enter(standings, 0, 0.25, -0.5) == [sign * 0.25, sign * -0.5]


@pytest.mark.parametrize(
    ("direction", "best", "epoch"), [("maximize", 0.7, 2), ("minimize", 0.1, 3)]
)
def test_the_best_is_kept_in_the_users_direction(
    direction: str, best: float, epoch: int
) -> None:
    standings = Standings(2, direction, None)
    enter(standings, 1, 0.3, 0.7, 0.1, 0.7, 0.1)
    assert (standings.best[1], standings.best_epoch[1]) == (best, epoch)
    assert standings.last[1] == 0.1
    assert standings.best_arm == 1
    assert math.isnan(standings.best[0])


def test_the_first_arm_to_reach_the_best_score_is_the_best() -> None:
    standings = Standings(3, "maximize", None)
    assert standings.best_arm is None
    enter(standings, 2, 0.5)
    enter(standings, 0, 0.5)
    assert standings.best_arm == 2
    enter(standings, 0, 0.6)
    assert standings.best_arm == 0


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_counts_as_the_error_score(score: float) -> None:
    assert enter(Standings(1, "maximize", 0.1), 0, score) == [0.1]
    assert enter(Standings(1, "minimize", 0.1), 0, score) == [-0.1]


@pytest.mark.parametrize(("direction", "worst"), [("maximize", 0.2), ("minimize", 0.9)])
def test_without_an_error_score_it_counts_as_the_worst_so_far(
    direction: str, worst: float
) -> None:
    standings = Standings(2, direction, None)
    rewards = enter(standings, 0, math.nan, 0.5, 0.2, 0.9, math.nan)
    assert rewards[0] == 0.0
    assert rewards[-1] == standings.sign * worst
    assert standings.best_arm == 0
    assert math.isfinite(standings.last[0])


def test_failures_are_guesses_until_there_is_a_score() -> None:
    standings = Standings(1, "maximize", None)
    assert not standings.guessing
    enter(standings, 0, math.nan)
    assert standings.guessing
    enter(standings, 0, 0.5)
    assert not standings.guessing
    declared = Standings(1, "maximize", 0.0)
    enter(declared, 0, math.nan)
    assert not declared.guessing


def test_epochs_swallowed_by_a_failure_are_charged_and_not_trained() -> None:
    standings = Standings(1, "maximize", None)
    enter(standings, 0, 0.5, 0.6)
    enter(standings, 0, math.nan, math.nan, trained=False)
    assert (standings.charged[0], standings.epochs[0]) == (4, 2)
    assert [row["epoch"] for row in standings.history] == [1, 2, 3, 3]


def test_facts_go_into_the_history() -> None:
    standings = Standings(1, "maximize", None)
    standings.record(Job(0, 0, 1, 7), 9, 0.5, {"bonus": 0.1}, trained=True)
    assert standings.history == [
        {"arm": 0, "epoch": 1, "score": 0.5, "round": 9, "job": 7, "bonus": 0.1}
    ]


def test_the_status_of_an_arm() -> None:
    standings = Standings(6, "maximize", None)
    for arm in (1, 2, 3, 5):
        enter(standings, arm, 0.5, 0.5)
    standings.busy[0] = standings.ended[2] = standings.failed[3] = True
    enter(standings, 5, 0.5)
    assert [standings.status(arm, limit=3) for arm in range(6)] == [
        "running",
        "paused",
        "finished",
        "failed",
        "unopened",
        "finished",
    ]
    assert standings.live(3).tolist() == [True, True, False, False, True, False]


def test_rewards_told_again_count_failures_as_the_worst_of_today() -> None:
    standings = Standings(2, "maximize", None)
    enter(standings, 0, math.nan, 0.5)
    enter(standings, 1, 0.2)
    assert standings.rewards() == [(1, 0, 0.2), (2, 0, 0.5), (3, 1, 0.2)]
    assert standings.best_epoch.tolist() == [2, 1]


def test_saved_standings_are_the_same_again() -> None:
    standings = Standings(3, "minimize", None)
    enter(standings, 2, 0.5, math.nan, 0.3, -math.inf)
    enter(standings, 0, 0.3)
    standings.ended[0] = standings.failed[2] = True
    state = json.loads(json.dumps(standings.state_dict(), allow_nan=False))
    restored = Standings(3, "minimize", None)
    enter(restored, 1, 0.9, 0.1)
    restored.load_state_dict(state)
    assert restored.state_dict() == state
    for name in ("last", "best", "best_epoch"):
        assert repr(getattr(restored, name)) == repr(getattr(standings, name))
    assert restored.best_arm == standings.best_arm == 2
    assert restored.worst_reward == standings.worst_reward
