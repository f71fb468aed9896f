"""What a search tells: the status of its arms, its history, its best epoch."""

from __future__ import annotations

import math

import pytest
from scheduler_runs import ask, finish, rising, scores_of, scripted

from risingsearch.scheduling.scheduler import Scheduler


def test_explain_says_where_every_arm_stands_and_why() -> None:
    scheduler = Scheduler(scripted(say={6: 0}), n_arms=6, budget=30, max_epochs=2)
    for score in (0.5, math.nan, 0.7):
        scheduler.tell(ask(scheduler), score)
    jobs = [ask(scheduler) for _ in range(3)]
    assert jobs[2].arm == 0
    scheduler.tell(jobs[2], 0.6)
    assert [(arm.status, arm.reason) for arm in scheduler.explain()] == [
        ("finished", "has used all its epochs"),
        ("failed", "retired: score is not finite"),
        ("paused", "paused with the best score: Scripted preferred arm 0"),
        ("running", "in training"),
        ("running", "in training"),
        ("unopened", "not opened yet"),
    ]
    assert [arm.arm for arm in scheduler.explain()] == [0, 1, 2, 3, 4, 5]
    assert scheduler.explain()[0].last_score == 0.6
    assert scheduler.explain()[0].best_epoch == 2
    assert math.isnan(scheduler.explain()[5].last_score)


@pytest.mark.parametrize(
    ("direction", "order"), [("maximize", [2, 0, 1, 3]), ("minimize", [0, 2, 1, 3])]
)
def test_it_prints_the_opened_arms_the_best_first(direction, order) -> None:
    scheduler = Scheduler(
        scripted(say={6: 0}), n_arms=6, budget=30, max_epochs=2, direction=direction
    )
    scheduler.tell(ask(scheduler), 0.5)
    scheduler.fail(ask(scheduler), "CUDA error\nSee its manual")
    scheduler.tell(ask(scheduler), 0.7)
    ask(scheduler)
    head, *rows, last = str(scheduler.explain()).splitlines()
    assert " ".join(head.split()) == "arm status epochs best at epoch last why"
    assert [int(row.split()[0]) for row in rows] == order
    assert "0.7   1         0.7   trained last" in rows[order.index(2)]
    assert last == "2 more are not opened"
    frame = scheduler.explain().to_frame()
    assert frame["status"].tolist()[::5] == ["paused", "unopened"]
    assert frame.shape[0] == 6


def test_after_the_end_it_says_why_the_search_has_ended() -> None:
    scheduler = Scheduler("asha", n_arms=9, budget=8, max_epochs=4)
    finish(scheduler)
    arms = scheduler.explain()
    over = "the budget of 8 epochs is spent"
    reasons = {arm.reason for arm in arms}
    assert {f"not opened: asha preferred others, and {over}", "trained last"} <= reasons
    best = scheduler.best_arm
    [loser, *_] = [one for one in arms if one.reason.startswith("paused: ")]
    then, n = rising(best, loser.epochs), loser.epochs
    beside = f"{loser.best_score:.4g} by epoch {n}, where arm {best} had {then:.4g}"
    assert loser.reason.startswith(f"paused: {beside} and later ")
    assert loser.reason.endswith(f"; {over}")


def test_the_arm_told_last_is_not_waiting_for_another() -> None:
    scheduler = Scheduler("round-robin", n_arms=2, budget=9)
    scheduler.tell(ask(scheduler), 0.5)
    assert scheduler.explain()[0].reason == "trained last"


def test_explain_says_that_the_policy_waits_for_what_is_in_training() -> None:
    sizes = {"n_arms": 2, "budget": 8, "max_epochs": 6}
    scheduler = Scheduler(**sizes, n_jobs=2, deterministic=True)
    for _ in range(4):
        job = ask(scheduler)
        scheduler.tell(job, scores_of(job))
    job = ask(scheduler)  # it could get all that is left
    assert scheduler.ask() is None
    reasons = [arm.reason for arm in scheduler.explain()]
    reasons.remove("in training")
    assert reasons == ["paused: looks-then-slope waits for the arms in training"]
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
    assert [row["reason"] for row in rows[:4]] == ["opened"] * 2 + ["revived"] * 2
    assert {row["reason"] for row in rows[4:]} <= {"continued", "revived"}
    assert all(math.isnan(row["cost"]) for row in rows)
    for row in rows[4:]:
        last, before = (rising(row["arm"], row["epoch"] - k) for k in (1, 2))
        assert row["recent_average"] == pytest.approx(last)
        gain = (12 - row["round"]) / 2 * (last - before)
        assert row["expected_gain"] == pytest.approx(gain)
        assert row["bonus"] == 0.0


def test_history_keeps_the_cost_of_an_epoch() -> None:
    scheduler = Scheduler("random-search", 2, 6, epochs_per_job=3)
    scheduler.tell(ask(scheduler), [0.1, 0.2, 0.3], cost=6.0)
    assert [row["cost"] for row in scheduler.history] == [2.0, 2.0, 2.0]


def test_the_first_arm_to_reach_the_best_score_is_the_best() -> None:
    scheduler = Scheduler("round-robin", 3, 6)
    jobs = [ask(scheduler) for _ in range(3)]
    for arm in (2, 0):
        scheduler.tell(jobs[arm], 0.5)
    assert scheduler.best_arm == 2
    scheduler.tell(jobs[1], 0.6)
    assert scheduler.best_arm == 1


def test_the_best_is_the_best_epoch_of_any_arm() -> None:
    scheduler = Scheduler("round-robin", 2, 6, direction="minimize")
    finish(scheduler, lambda arm, epoch: [[3, 1, 2], [5, 4, 2]][arm][epoch - 1])
    assert scheduler.best_arm == 0
    assert (scheduler.best_score, scheduler.best_epoch) == (1, 2)
