"""Rising arms: the environments of the CURE-UCB paper, and the IMDB curves it uses.

Rested: an arm rises with its own pulls.
"""

import math
from os import PathLike
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike

from risingsearch.checks import checked_choice, checked_int, checked_path
from risingsearch.curves.noise import NoiseLike, make_noise
from risingsearch.curves.rested import CurveTable
from risingsearch.errors import InvalidParameterError
from risingsearch.policies.arrays import Floats, Rng

N_ARMS = (2, 3, 4, 5)
REFERENCE_HORIZON = 50_000  # T0, in which arms rise

# Where each growth function has reached 75 % after a fifth of the reference horizon:
# largest k / T0 for the rational one, smallest k T0 for the two others.
RATIONAL_LIMIT = 1 / 11
EXPONENTIAL_LIMIT = 6.917
ARCTAN_LIMIT = 9.885

IMDB_FILE = Path("imdb_curves", "imdb_online_curves.npz")
IMDB_ARMS = ("lr0003", "ogd01", "nn1", "nn2", "nn6", "nn7", "nn11")


def two_arm(
    rng: Rng,
    horizon: int,
    *,
    noise: NoiseLike = 0.01,
) -> CurveTable:
    r"""Two arms whose order depends on the horizon: 0.4, or slowly up to 1.

    Good for seeing at a glance whether a policy knows when time is short:
    :math:`\mu_A(n) = 0.4`, :math:`\mu_B(n) = \min(1, n / 20000)`; arm A is the better
    one below 16,000 rounds, arm B above. The paper does not state the noise.

    Parameters
    ----------
    noise : Noise, str or float, default 0.01
        A noise model, its kind, or the standard deviation of Gaussian noise.

    Examples
    --------
    >>> arms = two_arm(np.random.default_rng(0), 20_000)
    >>> arms.means[:, [0, 7_999, 19_999]]
    array([[4.e-01, 4.e-01, 4.e-01],
           [5.e-05, 4.e-01, 1.e+00]])
    """
    return _linear_then_flat(
        [0.4, 1 / 20_000],
        [0.4, 1.0],
        horizon,
        noise,
    )


def ltf(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int | None = None,
    noise: NoiseLike = 0.01,
) -> CurveTable:
    r"""Linear-then-flat arms: each rises in a line to its plateau, drawn at random.

    Good for policies that must tell an arm that is still rising from one that is done:
    :math:`\mu_i(n) = \min(b_i, a_i n)` with :math:`b_i \sim U[0.1, 1]`, reached after
    :math:`U[2500, 50000]` pulls. The same seed gives the same arms for every horizon.
    The paper does not state the noise, although the ranking of policies depends on it.

    Parameters
    ----------
    n_arms : int, optional
        Number of arms, at least 1; by default drawn uniformly from 2 to 5 (the paper
        names the set, not the distribution).

    Examples
    --------
    >>> arms = ltf(np.random.default_rng(0), 50_000, n_arms=3)
    >>> arms.means[:, [0, -1]].round(3)
    array([[0.   , 0.673],
           [0.   , 0.343],
           [0.   , 0.137]])
    """
    n = _arms(rng, n_arms)
    plateaus = rng.uniform(0.1, 1.0, n)
    saturation = rng.uniform(0.05, 1.0, n) * REFERENCE_HORIZON
    return _linear_then_flat(
        plateaus / saturation,
        plateaus,
        horizon,
        noise,
    )


def concave(
    rng: Rng,
    horizon: int,
    *,
    n_arms: int | None = None,
    noise: NoiseLike = 0.01,
) -> CurveTable:
    r"""Concave arms: a late bloomer, an early peaker, and others between them.

    Good for policies that should not give up on an arm that starts low:
    :math:`\mu(n) = s + (L - s) g(n)` with a growth function :math:`g` that goes from 0
    to 1 at :math:`T_0`, 50,000 pulls. Arm 0, the late bloomer, goes from 0.1 to 0.95,
    arm 1, the early peaker, from 0.55 to 0.58; for the others
    :math:`s \sim U[0.05, 0.35]` and :math:`L \sim U[0.9, 0.99]`, so that one of them
    may end above the late bloomer.

    The paper leaves open which :math:`g` the first two arms have and how its parameter
    :math:`k` is drawn. Here :math:`g` is one of n / (n + k), 1 - exp(-k n) and
    arctan(k n), each divided by its value at :math:`T_0`, with equal probability for
    every arm; :math:`k` is log-uniform over the one decade next to the bound that the
    paper's rule gives: three quarters of the growth after :math:`T_0 / 5` pulls. Beyond
    :math:`T_0` the formulas continue. The noise is not stated either. The same seed
    gives the same arms for every horizon, in a table of as many columns.

    Parameters
    ----------
    n_arms : int, optional
        Number of arms, at least 2; by default drawn uniformly from 2 to 5.

    Examples
    --------
    >>> arms = concave(np.random.default_rng(0), 50_000)
    >>> arms.means[:2, -1]
    array([0.95, 0.58])
    """
    n = _arms(rng, n_arms, at_least=2)
    starts = np.r_[0.1, 0.55, rng.uniform(0.05, 0.35, n - 2)]
    ends = np.r_[0.95, 0.58, rng.uniform(0.9, 0.99, n - 2)]
    kinds = rng.integers(3, size=n)
    decades = rng.uniform(0.0, 1.0, n)
    pulls = np.arange(1, horizon + 1) / REFERENCE_HORIZON
    grown = np.array(
        [
            _growth(kind, decade, pulls)
            for kind, decade in zip(kinds, decades, strict=True)
        ]
    )
    means = starts[:, None] + (ends - starts)[:, None] * grown
    return CurveTable.create(means, noise, "best-arm")


def imdb_replay(
    rng: Rng,
    horizon: int,
    *,
    data_dir: str | PathLike[str],
    arms: str = "paper",
    batch: int = 1,
    noise: NoiseLike | None = None,
) -> CurveTable:
    """Online learners on IMDB reviews, replayed from recorded accuracy curves.

    Good for testing on curves that no formula made: pulling an arm lets a learner
    predict the next review, or the next ``batch`` of them, and then train on it; the
    curves are means over 1,000 runs of 50,000 reviews. Regret is measured against the
    best single arm; below 5,694 reviews that is online gradient descent, above it the
    network of two hidden units. A pull needs ``batch`` of the 50,000 reviews.

    The CURE-UCB paper gives neither its arms nor its reward noise; these are the seven
    of the published experiment on rising bandits, with one Bernoulli trial per review.
    Single reviews make the outcome a matter of luck and of tie rules: run many seeds,
    or use ``batch=100``.

    Parameters
    ----------
    data_dir : str or path
        The folder with ``imdb_curves/imdb_online_curves.npz``.
    arms : {"paper", "all"}, default "paper"
        The seven arms of the published experiment, or all 29 of the recording.
    batch : int, default 1
        Reviews per pull, at least 1: one point of the curve is the mean of so many.
    noise : Noise, str or float, optional
        A noise model, its kind, or the standard deviation of Gaussian noise; by default
        ``batch`` Bernoulli trials.
    """
    checked_choice("arms", arms, ("all", "paper"))
    batch = checked_int("batch", batch, 1)
    path = checked_path("data_dir", data_dir) / IMDB_FILE
    if not path.is_file():
        raise InvalidParameterError(
            f"data_dir must hold {IMDB_FILE}; there is no {path}"
        )
    try:
        with np.load(path, allow_pickle=False) as recorded:
            means = recorded["mean"]
            codes = recorded["codes"].tolist()
        if arms == "paper":
            means = means[[codes.index(code) for code in IMDB_ARMS]]
    except (KeyError, OSError, ValueError, BadZipFile) as error:
        raise InvalidParameterError(
            f"{path} does not hold the recorded curves: {error}"
        ) from error
    n_pulls = min(horizon, means.shape[1] // batch)
    if n_pulls == 0:
        raise InvalidParameterError(
            f"batch must be at most {means.shape[1]}, the reviews; got {batch}"
        )
    means = means[:, : n_pulls * batch].astype(float)
    means = means.reshape(len(means), n_pulls, batch).mean(axis=2)
    if noise is None:
        noise = make_noise("bernoulli", batch=batch)
    return CurveTable.create(means, noise, "best-arm")


def _arms(
    rng: Rng,
    n_arms: int | None,
    at_least: int = 1,
) -> int:
    if n_arms is None:
        return int(rng.choice(N_ARMS))
    return checked_int("n_arms", n_arms, at_least)


def _linear_then_flat(
    slopes: ArrayLike,
    plateaus: ArrayLike,
    horizon: int,
    noise: NoiseLike,
) -> CurveTable:
    lines = np.multiply.outer(slopes, np.arange(1, horizon + 1))
    means = np.minimum(np.asarray(plateaus)[:, None], lines)
    return CurveTable.create(means, noise, "best-arm")


def _growth(
    kind: int,
    decade: float,
    pulls: Floats,
) -> Floats:
    """Return a growth function at pulls counted in reference horizons, 1 at 1."""
    further = 10.0**decade
    if kind == 0:
        k = RATIONAL_LIMIT / further
        grown: Floats = pulls / (pulls + k) * (1.0 + k)
    elif kind == 1:
        k = EXPONENTIAL_LIMIT * further
        grown = np.expm1(-k * pulls) / math.expm1(-k)
    else:
        k = ARCTAN_LIMIT * further
        grown = np.arctan(k * pulls) / math.atan(k)
    return grown
