"""Shifting arms: seven ways in which rewards change.

The scenarios of table 1 of the RAVEN-UCB paper, which defines them without any number:
ranges, rounds and laws are ours. Restless, with normal rewards, measured against the
best mean of every round. For other numbers there is ``DriftingMeans.create``.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from risingsearch.checks import checked_int
from risingsearch.curves.noise import NoiseLike
from risingsearch.curves.restless import DriftingMeans
from risingsearch.policies.arrays import Floats, Rng

Arms = tuple[Floats, Floats]
"""Means and standard deviations, one of each per arm."""

MEANS = (0.3, 0.8)
VARIANCES = (0.01, 0.09)
STEP = 2e-5  # largest change of a mean per round
GROWTH = 8e-6  # largest change of a variance per round
EVERY = 2_000  # rounds between two jumps, and of a period
N_PHASES = 4  # states that an arm goes through in a period
LENGTH = 100  # rounds of a blip


def incremental(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int = 10,
    noise: NoiseLike = 1.0,
) -> DriftingMeans:
    r"""Incremental drift: every mean moves by the same small amount every round.

    :math:`\mu_k(t) = \mu_k(0) + \delta_k t` with :math:`\delta_k` drawn uniformly from
    :math:`\pm 2 \cdot 10^{-5}`.

    Parameters
    ----------
    n_arms : int, default 10
        Number of arms, at least 1.
    noise : Noise, str or float, default 1.0
        A noise model, its kind, or a factor on the standard deviations of the arms.

    Examples
    --------
    >>> arms = incremental(np.random.default_rng(0), 10_000)
    >>> [round(arms.mean(0, 1, t), 4) for t in (1, 5_000, 10_000)]
    [0.6185, 0.5241, 0.4298]
    """
    means, deviations = normal_arms(rng, n_arms)
    step = rng.uniform(-STEP, STEP, n_arms)
    ends = (1, max(2, horizon))
    changes = [(t, (means + step * t, deviations)) for t in ends]
    return timeline(changes, "linear", noise)


def variance_drift(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int = 10,
    noise: NoiseLike = 1.0,
) -> DriftingMeans:
    r"""Variance drift: the means stay, the rewards scatter more and more.

    :math:`\sigma_k^2(t) = \sigma_k^2(0) + g_k t`, with :math:`g_k` drawn uniformly from
    0 to :math:`8 \cdot 10^{-6}`, which doubles the range of the variances in 10,000
    rounds.

    Parameters
    ----------
    n_arms : int, default 10
        Number of arms, at least 1.
    noise : Noise, str or float, default 1.0
        A noise model, its kind, or a factor on the standard deviations of the arms.

    Examples
    --------
    >>> arms = variance_drift(np.random.default_rng(0), 10_000)
    >>> arms.variances[:, 0].round(3)
    array([0.075, 0.078])
    """
    means, deviations = normal_arms(rng, n_arms)
    step = rng.uniform(0.0, GROWTH, n_arms)
    ends = (1, max(2, horizon))
    changes = [(t, (means, np.sqrt(deviations**2 + step * t))) for t in ends]
    return timeline(changes, "linear", noise)


def gradual(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int = 10,
    noise: NoiseLike = 1.0,
) -> DriftingMeans:
    r"""Gradual drift: rewards come from new distributions more and more often.

    In the first third of the horizon from the old distribution of the arm, in the last
    from its new one, and between from the new one with a probability that grows
    linearly from 0 to 1.

    Parameters
    ----------
    n_arms : int, default 10
        Number of arms, at least 1.
    noise : Noise, str or float, default 1.0
        A noise model, its kind, or a factor on the standard deviations of the arms.

    Examples
    --------
    >>> gradual(np.random.default_rng(0), 9_000).rounds
    array([   1, 3000, 6000])
    """
    old = normal_arms(rng, n_arms)
    new = normal_arms(rng, n_arms)
    start = max(2, horizon // 3)
    end = max(start + 1, 2 * horizon // 3)
    return timeline([(1, old), (start, old), (end, new)], "mixture", noise)


def localised_jump(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int = 10,
    noise: NoiseLike = 1.0,
) -> DriftingMeans:
    """Localised jumps: every 2,000 rounds a third of the arms is drawn anew.

    Parameters
    ----------
    n_arms : int, default 10
        Number of arms, at least 1.
    noise : Noise, str or float, default 1.0
        A noise model, its kind, or a factor on the standard deviations of the arms.

    Examples
    --------
    >>> localised_jump(np.random.default_rng(0), 10_000).rounds
    array([   1, 2001, 4001, 6001, 8001])
    """
    arms = normal_arms(rng, n_arms)
    rounds = range(1 + EVERY, horizon + 1, EVERY)
    changes = jumps(rng, arms, rounds, lambda n: normal_arms(rng, n))
    return timeline(changes, "held", noise)


def periodic(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int = 10,
    noise: NoiseLike = 1.0,
) -> DriftingMeans:
    """Periodic drift: the arms go through the same states again and again.

    Every arm moves in straight lines through four random means and variances, at equal
    distances, and back to the first within 2,000 rounds: the distribution at round
    ``t + 2000`` is that at round ``t``.

    Parameters
    ----------
    n_arms : int, default 10
        Number of arms, at least 1.
    noise : Noise, str or float, default 1.0
        A noise model, its kind, or a factor on the standard deviations of the arms.

    Examples
    --------
    >>> arms = periodic(np.random.default_rng(0), 10_000)
    >>> [round(arms.mean(0, 1, t), 3) for t in (1, 501, 1_001, 2_001)]
    [0.618, 0.314, 0.586, 0.618]
    """
    states = [normal_arms(rng, n_arms) for _ in range(N_PHASES)]
    n_knots = N_PHASES * (horizon // EVERY + 1) + 1
    turns = [
        (1 + knot * EVERY // N_PHASES, states[knot % N_PHASES])
        for knot in range(n_knots)
    ]
    return timeline(turns, "linear", noise)


def blip(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int = 10,
    noise: NoiseLike = 1.0,
) -> DriftingMeans:
    """Blip: for 100 rounds, half way, every arm has another distribution.

    Parameters
    ----------
    n_arms : int, default 10
        Number of arms, at least 1.
    noise : Noise, str or float, default 1.0
        A noise model, its kind, or a factor on the standard deviations of the arms.

    Examples
    --------
    >>> blip(np.random.default_rng(0), 10_000).rounds
    array([   1, 5000, 5100])
    """
    usual = normal_arms(rng, n_arms)
    other = normal_arms(rng, n_arms)
    start = max(2, horizon // 2)
    changes = [(1, usual), (start, other), (start + LENGTH, usual)]
    return timeline(changes, "held", noise)


def add_remove(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int = 10,
    noise: NoiseLike = 1.0,
) -> DriftingMeans:
    """Arms come and go: a new one appears, later one of the first ones vanishes.

    There are ``n_arms`` at first. After a third of the horizon comes one more, the
    last, drawn like the others. After two thirds the best of the others vanishes, so
    that a policy has to give up the best arm. An arm that is not there pays 0,
    always: the policies have to find out.

    Parameters
    ----------
    n_arms : int, default 10
        Number of arms, at least 1.
    noise : Noise, str or float, default 1.0
        A noise model, its kind, or a factor on the standard deviations of the arms.

    Examples
    --------
    >>> arms = add_remove(np.random.default_rng(0), 9_000, n_arms=2)
    >>> arms.means.round(2)
    array([[0.62, 0.43, 0.  ],
           [0.62, 0.43, 0.32],
           [0.  , 0.43, 0.32]])
    """
    n_arms = checked_int("n_arms", n_arms, 1)
    means, deviations = normal_arms(rng, n_arms + 1)
    added = max(2, horizon // 3 + 1)
    removed = max(added + 1, 2 * horizon // 3 + 1)
    arms = np.arange(n_arms + 1)
    first = arms < n_arms
    last = arms != np.argmax(means[:-1])
    changes = [
        (1, (means * first, deviations * first)),
        (added, (means, deviations)),
        (removed, (means * last, deviations * last)),
    ]
    return timeline(changes, "held", noise)


def normal_arms(rng: Rng, n_arms: int) -> Arms:
    """Return means and standard deviations with uniform means and variances."""
    n_arms = checked_int("n_arms", n_arms, 1)
    means = rng.uniform(*MEANS, n_arms)
    variances = rng.uniform(*VARIANCES, n_arms)
    return means, np.sqrt(variances)


def timeline(
    changes: Sequence[tuple[int, Arms]],
    between: str,
    noise: NoiseLike,
    reference: str = "dynamic",
) -> DriftingMeans:
    """Return the environment with these arms at these rounds.

    Parameters
    ----------
    changes : sequence of pairs
        The rounds, from 1 on, and the means and standard deviations of the arms there.
    between : {"held", "linear", "mixture"}
        As of ``DriftingMeans.create``.
    noise : Noise, str or float
        The noise.
    reference : {"dynamic", "static"}, default "dynamic"
        The reference of regret.

    Returns
    -------
    DriftingMeans
        With a knot at each of the rounds.
    """
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
    rng: Rng,
    arms: Arms,
    rounds: Iterable[int],
    draw: Callable[[int], Arms],
) -> list[tuple[int, Arms]]:
    """Return the timeline of arms of which a third is redrawn at each round.

    Parameters
    ----------
    rng : numpy.random.Generator
        Chooses the arms.
    arms : tuple of two ndarrays
        Means and standard deviations at round 1.
    rounds : iterable of int
        The rounds of the jumps.
    draw : callable
        Returns means and standard deviations for a number of arms.

    Returns
    -------
    list of pairs
        As ``timeline`` takes them.
    """
    means, deviations = arms
    n = max(1, len(means) // 3)
    changes = [(1, arms)]
    for t in rounds:
        means = means.copy()
        deviations = deviations.copy()
        chosen = rng.choice(len(means), n, replace=False)
        means[chosen], deviations[chosen] = draw(n)
        changes.append((t, (means, deviations)))
    return changes
