"""Searches that end by the clock, on a clock that only training moves."""

from __future__ import annotations

from errno import ENOSPC

import pytest

from risingsearch import Budget, Functions, RisingSearch
from risingsearch.search import wall_clock
from risingsearch.storage.run_directory import RunDirectory

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
    assert clock.now == 1000.0 + SECONDS
    assert result.n_epochs == 10


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


def test_what_a_worker_takes_to_start_is_no_part_of_an_epoch(clock):
    def rest(search, report):
        if search.scheduler.n_epochs == 1:
            clock.now += 40.0

    result = a_search(clock, callbacks=[rest], slice=1).run()
    assert clock.now == 1000.0 + SECONDS
    assert result.n_epochs == 20


def test_no_job_starts_once_the_time_is_over(clock):
    def rest(search, report):
        clock.now += 500.0

    assert a_search(clock, callbacks=[rest], slice=1).run().n_epochs == 1


def test_jobs_of_a_killed_search_move_the_clock_when_they_are_trained_again(
    clock, tmp_path
):
    class KilledError(BaseException):
        pass

    def killed(search, report):
        if search.scheduler.n_epochs >= 20:
            clock.now += 7.0  # what was trained since is lost, and its time too
            raise KilledError

    search = a_search(clock, run_dir=tmp_path / "run", callbacks=[killed], slice=5)
    with pytest.raises(KilledError):
        search.run()
    begin = clock.now
    again = a_search(clock, run_dir=tmp_path / "run", slice=5)
    left = SECONDS - again.scheduler.spent
    assert again.run().n_epochs == SECONDS
    assert clock.now == begin + left


def test_a_write_that_fails_can_be_made_up_for(clock, tmp_path, monkeypatch):
    search = a_search(clock, run_dir=tmp_path / "run")
    append = RunDirectory.append

    def full(directory, event):
        monkeypatch.setattr(RunDirectory, "append", append)
        raise OSError(ENOSPC, "no space left")

    monkeypatch.setattr(RunDirectory, "append", full)
    with pytest.raises(OSError, match="no space"):
        search.run()
    assert search.run().n_epochs == SECONDS


def test_more_time_goes_on(clock):
    search = a_search(clock)
    search.run()
    search.extend(Budget(wall_seconds=5.0))
    assert search.run().n_epochs == SECONDS + 5


def test_how_long_a_search_took_goes_on_with_its_directory(clock, tmp_path):
    options = {"budget": 30, "run_dir": tmp_path / "run"}

    def rest(search, report):
        clock.now += 5.0
        if len(report.scores) and search.scheduler.n_epochs >= 20:
            search.stop()

    first = a_search(clock, slice=1, callbacks=[rest], **options).run()
    assert first.wall_seconds == 20 + 19 * 5.0
    clock.now += 10_000.0
    result = a_search(clock, slice=1, **options).run()
    assert result.wall_seconds == first.wall_seconds + 10
    assert RisingSearch.saved_result(tmp_path / "run").wall_seconds == (
        result.wall_seconds
    )
