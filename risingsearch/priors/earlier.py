"""An earlier search as data: its runs, and the curve of each."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from risingsearch import checks
from risingsearch.arms import Configuration, sign_of
from risingsearch.errors import InvalidParameterError
from risingsearch.json_values import Json, as_json, from_json
from risingsearch.proposers.base import Floats, Ints

MOST_RUNS = 300
"""Runs of an earlier search that are learnt from; of more, as many drawn at random."""
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
        Its name in reports.
    params : sequence of dict
        The parameters of every run, at least one run.
    curves : sequence of ndarray
        The scores of every run, one per epoch, higher is better; a single one if only
        the final score is known, none if the run has failed. NaN counts as the worst.
    max_epochs : int, optional
        Epochs that a run could have had at most; by default those of the longest.
    direction : {"maximize", "minimize"}, optional
        Which scores were better where they come from; here it is the higher ones,
        whose signs were changed if it was the lower.
    metric : str, optional
        The name of its score.

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
    params: Sequence[Configuration]
    curves: Sequence[Floats]
    max_epochs: int = 0
    direction: str | None = None
    metric: str | None = None

    def __post_init__(self) -> None:
        try:
            params = [dict(run) for run in self.params]
            curves = [np.asarray(curve, dtype=float) for curve in self.curves]
            most = checks.checked_int("max_epochs", self.max_epochs, 0)
            as_json(params)
            shapes = [curve.shape for curve in curves]
            are_flat = all(len(shape) == 1 for shape in shapes)
            if len(shapes) != len(params) or not are_flat:
                raise ValueError(f"got {len(params)} runs, and curves of {shapes}")
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidParameterError(
                f"{self.name}: params is a list of dicts that JSON can hold, curves a "
                "list of as many arrays of a score per epoch, and max_epochs a number "
                f"({error!s:.200})"
            ) from error
        if not any(np.isfinite(curve).any() for curve in curves):
            raise InvalidParameterError(
                f"{self.name}: none of its {len(params)} runs has a finite score, so "
                "nothing can be learnt from it: leave it out"
            )
        object.__setattr__(self, "params", params)
        object.__setattr__(self, "curves", curves)
        object.__setattr__(self, "max_epochs", max(most, *map(len, curves)))

    def __repr__(self) -> str:
        names = checks.cut(", ".join(self.parameter_names))
        runs = f"{len(self.params)} runs of {names}"
        return f"<EarlierSearch {checks.cut(self.name)!r}: {runs}>"

    @cached_property
    def scores(self) -> Floats:
        """The best score of every run, of shape (n_runs,); NaN where it has none."""
        best = np.full(len(self.curves), math.nan)
        for i, curve in enumerate(self.curves):
            finite = curve[np.isfinite(curve)]
            if len(finite):
                best[i] = finite.max()
        return best

    @cached_property
    def epochs(self) -> Ints:
        """Epochs of every run, of shape (n_runs,)."""
        return np.array([len(curve) for curve in self.curves], dtype=np.int64)

    @property
    def parameter_names(self) -> list[str]:
        """The names of all parameters, in the order in which they come up."""
        return list(dict.fromkeys(chain.from_iterable(self.params)))

    def sample(self, most: int = MOST_RUNS) -> EarlierSearch:
        """Return so many of the runs at most, drawn at random, the same every time.

        Parameters
        ----------
        most : int, default 300
            How many runs to keep, the best one among them.

        Returns
        -------
        EarlierSearch
            This one, where there are no more.
        """
        n_runs = len(self.params)
        if n_runs <= most:
            return self
        order = np.random.default_rng(0).permutation(n_runs)
        runs = np.sort(order[:most])
        best = int(np.nanargmax(self.scores))
        if best not in runs:
            runs[np.searchsorted(runs, best) % most] = best
        return replace(
            self,
            params=[self.params[run] for run in runs],
            curves=[self.curves[run] for run in runs],
        )

    def to_json(self) -> Json:
        """Return its name and runs as JSON values."""
        return {
            "name": self.name,
            "params": as_json(self.params),
            "curves": as_json([curve.tolist() for curve in self.curves]),
            "max_epochs": self.max_epochs,
        }

    def digest(self) -> str:
        """Return a hash of its content, as 16 hexadecimal digits."""
        content = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @classmethod
    def from_json(cls, saved: Json) -> EarlierSearch:
        """Return the search that ``to_json`` has saved.

        Parameters
        ----------
        saved : dict
            Its name and runs.

        Returns
        -------
        EarlierSearch
            The same.

        Examples
        --------
        >>> may = EarlierSearch("May", [{"rate": 0.1}], [np.array([0.5])])
        >>> EarlierSearch.from_json(may.to_json())
        <EarlierSearch 'May': 1 runs of rate>
        """
        return cls(
            saved["name"],
            params=from_json(saved["params"]),
            curves=from_json(saved["curves"]),
            max_epochs=saved["max_epochs"],
        )


def uniquely_named(searches: Iterable[EarlierSearch]) -> list[EarlierSearch]:
    """Return the searches with unique names: those that share one are numbered.

    Parameters
    ----------
    searches : iterable of EarlierSearch
        The searches, in any number.

    Returns
    -------
    list of EarlierSearch
        In the same order.

    Examples
    --------
    >>> may = EarlierSearch("May", [{"rate": 0.1}], [np.array([0.5])])
    >>> [search.name for search in uniquely_named([may, may])]
    ['May 1', 'May 2']
    """
    searches = list(searches)
    counts = Counter(search.name for search in searches)
    numbers: Counter[str] = Counter()
    named = []
    for search in searches:
        numbers[search.name] += 1
        if counts[search.name] > 1:
            search = replace(search, name=f"{search.name} {numbers[search.name]}")
        named.append(search)
    return named


class EarlierRun(NamedTuple):
    """A run with scores in the direction of its source."""

    params: Configuration
    scores: Sequence[float]  # one per epoch, in their order; NaN if one was lost


@dataclass(frozen=True)
class Source:
    """A source with the arguments of ``earlier_searches``, None for its own values.

    Parameters
    ----------
    source : object
        What ``earlier_searches`` reads.
    score, direction, name : str, optional
        As for ``earlier_searches``.

    Raises
    ------
    InvalidParameterError
        If the direction is neither "maximize" nor "minimize".

    Examples
    --------
    >>> Source("runs.csv", score="loss", direction="minimize").score
    'loss'
    """

    source: Any
    score: str | None = None
    direction: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.direction is not None:
            checks.checked_choice("direction", self.direction, ("maximize", "minimize"))

    def renamed(self, search: EarlierSearch) -> EarlierSearch:
        """Return a search that is read already, with the name that is asked for."""
        if self.score is not None:
            raise InvalidParameterError(
                f"{search.name}: its scores are read already: leave score out"
            )
        self.checked_direction(search.name, search.direction or "maximize")
        if self.name is None:
            return search
        return replace(search, name=self.name)

    def checked_direction(self, where: str, known: str | None) -> str:
        """Return the direction of the scores, the source's own or the one given.

        Parameters
        ----------
        where : str
            The source, for messages.
        known : str or None
            The source's own direction, None if it has none.

        Returns
        -------
        {"maximize", "minimize"}
            Whether higher or lower scores are better.

        Raises
        ------
        InvalidParameterError
            If both differ, or there is neither.

        Examples
        --------
        >>> Source(None, direction="minimize").checked_direction("runs.csv", None)
        'minimize'
        """
        if known is not None and self.direction not in (None, known):
            raise InvalidParameterError(
                f"{where}: direction={self.direction!r} was given, and its own "
                f"direction is {known!r}: leave direction out"
            )
        direction = known or self.direction
        if direction is None:
            raise InvalidParameterError(
                f"{where}: the direction of this score is unknown: name it "
                f"{HOW_TO_NAME}"
            )
        return direction

    def search(
        self,
        own_name: str,
        runs: Iterable[EarlierRun],
        direction: str,
        max_epochs: int = 0,
        metric: str | None = None,
    ) -> EarlierSearch:
        """Return the earlier search with these runs, whose scores have this direction.

        Parameters
        ----------
        own_name : str
            Its name, where no other is asked for.
        runs : iterable of EarlierRun
            Those with parameters that JSON cannot hold are left out.
        direction : {"maximize", "minimize"}
            Which of their scores are better.
        max_epochs : int, default 0
            Epochs that a run could have had; by default those of the longest.
        metric : str, optional
            The name of the score.

        Returns
        -------
        EarlierSearch
            Higher scores of it are better.

        Raises
        ------
        InvalidParameterError
            If nothing can be learnt from it.

        Examples
        --------
        >>> failed = EarlierRun({"rate": 9.0}, [])
        >>> runs = [EarlierRun({"rate": 0.1}, [2.0, 1.5]), failed]
        >>> Source(None).search("losses", runs, "minimize").curves
        [array([-2. , -1.5]), array([], dtype=float64)]
        """
        name = self.name or own_name
        sign = sign_of(direction)
        n_runs = 0
        refused: Configuration = {}
        params = []
        curves = []
        for run in runs:
            n_runs += 1
            plain = _as_plain(run.params)
            if plain:
                params.append(plain)
                curves.append(_curve(run.scores, sign))
            else:
                refused = run.params
        if not params:
            raise InvalidParameterError(
                f"{name}: of its {n_runs} runs, none has both a score, or a "
                f"failure, and parameters that JSON can hold{_not_held(refused)}, so "
                "nothing can be learnt from it: leave it out"
            )
        return EarlierSearch(
            name,
            params,
            curves,
            max_epochs,
            direction,
            metric,
        )


class Reader(NamedTuple):
    """Reads one form of earlier searches; ``sources.READERS`` lists them all.

    A new form is a function that turns ``asked.source`` into ``EarlierRun`` rows and
    returns ``[asked.search(name, runs, direction)]``, and its reader in that list.
    """

    forms: str  # what it reads, for messages
    is_own: Callable[[object], bool]
    read: Callable[[Source], list[EarlierSearch]]  # where ``is_own`` holds


def checked_score(
    score: str,
    names: Iterable[str],
    where: str,
) -> str:
    """Return the name of a score, which has to be one of these.

    Parameters
    ----------
    score : str
        The name.
    names : iterable of str
        Those that are allowed.
    where : str
        The source, for the message.

    Returns
    -------
    str
        The name.

    Raises
    ------
    InvalidParameterError
        If it is none of them.
    """
    columns = list(names)
    if score not in columns:
        listed = ", ".join(map(repr, columns[:_SHOWN_NAMES]))
        raise InvalidParameterError(
            f"{where}: score must be one of {listed}; got {score!r}"
        )
    return score


def as_number(value: object) -> float:
    """Return a score as a float, NaN if it is not a number.

    Examples
    --------
    >>> as_number(1), as_number("0.5")
    (1.0, nan)
    """
    number = checks.as_float(value)
    if number is None:
        return math.nan
    return number


def _curve(scores: Sequence[float], sign: float) -> Floats:
    """Return scores so that higher is better; empty if not one is finite."""
    curve = sign * np.array(scores, dtype=float)
    is_usable = np.abs(curve) <= checks.LARGEST_SCORE
    curve[~is_usable] = math.nan
    if np.isfinite(curve).any():
        return curve
    return curve[:0]


def _not_held(params: Configuration) -> str:
    """Return the parameters of a run that JSON cannot hold, for a message."""
    names = []
    for name, value in params.items():
        if _as_plain({name: value}) is None:
            names.append(repr(name))
    if not names:
        return ""
    listed = ", ".join(names[:_SHOWN_NAMES])
    return f" (not {listed}: leave such columns out)"


def _as_plain(params: Configuration) -> dict[str, object] | None:
    """Return parameters as plain Python values; None if JSON cannot hold them."""
    plain: dict[str, object] = {}
    try:
        for name, value in params.items():
            if isinstance(value, np.generic):
                value = value.item()
            if type(value) is int:
                float(value)
            plain[name] = value
        json.dumps(as_json(plain))
    except (OverflowError, RecursionError, TypeError, ValueError):
        return None
    return plain
