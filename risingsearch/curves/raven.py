"""The published experiments of the RAVEN-UCB paper, as its scripts run them.

Restless, with normal rewards unless said otherwise.
"""

import numpy as np

from risingsearch.checks import checked_int
from risingsearch.curves.noise import NoiseLike
from risingsearch.curves.restless import DriftingMeans
from risingsearch.curves.shifting import (
    MEANS,
    Arms,
    jumps,
    normal_arms,
    timeline,
)
from risingsearch.policies.arrays import Rng

SUCCESSES = (0.8, 0.95)  # range of the success probabilities
STEP = 0.01  # largest step of a mean
DEVIATIONS = (0.1, 0.3)
EVERY = 5_000  # rounds between two changes


def bernoulli(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int = 10,
    noise: NoiseLike = "bernoulli",
) -> DriftingMeans:
    """Arms that never change: ten close success probabilities.

    Good for policies made for arms that stand still. The paper runs horizons from 100
    to 15,000 with 50 draws of the arms each; the same seed gives the same arms for all.

    Parameters
    ----------
    n_arms : int, default 10
        Number of arms, at least 1.
    noise : Noise, str or float, default "bernoulli"
        A noise model, its kind, or the standard deviation of Gaussian noise.

    Examples
    --------
    >>> arms = bernoulli(np.random.default_rng(0), 100)
    >>> arms.optimal(np.array([100])).round(2)
    array([94.03])
    """
    means = rng.uniform(*SUCCESSES, (checked_int("n_arms", n_arms, 1), 1))
    return DriftingMeans.create(means, noise=noise)


def sensitivity_variance(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int = 10,
    noise: NoiseLike = 1.0,
) -> DriftingMeans:
    """Sensitivity study, variance drift: new variances every 5,000 rounds.

    Up to round 4,999 nothing happens, so that this and the two other scenarios of the
    study are the same at the paper's horizon of 1,000 rounds; at its 10,000 there is
    one shift that matters.

    Parameters
    ----------
    n_arms : int, default 10
        Number of arms, at least 1.
    noise : Noise, str or float, default 1.0
        A noise model, its kind, or a factor on the standard deviations of the arms.

    Examples
    --------
    >>> arms = sensitivity_variance(np.random.default_rng(0), 10_000)
    >>> arms.rounds, arms.variances[:, 0].round(3)
    (array([    1,  5000, 10000]), array([0.075, 0.065, 0.073]))
    """
    means, deviations = normal_arms(rng, n_arms)
    later = range(EVERY, horizon + 1, EVERY)
    changes = [(t, (means, normal_arms(rng, n_arms)[1])) for t in later]
    return timeline([(1, (means, deviations)), *changes], "held", noise)


def sensitivity_incremental(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int = 10,
    noise: NoiseLike = 1.0,
) -> DriftingMeans:
    """Sensitivity study, incremental drift: a small step every 5,000 rounds.

    Every mean takes a step drawn uniformly from -0.01 to 0.01, and stays in its range.

    Parameters
    ----------
    n_arms : int, default 10
        Number of arms, at least 1.
    noise : Noise, str or float, default 1.0
        A noise model, its kind, or a factor on the standard deviations of the arms.

    Examples
    --------
    >>> arms = sensitivity_incremental(np.random.default_rng(0), 10_000)
    >>> [round(arms.mean(0, 1, t), 4) for t in (4_999, 5_000, 10_000)]
    [0.6185, 0.609, 0.6128]
    """
    means, deviations = normal_arms(rng, n_arms)
    changes = [(1, (means, deviations))]
    for t in range(EVERY, horizon + 1, EVERY):
        means = np.clip(means + rng.uniform(-STEP, STEP, n_arms), *MEANS)
        changes.append((t, (means, deviations)))
    return timeline(changes, "held", noise)


def sensitivity_blips(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int = 10,
    noise: NoiseLike = 1.0,
) -> DriftingMeans:
    """Sensitivity study, blips: new arms every 5,000 rounds, which then stay.

    The paper speaks of blips of 100 rounds. Its script never takes them back, and
    leaves out those that would start in the last 100 rounds; so does this.

    Parameters
    ----------
    n_arms : int, default 10
        Number of arms, at least 1.
    noise : Noise, str or float, default 1.0
        A noise model, its kind, or a factor on the standard deviations of the arms.

    Examples
    --------
    >>> sensitivity_blips(np.random.default_rng(0), 15_000).rounds
    array([    1,  5000, 10000])
    """
    rounds = [1, *range(EVERY, horizon - 99, EVERY)]
    return timeline([(t, normal_arms(rng, n_arms)) for t in rounds], "held", noise)


def logistics(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int = 100,
    reference: str = "static",
    noise: NoiseLike = 1.0,
) -> DriftingMeans:
    """Warehouses: a hundred arms, a third of them redrawn every 5,000 rounds.

    At first means and standard deviations rise linearly over the arms, so that the best
    arm is also the noisiest. Redrawn arms are uniform in the standard deviation,
    not in the variance. The paper plays 50,000 rounds, 50 times, all policies on the
    same path of the arms.

    Its regret is against the best mean at the start, 0.8 per round, for ever: the
    static reference. ``reference="dynamic"`` is against the best mean of every round.

    Parameters
    ----------
    n_arms : int, default 100
        Number of arms, at least 1.
    reference : {"static", "dynamic"}, default "static"
        The reference of regret.
    noise : Noise, str or float, default 1.0
        A noise model, its kind, or a factor on the standard deviations of the arms.

    Examples
    --------
    >>> arms = logistics(np.random.default_rng(0), 50_000)
    >>> arms.n_arms, len(arms.rounds), arms.optimal(np.array([50_000]))
    (100, 10, array([40000.]))
    """
    n_arms = checked_int("n_arms", n_arms, 1)

    def draw(n: int) -> Arms:
        return rng.uniform(*MEANS, n), rng.uniform(*DEVIATIONS, n)

    first = np.linspace(*MEANS, n_arms), np.linspace(*DEVIATIONS, n_arms)
    changes = jumps(rng, first, range(1 + EVERY, horizon + 1, EVERY), draw)
    return timeline(changes, "held", noise, reference)
