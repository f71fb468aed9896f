"""The configurations of two searches as numbers: parameters matched by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.scheduling.candidates import ABSENT, is_number

Params = Sequence[Mapping[str, Any]]

WIDE = 100.0
"""Ratio of highest to lowest from which what lies outside is measured in logarithms."""


class Parameter(NamedTuple):
    """How the values of one parameter become columns, the same in every search."""

    name: str
    numbers: NDArray[np.float64] | None  # those of the candidates, sorted; or None
    categories: tuple[str, ...]
    may_be_absent: bool

    def columns(self, runs: Params) -> list[NDArray[np.float64]]:
        """Return the columns of some configurations, each of shape (n,)."""
        values = [params.get(self.name, ABSENT) for params in runs]
        here = np.array([value is not ABSENT for value in values])
        presence = [math.sqrt(0.5) * here] if self.may_be_absent else []
        if self.numbers is None:
            keys = np.array([category(value) for value in values])
            return [math.sqrt(0.5) * (keys == one) for one in self.categories]
        column = np.full(len(values), 0.5)
        known = np.array([is_number(value) for value in values], dtype=bool)
        numbers = [float(value) for value in values if is_number(value)]
        column[known] = placed(np.array(numbers), self.numbers)
        return [column, *presence]


class Matching:
    """The parameters that candidates have, and how earlier runs compare with them.

    A number becomes its place among the candidates' own numbers, from 0 to 1, which
    needs no scale; what lies outside is put beyond the ends, by how far it is outside,
    in logarithms where the candidates span a factor of 100 or more. Everything else is
    a category, with a column of 0 and the root of 1/2 for each. A parameter that
    some configurations do not have gets a column more for that.

    Parameters
    ----------
    candidates : sequence of dict
        The configurations of the new search, at least one.
    searches : sequence of sequence of dict
        Those of the earlier ones.

    Examples
    --------
    >>> candidates = [{"rate": rate, "kind": "a"} for rate in (0.001, 0.01, 0.1)]
    >>> runs = [{"rate": 0.01, "kind": "b"}, {"rate": 1.0, "kind": "a"}]
    >>> matching = Matching(candidates, [runs])
    >>> matching.shared(runs)
    ['rate', 'kind']
    >>> matching.features(runs, ["rate", "kind"]).round(2)
    array([[0.5 , 0.  , 0.71],
           [1.5 , 0.71, 0.  ]])
    """

    def __init__(self, candidates: Params, searches: Iterable[Params] = ()) -> None:
        everybody = [*candidates, *(params for runs in searches for params in runs)]
        names = dict.fromkeys(name for params in candidates for name in params)
        self._parameters = {
            name: _parameter(name, candidates, everybody) for name in names
        }

    @property
    def names(self) -> list[str]:
        """The parameters of the candidates."""
        return list(self._parameters)

    def shared(self, runs: Params) -> list[str]:
        """Return the parameters that some of the runs have and that vary in them."""
        return [
            name
            for name, one in self._parameters.items()
            if any(name in params for params in runs)
            and any(np.ptp(column) > 0 for column in one.columns(runs))
        ]

    def features(self, runs: Params, names: Sequence[str]) -> NDArray[np.float64]:
        """Return a row per configuration, of these parameters."""
        parameters = [self._parameters[name] for name in names]
        columns = [column for one in parameters for column in one.columns(runs)]
        return np.column_stack(columns)


def category(value: Any) -> str:
    """Return the same text for values that are equal in every file and library.

    Examples
    --------
    >>> [category(one) for one in ((64, 32), [64, 32], True, 3.0)]
    ['[64, 32]', '[64, 32]', 'True', '3']
    """
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(category(one) for one in value)}]"
    if is_number(value) and float(value).is_integer():
        return str(int(value))
    return str(value)


def placed(
    values: NDArray[np.float64], among: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return where values lie among sorted different numbers, -1 to 2 at most."""
    if len(among) == 1:
        return np.full(len(values), 0.5)
    low, high = among[0], among[-1]
    places = np.interp(values, among, np.linspace(0.0, 1.0, len(among)))
    if low > 0.0 and high / low >= WIDE:
        tiny = np.nextafter(0.0, 1.0)
        values, low, high = np.log(np.maximum(values, tiny)), np.log(low), np.log(high)
    outside = np.clip((values - low) / (high - low), -1.0, 2.0)
    return np.where((outside < 0.0) | (outside > 1.0), outside, places)


def _parameter(name: str, candidates: Params, everybody: Params) -> Parameter:
    own = [params[name] for params in candidates if name in params]
    known = [params[name] for params in everybody if name in params]
    may_be_absent = len(own) < len(candidates)
    if all(is_number(value) for value in known):
        numbers = np.unique([float(value) for value in own])
        return Parameter(name, numbers, (), may_be_absent)
    kinds = tuple(dict.fromkeys(category(value) for value in known))
    if 2 * len({category(value) for value in own}) > len(own):
        kinds = ()  # next to nothing is said twice
    return Parameter(name, None, kinds, may_be_absent)
