"""Shifting arms: seven ways in which rewards cease to be what they were.

The scenarios of table 1 of the RAVEN-UCB paper, which defines them without any number:
ranges, rounds and laws are ours. Restless, with normal rewards, measured against the
best mean of every round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import checked_finite_range, checked_float, checked_int
from risingsearch.curves.base import generator
from risingsearch.curves.noise import Noise
from risingsearch.curves.restless import DriftingMeans
from risingsearch.errors import InvalidParameterError

Arms = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Means and standard deviations, one of each per arm."""

PAPER = "Fang et al., From Theory to Practice with RAVEN-UCB"
MEANS = (0.3, 0.8)
VARIANCES = (0.01, 0.09)


@generator(f"{PAPER}, table 1")
def incremental(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 10,
    mean_range: tuple[float, float] = MEANS,
    variance_range: tuple[float, float] = VARIANCES,
    drift: float = 2e-5,
    noise: Noise | str | float = 1.0,
) -> DriftingMeans:
    r"""Incremental drift: every mean moves by the same small amount every round.

    :math:`\mu_k(t) = \mu_k(0) + \delta_k t` with :math:`\delta_k` drawn uniformly from
    both sides of 0.

    Parameters
    ----------
    drift : float, default 2e-5
        Largest change per round in either direction, at least 0.
    """
    means, deviations = normal_arms(rng, n_arms, mean_range, variance_range)
    most = checked_float("drift", drift, 0.0, open_low=False)
    step = rng.uniform(-most, most, n_arms)
    end = max(2, horizon)
    first, last = (means + step, deviations), (means + step * end, deviations)
    return timeline([(1, first), (end, last)], "linear", noise)


@generator(f"{PAPER}, table 1")
def variance_drift(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 10,
    mean_range: tuple[float, float] = MEANS,
    variance_range: tuple[float, float] = VARIANCES,
    drift: float = 8e-6,
    noise: Noise | str | float = 1.0,
) -> DriftingMeans:
    r"""Variance drift: the means stay, the rewards scatter more and more.

    :math:`\sigma_k^2(t) = \sigma_k^2(0) + g_k t`, with :math:`g_k` drawn uniformly from
    0 upwards; the default doubles the range of the variances in 10,000 rounds.

    Parameters
    ----------
    drift : float, default 8e-6
        Largest change of a variance per round, at least 0.
    """
    means, deviations = normal_arms(rng, n_arms, mean_range, variance_range)
    most = checked_float("drift", drift, 0.0, open_low=False)
    step = rng.uniform(0.0, most, n_arms)
    end = max(2, horizon)
    first = means, np.sqrt(deviations**2 + step)
    last = means, np.sqrt(deviations**2 + step * end)
    return timeline([(1, first), (end, last)], "linear", noise)


@generator(f"{PAPER}, table 1")
def gradual(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 10,
    mean_range: tuple[float, float] = MEANS,
    variance_range: tuple[float, float] = VARIANCES,
    start: int | None = None,
    end: int | None = None,
    noise: Noise | str | float = 1.0,
) -> DriftingMeans:
    r"""Gradual drift: rewards come from new distributions more and more often.

    Up to round :math:`t_0` from the old distribution of the arm, from :math:`t_1` on
    from its new one, and between from the new one with a probability that grows
    linearly from 0 to 1.

    Parameters
    ----------
    start, end : int, optional
        The rounds :math:`t_0` and :math:`t_1`, at least 2 and in this order; by default
        a third and two thirds of the horizon.
    """
    old = normal_arms(rng, n_arms, mean_range, variance_range)
    new = normal_arms(rng, n_arms, mean_range, variance_range)
    start = max(2, horizon // 3) if start is None else checked_int("start", start, 2)
    end = max(start + 1, 2 * horizon // 3) if end is None else end
    end = checked_int("end", end, start + 1)
    return timeline([(1, old), (start, old), (end, new)], "mixture", noise)


@generator(f"{PAPER}, table 1")
def localised_jump(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 10,
    mean_range: tuple[float, float] = MEANS,
    variance_range: tuple[float, float] = VARIANCES,
    every: int = 2_000,
    n_jumping: int | None = None,
    noise: Noise | str | float = 1.0,
) -> DriftingMeans:
    """Localised jumps: now and then a few arms get new means and variances.

    Parameters
    ----------
    every : int, default 2000
        Rounds between two jumps, at least 1.
    n_jumping : int, optional
        Arms that jump together, at least 1; by default a third.
    """

    def draw(n: int) -> Arms:
        return normal_arms(rng, n, mean_range, variance_range)

    rounds = range(1 + checked_int("every", every, 1), horizon + 1, every)
    changes = jumps(rng, draw(n_arms), rounds, n_jumping, draw)
    return timeline(changes, "held", noise)


@generator(f"{PAPER}, table 1")
def periodic(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 10,
    mean_range: tuple[float, float] = MEANS,
    variance_range: tuple[float, float] = VARIANCES,
    period: int = 2_000,
    n_phases: int = 4,
    noise: Noise | str | float = 1.0,
) -> DriftingMeans:
    """Periodic drift: the arms go through the same states again and again.

    Every arm moves in straight lines through a few random means and variances, at equal
    distances, and back to the first within a period: the distribution at round
    ``t + period`` is that at round ``t``.

    Parameters
    ----------
    period : int, default 2000
        Rounds of a period, at least 1.
    n_phases : int, default 4
        States that an arm goes through, from 1 to ``period``.
    """
    n_phases = checked_int("n_phases", n_phases, 1)
    period = checked_int("period", period, n_phases)
    states = [
        normal_arms(rng, n_arms, mean_range, variance_range) for _ in range(n_phases)
    ]
    n_knots = n_phases * (horizon // period + 1) + 1
    changes = [
        (1 + i * period // n_phases, states[i % n_phases]) for i in range(n_knots)
    ]
    return timeline(changes, "linear", noise)


@generator(f"{PAPER}, table 1")
def blip(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 10,
    mean_range: tuple[float, float] = MEANS,
    variance_range: tuple[float, float] = VARIANCES,
    start: int | None = None,
    length: int = 100,
    noise: Noise | str | float = 1.0,
) -> DriftingMeans:
    """Blip: for a short while every arm has another distribution.

    Parameters
    ----------
    start : int, optional
        First round of the blip, at least 2; by default in the middle of the horizon.
    length : int, default 100
        Rounds that it lasts, at least 1.
    """
    usual = normal_arms(rng, n_arms, mean_range, variance_range)
    other = normal_arms(rng, n_arms, mean_range, variance_range)
    start = max(2, horizon // 2) if start is None else checked_int("start", start, 2)
    end = start + checked_int("length", length, 1)
    return timeline([(1, usual), (start, other), (end, usual)], "held", noise)


@generator(f"{PAPER}, table 1")
def add_remove(
    rng: np.random.Generator,
    horizon: int,
    *,
    n_arms: int = 10,
    mean_range: tuple[float, float] = MEANS,
    variance_range: tuple[float, float] = VARIANCES,
    added: int | None = None,
    removed: int | None = None,
    noise: Noise | str | float = 1.0,
) -> DriftingMeans:
    """Arms come and go: a new one appears, later one of the first ones vanishes.

    The new arm, the last, is drawn like the others. The one that vanishes is the best
    of the others, so that a policy has to give up what it has found. An arm that is not
    there pays 0, always: the policies have to find out.

    Parameters
    ----------
    n_arms : int, default 10
        Number of arms at first, at least 1; the environment has one more.
    added, removed : int, optional
        First round with the new arm and first round without the best of the others, at
        least 2 and in this order; by default after a third and after two thirds of the
        horizon.
    """
    n_arms = checked_int("n_arms", n_arms, 1)
    means, deviations = normal_arms(rng, n_arms + 1, mean_range, variance_range)
    added = (
        max(2, horizon // 3 + 1) if added is None else checked_int("added", added, 2)
    )
    removed = max(added + 1, 2 * horizon // 3 + 1) if removed is None else removed
    removed = checked_int("removed", removed, added + 1)
    arms = np.arange(n_arms + 1)
    first, last = arms < n_arms, arms != np.argmax(means[:-1])
    changes = [
        (1, (means * first, deviations * first)),
        (added, (means, deviations)),
        (removed, (means * last, deviations * last)),
    ]
    return timeline(changes, "held", noise)


def normal_arms(
    rng: np.random.Generator,
    n_arms: int,
    mean_range: tuple[float, float],
    variance_range: tuple[float, float],
) -> Arms:
    """Return means and standard deviations with uniform means and variances."""
    n_arms = checked_int("n_arms", n_arms, 1)
    low, high = checked_finite_range("variance_range", variance_range)
    if low < 0.0:
        msg = f"variance_range must start at 0 or above; got {variance_range!r}"
        raise InvalidParameterError(msg)
    means = rng.uniform(*checked_finite_range("mean_range", mean_range), n_arms)
    return means, np.sqrt(rng.uniform(low, high, n_arms))


def timeline(
    changes: Sequence[tuple[int, Arms]],
    between: str,
    noise: Noise | str | float,
    reference: str = "dynamic",
) -> DriftingMeans:
    """Return the environment with these arms at these rounds."""
    rounds, arms = zip(*changes, strict=True)
    means, deviations = zip(*arms, strict=True)
    return DriftingMeans.create(
        np.stack(means, axis=1),
        rounds,
        deviations=np.stack(deviations, axis=1),
        between=between,
        noise=noise,
        reference=reference,
    )


def jumps(
    rng: np.random.Generator,
    arms: Arms,
    rounds: Iterable[int],
    n_jumping: int | None,
    draw: Callable[[int], Arms],
) -> list[tuple[int, Arms]]:
    """Return the timeline of arms of which a few are redrawn at each round."""
    means, deviations = arms
    n = max(1, len(means) // 3) if n_jumping is None else n_jumping
    n = checked_int("n_jumping", n, 1)
    if n > len(means):
        msg = f"n_jumping must be at most the {len(means)} arms; got {n}"
        raise InvalidParameterError(msg)
    changes = [(1, arms)]
    for t in rounds:
        means, deviations = means.copy(), deviations.copy()
        chosen = rng.choice(len(means), n, replace=False)
        means[chosen], deviations[chosen] = draw(n)
        changes.append((t, (means, deviations)))
    return changes
