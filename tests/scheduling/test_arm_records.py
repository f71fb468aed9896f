"""What every arm has shown, and the one rule for scores that are not finite."""

from __future__ import annotations

import json
import math

import pytest

from risingsearch.arms import Job
from risingsearch.scheduling.arm_records import ArmRecords


def enter(
    records: ArmRecords, arm: int, *scores: float, trained: bool = True
) -> list[float]:
    first = len(records.history)
    return [
        records.record(
            Job(arm, 0, len(scores), first), first + k + 1, score, {}, trained=trained
        )
        for k, score in enumerate(scores)
    ]


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1), ("minimize", -1)])
def test_rewards_are_scores_with_the_sign_of_the_direction(
    direction: str, sign: int
) -> None:
    records = ArmRecords(2, 3, direction, None)
    assert enter(records, 0, 0.25, -0.5) == [sign * 0.25, sign * -0.5]


@pytest.mark.parametrize(
    ("direction", "best", "epoch"), [("maximize", 0.7, 2), ("minimize", 0.1, 3)]
)
def test_the_best_is_kept_in_the_users_direction(
    direction: str, best: float, epoch: int
) -> None:
    records = ArmRecords(2, 3, direction, None)
    enter(records, 1, 0.3, 0.7, 0.1, 0.7, 0.1)
    assert (records.best[1], records.best_epoch[1]) == (best, epoch)
    assert records.last[1] == 0.1
    assert records.best_arm == 1
    assert math.isnan(records.best[0])


def test_the_first_arm_to_reach_the_best_score_is_the_best() -> None:
    records = ArmRecords(3, 3, "maximize", None)
    assert records.best_arm is None
    enter(records, 2, 0.5)
    enter(records, 0, 0.5)
    assert records.best_arm == 2
    enter(records, 0, 0.6)
    assert records.best_arm == 0


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_counts_as_the_error_score(score: float) -> None:
    assert enter(ArmRecords(1, 3, "maximize", 0.1), 0, score) == [0.1]
    assert enter(ArmRecords(1, 3, "minimize", 0.1), 0, score) == [-0.1]


@pytest.mark.parametrize(("direction", "worst"), [("maximize", 0.2), ("minimize", 0.9)])
def test_without_an_error_score_it_counts_as_the_worst_so_far(
    direction: str, worst: float
) -> None:
    records = ArmRecords(2, 3, direction, None)
    rewards = enter(records, 0, math.nan, 0.5, 0.2, 0.9, math.nan)
    assert rewards[0] == 0.0
    assert rewards[-1] == records.sign * worst
    assert records.best_arm == 0
    assert math.isfinite(records.last[0])


def test_failures_are_guesses_until_there_is_a_score() -> None:
    records = ArmRecords(1, 3, "maximize", None)
    assert not records.has_provisional_rewards
    enter(records, 0, math.nan)
    assert records.has_provisional_rewards
    enter(records, 0, 0.5)
    assert not records.has_provisional_rewards
    declared = ArmRecords(1, 3, "maximize", 0.0)
    enter(declared, 0, math.nan)
    assert not declared.has_provisional_rewards


def test_epochs_lost_to_a_failure_are_charged_and_not_trained() -> None:
    records = ArmRecords(1, 3, "maximize", None)
    enter(records, 0, 0.5, 0.6)
    enter(records, 0, math.nan, math.nan, trained=False)
    assert (records.charged[0], records.epochs[0]) == (4, 2)
    assert [row["epoch"] for row in records.history] == [1, 2, 3, 3]


def test_facts_go_into_the_history() -> None:
    records = ArmRecords(1, 3, "maximize", None)
    records.record(Job(0, 0, 1, 7), 9, 0.5, {"bonus": 0.1}, trained=True)
    assert records.history == [
        {"arm": 0, "epoch": 1, "score": 0.5, "round": 9, "job": 7, "bonus": 0.1}
    ]


def test_the_status_of_an_arm() -> None:
    records = ArmRecords(6, 3, "maximize", None)
    for arm in (1, 2, 3, 5):
        enter(records, arm, 0.5, 0.5)
    records.busy[0] = records.ended[2] = records.failed[3] = True
    enter(records, 5, 0.5)
    assert [records.status(arm) for arm in range(6)] == [
        "running",
        "paused",
        "finished",
        "failed",
        "unopened",
        "finished",
    ]
    assert records.live().tolist() == [True, True, False, False, True, False]


def test_rewards_told_again_count_failures_as_the_worst_of_today() -> None:
    records = ArmRecords(2, 3, "maximize", None)
    enter(records, 0, math.nan, 0.5)
    enter(records, 1, 0.2)
    assert records.rewards() == [(1, 0, 0.2), (2, 0, 0.5), (3, 1, 0.2)]
    assert records.best_epoch.tolist() == [2, 1]


def test_saved_records_are_the_same_again() -> None:
    records = ArmRecords(3, 3, "minimize", None)
    enter(records, 2, 0.5, math.nan, 0.3, -math.inf)
    enter(records, 0, 0.3)
    records.ended[0] = records.failed[2] = True
    state = json.loads(json.dumps(records.state_dict(), allow_nan=False))
    restored = ArmRecords(3, 3, "minimize", None)
    enter(restored, 1, 0.9, 0.1)
    restored.load_state_dict(state)
    assert restored.state_dict() == state
    for name in ("last", "best", "best_epoch"):
        assert repr(getattr(restored, name)) == repr(getattr(records, name))
    assert restored.best_arm == records.best_arm == 2
    assert restored.worst_reward == records.worst_reward
