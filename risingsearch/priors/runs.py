"""What every source becomes: the runs of an earlier search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import sign_of
from risingsearch.checks import LARGEST_SCORE, check_nesting, shown
from risingsearch.errors import InvalidParameterError, PriorError
from risingsearch.json_values import as_json
from risingsearch.priors.earlier import EarlierSearch
from risingsearch.priors.score_names import direction_of

_SHOWN_NAMES = 20


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
    parameters: frozenset[str] = frozenset()  # of the new search, where it is known


def earlier_search(
    own_name: str,
    runs: Iterable[Run],
    asked: Asked,
    direction: str,
    max_epochs: int = 0,
    metric: str | None = None,
) -> EarlierSearch:
    """Return the search that some runs were, with scores of this direction.

    Left out are runs that have no score yet, and those whose parameters are unknown or
    none that JSON can hold.

    Examples
    --------
    >>> runs = [Run({"rate": 0.1}, [2.0, 1.5]), Run({"rate": 9.0}, [], failed=True)]
    >>> earlier_search("losses", runs, Asked(), "minimize").curves
    [array([-2. , -1.5]), array([], dtype=float64)]
    """
    name = own_name if asked.name is None else asked.name
    sign = sign_of(direction)
    params, curves, seconds, n_runs = [], [], [], 0
    tried: Mapping[str, Any] = {}
    for run in runs:
        n_runs, tried = n_runs + 1, run.params
        known = _known(run.params) if len(run.scores) or run.failed else None
        if known:
            params.append(known)
            curves.append(_curve(run.scores, sign))
            seconds.append(run.seconds)
    if not params:
        msg = (
            f"{name}: of its {n_runs} runs, none has both a score, or a failure, and "
            f"parameters that JSON can hold{_not_held(tried)}, so nothing can be "
            "learnt from it: leave it out"
        )
        raise PriorError(msg)
    timed = any(math.isfinite(one) for one in seconds)
    took = seconds if timed else None
    return EarlierSearch(name, params, curves, max_epochs, took, direction, metric)


def chosen(score: str | None, names: Sequence[str], where: str) -> str:
    """Return the name of the score: the one asked for, or the only one.

    Examples
    --------
    >>> chosen(None, ["loss"], "runs.csv")
    'loss'
    >>> chosen(None, ["loss", "auc"], "runs.csv")
    Traceback (most recent call last):
    risingsearch.errors.PriorError: runs.csv: any of its 2 columns and metrics could be
    the score: name one of them with score=, of 'loss', 'auc' (in Python: from
    risingsearch.priors import earlier_searches, and prior=earlier_searches(...,
    score='loss'); in a sweep: an item of prior with path and score)
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
        f"name one of them with score=, of {known} ({_said_as('score', names[0])})"
    )
    raise PriorError(msg)


def known_direction(
    asked: Asked, where: str, *, metric: str | None = None, said: str | None = None
) -> str:
    """Return which scores are better: as the source says, the user, or their name.

    Raises
    ------
    PriorError
        If the user contradicts the source, or nobody says it and the score is called
        by no name that does.

    Examples
    --------
    >>> known_direction(Asked(), "study", said="minimize")
    'minimize'
    >>> known_direction(Asked(), "runs.csv", metric="val_loss")
    'minimize'
    >>> known_direction(Asked(), "runs.csv", metric="quality")
    Traceback (most recent call last):
    risingsearch.errors.PriorError: runs.csv: nothing says which values of its score
    'quality' are better: say direction='maximize' or direction='minimize' (in Python:
    from risingsearch.priors import earlier_searches, and prior=earlier_searches(...,
    direction='maximize'); in a sweep: an item of prior with path and direction)
    """
    if said is not None and asked.direction not in (None, said):
        msg = (
            f"{where}: direction={asked.direction!r} was given, and it says itself "
            f"that its direction is {said!r}: leave direction out"
        )
        raise PriorError(msg)
    known = said or asked.direction or direction_of(metric or "")
    if known is None:
        of = "" if metric is None else f" {metric!r}"
        msg = (
            f"{where}: nothing says which values of its score{of} are better: say "
            "direction='maximize' or direction='minimize' "
            f"({_said_as('direction', 'maximize')})"
        )
        raise PriorError(msg)
    return known


def _said_as(argument: str, value: str) -> str:
    """Return where an argument of ``earlier_searches`` is written, for a message."""
    return (
        "in Python: from risingsearch.priors import earlier_searches, and "
        f"prior=earlier_searches(..., {argument}={value!r}); in a sweep: an item of "
        f"prior with path and {argument}"
    )


def mean(numbers: Iterable[float]) -> float:
    """Return the mean of those that a score can be, NaN where none is."""
    finite = [number for number in numbers if abs(number) <= LARGEST_SCORE]
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


def _not_held(params: Mapping[str, Any]) -> str:
    """Return which parameters of a run JSON cannot hold, for a message."""
    names = [name for name in params if _known({name: params[name]}) is None]
    more = "" if len(names) <= _SHOWN_NAMES else " and more"
    listed = ", ".join(repr(name) for name in names[:_SHOWN_NAMES]) + more
    return f" (not {listed}: leave such columns out)" if names else ""


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
