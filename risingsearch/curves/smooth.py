"""Smoothly drifting arms: the environments of the smooth non-stationary bandits paper.

Restless: the means move with the rounds.
"""

import math
from importlib import import_module

import numpy as np

from risingsearch.checks import checked_int
from risingsearch.curves.clicks import ClickLog, LogLike, click_log, click_rates
from risingsearch.curves.noise import NoiseLike
from risingsearch.curves.restless import DriftingMeans, Sinusoid
from risingsearch.errors import InvalidParameterError, needed
from risingsearch.policies.arrays import Floats, Rng

MINUTE = 60.0
WINDOW = 3_600.0  # seconds of the log that a click rate is counted in
FRACTION = 0.1  # of the minutes, that LOWESS fits each line to
CYCLES = (2.5, 5.0)
DEVIATION = 0.001


def sinusoid(
    rng: Rng,
    horizon: int,
    *,
    noise: NoiseLike = 1.0,
) -> Sinusoid:
    r"""One-armed sinusoid: a constant arm, and one that swings around it a few times.

    Good for policies that exploit smooth drift, up to 1e8 rounds without any table:
    :math:`r_0(t) = A`, :math:`r_1(t) = A - A \sin(2 \pi \nu t / T + \phi)` with the
    horizon :math:`T`, :math:`\nu \sim U[2.5, 5]`,
    :math:`A \sim N(0.25 / \nu^2, 0.001)` and :math:`\phi \sim U[0, 2 \pi]`.

    The paper's 0.001 is read as a standard deviation, since as a variance it would
    often make :math:`A` negative. Its noise is not stated either; the theory speaks of
    1-sub-Gaussian rewards, hence the default. Bernoulli noise changes the ranking.

    Parameters
    ----------
    noise : Noise, str or float, default 1.0
        A noise model, its kind, or the standard deviation of Gaussian noise.

    Examples
    --------
    >>> arms = sinusoid(np.random.default_rng(0), 1_000_000)
    >>> round(arms.amplitude, 4)
    0.0148
    """
    horizon = checked_int("horizon", horizon, math.ceil(2.0 * CYCLES[1]))
    nu = rng.uniform(*CYCLES)
    amplitude = 0.25 / (nu * nu) + DEVIATION * rng.standard_normal()
    phase = rng.uniform(0.0, 2.0 * math.pi)
    return Sinusoid.create(
        amplitude,
        2.0 * math.pi * nu / horizon,
        phase,
        noise,
    )


def click_counterfactual(
    rng: Rng,
    horizon: int,
    *,
    log: LogLike,
    n_items: int = 20,
    noise: NoiseLike = "bernoulli",
) -> DriftingMeans:
    """Clicks on articles: one round is a second, the reward a logged click.

    Good for real drift that no formula smoothed: the reward of an article at round
    ``t`` is the click bit of an entry of the log drawn uniformly from the hour around
    second ``t``, which is a Bernoulli trial with the click rate of that hour. Rounds
    count from the first entry, so the horizon is at most the length of the log. The
    paper plays one day, or its first half, quarter, ...

    The paper's data (Yahoo! R6B, 2 October 2011) are licensed; any log will do, and
    ``make_click_log`` makes up a synthetic one. The paper does not define the rate of
    an article that is not shown all day: here a window without an entry keeps the click
    rate before it, or takes the first one there is. Nor does it define the
    reference of regret: here the click rates themselves.

    Parameters
    ----------
    log : ClickLog, tuple of three array-likes, str or path
        The log; see ``click_log``.
    n_items : int, default 20
        The items shown most often that are taken, at least 1.
    noise : Noise, str or float, default "bernoulli"
        A noise model, its kind, or the standard deviation of Gaussian noise.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range or the log is shorter than the horizon.

    Examples
    --------
    >>> from risingsearch.curves.clicks import make_click_log
    >>> log = make_click_log(0, n_items=3, n_entries=20_000)
    >>> arms = click_counterfactual(np.random.default_rng(0), 2_700, log=log)
    >>> [round(arms.mean(arm, 1, 1_000), 3) for arm in range(3)]
    [0.021, 0.01, 0.069]
    """
    log = click_log(log)
    start = log.timestamps[0]
    end = log.timestamps[-1]
    if horizon > math.ceil(end - start) + 1:
        raise InvalidParameterError(
            f"the log is {end - start:g} seconds long, so horizon must be at most "
            f"{math.ceil(end - start) + 1}; got {horizon}"
        )
    seconds = start + np.arange(1.0, horizon + 1.0)
    rates = _rates_over_time(
        log,
        n_items,
        seconds,
        0.5 * WINDOW,
        0.5 * WINDOW,
    )
    has_changed = np.diff(rates, axis=1) != 0.0
    changed = np.flatnonzero(has_changed.any(axis=0))
    knots = np.concatenate([[0], changed + 1])
    return DriftingMeans.create(rates[:, knots], knots + 1, noise=noise)


def click_fitted(
    rng: Rng,
    horizon: int,
    *,
    log: LogLike,
    n_items: int = 20,
    noise: NoiseLike = "bernoulli",
) -> DriftingMeans:
    """Clicks on articles, smoothed, and the log stretched over any number of rounds.

    Good for smooth drift that comes from data: the click rate of the hour up to every
    minute, from the end of the first hour on, smoothed by LOWESS (Cleveland 1981; needs
    statsmodels) and interpolated in straight lines.

    The paper leaves the bandwidth open. It also says that 8.64e7 rounds are seconds,
    which are the milliseconds of a day; here the log is spread over the horizon.
    Where the smoothed line leaves the range from 0 to 1 it is set to its nearest end.

    Parameters
    ----------
    log : ClickLog, tuple of three array-likes, str or path
        The log; see ``click_log``.
    n_items : int, default 20
        The items shown most often that are taken, at least 1.
    noise : Noise, str or float, default "bernoulli"
        A noise model, its kind, or the standard deviation of Gaussian noise.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range or the log is not longer than an hour.
    MissingDependencyError
        If statsmodels is not installed.
    """
    log = click_log(log)
    start = log.timestamps[0]
    end = log.timestamps[-1]
    if not start + WINDOW < end:
        raise InvalidParameterError(
            f"the log must be longer than the window of {WINDOW:g} seconds; it is "
            f"{end - start:g} seconds long"
        )
    minutes = np.arange(start + WINDOW, end + MINUTE, MINUTE)
    rates = _rates_over_time(
        log,
        n_items,
        minutes,
        WINDOW,
        0.0,
    )
    with needed("statsmodels", "bench"):
        lowess = import_module("statsmodels.nonparametric.smoothers_lowess").lowess
    near = 0.01 * (minutes[-1] - minutes[0])  # lines are fitted that far apart
    options = {
        "frac": FRACTION,
        "delta": near,
        "return_sorted": False,
    }
    smooth = np.clip([lowess(row, minutes, **options) for row in rates], 0.0, 1.0)
    # Minute by minute over the horizon; several minutes may share a round.
    numbers = np.arange(len(minutes))
    stretched = 1 + numbers * (horizon - 1) // (len(minutes) - 1)
    knots, minute = np.unique(stretched, return_index=True)
    return DriftingMeans.create(
        smooth[:, minute],
        knots,
        between="linear",
        noise=noise,
    )


def _rates_over_time(
    log: ClickLog,
    n_items: int,
    times: Floats,
    before: float,
    after: float,
) -> Floats:
    """Return the click rates over time of every item that has an entry."""
    n = min(checked_int("n_items", n_items, 1), len(log.names))
    rates = []
    for item in range(n):
        rate, shown = click_rates(
            log,
            item,
            times,
            before,
            after,
        )
        observed = np.flatnonzero(shown)
        if len(observed) == 0:
            continue
        places = np.where(shown > 0, np.arange(len(times)), 0)
        latest = np.maximum.accumulate(places)
        rate[0] = rate[observed[0]]
        rates.append(rate[latest])
    return np.array(rates)
