"""Ten arms that change: the kinds of Table 1, and those of the sensitivity study.

The paper defines the kinds of its Table 1 without any number: ranges, rounds and laws
are ours. The three of the study are as in its script. Rewards are normal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from risingsearch.curves import DriftingMeans
from risingsearch.curves.raven import MEANS

Arms = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Means and standard deviations, one of each per arm."""

N_ARMS = 10
VARIANCES = (0.01, 0.09)
STEP, GROWTH = 2e-5, 8e-6  # largest changes of a mean and of a variance per round
EVERY = 2_000  # rounds between two jumps, and of a period
N_PHASES = 4  # states that an arm goes through in a period
LENGTH = 100  # rounds of a blip
STUDY_STEP = 0.01  # largest step of a mean
STUDY_EVERY = 5_000  # rounds between two changes


def incremental(rng: np.random.Generator, horizon: int) -> DriftingMeans:
    r"""Return arms of which every mean moves by the same small amount every round.

    :math:`\mu_k(t) = \mu_k(0) + \delta_k t` with :math:`\delta_k` drawn uniformly from
    :math:`\pm 2 \cdot 10^{-5}`.
    """
    means, deviations = normal_arms(rng)
    step = rng.uniform(-STEP, STEP, N_ARMS)
    end = max(2, horizon)
    first, last = (means + step, deviations), (means + step * end, deviations)
    return timeline([(1, first), (end, last)], "linear")


def variance_drift(rng: np.random.Generator, horizon: int) -> DriftingMeans:
    r"""Return arms whose means stay, and whose rewards scatter more and more.

    :math:`\sigma_k^2(t) = \sigma_k^2(0) + g_k t`, with :math:`g_k` drawn uniformly from
    0 to :math:`8 \cdot 10^{-6}`, which doubles the range of the variances in 10,000
    rounds.
    """
    means, deviations = normal_arms(rng)
    step = rng.uniform(0.0, GROWTH, N_ARMS)
    end = max(2, horizon)
    first = means, np.sqrt(deviations**2 + step)
    last = means, np.sqrt(deviations**2 + step * end)
    return timeline([(1, first), (end, last)], "linear")


def gradual(rng: np.random.Generator, horizon: int) -> DriftingMeans:
    r"""Return arms whose rewards come from new distributions more and more often.

    In the first third of the horizon from the old distribution of the arm, in the last
    from its new one, and between from the new one with a probability that grows
    linearly from 0 to 1.
    """
    old, new = normal_arms(rng), normal_arms(rng)
    start = max(2, horizon // 3)
    end = max(start + 1, 2 * horizon // 3)
    return timeline([(1, old), (start, old), (end, new)], "mixture")


def localised_jump(rng: np.random.Generator, horizon: int) -> DriftingMeans:
    """Return arms of which a third is drawn anew every 2,000 rounds."""
    means, deviations = normal_arms(rng)
    n = N_ARMS // 3
    changes = [(1, (means, deviations))]
    for t in range(1 + EVERY, horizon + 1, EVERY):
        means, deviations = means.copy(), deviations.copy()
        chosen = rng.choice(N_ARMS, n, replace=False)
        means[chosen], deviations[chosen] = normal_arms(rng, n)
        changes.append((t, (means, deviations)))
    return timeline(changes, "held")


def periodic(rng: np.random.Generator, horizon: int) -> DriftingMeans:
    """Return arms that go through the same states again and again.

    Every arm moves in straight lines through four random means and variances, at equal
    distances, and back to the first within 2,000 rounds: the distribution at round
    ``t + 2000`` is that at round ``t``.
    """
    states = [normal_arms(rng) for _ in range(N_PHASES)]
    n_knots = N_PHASES * (horizon // EVERY + 1) + 1
    changes = [
        (1 + i * EVERY // N_PHASES, states[i % N_PHASES]) for i in range(n_knots)
    ]
    return timeline(changes, "linear")


def blip(rng: np.random.Generator, horizon: int) -> DriftingMeans:
    """Return arms that all have another distribution for 100 rounds, half way."""
    usual, other = normal_arms(rng), normal_arms(rng)
    start = max(2, horizon // 2)
    changes = [(1, usual), (start, other), (start + LENGTH, usual)]
    return timeline(changes, "held")


def add_remove(rng: np.random.Generator, horizon: int) -> DriftingMeans:
    """Return arms that come and go: one appears, later one of the first vanishes.

    There are ten at first. After a third of the horizon comes one more, the
    last, drawn like the others. After two thirds the best of the others vanishes, so
    that a policy has to give up what it has found. An arm that is not there pays 0,
    always: the policies have to find out.
    """
    means, deviations = normal_arms(rng, N_ARMS + 1)
    added = max(2, horizon // 3 + 1)
    removed = max(added + 1, 2 * horizon // 3 + 1)
    arms = np.arange(N_ARMS + 1)
    first, last = arms < N_ARMS, arms != np.argmax(means[:-1])
    changes = [
        (1, (means * first, deviations * first)),
        (added, (means, deviations)),
        (removed, (means * last, deviations * last)),
    ]
    return timeline(changes, "held")


def study_variance(rng: np.random.Generator, horizon: int) -> DriftingMeans:
    """Return arms whose variances are new every 5,000 rounds.

    Up to round 4,999 nothing happens, so that this and the two other scenarios of the
    study are the same at the paper's horizon of 1,000 rounds; at its 10,000 there is
    one shift that matters.
    """
    means, deviations = normal_arms(rng)
    changes = [(1, (means, deviations))]
    for t in range(STUDY_EVERY, horizon + 1, STUDY_EVERY):
        _, deviations = normal_arms(rng)
        changes.append((t, (means, deviations)))
    return timeline(changes, "held")


def study_incremental(rng: np.random.Generator, horizon: int) -> DriftingMeans:
    """Return arms whose means take a small step every 5,000 rounds.

    Every mean takes a step drawn uniformly from -0.01 to 0.01, and stays in its range.
    """
    means, deviations = normal_arms(rng)
    changes = [(1, (means, deviations))]
    for t in range(STUDY_EVERY, horizon + 1, STUDY_EVERY):
        means = np.clip(means + rng.uniform(-STUDY_STEP, STUDY_STEP, N_ARMS), *MEANS)
        changes.append((t, (means, deviations)))
    return timeline(changes, "held")


def study_blips(rng: np.random.Generator, horizon: int) -> DriftingMeans:
    """Return new arms every 5,000 rounds, which then stay.

    The paper speaks of blips of 100 rounds. Its script never takes them back, and
    leaves out those that would start in the last 100 rounds; so does this.
    """
    rounds = [1, *range(STUDY_EVERY, horizon - 99, STUDY_EVERY)]
    changes = [(t, normal_arms(rng)) for t in rounds]
    return timeline(changes, "held")


def normal_arms(rng: np.random.Generator, n_arms: int = N_ARMS) -> Arms:
    """Return means and standard deviations with uniform means and variances."""
    means = rng.uniform(*MEANS, n_arms)
    return means, np.sqrt(rng.uniform(*VARIANCES, n_arms))


def timeline(changes: Sequence[tuple[int, Arms]], between: str) -> DriftingMeans:
    """Return the environment with these arms at these rounds."""
    rounds, arms = zip(*changes, strict=True)
    means, deviations = zip(*arms, strict=True)
    return DriftingMeans.create(
        np.stack(means, axis=1),
        rounds,
        deviations=np.stack(deviations, axis=1),
        between=between,
    )


TABLE_1 = {
    "incremental": incremental,
    "variance-drift": variance_drift,
    "gradual": gradual,
    "localised-jump": localised_jump,
    "periodic": periodic,
    "blip": blip,
    "add-remove": add_remove,
}
STUDIED = {
    "sensitivity-variance": study_variance,
    "sensitivity-incremental": study_incremental,
    "sensitivity-blips": study_blips,
}
