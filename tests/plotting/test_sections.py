"""The best score rises with what was spent, and full training has its price."""

import math
from types import SimpleNamespace

import pytest

from risingsearch.plotting.sections import costs, progress_of


def rows(*epochs):
    """Return rows of arm, score and seconds, each a job of its own."""
    return [
        {"arm": arm, "score": score, "seconds": seconds, "job": job}
        for job, (arm, score, seconds) in enumerate(epochs)
    ]


def result_of(history, statuses, returned_at, **facts):
    n = {arm: sum(row["arm"] == arm for row in history) for arm in range(len(statuses))}
    arms = [
        SimpleNamespace(status=status, epochs=n[arm])
        for arm, status in enumerate(statuses)
    ]
    return SimpleNamespace(
        history=history,
        arms=arms,
        candidates=[{}] * len(arms),
        curves={arm: [] for arm in n if n[arm]},
        n_epochs=len(history),
        returned_at=returned_at,
        **{"direction": "maximize", **facts},
    )


HISTORY = rows((0, 0.2, 10.0), (1, 0.1, 30.0), (1, math.nan, math.nan), (1, 0.7, 30.0))


def test_the_best_so_far_rises_where_it_is_beaten_and_ends_with_the_search():
    history = [*HISTORY, *rows((0, 0.5, 20.0))]
    for job, row in enumerate(history):
        row["job"] = job
    clock = {0: 10.0, 1: 30.0, 2: 35.0, 3: 60.0, 4: 65.0}
    progress = progress_of(result_of(history, ["paused"] * 2, clock))
    assert progress.by_epochs == [(1, 0.2), (4, 0.7), (5, 0.7)]
    assert progress.by_training == [(10.0, 0.2), (70.0, 0.7), (90.0, 0.7)]
    assert progress.by_clock == [(10.0, 0.2), (60.0, 0.7), (65.0, 0.7)]


def test_lower_can_be_better():
    lower = result_of(HISTORY, ["paused"] * 2, {}, direction="minimize")
    assert progress_of(lower).by_epochs == [(1, 0.2), (2, 0.1), (4, 0.1)]


def test_a_clock_that_was_not_read_is_left_out():
    progress = progress_of(result_of(HISTORY, ["paused"] * 2, {0: 10.0}))
    assert progress.by_clock == []
    assert progress.by_training


def test_without_a_score_there_is_no_best():
    history = rows((0, math.nan, 1.0))
    assert progress_of(result_of(history, ["failed"], {})) == ([], [], [])


def test_full_training_costs_what_the_arms_own_epochs_have_taken():
    statuses = ["finished", "paused", "unopened"]
    times = {"training_seconds": 80.0, "wall_seconds": 40.0}
    spent, opened, every = costs(result_of(HISTORY, statuses, {}, **times), 10)
    assert spent[1:] == (4, 80.0, 40.0)
    # the first arm has ended by itself after one epoch of 10 s
    assert opened[1:] == (11, 10.0 + 10 * 30.0, 155.0)
    assert every[1:] == (21, 310.0 + 10 * 20.0, 255.0)


def test_all_candidates_are_named_only_where_some_were_not_opened():
    times = {"training_seconds": 80.0, "wall_seconds": math.nan}
    rows_ = costs(result_of(HISTORY, ["paused", "paused"], {}, **times), 10)
    assert [row.epochs for row in rows_] == [4, 20]
    assert all(math.isnan(row.wall_seconds) for row in rows_)


@pytest.mark.parametrize("statuses", [[], ["unopened"]])
def test_before_the_first_epoch_no_time_is_known(statuses):
    times = {"training_seconds": 0.0, "wall_seconds": 0.0}
    *_, last = costs(result_of([], statuses, {}, **times), 10)
    assert last.epochs == 10 * len(statuses)
    assert not last.training_seconds > 0.0
