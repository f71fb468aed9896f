"""What every source becomes: the runs of an earlier search."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import sign_of
from risingsearch.checks import LARGEST_SCORE, check_nesting, shown
from risingsearch.errors import InvalidParameterError, PriorError
from risingsearch.json_values import as_json
from risingsearch.priors.earlier import EarlierSearch

_SHOWN_NAMES = 20
_LOWER_IS_BETTER = re.compile(
    r"^(?!.*neg).*(?<![a-z])(loss|error|mse|rmse|mae|nll|ppl|perplexity)(?![a-z])"
)


class Run(NamedTuple):
    """A run as its source has it: the scores in the source's own direction."""

    params: Mapping[str, Any]
    scores: Sequence[float]  # one per epoch, in their order; NaN where one was lost
    seconds: float = math.nan  # of an epoch
    failed: bool = False  # without a score


class Asked(NamedTuple):
    """What the user has said about a source; None for what it says itself."""

    score: str | None = None
    direction: str | None = None
    name: str | None = None


def earlier_search(
    own_name: str,
    runs: Iterable[Run],
    asked: Asked,
    direction: str | None = None,
    max_epochs: int = 0,
) -> EarlierSearch:
    """Return the search that some runs were.

    Left out are runs that have no score yet, and those whose parameters are unknown or
    none that JSON can hold. ``direction`` is what the source says of its scores.

    Examples
    --------
    >>> runs = [Run({"rate": 0.1}, [2.0, 1.5]), Run({"rate": 9.0}, [], failed=True)]
    >>> earlier_search("losses", runs, Asked(), "minimize").curves
    [array([-2. , -1.5]), array([], dtype=float64)]
    """
    name = own_name if asked.name is None else asked.name
    sign = sign_of(asked.direction or direction or "maximize")
    params, curves, seconds, n_runs = [], [], [], 0
    for run in runs:
        n_runs += 1
        known = _known(run.params) if len(run.scores) or run.failed else None
        if known:
            params.append(known)
            curves.append(_curve(run.scores, sign))
            seconds.append(run.seconds)
    if not params:
        msg = (
            f"{name}: of its {n_runs} runs, none has both a score, or a failure, and "
            "parameters that JSON can hold, so nothing can be learnt from it: leave it "
            "out"
        )
        raise PriorError(msg)
    timed = any(math.isfinite(one) for one in seconds)
    return EarlierSearch(name, params, curves, max_epochs, seconds if timed else None)


def chosen(score: str | None, names: Sequence[str], where: str) -> str:
    """Return the name of the score: the one asked for, or the only one.

    Examples
    --------
    >>> chosen(None, ["loss"], "runs.csv")
    'loss'
    >>> chosen(None, ["loss", "auc"], "runs.csv")
    Traceback (most recent call last):
    risingsearch.errors.PriorError: runs.csv: any of its 2 columns and metrics could be
    the score: name one of them with score=, of 'loss', 'auc' (earlier_searches takes
    it, and in a sweep an item of prior with path and score)
    """
    if score in names:
        return str(score)
    if not names:
        msg = f"{where}: none of its columns and metrics holds numbers to be a score"
        raise PriorError(msg)
    known = ", ".join(repr(name) for name in names[:_SHOWN_NAMES])
    more = len(names) - _SHOWN_NAMES
    known += f" and {more} more" if more > 0 else ""
    if score is not None:
        msg = f"{where}: score must be one of {known}; got {shown(score)}"
        raise PriorError(msg)
    if len(names) == 1:
        return names[0]
    msg = (
        f"{where}: any of its {len(names)} columns and metrics could be the score: "
        f"name one of them with score=, of {known} (earlier_searches takes it, and in "
        "a sweep an item of prior with path and score)"
    )
    raise PriorError(msg)


def check_direction(score: str, asked: Asked, where: str) -> None:
    """Raise a PriorError where a score is called a loss and no direction is said.

    Examples
    --------
    >>> check_direction("val_loss", Asked(direction="minimize"), "runs.csv")
    >>> check_direction("val_loss", Asked(), "runs.csv")
    Traceback (most recent call last):
    risingsearch.errors.PriorError: runs.csv: its score 'val_loss' is called like one
    where lower is better: say direction='minimize', or direction='maximize' if not
    """
    if asked.direction is None and _LOWER_IS_BETTER.search(score.lower()):
        msg = (
            f"{where}: its score {score!r} is called like one where lower is better: "
            "say direction='minimize', or direction='maximize' if not"
        )
        raise PriorError(msg)


def mean(numbers: Iterable[float]) -> float:
    """Return the mean of those that are finite, NaN where none is."""
    finite = [number for number in numbers if math.isfinite(number)]
    return math.fsum(finite) / len(finite) if finite else math.nan


def by_epoch(scores: Iterable[tuple[float, float]]) -> list[float]:
    """Return the scores of (epoch, score) in the order of the epochs.

    Epochs count in their order, whatever their numbers. Of an epoch that was trained
    again, the last score is taken.

    Examples
    --------
    >>> by_epoch([(0, 0.1), (20, 0.3), (10, 0.9), (10, 0.2)])
    [0.1, 0.2, 0.3]
    """
    return [score for _, score in sorted(dict(scores).items())]


def _curve(scores: Sequence[float], sign: float) -> NDArray[np.float64]:
    """Return scores so that higher is better; none where not one is finite."""
    curve = sign * np.array(scores, dtype=float)
    curve[~(np.abs(curve) <= LARGEST_SCORE)] = math.nan
    return curve if np.isfinite(curve).any() else curve[:0]


def _known(params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return parameters without numpy's kinds of values; None if JSON has none such."""
    plain = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in params.items()
    }
    try:
        check_nesting("params", plain)
        as_json(plain)
        for value in plain.values():
            if type(value) is int:
                float(value)
    except (InvalidParameterError, OverflowError, RecursionError, TypeError):
        return None
    return plain
