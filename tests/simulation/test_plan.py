"""Runs in threads: which loop plays them, what ends them, what they leave behind."""

import os
import signal
import threading

import numpy as np
import pytest

from risingsearch.curves import DriftingMeans, make_environment
from risingsearch.simulation import simulate

FOR_EVER = 2**53


@pytest.fixture
def interrupted_soon():
    """Return a generator of arms that has Ctrl-C pressed when a run begins."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timers = []

    def arms(rng, horizon):
        if threading.current_thread() is not threading.main_thread():
            press = threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT])
            timers.append(press)
            if len(timers) == 1:
                press.start()
        return DriftingMeans.create([[0.1], [0.2]])

    yield arms
    for timer in timers[:1]:
        timer.join()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("jobs", "compiled"), [(1, True), (2, False)], ids=str)
def test_an_interrupt_ends_even_runs_that_would_never_end(
    jobs, compiled, interrupted_soon
):
    with pytest.raises(KeyboardInterrupt):
        simulate(
            "round-robin", interrupted_soon, FOR_EVER, 9, jobs=jobs, compiled=compiled
        )
    for thread in threading.enumerate():
        if thread.name.startswith("ThreadPool"):
            thread.join(3600)
            assert not thread.is_alive()


def test_a_run_that_fails_ends_the_others():
    begun = []

    def arms(rng, horizon):
        begun.append(threading.current_thread())
        if len(begun) > 2:  # one of the two threads is under way by now
            message = "no arms today"
            raise LookupError(message)
        return DriftingMeans.create([[0.1], [0.2]])

    with pytest.raises(LookupError, match="no arms today"):
        simulate("round-robin", arms, FOR_EVER, 9, jobs=2)


def test_classes_may_differ_from_run_to_run():
    def arms(rng, horizon):
        return make_environment(["ltf", "blip"][rng.integers(2)], horizon, rng)

    compiled, interpreted = (
        simulate("round-robin", arms, 200, 12, jobs=2, compiled=how)
        for how in (True, False)
    )
    n_arms = (interpreted.pulls > 0).sum(axis=1)
    assert n_arms.min() < 4 < n_arms.max()
    np.testing.assert_array_equal(compiled.regret, interpreted.regret)
    np.testing.assert_array_equal(compiled.pulls, interpreted.pulls)
