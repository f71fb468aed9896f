"""Click logs, their rates in windows, and the arms made of them."""

import sys
from functools import partial
from types import ModuleType

import numpy as np
import pytest

from benchmarks.papers.smooth import clicks
from benchmarks.papers.smooth.clicks import (
    click_log,
    click_rates,
    counterfactual,
    fitted,
    make_log,
    read_log,
)
from risingsearch.errors import InvalidParameterError

ENTRIES = ([5.0, 1.0, 3.0, 4.0], ["b", "a", "b", "c"], [1, 0, 0, 1])


def test_entries_are_sorted_by_time_and_items_by_how_often_they_were_shown(tmp_path):
    path = tmp_path / "log.csv"
    lines = [
        f"{item},x,{time},{click}" for time, item, click in zip(*ENTRIES, strict=True)
    ]
    path.write_text("\n".join(["item,Other,Timestamp, click", *lines, ""]))
    for log in (click_log(*ENTRIES), read_log(path)):
        assert log.timestamps.tolist() == [1.0, 3.0, 4.0, 5.0]
        assert log.names == ("b", "a", "c")
        assert [log.names[i] for i in log.items] == ["a", "b", "c", "b"]
        assert log.clicks.tolist() == [False, False, True, True]
    path.write_text("time,item,click\n1,a,0\n")
    with pytest.raises(InvalidParameterError, match="with the columns timestamp, item"):
        read_log(path)


def test_rates_are_means_over_closed_windows():
    log = make_log(1, n_items=3, n_entries=300, seconds=50)
    times = np.array([-9.0, 0.0, 7.0, 31.5, 49.0, 70.0])
    for item in range(3):
        rates, shown = click_rates(log, item, times, before=4.0, after=2.0)
        for time, rate, n in zip(times, rates, shown, strict=True):
            near = (log.timestamps >= time - 4.0) & (log.timestamps <= time + 2.0)
            own = log.clicks[near & (log.items == item)]
            assert n == len(own)
            assert rate == pytest.approx(own.mean() if n else np.nan, nan_ok=True)


@pytest.fixture
def window(monkeypatch):
    """Set the seconds of a log that a click rate is counted in."""
    return partial(monkeypatch.setattr, clicks, "WINDOW")


def test_means_are_the_click_rates_around_every_second(window):
    window(60.0)
    log = make_log(0, n_items=4, n_entries=4_000, seconds=600)
    arms = counterfactual(log, 500, 20)
    seconds = log.timestamps[0] + np.arange(1, 501)
    for item in range(4):
        rates, _ = click_rates(log, item, seconds, 30.0, 30.0)
        means = [arms.mean(item, 1, t) for t in range(1, 501)]
        np.testing.assert_array_equal(means, rates)
    assert counterfactual(log, 500, 1).n_arms == 1


def test_a_window_without_an_entry_keeps_the_rate_before_it(window):
    window(4.0)
    # Item 0 all the time, item 1 from second 40 to 59 with a gap, item 2 hardly.
    times = [*range(100), *range(40, 45), *range(55, 60), 99]
    items = ["all"] * 100 + ["some"] * 10 + ["late"]
    clicked = [t % 2 for t in range(100)] + [1] * 5 + [0] * 5 + [1]
    arms = counterfactual(click_log(times, items, clicked), 80, 20)
    assert arms.n_arms == 2  # the third is not shown within the horizon
    rates = [arms.mean(1, 1, t) for t in (1, 38, 46, 50, 52, 53, 61, 80)]
    assert rates == [1, 1, 1, 1, 1, 0, 0, 0]


def test_minutes_are_stretched_over_any_horizon(monkeypatch, window):
    def smooth(values, times, frac, *, delta, return_sorted):
        assert (frac, return_sorted) == (0.1, False)
        return values - 0.01

    name = "statsmodels.nonparametric.smoothers_lowess"
    module = ModuleType(name)
    module.lowess = smooth
    for package in ("statsmodels", "statsmodels.nonparametric"):
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
    monkeypatch.setitem(sys.modules, name, module)
    window(600.0)
    log = make_log(0, n_items=3, n_entries=3_000, seconds=7_200)
    arms = fitted(log, 10**6, 20)
    minutes = np.arange(log.timestamps[0] + 600.0, log.timestamps[-1] + 60.0, 60.0)
    assert len(arms.rounds) == len(minutes)
    assert arms.rounds[[0, -1]].tolist() == [1, 10**6]
    rates, _ = click_rates(log, 1, minutes, 600.0, 0.0)
    expected = np.clip(rates - 0.01, 0.0, 1.0)
    np.testing.assert_allclose(arms.means[:, 1], expected)
