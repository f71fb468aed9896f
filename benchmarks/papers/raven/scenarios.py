"""The three kinds of change of the sensitivity study, as in the paper's script."""

from __future__ import annotations

import numpy as np

from risingsearch.curves import DriftingMeans
from risingsearch.curves.shifting import MEANS, normal_arms, timeline

N_ARMS = 10
STEP = 0.01  # largest step of a mean
EVERY = 5_000  # rounds between two changes


def variance(rng: np.random.Generator, horizon: int) -> DriftingMeans:
    """Return variance drift: new variances every 5,000 rounds.

    Up to round 4,999 nothing happens, so that this and the two other scenarios of the
    study are the same at the paper's horizon of 1,000 rounds; at its 10,000 there is
    one shift that matters.
    """
    means, deviations = normal_arms(rng, N_ARMS)
    changes = [(1, (means, deviations))]
    for t in range(EVERY, horizon + 1, EVERY):
        _, deviations = normal_arms(rng, N_ARMS)
        changes.append((t, (means, deviations)))
    return timeline(changes, "held", 1.0)


def incremental(rng: np.random.Generator, horizon: int) -> DriftingMeans:
    """Return incremental drift: a small step every 5,000 rounds.

    Every mean takes a step drawn uniformly from -0.01 to 0.01, and stays in its range.
    """
    means, deviations = normal_arms(rng, N_ARMS)
    changes = [(1, (means, deviations))]
    for t in range(EVERY, horizon + 1, EVERY):
        means = np.clip(means + rng.uniform(-STEP, STEP, N_ARMS), *MEANS)
        changes.append((t, (means, deviations)))
    return timeline(changes, "held", 1.0)


def blips(rng: np.random.Generator, horizon: int) -> DriftingMeans:
    """Return blips: new arms every 5,000 rounds, which then stay.

    The paper speaks of blips of 100 rounds. Its script never takes them back, and
    leaves out those that would start in the last 100 rounds; so does this.
    """
    rounds = [1, *range(EVERY, horizon - 99, EVERY)]
    changes = [(t, normal_arms(rng, N_ARMS)) for t in rounds]
    return timeline(changes, "held", 1.0)
