"""Rotting arms: the environments of the rotting bandits paper.

Rested: an arm falls with its own pulls. Rewards may be negative. The paper plays 30,000
rounds with noise of variance 0.2, the default.
"""

import math

import numpy as np

from risingsearch.checks import checked_int
from risingsearch.curves.noise import NoiseLike
from risingsearch.curves.rested import CurveTable
from risingsearch.policies.arrays import Rng
from risingsearch.policies.rotting.curve_models import plateau_models

SIGMA = math.sqrt(0.2)
GOOD_PULLS = 7_500
HIGHEST_OFFSET = 0.5


def rotting_np(rng: Rng, horizon: int, *, noise: NoiseLike = SIGMA) -> CurveTable:
    """Two rotting arms: 0.5 for ever, or 1 for 7,500 pulls and then 0.4.

    Good for policies that assume nothing about how arms rot: the better arm turns bad
    all at once. The best policy takes the best next mean.

    Parameters
    ----------
    noise : Noise, str or float, default sqrt(0.2)
        A noise model, its kind, or the standard deviation of Gaussian noise.

    Examples
    --------
    >>> arms = rotting_np(np.random.default_rng(0), 30_000)
    >>> arms.optimal(np.array([30_000]))
    array([18750.])
    """
    means = np.full((2, horizon), 0.5)
    means[1] = np.where(np.arange(1, horizon + 1) <= GOOD_PULLS, 1.0, 0.4)
    return CurveTable.create(means, noise, "greedy")


def rotting_av(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int = 10,
    noise: NoiseLike = SIGMA,
) -> CurveTable:
    r"""Rotting arms of a known family that all vanish in the end.

    Good for policies that know the family and find out the exponent:
    :math:`\mu_i(n) = (\lfloor n / 100 \rfloor + 1)^{-\theta_i}` with :math:`\theta_i`
    drawn from seven values, with replacement. The pulls are counted from 1, so the
    first plateau is one pull shorter than the others. The paper draws the arms anew for
    each of its 100 runs. The same seed gives the same arms for every horizon.

    Parameters
    ----------
    n_arms : int, default 10
        Number of arms, at least 1.
    noise : Noise, str or float, default sqrt(0.2)
        A noise model, its kind, or the standard deviation of Gaussian noise.

    Examples
    --------
    >>> arms = rotting_av(np.random.default_rng(0), 30_000)
    >>> arms.n_arms, arms.means[0, [0, 98, 99, 199]].round(3).tolist()
    (10, [1.0, 1.0, 0.785, 0.681])
    """
    models = plateau_models(horizon)
    drawn = rng.integers(len(models), size=checked_int("n_arms", n_arms, 1))
    return CurveTable.create(models[drawn], noise, "greedy")


def rotting_anv(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int = 10,
    noise: NoiseLike = SIGMA,
) -> CurveTable:
    r"""Rotting arms of a known family, each above its unknown constant.

    As ``rotting_av``, with :math:`c_i \sim U[0, 0.5]` added to every arm: it rots, but
    does not vanish.

    Parameters
    ----------
    n_arms : int, default 10
        Number of arms, at least 1.
    noise : Noise, str or float, default sqrt(0.2)
        A noise model, its kind, or the standard deviation of Gaussian noise.

    Examples
    --------
    >>> arms = rotting_anv(np.random.default_rng(0), 30_000)
    >>> arms.means[:2, 0].round(3).tolist()  # at first: 1 and the constant
    [1.456, 1.303]
    """
    rotting = rotting_av(rng, horizon, n_arms=n_arms).means
    offsets = rng.uniform(0.0, HIGHEST_OFFSET, len(rotting))
    return CurveTable.create(offsets[:, None] + rotting, noise, "greedy")
