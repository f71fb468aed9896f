"""Importance of each parameter: the loss of prediction without it.

Any two arms are compared by their best score within the epochs that both have trained,
and an arm is worth the share of others that it beats; a failed one loses against all.
The importance of a parameter is how much larger the squared error of predicting this
worth becomes without it: leave-one-covariate-out importance (Lei, G'Sell, Rinaldo,
Tibshirani and Wasserman, "Distribution-free predictive inference for regression", JASA
113, 2018); its interval comes from a bootstrap over the arms.

The model is kernel ridge regression with a kernel per parameter and one per pair of
parameters, so that it is not confused by many that do not matter. The errors of
predicting each arm from all others need only one decomposition (leave-one-out by the
diagonal of the smoother).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import sign_of
from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError
from risingsearch.plotting.digest import parameter_names, values_of
from risingsearch.plotting.result import ShownResult
from risingsearch.plotting.words import as_text

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


def parameter_importance(result: ShownResult) -> Importances:
    """Return how much each parameter matters in the result of a search so far.

    Parameters
    ----------
    result : SearchResult
        The result, or the result so far.

    Returns
    -------
    Importances
        With a reason where no parameter can be judged, as with fewer than 20 arms.

    Raises
    ------
    InvalidParameterError
        If it is no result of a search.

    Examples
    --------
    >>> from risingsearch import Functions, RisingSearch
    >>> flat = Functions(lambda params, seed: params["top"], lambda state: state)
    >>> candidates = [{"top": k / 30, "other": k % 7} for k in range(30)]
    >>> search = RisingSearch(flat, candidates, policy="round-robin", budget=30)
    >>> importances = parameter_importance(search.run())
    >>> [parameter.name for parameter in importances.parameters]
    ['top', 'other']
    """
    if not hasattr(result, "curves"):
        raise InvalidParameterError(
            f"give the result of a search, as search.result(); got {shown(result)}"
        )
    curves = result.curves
    arms = sorted(curves)
    if len(arms) > MOST_ARMS:
        spread = np.linspace(0, len(arms) - 1, MOST_ARMS).astype(int)
        arms = [arms[k] for k in spread]
    params = [result.candidates[arm] for arm in arms]
    kernels: dict[str, Floats] = {}
    unjudged = []
    for name in parameter_names(params):
        kernel = _kernel(values_of(params, name))
        if kernel is None:
            unjudged.append(as_text(name))
        else:
            kernels[name] = kernel
    parameters: list[Importance] = []
    predicted = 0.0
    reason: str | None = "no parameter varies, or all arms are equally good"
    if len(arms) < FEWEST_ARMS:
        reason = f"it takes {FEWEST_ARMS} arms, and {len(arms)} have been opened"
    elif kernels:
        quantiles = _rank_quantiles(result, arms)
        if np.ptp(quantiles) > 0.0:
            parameters, predicted = _importances(kernels, quantiles)
            reason = None
    return Importances(
        sorted(parameters, key=lambda parameter: -parameter.share),
        unjudged,
        predicted,
        n_arms=len(arms),
        n_opened=len(curves),
        reason=reason,
    )


def _rank_quantiles(result: ShownResult, arms: Sequence[int]) -> Floats:
    """Return the share of the others that each arm beats; equal ones count half.

    Two arms are compared after the epochs that both of them have had.
    """
    sign = sign_of(result.direction)
    curves = [np.asarray(result.curves[arm], dtype=float) for arm in arms]
    lengths = np.array([len(curve) for curve in curves])
    best = np.full((len(arms), lengths.max()), -np.inf)
    for row, arm, curve in zip(best, arms, curves, strict=True):
        if result.arms[arm].status != "failed":
            is_finite = np.isfinite(curve)
            scores = np.where(is_finite, sign * curve, -np.inf)
            row[: len(curve)] = np.maximum.accumulate(scores)
    common = np.minimum.outer(lengths, lengths) - 1
    then = np.take_along_axis(best, common, axis=1)
    beats = (then > then.T) + 0.5 * (then == then.T)
    n_beaten = beats.sum(axis=1) - 0.5  # every arm equals itself
    return np.asarray(n_beaten / (len(arms) - 1))


def _kernel(values: Sequence[float | str | None]) -> Floats | None:
    """Return how alike a parameter is in every two arms; None if that says nothing."""
    # Numbers are alike if their ranks are near, everything else if it is equal.
    numbers = [value for value in values if isinstance(value, (int, float))]
    is_number = np.array([isinstance(value, (int, float)) for value in values])
    texts = {value for value in values if isinstance(value, str)}
    if 2 * len(texts) > max(len(values), 4):
        return None
    kinds: dict[object, int] = {}
    codes = np.array([kinds.setdefault(value, len(kinds)) for value in values])
    alike = (codes[:, None] == codes).astype(float)
    if numbers:
        _, ranks = np.unique(numbers, return_inverse=True)
        places = ranks / max(1.0, ranks.max())
        distances = (places[:, None] - places) / LENGTH
        alike[np.ix_(is_number, is_number)] = np.exp(-(distances**2) / 2.0)
    alike = _centred(alike)
    size = alike.trace() / len(alike)
    if size < 1e-9:  # it does not vary
        return None
    return np.asarray(alike / size)


def _centred(kernel: Floats) -> Floats:
    mean = kernel.mean(axis=0)
    return np.asarray(kernel - mean - mean[:, None] + mean.mean())


def _importances(
    kernels: Mapping[str, Floats], quantiles: Floats
) -> tuple[list[Importance], float]:
    """Return the importances, and the share of the variance that is predicted."""
    n = len(quantiles)
    n_params = len(kernels)
    every = np.array(list(kernels.values()))
    total = every.sum(axis=0)
    squares = (every**2).sum(axis=0)
    variance = float((_errors(None, quantiles) ** 2).mean())
    all_params = _together(total, squares, n_params)
    full = _errors(all_params, quantiles) ** 2
    rng = np.random.default_rng(0)
    chances = np.full(n, 1.0 / n)
    weights = rng.multinomial(n, chances, RESAMPLES) / n
    tail = (1.0 - LEVEL) / 2.0
    parameters = []
    for name, kernel in kernels.items():
        others = _together(
            total - kernel,
            squares - kernel**2,
            n_params - 1,
        )
        lost = (_errors(others, quantiles) ** 2 - full) / variance
        low, high = np.quantile(weights @ lost, [tail, 1.0 - tail])
        parameters.append(
            Importance(
                as_text(name),
                share=float(lost.mean()),
                low=float(low),
                high=max(float(high), 0.0),  # nothing matters less than not at all,
            )
        )
    return parameters, 1.0 - float(full.mean()) / variance


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
    pairs = _centred((total**2 - squares) / 2.0)
    return np.asarray(total / n_params + pairs / n_pairs)


def _errors(kernel: Floats | None, quantiles: Floats) -> Floats:
    """Return the error of predicting every arm from all others, ridge well chosen."""
    n = len(quantiles)
    centred: Floats = quantiles - quantiles.mean()
    best: Floats = centred * n / (n - 1.0)  # predicted by the mean of all others
    if kernel is None:
        return best
    values, vectors = np.linalg.eigh(kernel)
    values = np.maximum(values, 0.0)
    along = vectors.T @ centred
    squares = vectors**2
    for ridge in RIDGES * values.mean() * n:
        kept = values / (values + ridge)
        residuals = centred - vectors @ (kept * along)
        # Leave-one-out by the diagonal of the smoother.
        errors = residuals / (1.0 - 1.0 / n - squares @ kept)
        if (errors**2).mean() < (best**2).mean():
            best = errors
    return best
