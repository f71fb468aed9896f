"""Searches that end by the clock, on a clock that only training moves."""

from __future__ import annotations

import pytest

from risingsearch import Budget, Functions, RisingSearch
from risingsearch.search import wall_clock

SECONDS = 60.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(wall_clock, "time", clock)
    return clock


def a_search(clock: Clock, *, epoch_seconds: float = 1.0, **options) -> RisingSearch:
    def start(params, seed):
        return {"epochs": 0, **params}

    def train(state):
        clock.now += epoch_seconds
        state["epochs"] += 1
        return state["top"] * (1 - 0.7 ** state["epochs"])

    candidates = [{"top": (arm + 1) / 40} for arm in range(40)]
    options = {"budget": Budget(wall_seconds=SECONDS), "seed": 0, **options}
    return RisingSearch(Functions(start, train), candidates, max_epochs=30, **options)


def test_the_search_ends_when_the_time_is_over(clock):
    result = a_search(clock).run()
    assert clock.now == 1000.0 + SECONDS
    assert result.n_epochs == SECONDS
    assert result.stop_reason == "the budget of 60 wall_seconds is spent"


def test_a_job_ends_with_the_epoch_in_which_the_time_is_over(clock):
    search = a_search(clock, epoch_seconds=7.0, slice=30)
    result = search.run()
    assert (clock.now - 1000.0, result.n_epochs) == (63.0, 9)
    assert "paused" in search.scheduler.statuses()


def test_time_in_which_nobody_trains_passes_too(clock):
    def rest(search, report):
        clock.now += 5.0

    result = a_search(clock, callbacks=[rest], slice=1).run()
    assert clock.now == 1000.0 + 11 * 6.0  # the last job began a second before the end
    assert result.n_epochs == 11


def test_the_clock_stands_still_until_the_search_is_resumed(clock, tmp_path):
    def stop(search, report):
        if search.scheduler.n_epochs >= 20:
            search.stop()

    search = a_search(clock, run_dir=tmp_path / "run", callbacks=[stop])
    first = search.run()
    assert first.n_epochs < SECONDS
    clock.now += 10_000.0
    resumed = a_search(clock, run_dir=tmp_path / "run")
    assert resumed.scheduler.spent == first.n_epochs
    result = resumed.run()
    assert result.n_epochs == SECONDS
    assert clock.now == 11_000.0 + SECONDS
    assert result.curves == a_search(clock).run().curves


def test_more_time_goes_on(clock):
    search = a_search(clock)
    search.run()
    search.extend(Budget(wall_seconds=5.0))
    assert search.run().n_epochs == SECONDS + 5
