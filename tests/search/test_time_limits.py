"""Epochs that never end, and workers that begin after the time is over."""

import contextlib
import faulthandler
import os
import re
import signal
import time

import pytest
from example_search import start

from risingsearch import Functions, RisingSearch
from risingsearch.errors import InvalidParameterError, SearchFailedError
from risingsearch.search import processes, wall_clock

GUILTY = 2


def sleeps(state):
    time.sleep(3600)


def holds_the_lock_of_python(state):
    re.match(r"(a+)+$", "a" * 60 + "b")


def train(state):
    if state["arm"] == GUILTY and state["epochs"] == 1:
        state["does"](state)
    state["epochs"] += 1
    return state["arm"] + 1 - 1 / (1 + state["epochs"])


def never_ends(state):
    if state["epochs"] == state["hangs_after"]:
        time.sleep(3600)
    state["epochs"] += 1
    return 0.5


def start_never_ends(params, seed):
    time.sleep(3600)


class SlowToArrive:
    """A trainable that takes longer to unpickle than the search has time."""

    def __setstate__(self, state):
        time.sleep(0.5)

    def __getstate__(self):
        return {"": 0}

    def start(self, params, seed):
        return {"epochs": 0, "arm": -1, **params}

    def train(self, state):
        return train(state)


@pytest.mark.parametrize("does", [sleeps, holds_the_lock_of_python])
@pytest.mark.parametrize("max_failures", [0, 1])
def test_an_epoch_that_never_ends_fails(does, max_failures):
    result = RisingSearch(
        Functions(start, train),
        [{"arm": arm, "does": does} for arm in range(5)],
        policy="round-robin",
        budget=15,
        max_epochs=4,
        max_failures=max_failures,
        n_jobs=2,
        epoch_timeout=0.4,
        seed=0,
    ).run()
    assert result.n_epochs == 15
    [report] = result.failures
    assert report.job.arm == GUILTY
    assert str(report.failure) == (
        "arm 2 took longer than epoch_timeout=0.4 seconds in epoch 2; "
        f"attempts: {1 + max_failures}"
    )


def waits_with_an_alarm_of_its_own(state):
    """Train for at most some milliseconds, as evaluations of generated code are."""

    def raise_timeout(number, frame):
        raise TimeoutError

    usual = signal.signal(signal.SIGALRM, raise_timeout)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    with contextlib.suppress(TimeoutError):
        time.sleep(3600)
    signal.signal(signal.SIGALRM, usual)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no alarms")
def test_timers_of_the_caller_and_of_a_training_are_their_own(capfd):
    rung = []
    usual = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    faulthandler.dump_traceback_later(3600)
    does = [sleeps, waits_with_an_alarm_of_its_own]
    try:
        result = RisingSearch(
            Functions(start, train),
            [{"arm": GUILTY, "does": each} for each in does],
            policy="round-robin",
            budget=8,
            max_epochs=4,
            n_jobs=2,
            epoch_timeout=1,
            shuffle=False,
        ).run()
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        while not rung:
            time.sleep(0.01)
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, usual)
    assert [arm.status for arm in result.arms] == ["failed", "finished"]
    assert "in sleeps" in capfd.readouterr().err


def searches(state):
    RisingSearch(
        Functions(start, train),
        [{"arm": GUILTY, "does": sleeps}] * 2,
        budget=2,
        epochs_per_job=2,
        n_jobs=2,
        epoch_timeout=0.5,
    ).run()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no alarms")
def test_a_search_in_an_epoch_says_where_its_own_never_end(capfd):
    result = RisingSearch(
        Functions(start, train),
        [{"arm": GUILTY, "does": searches}] * 2,
        budget=2,
        epochs_per_job=2,
        n_jobs=2,
        epoch_timeout=600,
    ).run()
    assert "epoch_timeout=0.5 seconds" in str(result.failures[0].failure)
    assert "in sleeps" in capfd.readouterr().err


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no alarms")
def test_a_program_may_block_alarms():
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    try:
        result = RisingSearch(
            Functions(start, train),
            [{"arm": GUILTY, "does": sleeps}, {"arm": 0}],
            budget=6,
            max_epochs=4,
            n_jobs=2,
            epoch_timeout=0.5,
        ).run()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    assert result.arms[0].status == "failed"


def test_a_worker_that_never_starts_is_ended(monkeypatch):
    monkeypatch.setattr(processes, "end_with_parent", sleeps)
    monkeypatch.setattr(wall_clock, "SHORTEST", 0.1)
    search = RisingSearch(
        Functions(start, train), [{"arm": 0}] * 3, budget=4, n_jobs=2, timeout=0.1
    )
    with pytest.raises(SearchFailedError, match="as it began or trained long after"):
        search.run()


@pytest.mark.parametrize("limit", [{"epoch_timeout": 0.3}, {"timeout": 0.3}])
@pytest.mark.parametrize("start", [start, start_never_ends])
def test_no_arm_may_ever_begin(monkeypatch, start, limit):
    monkeypatch.setattr(wall_clock, "SHORTEST", 0.1)
    trainable = Functions(start, never_ends)
    candidates = [{"hangs_after": 0}, {"hangs_after": 0}]
    search = RisingSearch(trainable, candidates, budget=4, n_jobs=2, **limit)
    with pytest.raises(SearchFailedError, match=r"in one of epochs|in epoch 1"):
        search.run()


@pytest.mark.parametrize("options", [{}, {"budget": 100}])
def test_a_search_with_a_timeout_comes_back(monkeypatch, options):
    monkeypatch.setattr(wall_clock, "SHORTEST", 0.1)
    candidates = [{"hangs_after": n} for n in (1, 2, 3)]
    options |= {"max_epochs": 9, "n_jobs": 2}
    for timeout in (0.5, 5, 50):  # on a busy machine no second job may have begun
        search = RisingSearch(
            Functions(start, never_ends), candidates, timeout=timeout, **options
        )
        result = search.run()
        assert result.best_score == 0.5
        reason = f"timeout of {timeout} seconds|budget of {timeout} wall-clock s"
        assert re.search(reason, result.stop_reason)
        if result.failures:
            break
    assert "long after the time was over, in" in str(result.failures[0].failure)


@pytest.mark.parametrize("policy", ["auto", "asha", "successive-halving"])
def test_no_epoch_begins_after_the_time_but_the_first(policy):
    search = RisingSearch(
        SlowToArrive(),
        [{"top": 1}] * 6,
        policy=policy,
        budget=24,
        max_epochs=4,
        n_jobs=3,
        timeout=0.2,
        seed=0,
    )
    result = search.run()
    assert result.n_calls == result.n_epochs == 1
    said = r"the timeout of 0.2 seconds is over; a worker process took .* s to start"
    assert re.fullmatch(said, result.stop_reason)


@pytest.mark.parametrize("options", [{}, {"n_jobs": 1}])
def test_a_limit_of_epochs_takes_processes(options):
    with pytest.raises(InvalidParameterError, match=r"needs worker processes.*n_jobs"):
        RisingSearch(
            Functions(start, train), [{}], budget=1, epoch_timeout=1, **options
        )


@pytest.mark.parametrize("wrong", [0, -1, "600", float("inf"), float("nan")])
def test_it_is_a_time(wrong):
    with pytest.raises(InvalidParameterError, match="epoch_timeout, in seconds, must"):
        RisingSearch(
            Functions(start, train), [{}], budget=1, n_jobs=2, epoch_timeout=wrong
        )


def test_a_limit_of_epochs_is_not_blamed_where_none_began(monkeypatch):
    monkeypatch.setattr(processes, "end_with_parent", sleeps)
    monkeypatch.setattr(wall_clock, "SHORTEST", 0.1)
    limits = {"timeout": 0.1, "epoch_timeout": 0.05}
    search = RisingSearch(
        Functions(start, train), [{"arm": 0}] * 3, budget=4, n_jobs=2, **limits
    )
    with pytest.raises(SearchFailedError, match="as it began") as said:
        search.run()
    assert "epoch_timeout" not in str(said.value)


def dies(state):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_limit_of_epochs_is_not_blamed_for_another_death():
    candidates = [{"arm": arm, "does": dies} for arm in range(3)]
    result = RisingSearch(
        Functions(slow_start, train),
        candidates,
        policy="round-robin",
        budget=6,
        max_epochs=2,
        n_jobs=2,
        epoch_timeout=0.6,
        seed=0,
    ).run()
    [report] = result.failures
    assert "killed its process" in str(report.failure)


def slow_start(params, seed):
    time.sleep(0.05)
    return start(params, seed)
