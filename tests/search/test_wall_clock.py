"""Searches that end by the clock, on a clock that only training moves."""

from __future__ import annotations

import re

import pytest
from curve_search import AtOnce

from risingsearch import Budget, Functions, RisingSearch
from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.scheduling.options import SearchOptions
from risingsearch.search.loop import Embedding

SECONDS = 60.0


def a_search(
    clock, *, epoch_seconds: float = 1.0, besides=lambda search: 0.0, **options
) -> RisingSearch:
    def start(params, seed):
        return {"epochs": 0, **params}

    def train(state):
        clock.now += epoch_seconds
        state["epochs"] += 1
        return state["top"] * (1 - 0.7 ** state["epochs"])

    candidates = [{"top": (arm + 1) / 40} for arm in range(40)]
    options = {"budget": Budget(wall_seconds=SECONDS), "seed": 0, **options}
    options = SearchOptions(max_epochs=30, **options)
    embedding = Embedding(seconds_besides=lambda: besides(search))
    trainable = Functions(start, train)
    search = RisingSearch._of(trainable, candidates, options, embedding=embedding)
    return search


def a_tenth_of_the_epochs(search: RisingSearch) -> float:
    return 0.1 * search.scheduler.n_epochs


@pytest.mark.parametrize("options", [{}, {"budget": None, "timeout": SECONDS}])
def test_the_search_ends_when_the_time_is_over(clock, options):
    result = a_search(clock, **options).run()
    assert clock.now == 1000.0 + SECONDS
    assert result.n_epochs == SECONDS
    assert result.stop_reason == "the budget of 60 wall-clock seconds is spent"


def test_a_job_ends_with_the_epoch_in_which_the_time_is_over(clock):
    search = a_search(clock, epoch_seconds=7.0, epochs_per_job=30)
    result = search.run()
    assert (clock.now - 1000.0, result.n_epochs) == (63.0, 9)
    assert "paused" in search.scheduler.statuses()


def test_the_clock_stands_still_until_the_search_is_resumed(clock, tmp_path):
    def stop(epoch):
        if epoch.number >= 20:
            epoch.stop()

    first = a_search(clock, run_dir=tmp_path / "run", callbacks=[stop]).run()
    assert first.n_epochs < SECONDS
    clock.now += 10_000.0
    resumed = a_search(clock, run_dir=tmp_path / "run")
    assert resumed.scheduler.spent == first.n_epochs
    result = resumed.run()
    assert result.n_epochs == SECONDS
    assert clock.now == 11_000.0 + SECONDS
    assert result.curves == a_search(clock).run().curves


def test_jobs_of_a_killed_search_move_the_clock_when_they_are_trained_again(
    clock, tmp_path
):
    class KilledError(BaseException):
        pass

    def killed(epoch):
        if epoch.number >= 20:
            clock.now += 7.0  # what was trained since is lost, and its time too
            raise KilledError

    search = a_search(
        clock, run_dir=tmp_path / "run", callbacks=[killed], epochs_per_job=5
    )
    with pytest.raises(KilledError):
        search.run()
    begin = clock.now
    again = a_search(clock, run_dir=tmp_path / "run", epochs_per_job=5)
    left = SECONDS - again.scheduler.spent
    assert again.run().n_epochs == SECONDS
    assert clock.now == begin + left


def test_how_long_a_search_took_goes_on_with_its_directory(clock, tmp_path):
    options = {"budget": 30, "run_dir": tmp_path / "run"}

    def rest(epoch):
        clock.now += 5.0
        if epoch.number >= 20:
            epoch.stop()

    first = a_search(clock, epochs_per_job=1, callbacks=[rest], **options).run()
    assert first.wall_seconds == 20 + 19 * 5.0
    clock.now += 10_000.0
    result = a_search(clock, epochs_per_job=1, **options).run()
    assert result.wall_seconds == first.wall_seconds + 10
    saved = RisingSearch.saved_result(tmp_path / "run")
    assert saved.wall_seconds == result.wall_seconds


def test_when_each_job_came_back_is_kept(clock, tmp_path):
    options = {"epochs_per_job": 1, "run_dir": tmp_path / "run"}
    result = a_search(clock, budget=4, **options).run()
    assert list(result.returned_at.values()) == [1.0, 2.0, 3.0, 4.0]
    assert set(result.returned_at) == set(result.history["job"])
    saved = RisingSearch.saved_result(tmp_path / "run")
    assert saved.returned_at == result.returned_at


def test_a_longer_timeout_is_refused_with_how_to_add_time(clock, tmp_path):
    a_search(clock, budget=None, timeout=SECONDS, run_dir=tmp_path / "run").run()
    said = (
        r"budget\.wall_seconds=60.0, .*=90\.0: give the same arguments .*timeout.*"
        r"and call extend"
    )
    with pytest.raises(RunDirError, match=said):
        a_search(clock, budget=None, timeout=90.0, run_dir=tmp_path / "run")


@pytest.mark.parametrize("budget", [500, Budget(seconds=500.0)])
def test_a_timeout_ends_each_run_before_its_budget(clock, budget):
    search = a_search(clock, budget=budget, timeout=SECONDS)
    assert search.run().n_epochs == SECONDS
    assert search.run().n_epochs == 2 * SECONDS


def test_a_resumed_search_has_a_timeout_of_its_own(clock, tmp_path):
    search = a_search(clock, budget=500, timeout=SECONDS, run_dir=tmp_path / "run")
    search.run()
    again = RisingSearch.resume(tmp_path / "run", search.trainable, timeout=7)
    assert again.run().n_epochs == SECONDS + 7


@pytest.mark.parametrize("timeout", [0, -1, "600", float("inf")])
def test_a_timeout_is_a_time(clock, timeout):
    with pytest.raises(InvalidParameterError, match="timeout, in seconds, must be"):
        a_search(clock, timeout=timeout)


def test_without_both_it_says_what_to_write(clock):
    with pytest.raises(InvalidParameterError, match=r"budget=300 .* or timeout=600"):
        a_search(clock, budget=None)


@pytest.mark.parametrize("budget", [None, 500])
def test_one_epoch_is_trained_in_whatever_time(clock, budget):
    assert a_search(clock, budget=budget, timeout=1e-9).run().n_epochs == 1


@pytest.mark.parametrize("budget", [None, 500, Budget(wall_seconds=500.0)])
def test_time_is_kept_for_what_follows(clock, budget, capsys):
    search = a_search(
        clock,
        besides=a_tenth_of_the_epochs,
        budget=budget,
        timeout=SECONDS,
        progress=True,
    )
    assert search.run().n_epochs == 55
    assert clock.now + 0.1 * 55 == pytest.approx(1000.0 + SECONDS + 0.5)
    assert "55/" in capsys.readouterr().err.splitlines()[-1]


def test_a_search_that_kept_time_for_what_follows_is_finished(clock, tmp_path):
    def again() -> RisingSearch:
        return a_search(clock, besides=a_tenth_of_the_epochs, run_dir=tmp_path / "run")

    first = again()
    assert first.run().n_epochs == first.run().n_epochs == 55
    reason = (
        "the budget of 60 wall-clock seconds is spent but for 5, kept for the refit"
    )
    assert RisingSearch.saved_result(tmp_path / "run").stop_reason == reason
    resumed = again()
    assert resumed.scheduler.stop_reason == reason
    assert resumed.scheduler.spent == resumed.run().n_epochs == 55
    resumed.extend(Budget(wall_seconds=20.0))
    assert resumed.run().n_epochs > 55


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (500, "the timeout of 60 seconds is over"),
        (Budget(wall_seconds=500.0), "the timeout of 60 seconds is over"),
        (Budget(wall_seconds=30.0), "the budget of 30 wall-clock seconds is spent"),
        (None, "the budget of 60 wall-clock seconds is spent"),
    ],
)
def test_it_says_which_time_was_over(clock, budget, reason):
    search = a_search(clock, besides=lambda search: 5.0, budget=budget, timeout=SECONDS)
    assert search.run().stop_reason.startswith(reason)
    assert search.result().stop_reason.startswith(reason)


@pytest.mark.parametrize(
    ("wait", "remark"), [(29.0, ""), (31.0, "; .* 31.0 s to start")]
)
def test_it_says_if_the_start_of_a_process_took_most_of_the_time(clock, wait, remark):
    class Cold(AtOnce):
        isolates_jobs = True

        def submit(self, *given):
            clock.now = max(clock.now, 1000.0 + wait)
            return super().submit(*given)

    search = a_search(clock, budget=None, timeout=60, executor=Cold(), n_jobs=1)
    assert re.fullmatch(f"the budget of .* is spent{remark}", search.run().stop_reason)
