"""An earlier search as data: its runs, and the curve of each."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import sign_of
from risingsearch.checks import (
    LARGEST_SCORE,
    as_float,
    check_nesting,
    checked_int,
    cut,
)
from risingsearch.errors import InvalidParameterError
from risingsearch.json_values import as_json, from_json

MOST_RUNS = 300
"""Runs of an earlier search that are learnt from; of more, as many drawn at random."""
MOST_SEARCHES = 32
"""Earlier searches that are learnt from; see ``read_prior`` for which of more."""
HOW_TO_NAME = (
    "with prior=earlier_searches(..., score=..., direction=...), or by these keys in a "
    "sweep's prior"
)
_SHOWN_NAMES = 20


@dataclass(frozen=True, repr=False)
class EarlierSearch:
    """The runs of one earlier search, in any number.

    Parameters
    ----------
    name : str
        What reports call it.
    params : sequence of dict
        The parameters of every run, at least one run.
    curves : sequence of ndarray
        The scores of every run, one per epoch, higher is better; a single one if only
        the final score is known, none if the run has failed. NaN counts as the worst.
    max_epochs : int, optional
        Epochs that a run could have had at most; by default those of the longest.
    seconds : sequence of float, optional
        Mean seconds per epoch of every run; NaN if that is not known.
    direction : {"maximize", "minimize"}, optional
        Which scores were better where they come from; here it is the higher ones,
        whose signs were changed if it was the lower.
    metric : str, optional
        What the score is called there.

    Raises
    ------
    InvalidParameterError
        If there is no run with a finite score, the lengths differ, or JSON cannot hold
        a parameter.

    Examples
    --------
    >>> earlier = EarlierSearch(
    ...     "last month",
    ...     params=[{"rate": 0.1}, {"rate": 0.01}],
    ...     curves=[np.array([0.5, 0.6]), np.array([0.4])],
    ... )
    >>> earlier
    <EarlierSearch 'last month': 2 runs of rate>
    >>> earlier.scores, earlier.epochs, earlier.max_epochs
    (array([0.6, 0.4]), array([2, 1]), 2)
    """

    name: str
    params: Sequence[Mapping[str, Any]]
    curves: Sequence[NDArray[np.float64]]
    max_epochs: int = 0
    seconds: Sequence[float] | None = None
    direction: str | None = None
    metric: str | None = None

    def __post_init__(self) -> None:
        self._check_kinds()
        n_runs = len(self.params)
        if len(self.curves) != n_runs or len(self.seconds or self.params) != n_runs:
            msg = (
                f"{self.name}: every run needs its parameters, its curve and, if any, "
                f"its seconds; got {n_runs} runs and {len(self.curves)} curves"
            )
            raise InvalidParameterError(msg)
        if not np.isfinite(self.scores).any():
            msg = (
                f"{self.name}: none of its {n_runs} runs has a finite score, so "
                "nothing can be learnt from it: leave it out"
            )
            raise InvalidParameterError(msg)
        longest = int(self.epochs.max())
        object.__setattr__(self, "max_epochs", max(self.max_epochs, longest))

    def __repr__(self) -> str:
        names = cut(", ".join(self.parameter_names))
        runs = f"{len(self.params)} runs of {names}"
        return f"<EarlierSearch {cut(self.name)!r}: {runs}>"

    def _check_kinds(self) -> None:
        """Convert runs and curves to lists and arrays; refuse others."""
        try:
            params = [dict(run) for run in self.params]
            curves = [np.asarray(curve, dtype=float) for curve in self.curves]
            given = () if self.seconds is None else self.seconds
            seconds = [float(one) for one in given]
            most = checked_int("max_epochs", self.max_epochs, 0)
            as_json(params)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            msg = (
                f"{self.name}: params is a list of dicts that JSON can hold, curves a "
                f"list of arrays, and seconds and max_epochs are numbers ({error})"
            )
            raise InvalidParameterError(msg) from error
        if any(curve.ndim != 1 for curve in curves):
            msg = f"{self.name}: the curve of a run has one score per epoch"
            raise InvalidParameterError(msg)
        for name, value in (
            ("params", params),
            ("curves", curves),
            ("seconds", seconds or None),
            ("max_epochs", most),
        ):
            object.__setattr__(self, name, value)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """The best score of every run, of shape (n_runs,); NaN where it has none."""
        best = np.full(len(self.curves), math.nan)
        for i, curve in enumerate(self.curves):
            finite = curve[np.isfinite(curve)]
            if len(finite):
                best[i] = finite.max()
        return best

    @cached_property
    def epochs(self) -> NDArray[np.int64]:
        """Epochs of every run, of shape (n_runs,)."""
        return np.array([len(curve) for curve in self.curves], dtype=np.int64)

    @property
    def parameter_names(self) -> list[str]:
        """The names of all parameters, in the order in which they come up."""
        return list(dict.fromkeys(name for params in self.params for name in params))

    def sample(self, most: int = MOST_RUNS) -> EarlierSearch:
        """Return so many of the runs at most, drawn at random, the same every time."""
        n_runs = len(self.params)
        if n_runs <= most:
            return self
        runs = np.sort(np.random.default_rng(0).permutation(n_runs)[:most])
        best = int(np.nanargmax(self.scores))
        if best not in runs:
            runs[np.searchsorted(runs, best) % most] = best
        return replace(
            self,
            params=[self.params[run] for run in runs],
            curves=[self.curves[run] for run in runs],
            seconds=self.seconds and [self.seconds[run] for run in runs],
        )

    def to_json(self) -> dict[str, Any]:
        """Return its name and runs as JSON values."""
        return {
            "name": self.name,
            "params": as_json([dict(params) for params in self.params]),
            "curves": as_json([curve.tolist() for curve in self.curves]),
            "max_epochs": self.max_epochs,
            "seconds": as_json(self.seconds and list(self.seconds)),
        }

    def digest(self) -> str:
        """Return a hash of its content, as 16 hexadecimal digits."""
        content = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> EarlierSearch:
        """Inverse of ``to_json``."""
        curves = [np.array(curve, dtype=float) for curve in from_json(saved["curves"])]
        params, seconds = from_json(saved["params"]), from_json(saved["seconds"])
        return cls(saved["name"], params, curves, saved["max_epochs"], seconds)


def told_apart(searches: Iterable[EarlierSearch]) -> list[EarlierSearch]:
    """Return the searches with unique names: those that share one are numbered."""
    searches = list(searches)
    often = Counter(search.name for search in searches)
    taken = {name for name, n in often.items() if n == 1}
    named = []
    for search in searches:
        if search.name not in taken:
            numbered = (f"{search.name} {number}" for number in count(1))
            name = next(name for name in numbered if name not in taken)
            search = replace(search, name=name)
            taken.add(name)
        named.append(search)
    return named


# ------------------------------------------------------------- the runs of every source


class EarlierRun(NamedTuple):
    """A run with scores in the direction of its source."""

    params: Mapping[str, Any]
    scores: Sequence[float]  # one per epoch, in their order; NaN if one was lost
    seconds: float = math.nan  # of an epoch
    failed: bool = False  # without a score


class Asked(NamedTuple):
    """The user's arguments about a source; None to take what the source says."""

    score: str | None = None
    direction: str | None = None
    name: str | None = None


def earlier_search(
    own_name: str,
    runs: Iterable[EarlierRun],
    asked: Asked,
    direction: str,
    max_epochs: int = 0,
    metric: str | None = None,
) -> EarlierSearch:
    """Return the earlier search with these runs, whose scores have this direction.

    Runs that have no score yet are left out, and so are those with parameters that are
    unknown or that JSON cannot hold.

    Examples
    --------
    >>> failed = EarlierRun({"rate": 9.0}, [], failed=True)
    >>> runs = [EarlierRun({"rate": 0.1}, [2.0, 1.5]), failed]
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
        raise InvalidParameterError(msg)
    timed = any(math.isfinite(one) for one in seconds)
    took = seconds if timed else None
    return EarlierSearch(name, params, curves, max_epochs, took, direction, metric)


def known_direction(asked: Asked, where: str, said: str | None) -> str:
    """Return the direction of a source's scores, its own or the one asked for.

    Raises
    ------
    InvalidParameterError
        If neither is given, or both are and they differ.
    """
    if said is not None and asked.direction not in (None, said):
        msg = (
            f"{where}: direction={asked.direction!r} was given, and its own direction "
            f"is {said!r}: leave direction out"
        )
        raise InvalidParameterError(msg)
    known = said or asked.direction
    if known is None:
        msg = f"{where}: the direction of this score is unknown: name it {HOW_TO_NAME}"
        raise InvalidParameterError(msg)
    return known


def checked_score(score: str, names: Iterable[str], where: str) -> str:
    """Return the name of a score, which has to be one of these."""
    known = list(names)
    if score not in known:
        listed = ", ".join(map(repr, known[:_SHOWN_NAMES]))
        msg = f"{where}: score must be one of {listed}; got {score!r}"
        raise InvalidParameterError(msg)
    return score


def as_number(value: Any) -> float:
    """Return a score as a float, NaN if it is not a number.

    Examples
    --------
    >>> as_number(1), as_number(None), as_number("high")
    (1.0, nan, nan)
    """
    if type(value) is float:
        return value
    number = as_float(value)
    return math.nan if number is None else number


def mean(numbers: Iterable[float]) -> float:
    """Return the mean of the finite numbers, NaN if there are none."""
    finite = [number for number in numbers if abs(number) <= LARGEST_SCORE]
    return math.fsum(finite) / len(finite) if finite else math.nan


def by_epoch(scores: Iterable[tuple[float, float]]) -> list[float]:
    """Return the scores of (epoch, score) in the order of the epochs.

    Only the order of the numbers counts. Of an epoch that was trained again, the last
    score is taken.

    Examples
    --------
    >>> by_epoch([(0, 0.1), (20, 0.3), (10, 0.9), (10, 0.2)])
    [0.1, 0.2, 0.3]
    """
    return [score for _, score in sorted(dict(scores).items())]


def _curve(scores: Sequence[float], sign: float) -> NDArray[np.float64]:
    """Return scores so that higher is better; empty if not one is finite."""
    curve = sign * np.array(scores, dtype=float)
    curve[~(np.abs(curve) <= LARGEST_SCORE)] = math.nan
    return curve if np.isfinite(curve).any() else curve[:0]


def _not_held(params: Mapping[str, Any]) -> str:
    """Return the parameters of a run that JSON cannot hold, for a message."""
    names = [repr(name) for name in params if _known({name: params[name]}) is None]
    listed = ", ".join(names[:_SHOWN_NAMES])
    return f" (not {listed}: leave such columns out)" if names else ""


def _known(params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return parameters as plain Python values; None if JSON cannot hold them."""
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
