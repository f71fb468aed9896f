"""Click logs: reading, sorting, rates in windows, and the synthetic one."""

import re

import numpy as np
import pytest

from risingsearch.curves.clicks import ClickLog, click_log, click_rates, make_click_log
from risingsearch.errors import InvalidParameterError

ENTRIES = ([5.0, 1.0, 3.0, 4.0], ["b", "a", "b", "c"], [1, 0, 0, 1])


def test_entries_are_sorted_by_time_and_items_by_how_often_they_were_shown():
    log = click_log(ENTRIES)
    assert log.timestamps.tolist() == [1.0, 3.0, 4.0, 5.0]
    assert log.names == ("b", "a", "c")
    assert [log.names[i] for i in log.items] == ["a", "b", "c", "b"]
    assert log.clicks.tolist() == [False, False, True, True]
    assert click_log(log) is log


def test_a_csv_file_gives_the_same_log(tmp_path):
    path = tmp_path / "log.csv"
    rows = zip(*ENTRIES, strict=True)
    lines = [f"{item},x,{time},{click}" for time, item, click in rows]
    path.write_text("\n".join(["item,Other,Timestamp, click", *lines, ""]))
    for source in (path, str(path)):
        for own, other in zip(click_log(source), click_log(ENTRIES), strict=True):
            np.testing.assert_array_equal(own, other)


def test_rates_are_means_over_closed_windows():
    rng = np.random.default_rng(0)
    log = click_log(
        (rng.integers(0, 50, 300), rng.integers(3, size=300), rng.integers(2, size=300))
    )
    times = np.array([-9.0, 0.0, 7.0, 31.5, 49.0, 70.0])
    for item in range(3):
        rates, shown = click_rates(log, item, times, before=4.0, after=2.0)
        for time, rate, n in zip(times, rates, shown, strict=True):
            near = (log.timestamps >= time - 4.0) & (log.timestamps <= time + 2.0)
            own = log.clicks[near & (log.items == item)]
            assert n == len(own)
            assert rate == pytest.approx(own.mean() if n else np.nan, nan_ok=True)


def test_the_synthetic_log_says_that_it_is_one():
    log = make_click_log(1, n_items=5, n_entries=50_000, seconds=1_000)
    assert isinstance(log, ClickLog)
    assert all(name.startswith("synthetic") for name in log.names)
    assert 0.0 <= log.timestamps[0] < log.timestamps[-1] <= 1_000.0
    assert np.bincount(log.items).min() > 9_500
    times = np.arange(50.0, 1_000.0, 50.0)
    rates = np.array([click_rates(log, i, times, 50.0, 50.0)[0] for i in range(5)])
    assert 0.015 < rates.min() < rates.max() < 0.1
    assert np.ptp(rates, axis=1).max() > 0.02
    again = make_click_log(
        np.random.default_rng(1), n_items=5, n_entries=50_000, seconds=1_000
    )
    np.testing.assert_array_equal(log.clicks, again.clicks)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (([], [], []), "a click log needs as many timestamps as items and clicks, at"),
        (([1.0], ["a"], [1, 0]), "got shapes (1,), (1,) and (2,)"),
        (([np.inf], ["a"], [1]), "timestamps must be finite numbers of seconds, and"),
        (([1.0], ["a"], [2]), "and clicks 0 or 1"),
        ("nowhere.csv", "cannot read the click log nowhere.csv: No such file"),
    ],
)
def test_what_is_no_log_is_refused(source, message):
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        click_log(source)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a CSV file with the columns timestamp, item, click: a number"),
        ("time,item,click\n1,a,0\n", "a name, 0 or 1; 'timestamp'"),
        ("timestamp,item,click\nx,a,0\n", "timestamps must be numbers in a regular"),
        ("timestamp,item,click\n1,a\n", "and clicks 0 or 1"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, text, message):
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        click_log(path)
