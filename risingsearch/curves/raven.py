"""The published experiments of the RAVEN-UCB paper, as its scripts run them.

Restless, with normal rewards unless said otherwise.
"""

from __future__ import annotations

import numpy as np

from risingsearch.checks import checked_finite_range, checked_float, checked_int
from risingsearch.curves.base import generator
from risingsearch.curves.noise import Noise
from risingsearch.curves.restless import DriftingMeans
from risingsearch.curves.shifting import (
    MEANS,
    PAPER,
    VARIANCES,
    Arms,
    jumps,
    normal_arms,
    timeline,
)
from risingsearch.errors import InvalidParameterError


@generator(f"{PAPER}, section 4.1")
def bernoulli(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 10,
    mean_range: tuple[float, float] = (0.8, 0.95),
    noise: Noise | str | float = "bernoulli",
) -> DriftingMeans:
    """Arms that never change: ten close success probabilities.

    Good for policies made for arms that stand still. The paper runs horizons from 100
    to 15,000 with 50 draws of the arms each; the same seed gives the same arms for all.

    Parameters
    ----------
    mean_range : (float, float), default (0.8, 0.95)
        Range of the success probabilities, drawn uniformly.
    """
    n_arms = checked_int("n_arms", n_arms, 1)
    means = rng.uniform(*checked_finite_range("mean_range", mean_range), (n_arms, 1))
    return DriftingMeans.create(means, noise=noise)


@generator(f"{PAPER}, fig. 3")
def sensitivity_variance(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 10,
    mean_range: tuple[float, float] = MEANS,
    variance_range: tuple[float, float] = VARIANCES,
    every: int = 5_000,
    noise: Noise | str | float = 1.0,
) -> DriftingMeans:
    """Sensitivity study, variance drift: new variances every 5,000 rounds.

    Up to round 4,999 nothing happens, so that this and the two other scenarios of the
    study are the same at the paper's horizon of 1,000 rounds; at its 10,000 there is
    one shift that matters.
    """
    means, deviations = normal_arms(rng, n_arms, mean_range, variance_range)
    changes = [(1, (means, deviations))]
    for t in _multiples(every, horizon):
        _, deviations = normal_arms(rng, n_arms, mean_range, variance_range)
        changes.append((t, (means, deviations)))
    return timeline(changes, "held", noise)


@generator(f"{PAPER}, fig. 3")
def sensitivity_incremental(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 10,
    mean_range: tuple[float, float] = MEANS,
    variance_range: tuple[float, float] = VARIANCES,
    every: int = 5_000,
    step: float = 0.01,
    noise: Noise | str | float = 1.0,
) -> DriftingMeans:
    """Sensitivity study, incremental drift: a small step every 5,000 rounds.

    Every mean takes a step drawn uniformly from both sides of 0, and stays in its
    range.

    Parameters
    ----------
    step : float, default 0.01
        Largest step of a mean in either direction, at least 0.
    """
    step = checked_float("step", step, 0.0, open_low=False)
    means, deviations = normal_arms(rng, n_arms, mean_range, variance_range)
    changes = [(1, (means, deviations))]
    for t in _multiples(every, horizon):
        means = np.clip(means + rng.uniform(-step, step, n_arms), *mean_range)
        changes.append((t, (means, deviations)))
    return timeline(changes, "held", noise)


@generator(f"{PAPER}, fig. 3")
def sensitivity_blips(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 10,
    mean_range: tuple[float, float] = MEANS,
    variance_range: tuple[float, float] = VARIANCES,
    every: int = 5_000,
    noise: Noise | str | float = 1.0,
) -> DriftingMeans:
    """Sensitivity study, blips: new arms every 5,000 rounds, which then stay.

    The paper speaks of blips of 100 rounds. Its script never takes them back, and
    leaves out those that would start in the last 100 rounds; so does this.
    """
    changes = [
        (t, normal_arms(rng, n_arms, mean_range, variance_range))
        for t in [1, *_multiples(every, horizon - 100)]
    ]
    return timeline(changes, "held", noise)


@generator(f"{PAPER}, section 4.3")
def logistics(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 100,
    mean_range: tuple[float, float] = MEANS,
    deviation_range: tuple[float, float] = (0.1, 0.3),
    every: int = 5_000,
    n_jumping: int | None = None,
    reference: str = "static",
    noise: Noise | str | float = 1.0,
) -> DriftingMeans:
    """Warehouses: a hundred arms, a third of them redrawn every 5,000 rounds.

    At first means and standard deviations rise linearly over the arms, so that the best
    arm is also the noisiest. What is redrawn is uniform in the standard deviation,
    not in the variance. The paper plays 50,000 rounds, 50 times, all policies on the
    same path of the arms.

    Its regret is against the best mean at the start, 0.8 per round, for ever: the
    static reference. ``reference="dynamic"`` is against the best mean of every round.

    Parameters
    ----------
    deviation_range : (float, float), default (0.1, 0.3)
        Range of the standard deviations, at least 0.
    every : int, default 5000
        Rounds between two changes, at least 1.
    n_jumping : int, optional
        Arms that are redrawn together, at least 1; by default a third.
    reference : {"static", "dynamic"}, default "static"
        What regret is measured against.
    """
    n_arms = checked_int("n_arms", n_arms, 1)
    low, high = checked_finite_range("mean_range", mean_range)
    least, most = checked_finite_range("deviation_range", deviation_range)
    if least < 0.0:
        msg = f"deviation_range must start at 0 or above; got {deviation_range!r}"
        raise InvalidParameterError(msg)

    def draw(n: int) -> Arms:
        return rng.uniform(low, high, n), rng.uniform(least, most, n)

    first = np.linspace(low, high, n_arms), np.linspace(least, most, n_arms)
    rounds = range(1 + checked_int("every", every, 1), horizon + 1, every)
    changes = jumps(rng, first, rounds, n_jumping, draw)
    return timeline(changes, "held", noise, reference)


def _multiples(every: int, last: int) -> range:
    return range(checked_int("every", every, 2), last + 1, every)
