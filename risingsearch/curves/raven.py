"""The published experiments of the RAVEN-UCB paper, as its scripts run them.

Restless, with normal rewards unless said otherwise.
"""

from __future__ import annotations

import numpy as np

from risingsearch.checks import checked_int
from risingsearch.curves.noise import NoiseLike
from risingsearch.curves.restless import DriftingMeans

MEANS = (0.3, 0.8)
SUCCESSES = (0.8, 0.95)  # range of the success probabilities
DEVIATIONS = (0.1, 0.3)
EVERY = 5_000  # rounds between two changes


def bernoulli(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 10,
    noise: NoiseLike = "bernoulli",
) -> DriftingMeans:
    """Arms that never change: ten close success probabilities.

    Good for policies made for arms that stand still. The paper runs horizons from 100
    to 15,000 with 50 draws of the arms each; the same seed gives the same arms for all.
    """
    means = rng.uniform(*SUCCESSES, (checked_int("n_arms", n_arms, 1), 1))
    return DriftingMeans.create(means, noise=noise)


def logistics(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 100,
    reference: str = "static",
    noise: NoiseLike = 1.0,
) -> DriftingMeans:
    """Warehouses: a hundred arms, a third of them redrawn every 5,000 rounds.

    At first means and standard deviations rise linearly over the arms, so that the best
    arm is also the noisiest. What is redrawn is uniform in the standard deviation,
    not in the variance. The paper plays 50,000 rounds, 50 times, all policies on the
    same path of the arms.

    Its regret is against the best mean at the start, 0.8 per round, for ever: the
    static reference. ``reference="dynamic"`` is against the best mean of every round.
    """
    n_arms = checked_int("n_arms", n_arms, 1)
    means, deviations = np.linspace(*MEANS, n_arms), np.linspace(*DEVIATIONS, n_arms)
    arms = [(means, deviations)]
    rounds = [1, *range(1 + EVERY, horizon + 1, EVERY)]
    n = max(1, n_arms // 3)
    for _ in rounds[1:]:
        means, deviations = means.copy(), deviations.copy()
        chosen = rng.choice(n_arms, n, replace=False)
        means[chosen] = rng.uniform(*MEANS, n)
        deviations[chosen] = rng.uniform(*DEVIATIONS, n)
        arms.append((means, deviations))
    by_arm, scattered = np.moveaxis(np.array(arms), 0, 2)
    return DriftingMeans.create(
        by_arm, rounds, deviations=scattered, noise=noise, reference=reference
    )
