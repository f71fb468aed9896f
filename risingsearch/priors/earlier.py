"""What an earlier search has seen, as data: its runs, and the curve of each."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import checked_int, cut, shown
from risingsearch.errors import PriorError
from risingsearch.json_values import as_json, from_json

MOST_RUNS = 300
"""Runs of an earlier search that are learnt from; of more, as many drawn at random."""
MOST_SEARCHES = 32
"""Earlier searches that are learnt from; see ``read_prior`` for which of more."""


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
        The scores of every run, one per epoch, higher is better; a single one where
        only the final score is known, none where the run has failed. NaN counts as the
        worst.
    max_epochs : int, optional
        Epochs that a run could have had at most; by default those of the longest.
    seconds : sequence of float, optional
        What an epoch of every run took on average; NaN where that is not known.
    direction : {"maximize", "minimize"}, optional
        Which scores were better where they come from; here it is the higher ones,
        whose signs were changed if it was the lower.
    metric : str, optional
        What the score is called there.
    source : str, optional
        Where they come from, the same whenever it is read: a path, or a database and
        the study in it.

    Raises
    ------
    PriorError
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
    source: str | None = None

    def __post_init__(self) -> None:
        self._check_kinds()
        n_runs = len(self.params)
        if len(self.curves) != n_runs or len(self.seconds or self.params) != n_runs:
            msg = (
                f"{self.name}: every run needs its parameters, its curve and, if any, "
                f"its seconds; got {n_runs} runs and {len(self.curves)} curves"
            )
            raise PriorError(msg)
        if not np.isfinite(self.scores).any():
            msg = (
                f"{self.name}: none of its {n_runs} runs has a finite score, so "
                "nothing can be learnt from it: leave it out"
            )
            raise PriorError(msg)
        longest = int(self.epochs.max())
        object.__setattr__(self, "max_epochs", max(self.max_epochs, longest))

    def __repr__(self) -> str:
        names = cut(", ".join(self.parameter_names))
        runs = f"{len(self.params)} runs of {names}"
        return f"<EarlierSearch {cut(self.name)!r}: {runs}>"

    def _check_kinds(self) -> None:
        """Make lists of the runs, or raise what is no curve or no parameters."""
        if not isinstance(self.name, str):
            msg = (
                f"the name of an earlier search must be a text; got {shown(self.name)}"
            )
            raise PriorError(msg)
        try:
            params = list(self.params)
            curves = [np.asarray(curve, dtype=float) for curve in self.curves]
            seconds = self.seconds
            if seconds is not None:
                seconds = [float(one) for one in seconds]
            most = checked_int("max_epochs", self.max_epochs, 0)
        except (TypeError, ValueError, OverflowError) as error:
            msg = (
                f"{self.name}: its params and curves are no lists, or its curves, "
                f"seconds or max_epochs no numbers ({error})"
            )
            raise PriorError(msg) from error
        named = all(
            isinstance(run, Mapping) and all(isinstance(name, str) for name in run)
            for run in params
        )
        if not named or any(curve.ndim != 1 for curve in curves):
            msg = (
                f"{self.name}: a run has parameters, a dict with text as keys, and a "
                "curve, one score per epoch"
            )
            raise PriorError(msg)
        try:
            as_json([dict(run) for run in params])
        except (TypeError, RecursionError) as error:
            msg = (
                f"{self.name}: the parameters of its runs are saved as JSON: {error}: "
                "give a number or a text in its place"
            )
            raise PriorError(msg) from error
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
        """Return its name and all that is learnt from, as JSON values."""
        return {
            "name": self.name,
            "params": as_json([dict(params) for params in self.params]),
            "curves": as_json([curve.tolist() for curve in self.curves]),
            "max_epochs": self.max_epochs,
            "seconds": as_json(self.seconds and list(self.seconds)),
        }

    def digest(self) -> str:
        """Return what tells it from others of its name, as 16 hexadecimal digits."""
        content = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> EarlierSearch:
        """Read what ``to_json`` wrote."""
        curves = [np.array(curve, dtype=float) for curve in from_json(saved["curves"])]
        params, seconds = from_json(saved["params"]), from_json(saved["seconds"])
        return cls(saved["name"], params, curves, saved["max_epochs"], seconds)


def told_apart(searches: Iterable[EarlierSearch]) -> list[EarlierSearch]:
    """Return searches with names of their own: those that share one are numbered."""
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
