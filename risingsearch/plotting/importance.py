"""Importance of each parameter: the loss of prediction without it.

``docs/results.md`` explains the prediction and the reading of an importance. It is
leave-one-covariate-out importance (Lei, G'Sell, Rinaldo, Tibshirani and Wasserman,
"Distribution-free predictive inference for regression", JASA 113, 2018); its interval
comes from a bootstrap over the arms.

The model is kernel ridge regression with a kernel per parameter and one per pair of
parameters, so that it is not confused by many that do not matter. The errors of
predicting each arm from all others need only one decomposition (leave-one-out by the
diagonal of the smoother).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import sign_of
from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError
from risingsearch.plotting.words import as_text, plain

FEWEST_ARMS = 20  # with fewer, hardly anything can be told from chance
MOST_ARMS = 300  # spread evenly over all: more cost much time and change little
LENGTH = 0.3  # over which a number's effect changes, as a share of its ranks
RIDGES = np.logspace(-3, 2, 11)  # times the mean eigenvalue and the number of arms
RESAMPLES = 1000
LEVEL = 0.95

Floats = NDArray[np.float64]


class Importance(NamedTuple):
    """Importance of a parameter: loss of prediction without it, with an interval."""

    name: str
    share: float  # of the variance; about 0, on either side, where it does not matter
    low: float
    high: float


class Importances(NamedTuple):
    """Importance of every parameter that is judged, or the reason why none is."""

    parameters: list[Importance]  # the most important first
    unjudged: list[str]  # that do not vary, or have another text in nearly every arm
    predicted: float  # share of the variance that all of them together predict
    n_arms: int  # that are compared
    n_opened: int
    reason: str | None = None  # why no parameter is judged


def parameter_importance(result: Any) -> Importances:
    """Return how much each parameter matters in the result of a search so far."""
    if not hasattr(result, "curves"):
        msg = f"give the result of a search, as search.result(); got {shown(result)}"
        raise InvalidParameterError(msg)
    curves = result.curves
    arms = sorted(curves)
    if len(arms) > MOST_ARMS:
        arms = [arms[k] for k in np.linspace(0, len(arms) - 1, MOST_ARMS).astype(int)]
    params = [result.candidates[arm] for arm in arms]
    names = list(dict.fromkeys(name for one in params for name in one))
    all_kernels = {name: _kernel(params, name) for name in names}
    kernels = {name: k for name, k in all_kernels.items() if k is not None}
    unjudged = [as_text(name) for name in names if name not in kernels]
    found: list[Importance] = []
    predicted = 0.0
    if len(arms) >= FEWEST_ARMS and kernels:
        worth = _worth(result, [curves[arm] for arm in arms], arms)
        if np.ptp(worth) > 0.0:
            found, predicted = _importances(kernels, worth)
    found.sort(key=lambda importance: -importance.share)
    reason = "no parameter varies, or all arms are equally good"
    if len(arms) < FEWEST_ARMS:
        reason = f"it takes {FEWEST_ARMS} arms, and {len(arms)} have been opened"
    counts = len(arms), len(curves)
    return Importances(found, unjudged, predicted, *counts, None if found else reason)


def _worth(
    result: Any,
    curves: Sequence[Sequence[float]],
    arms: Sequence[int],
) -> Floats:
    """Return the share of the others that each arm beats; equal ones count half."""
    sign = sign_of(result.direction)
    lengths = np.array([len(curve) for curve in curves])
    best = np.full((len(arms), lengths.max()), -np.inf)
    for row, arm, curve in zip(best, arms, curves, strict=True):
        if result.arms[arm].status != "failed":
            scores = sign * np.asarray(curve, dtype=float)
            scores[~np.isfinite(scores)] = -np.inf
            row[: len(curve)] = np.maximum.accumulate(scores)
    both = np.minimum.outer(lengths, lengths) - 1
    then = best[np.arange(len(arms))[:, None], both]
    beats = (then > then.T) + 0.5 * (then == then.T)
    return np.asarray((beats.sum(axis=1) - 0.5) / (len(arms) - 1))


def _kernel(params: Sequence[Mapping[str, Any]], name: str) -> Floats | None:
    """Return how alike a parameter is in every two arms; None if that says nothing."""
    # Numbers are alike if their ranks are near, everything else if it is equal.
    values = [plain(one[name]) if name in one else None for one in params]
    numbers = [value for value in values if isinstance(value, (int, float))]
    texts = [value for value in values if isinstance(value, str)]
    if 2 * len(set(texts)) > max(len(values), 4):
        return None
    kinds: dict[Any, int] = {}
    at = np.array([kinds.setdefault(value, len(kinds)) for value in values])
    alike = (at[:, None] == at).astype(float)
    where = np.array([isinstance(value, (int, float)) for value in values])
    if numbers:
        place = np.unique(numbers, return_inverse=True)[1].astype(float)
        place /= max(1.0, place.max())
        apart = (place[:, None] - place) / LENGTH
        alike[np.ix_(where, where)] = np.exp(-(apart**2) / 2.0)
    alike = _centred(alike)
    size = np.trace(alike) / len(alike)
    if size < 1e-9:  # it does not vary
        return None
    return np.asarray(alike / size)


def _centred(kernel: Floats) -> Floats:
    mean = kernel.mean(axis=0)
    return np.asarray(kernel - mean - mean[:, None] + mean.mean())


def _importances(
    kernels: Mapping[str, Floats], worth: Floats
) -> tuple[list[Importance], float]:
    n = len(worth)
    n_params = len(kernels)
    total = np.sum(list(kernels.values()), axis=0)
    squares = np.sum([kernel**2 for kernel in kernels.values()], axis=0)
    full = _errors(_together(total, squares, n_params), worth)
    variance = float((_errors(None, worth) ** 2).mean())
    rng = np.random.default_rng(0)
    weights = rng.multinomial(n, np.full(n, 1.0 / n), RESAMPLES) / n
    tail = (1.0 - LEVEL) / 2.0
    found = []
    for name, kernel in kernels.items():
        rest = _together(total - kernel, squares - kernel**2, n_params - 1)
        lost = (_errors(rest, worth) ** 2 - full**2) / variance
        low, high = np.quantile(weights @ lost, [tail, 1.0 - tail])
        high = max(high, 0.0)  # nothing matters less than not at all
        found.append(
            Importance(as_text(name), float(lost.mean()), float(low), float(high))
        )
    return found, 1.0 - float((full**2).mean()) / variance


def _together(
    total: Floats,
    squares: Floats,
    n_params: int,
) -> Floats | None:
    """Return the kernel of effects of one parameter and of two; None without any."""
    if n_params == 0:
        return None
    if n_params == 1:
        return total
    n_pairs = n_params * (n_params - 1) / 2.0
    return np.asarray(total / n_params + _centred((total**2 - squares) / 2.0) / n_pairs)


def _errors(kernel: Floats | None, worth: Floats) -> Floats:
    """Return the error of predicting every arm from all others, ridge well chosen."""
    n = len(worth)
    centred: Floats = worth - worth.mean()
    best: Floats = centred * n / (n - 1.0)  # predicted by the mean of all others
    if kernel is None:
        return best
    values, vectors = np.linalg.eigh(kernel)
    values = np.maximum(values, 0.0)
    along = vectors.T @ centred
    squares = vectors**2
    for ridge in RIDGES * values.mean() * n:
        kept = values / (values + ridge)
        errors = (centred - vectors @ (kept * along)) / (1.0 - 1.0 / n - squares @ kept)
        if (errors**2).mean() < (best**2).mean():
            best = errors
    return best
