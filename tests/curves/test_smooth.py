"""Smoothly drifting arms: the sinusoid, and clicks from a log."""

import math
import sys
from functools import partial
from types import ModuleType

import numpy as np
import pytest

from risingsearch.curves import smooth
from risingsearch.curves.clicks import click_log, click_rates, make_click_log
from risingsearch.curves.smooth import click_counterfactual, click_fitted, sinusoid
from risingsearch.errors import InvalidParameterError

RNG = np.random.default_rng(0)


class TestSinusoid:
    def test_arms_are_drawn_from_the_papers_ranges(self):
        n = 10**6
        drawn = [sinusoid(np.random.default_rng(seed), n) for seed in range(300)]
        nu = np.array([arms.frequency for arms in drawn]) * n / (2.0 * math.pi)
        assert 2.5 <= nu.min() < 2.6 < 4.9 < nu.max() <= 5.0
        excess = np.array([arms.amplitude for arms in drawn]) - 0.25 / nu**2
        assert excess.std() == pytest.approx(0.001, rel=0.15)
        phases = [arms.phase for arms in drawn]
        assert 0.0 <= min(phases) < 0.1 < 6.2 < max(phases) <= 2.0 * math.pi

    def test_the_horizon_only_stretches_the_cycles(self):
        short, long = (sinusoid(np.random.default_rng(1), n) for n in (10**6, 10**8))
        assert short.amplitude == long.amplitude
        assert short.phase == long.phase
        assert short.frequency == pytest.approx(100 * long.frequency)

    def test_it_needs_two_rounds_per_cycle(self):
        with pytest.raises(InvalidParameterError, match="horizon must be a whole num"):
            sinusoid(RNG, 8)


@pytest.fixture
def window(monkeypatch):
    """Set the seconds of a log that a click rate is counted in."""
    return partial(monkeypatch.setattr, smooth, "WINDOW")


def small_log():
    """Item 0 all the time, item 1 from second 40 to 59 with a gap, item 2 hardly."""
    times = [*range(100), *range(40, 45), *range(55, 60), 99]
    items = ["all"] * 100 + ["some"] * 10 + ["late"]
    clicks = [t % 2 for t in range(100)] + [1] * 5 + [0] * 5 + [1]
    return click_log((times, items, clicks))


class TestCounterfactual:
    def test_means_are_the_click_rates_around_every_second(self, window):
        window(60.0)
        log = make_click_log(0, n_items=4, n_entries=4_000, seconds=600)
        arms = click_counterfactual(RNG, 500, log=log)
        seconds = log.timestamps[0] + np.arange(1, 501)
        for item in range(4):
            rates, _ = click_rates(log, item, seconds, 30.0, 30.0)
            means = [arms.mean(item, 1, t) for t in range(1, 501)]
            np.testing.assert_array_equal(means, rates)

    def test_a_window_without_an_entry_keeps_the_rate_before_it(self, window):
        window(4.0)
        arms = click_counterfactual(RNG, 80, log=small_log())
        assert arms.n_arms == 2  # the third is not shown within the horizon
        rates = [arms.mean(1, 1, t) for t in (1, 38, 46, 50, 52, 53, 61, 80)]
        assert rates == [1, 1, 1, 1, 1, 0, 0, 0]

    def test_the_items_shown_most_are_taken(self, window):
        window(4.0)
        assert click_counterfactual(RNG, 99, log=small_log(), n_items=1).n_arms == 1
        assert click_counterfactual(RNG, 99, log=small_log()).n_arms == 3

    def test_it_says_what_is_wrong(self):
        with pytest.raises(
            InvalidParameterError, match="so horizon must be at most 100"
        ):
            click_counterfactual(RNG, 101, log=small_log())
        with pytest.raises(
            InvalidParameterError, match="n_items must be a whole number"
        ):
            click_counterfactual(RNG, 10, log=small_log(), n_items=0)


@pytest.fixture
def lowess(monkeypatch):
    """Stand in for statsmodels' smoother: leave the values, add what its lines may."""
    calls = []

    def smooth(values, times, frac, *, delta, return_sorted):
        assert not return_sorted
        calls.append((len(values), frac, delta))
        return values - 0.01

    name = "statsmodels.nonparametric.smoothers_lowess"
    module = ModuleType(name)
    module.lowess = smooth
    for package in ("statsmodels", "statsmodels.nonparametric"):
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
    monkeypatch.setitem(sys.modules, name, module)
    return calls


class TestFitted:
    log = make_click_log(0, n_items=3, n_entries=3_000, seconds=7_200)

    def test_minutes_are_stretched_over_any_horizon(self, lowess, window):
        window(600.0)
        arms = click_fitted(RNG, 10**6, log=self.log)
        start, end = self.log.timestamps[[0, -1]]
        minutes = np.arange(start + 600.0, end + 60.0, 60.0)
        assert len(arms.rounds) == len(minutes)
        assert arms.rounds[[0, -1]].tolist() == [1, 10**6]
        rates, _ = click_rates(self.log, 1, minutes, 600.0, 0.0)
        expected = np.clip(rates - 0.01, 0.0, 1.0)
        np.testing.assert_allclose(arms.means[:, 1], expected)
        middle = int(arms.rounds[3:5].mean())
        assert arms.mean(1, 1, middle) == pytest.approx(expected[3:5].mean(), rel=1e-3)
        span = pytest.approx(0.01 * (minutes[-1] - minutes[0]))
        assert lowess == [(len(minutes), 0.1, span)] * 3

    def test_the_log_must_be_longer_than_the_window(self, window):
        window(7_200.0)
        with pytest.raises(InvalidParameterError, match="must be longer than the"):
            click_fitted(RNG, 10, log=self.log)
