"""Click logs, and arms that are clicked as they say: section 7.3 of the paper.

One round is a second, or a part of the log; the arms are the items shown most. The
paper's data (Yahoo! R6B, 2 October 2011) are licensed; any log will do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from risingsearch.curves import DriftingMeans
from risingsearch.errors import InvalidParameterError

COLUMNS = ["timestamp", "item", "click"]
LOWEST, HIGHEST = 0.02, 0.08  # click rates of a synthetic log
MINUTE = 60.0
WINDOW = 3_600.0  # seconds of the log that a click rate is counted in
FRACTION = 0.1  # of the minutes, that LOWESS fits each line to


class ClickLog(NamedTuple):
    """A log of clicks, one entry per time an item was shown."""

    timestamps: NDArray[np.float64]  # (n_entries,), seconds, increasing
    items: NDArray[np.int64]  # (n_entries,), index into names
    clicks: NDArray[np.bool_]  # (n_entries,)
    names: tuple[str, ...]  # most shown first


def click_log(
    timestamps: ArrayLike, items: Sequence[str] | NDArray[np.str_], clicks: ArrayLike
) -> ClickLog:
    """Return a log with its entries in the order of time."""
    times = np.asarray(timestamps, dtype=float)
    names, codes, counts = np.unique(items, return_inverse=True, return_counts=True)
    by_count = np.argsort(-counts, kind="stable")
    place = np.argsort(by_count)
    order = np.argsort(times, kind="stable")
    return ClickLog(
        times[order],
        place[codes][order],
        np.asarray(clicks)[order].astype(bool),
        tuple(str(name) for name in names[by_count]),
    )


def read_log(path: Path) -> ClickLog:
    """Return the log of a CSV file with the columns timestamp, item and click."""
    try:
        frame = pd.read_csv(path, skipinitialspace=True, dtype={"item": str})
        frame.columns = frame.columns.str.lower()
        return click_log(*(frame[name].to_numpy() for name in COLUMNS))
    except (OSError, ValueError, KeyError) as error:
        msg = (
            f"{path} must be a CSV file with the columns {', '.join(COLUMNS)}: a "
            f"number of seconds, a name, 0 or 1; {error}"
        )
        raise InvalidParameterError(msg) from error


def make_log(
    seed: int, n_items: int = 20, n_entries: int = 500_000, seconds: int = 86_400
) -> ClickLog:
    """Return a synthetic log, in place of a real one.

    Items are shown with equal probability at uniformly random times, and the click rate
    of each swings once or twice over the log, by a sine of random phase.
    """
    rng = np.random.default_rng(seed)
    levels = rng.uniform(0.0, 1.0, n_items)
    swings = rng.uniform(0.0, np.minimum(levels, 1.0 - levels))
    turns = rng.uniform(1.0, 2.0, n_items)
    phases = rng.uniform(0.0, 2.0 * math.pi, n_items)
    times = np.sort(rng.uniform(0.0, seconds, n_entries))
    items = rng.integers(n_items, size=n_entries)
    angles = 2.0 * math.pi * turns[items] * times / seconds + phases[items]
    position = levels[items] + swings[items] * np.sin(angles)
    clicks = rng.random(n_entries) < LOWEST + (HIGHEST - LOWEST) * position
    names = np.array([f"synthetic {i}" for i in range(n_items)])
    return click_log(times, names[items], clicks)


def click_rates(
    log: ClickLog, item: int, times: NDArray[np.float64], before: float, after: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return an item's click rate and entries in a window around each time.

    Windows include both ends; where one is empty, the rate is NaN.
    """
    own = np.flatnonzero(log.items == item)
    when = log.timestamps[own]
    clicked = np.concatenate([[0], np.cumsum(log.clicks[own])])
    first = np.searchsorted(when, times - before, side="left")
    last = np.searchsorted(when, times + after, side="right")
    shown = last - first
    rates = np.full(len(times), np.nan)
    np.divide(clicked[last] - clicked[first], shown, out=rates, where=shown > 0)
    return rates, shown


def counterfactual(log: ClickLog, horizon: int, n_items: int) -> DriftingMeans:
    """Return clicks on articles: one round is a second, the reward a logged click.

    The reward of an article at round ``t`` is the click bit of an entry of the log
    drawn uniformly from the hour around second ``t``: a Bernoulli trial with the click
    rate of that hour. Rounds count from the first entry; the horizon is at most the
    length of the log.

    The paper does not say what happens to an article that is not shown all day: here a
    window without an entry keeps the click rate before it, or takes the first one there
    is. Nor does it say what regret is measured against: here the click rates.
    """
    seconds = log.timestamps[0] + np.arange(1.0, horizon + 1.0)
    rates = _rates_over_time(log, n_items, seconds, 0.5 * WINDOW, 0.5 * WINDOW)
    changed = np.flatnonzero(np.any(np.diff(rates, axis=1) != 0.0, axis=0)) + 1
    knots = np.concatenate([[0], changed])
    return DriftingMeans.create(rates[:, knots], knots + 1, noise="bernoulli")


def fitted(log: ClickLog, horizon: int, n_items: int) -> DriftingMeans:
    """Return clicks, smoothed, and the log stretched over any number of rounds.

    The click rate of the hour up to every minute, from the end of the first hour on,
    smoothed by LOWESS (Cleveland 1981) and interpolated in straight lines.

    The paper leaves the bandwidth open. It also says that 8.64e7 rounds are seconds,
    which are the milliseconds of a day; here the log is spread over the horizon.
    Where the smoothed line leaves the range from 0 to 1 it is set to its nearest end.
    """
    from statsmodels.nonparametric.smoothers_lowess import lowess

    start, end = log.timestamps[[0, -1]]
    minutes = np.arange(start + WINDOW, end + MINUTE, MINUTE)
    near = 0.01 * (minutes[-1] - minutes[0])  # lines are fitted that far apart
    rows = [
        lowess(row, minutes, FRACTION, delta=near, return_sorted=False)
        for row in _rates_over_time(log, n_items, minutes, WINDOW, 0.0)
    ]
    smooth = np.clip(np.array(rows), 0.0, 1.0)
    # Minute by minute over the horizon; several minutes may share a round.
    stretched = 1 + (np.arange(len(minutes)) * (horizon - 1)) // (len(minutes) - 1)
    knots, minute = np.unique(stretched, return_index=True)
    means = smooth[:, minute]
    return DriftingMeans.create(means, knots, between="linear", noise="bernoulli")


def _rates_over_time(
    log: ClickLog, n_items: int, times: NDArray[np.float64], before: float, after: float
) -> NDArray[np.float64]:
    """Return the click rates over time of every item that has an entry."""
    rates = []
    for item in range(min(n_items, len(log.names))):
        own, shown = click_rates(log, item, times, before, after)
        known = np.flatnonzero(shown)
        if len(known) == 0:
            continue
        latest = np.maximum.accumulate(np.where(shown > 0, np.arange(len(times)), 0))
        own[0] = own[known[0]]
        rates.append(own[latest])
    return np.array(rates)
