"""Rotting arms: the environments of the rotting bandits paper.

Rested: an arm falls with its own pulls. Rewards may be negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import checked_array, checked_float, checked_int
from risingsearch.curves.base import generator
from risingsearch.curves.noise import Noise
from risingsearch.curves.rested import CurveTable
from risingsearch.errors import InvalidParameterError
from risingsearch.policies.rotting.curve_models import EXPONENTS, plateau_models

PAPER = 'Levine, Crammer, Mannor: "Rotting Bandits", NIPS 2017, section 5'
SIGMA = math.sqrt(0.2)


@generator(f"{PAPER}, non-parametric")
def rotting_np(
    rng: np.random.Generator,
    horizon: int,
    *,
    good_pulls: int = 7_500,
    noise: Noise | str | float = SIGMA,
) -> CurveTable:
    """Two rotting arms: 0.5 for ever, or 1 for 7,500 pulls and then 0.4.

    Good for policies that assume nothing about how arms rot: the better arm turns bad
    all at once. The best policy takes the best next mean. The paper plays 30,000 rounds
    with noise of variance 0.2, the default.

    Parameters
    ----------
    good_pulls : int, default 7500
        Pulls before the second arm drops, at least 0.
    """
    good_pulls = checked_int("good_pulls", good_pulls, 0)
    means = np.full((2, horizon), 0.5)
    means[1] = np.where(np.arange(1, horizon + 1) <= good_pulls, 1.0, 0.4)
    return CurveTable.create(means, noise, "greedy")


@generator(f"{PAPER}, AV")
def rotting_av(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 10,
    exponents: Sequence[float] = EXPONENTS,
    plateau: int = 100,
    noise: Noise | str | float = SIGMA,
) -> CurveTable:
    r"""Rotting arms of a known family that all vanish in the end.

    Good for policies that know the family and find out the exponent:
    :math:`\mu_i(n) = (\lfloor n / 100 \rfloor + 1)^{-\theta_i}` with :math:`\theta_i`
    drawn from seven values, with replacement. The pulls are counted from 1, so the
    first plateau is one pull shorter than the others. The paper plays 30,000 rounds
    with noise of variance 0.2, the default, and draws the arms anew for each of its 100
    runs. The same seed gives the same arms for every horizon.
    """
    means = _plateaus(rng, horizon, n_arms, exponents, plateau)
    return CurveTable.create(means, noise, "greedy")


@generator(f"{PAPER}, ANV")
def rotting_anv(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 10,
    exponents: Sequence[float] = EXPONENTS,
    plateau: int = 100,
    highest_offset: float = 0.5,
    noise: Noise | str | float = SIGMA,
) -> CurveTable:
    r"""Rotting arms of a known family, each above its unknown constant.

    As ``rotting_av``, with :math:`c_i \sim U[0, 0.5]` added to every arm: it rots, but
    does not vanish.

    Parameters
    ----------
    highest_offset : float, default 0.5
        Upper end of the range of the constants, at least 0.
    """
    highest = checked_float("highest_offset", highest_offset, 0.0, open_low=False)
    means = _plateaus(rng, horizon, n_arms, exponents, plateau)
    offsets = rng.uniform(0.0, highest, len(means))
    return CurveTable.create(offsets[:, None] + means, noise, "greedy")


def _plateaus(
    rng: np.random.Generator,
    horizon: int,
    n_arms: int,
    exponents: Sequence[float],
    plateau: int,
) -> NDArray[np.float64]:
    powers = checked_array("exponents", exponents)
    if powers.ndim != 1 or not powers.size or not np.all(powers >= 0.0):
        msg = f"exponents must be at least one number of at least 0; got {exponents!r}"
        raise InvalidParameterError(msg)
    models = plateau_models(horizon, powers.tolist(), plateau)
    drawn = rng.integers(len(models), size=checked_int("n_arms", n_arms, 1))
    return models[drawn]
