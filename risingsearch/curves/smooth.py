"""Smoothly drifting arms: the sinusoid of the smooth non-stationary bandits paper.

Restless: the means move with the rounds.
"""

from __future__ import annotations

import math

import numpy as np

from risingsearch.checks import checked_int
from risingsearch.curves.noise import NoiseLike
from risingsearch.curves.restless import Sinusoid

CYCLES = (2.5, 5.0)
DEVIATION = 0.001


def sinusoid(
    rng: np.random.Generator, horizon: int, *, noise: NoiseLike = 1.0
) -> Sinusoid:
    r"""One-armed sinusoid: a constant arm, and one that swings around it a few times.

    Good for policies that exploit smooth drift, up to 1e8 rounds without any table:
    :math:`r_0(t) = A`, :math:`r_1(t) = A - A \sin(2 \pi \nu t / T + \phi)` with the
    horizon :math:`T`, :math:`\nu \sim U[2.5, 5]`,
    :math:`A \sim N(0.25 / \nu^2, 0.001)` and :math:`\phi \sim U[0, 2 \pi]`.

    The paper's 0.001 is read as a standard deviation, since as a variance it would
    often make :math:`A` negative. Its noise is not stated either; the theory speaks of
    1-sub-Gaussian rewards, hence the default. Bernoulli noise changes the ranking.
    """
    horizon = checked_int("horizon", horizon, math.ceil(2.0 * CYCLES[1]))
    nu = rng.uniform(*CYCLES)
    amplitude = 0.25 / (nu * nu) + DEVIATION * rng.standard_normal()
    phase = rng.uniform(0.0, 2.0 * math.pi)
    return Sinusoid.create(amplitude, 2.0 * math.pi * nu / horizon, phase, noise)
