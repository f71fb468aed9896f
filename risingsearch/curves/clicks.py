"""Click logs: the article shown at each time, and its clicks."""

import math
import reprlib
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from risingsearch.checks import checked_array, checked_generator, checked_int
from risingsearch.curves.files import pandas
from risingsearch.errors import InvalidParameterError
from risingsearch.policies.arrays import Bools, Floats, Ints, Rng

COLUMNS = ("timestamp", "item", "click")
LOWEST = 0.02  # click rate of a synthetic log
HIGHEST = 0.08


class ClickLog(NamedTuple):
    """A log of clicks, one entry per time an item was shown; ``click_log`` makes one.

    Good for ``make_environment("clicks")`` and ``"clicks-fitted"``.

    Parameters
    ----------
    timestamps : ndarray of shape (n_entries,)
        Seconds, increasing.
    items : ndarray of shape (n_entries,)
        The item shown, as its place in ``names``.
    clicks : ndarray of shape (n_entries,)
        Whether it was clicked.
    names : tuple of str
        The items, the one shown most first.

    Examples
    --------
    >>> log = click_log(([3.0, 1.0, 2.0], ["a", "b", "b"], [1, 0, 1]))
    >>> log.timestamps, log.names
    (array([1., 2., 3.]), ('b', 'a'))
    """

    timestamps: Floats  # (n_entries,), seconds, increasing
    items: Ints  # (n_entries,), index into names
    clicks: Bools  # (n_entries,)
    names: tuple[str, ...]  # most shown first


LogLike: TypeAlias = ClickLog | str | PathLike[str] | Sequence[ArrayLike]
"""A click log, the path of one, or its three columns."""


def click_log(source: LogLike) -> ClickLog:
    """Return a click log from arrays or from a CSV file.

    Parameters
    ----------
    source : ClickLog, tuple of three array-likes, str or path
        ``(timestamps, items, clicks)``: seconds from any origin, in any order; anything
        that names an item; 0 or 1. Or a CSV file with these columns under the header
        ``timestamp,item,click``.

    Returns
    -------
    ClickLog
        Entries in the order of time, items in that of how often they were shown.

    Raises
    ------
    InvalidParameterError
        If the log is empty or an entry is invalid.

    Examples
    --------
    >>> log = click_log(([3.0, 1.0, 2.0], ["a", "b", "b"], [1, 0, 1]))
    >>> log.names, log.items, log.clicks
    (('b', 'a'), array([0, 0, 1]), array([False,  True,  True]))
    """
    if isinstance(source, ClickLog):
        return source
    if isinstance(source, (str, PathLike)):
        return _sorted_log(*_read(Path(source)))
    try:
        timestamps, items, clicks = iter(source)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            "a click log must be a path, or the three lists timestamps, items and "
            f"clicks; got {reprlib.repr(source)}"
        ) from error
    return _sorted_log(timestamps, items, clicks)


def make_click_log(
    rng: Rng | int | None = None,
    *,
    n_items: int = 20,
    n_entries: int = 500_000,
    seconds: int = 86_400,
) -> ClickLog:
    """Return a synthetic click log, in place of a real one.

    Good for trying the click environments without the licensed data they stand for. It
    is no recording: items are shown with equal probability at uniformly random times,
    and the click rate of each swings once or twice over the log, by a sine of random
    phase, around its level.

    Parameters
    ----------
    rng : numpy.random.Generator or int, optional
        Draws the log, or seeds its draws.
    n_items : int, default 20
        Items, at least 1.
    n_entries : int, default 500000
        Entries, at least 1.
    seconds : int, default 86400
        Length of the log, at least 1.

    Returns
    -------
    ClickLog
        Entries in the order of time, as ``click_log`` returns them.

    Examples
    --------
    >>> log = make_click_log(0, n_items=2, n_entries=10_000)
    >>> log.names, int(log.clicks.sum())
    (('synthetic 0', 'synthetic 1'), 454)
    """
    rng = checked_generator(rng)
    n = checked_int("n_items", n_items, 1)
    seconds = checked_int("seconds", seconds, 1)
    levels = rng.uniform(0.0, 1.0, n)
    swings = rng.uniform(0.0, np.minimum(levels, 1.0 - levels))
    turns = rng.uniform(1.0, 2.0, n)
    phases = rng.uniform(0.0, 2.0 * math.pi, n)
    times = np.sort(rng.uniform(0.0, seconds, checked_int("n_entries", n_entries, 1)))
    items = rng.integers(n, size=len(times))
    angles = math.tau * turns[items] * times / seconds + phases[items]
    position = levels[items] + swings[items] * np.sin(angles)
    clicks = rng.random(len(times)) < LOWEST + (HIGHEST - LOWEST) * position
    names = np.array([f"synthetic {i}" for i in range(n)])
    return _sorted_log(times, names[items], clicks)


def click_rates(
    log: ClickLog,
    item: int,
    times: Floats,
    before: float,
    after: float,
) -> tuple[Floats, Ints]:
    """Return an item's click rate (NaN without entries) and entries at each time.

    Parameters
    ----------
    log : ClickLog
        The log.
    item : int
        The item, as its place in ``log.names``.
    times : ndarray of shape (n_times,)
        Seconds, on the clock of the log.
    before, after : float
        How far the window around a time reaches, in seconds; both ends belong to it.

    Returns
    -------
    tuple of two ndarrays of shape (n_times,)
        The rates, and how many entries each is the mean of.

    Examples
    --------
    >>> log = click_log(([0.0, 4.0, 6.0], ["a", "a", "a"], [1, 0, 1]))
    >>> click_rates(log, 0, np.array([2.0, 5.0, 9.0]), before=2.0, after=2.0)
    (array([0.5, 0.5, nan]), array([2, 2, 0]))
    """
    entries = log.items == item
    when = log.timestamps[entries]
    clicked = np.concatenate([[0], np.cumsum(log.clicks[entries])])
    first = np.searchsorted(when, times - before, side="left")
    last = np.searchsorted(when, times + after, side="right")
    shown = last - first
    rates = np.full(len(times), np.nan)
    np.divide(
        clicked[last] - clicked[first],
        shown,
        out=rates,
        where=shown > 0,
    )
    return rates, shown


def _sorted_log(
    timestamps: ArrayLike,
    items: ArrayLike,
    clicks: ArrayLike,
) -> ClickLog:
    times = checked_array("timestamps", timestamps)
    labels = checked_array("items", items, dtype=None)
    bits = checked_array("clicks", clicks, dtype=None)
    if not (
        times.ndim == 1 and times.size and times.shape == labels.shape == bits.shape
    ):
        raise InvalidParameterError(
            "a click log needs as many timestamps as items and clicks, at least one; "
            f"got shapes {times.shape}, {labels.shape} and {bits.shape}"
        )
    if not np.all(np.isfinite(times)) or not np.all((bits == 0) | (bits == 1)):
        raise InvalidParameterError(
            "timestamps must be finite numbers of seconds, and clicks 0 or 1"
        )
    try:
        names, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    except TypeError as error:
        raise InvalidParameterError(
            f"items must be of one kind, such as text or numbers: {error}"
        ) from error
    by_count = np.argsort(-sizes, kind="stable")
    place = np.argsort(by_count)
    order = np.argsort(times, kind="stable")
    return ClickLog(
        times[order],
        place[codes][order],
        bits[order].astype(bool),
        tuple(str(name) for name in names[by_count]),
    )


def _read(path: Path) -> list[ArrayLike]:
    try:
        frame = pandas().read_csv(path, skipinitialspace=True, dtype={"item": str})
        frame.columns = frame.columns.str.lower()
        return [frame[name] for name in COLUMNS]
    except OSError as error:
        raise InvalidParameterError(
            f"cannot read the click log {path}: {error.strerror}"
        ) from error
    except (ValueError, KeyError) as error:
        raise InvalidParameterError(
            f"{path} must be a CSV file with the columns {', '.join(COLUMNS)}: a "
            f"number of seconds, a name, 0 or 1; {error}"
        ) from error
