"""The configurations of two searches as numbers: parameters matched by name."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.proposers.encoding import ABSENT
from risingsearch.space import is_number

Params = Sequence[Mapping[str, Any]]

WIDE = 100.0
"""Ratio of highest to lowest from which values outside are measured in logarithms."""

Columns = Mapping[str, Sequence[NDArray[np.float64]]]  # by parameter, each (n_runs,)


class Parameter(NamedTuple):
    """How the values of one parameter become columns, the same in every search."""

    name: str
    numbers: NDArray[np.float64] | None  # those of the candidates, sorted; or None
    categories: tuple[str, ...]
    may_be_absent: bool

    def columns(self, runs: Params) -> list[NDArray[np.float64]]:
        """Return the columns of some configurations, each of shape (n,)."""
        values = [params.get(self.name, ABSENT) for params in runs]
        columns = []
        if self.numbers is not None:
            columns.append(_places(values, self.numbers))
            if self.may_be_absent:
                here = np.array([value is not ABSENT for value in values])
                columns.append(math.sqrt(0.5) * here)
        if self.categories:
            keys = np.array([category(value) for value in values])
            columns += [math.sqrt(0.5) * (keys == one) for one in self.categories]
        return columns


class Matching:
    """The parameters that candidates have, and how earlier runs compare with them.

    A number becomes its place among the candidates' own numbers, from 0 to 1, which
    needs no scale; a value outside is put beyond the ends, by how far it is outside,
    in logarithms where the candidates span a factor of 100 or more. Everything else is
    a category, with a column of 0 and the root of 1/2 for each. A parameter that
    some configurations do not have gets a column more for that.
    """

    def __init__(
        self,
        candidates: Params,
        searches: Iterable[Params] = (),
    ) -> None:
        everybody = [*candidates, *(params for runs in searches for params in runs)]
        names = dict.fromkeys(name for params in candidates for name in params)
        self._parameters = {k: _parameter(k, candidates, everybody) for k in names}

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

    def columns(self, runs: Params) -> Columns:
        """Return the columns of configurations, by parameter."""
        return {name: one.columns(runs) for name, one in self._parameters.items()}

    def features(self, runs: Params, names: Sequence[str]) -> NDArray[np.float64]:
        """Return a row per configuration, of these parameters."""
        return features(self.columns(runs), names)


def features(columns: Columns, names: Sequence[str]) -> NDArray[np.float64]:
    """Return a row per configuration, of the columns of these parameters."""
    return np.column_stack([column for name in names for column in columns[name]])


def category(value: Any) -> str:
    """Return the same text for values that are equal in every file and library.

    >>> [category(one) for one in ((64, 32), [64, 32], True, 3.0)]
    ['[64, 32]', '[64, 32]', 'True', '3']
    """
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(category(one) for one in value)}]"
    if is_number(value) and float(value).is_integer():
        return str(int(value))
    return str(value)


def placed(
    values: NDArray[np.float64],
    among: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return where values lie among sorted different numbers, -1 to 2 at most."""
    if len(among) == 1:
        return np.full(len(values), 0.5)
    with np.errstate(over="ignore"):  # what is infinite is as far outside as can be
        if np.isinf(among[-1] - among[0]):
            values, among = 0.25 * values, 0.25 * among
        places = np.interp(values, among, np.linspace(0.0, 1.0, len(among)))
        if among[0] > 0.0 and among[-1] / among[0] >= WIDE:
            values = np.log(np.maximum(values, np.nextafter(0.0, 1.0)))
            among = np.log(among[[0, -1]])
        outside = (values - among[0]) / (among[-1] - among[0])
    outside = np.clip(outside, -1.0, 2.0)
    return np.where((outside < 0.0) | (outside > 1.0), outside, places)


def _places(values: Sequence[Any], among: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the place of every number, and the middle for other values."""
    numeric = np.array([is_number(value) for value in values], dtype=bool)
    numbers = [float(value) for value in compress(values, numeric)]
    column = np.full(len(values), 0.5)
    column[numeric] = placed(np.array(numbers), among)
    return column


def _parameter(
    name: str,
    candidates: Params,
    everybody: Params,
) -> Parameter:
    own = [params[name] for params in candidates if name in params]
    may_be_absent = len(own) < len(candidates)
    present = [params[name] for params in everybody if name in params]
    numbers = np.unique([float(value) for value in own if is_number(value)])
    if len(numbers) > 1 or all(is_number(value) for value in present):
        others = [category(value) for value in own if not is_number(value)]
        kinds = () if 2 * len(set(others)) > len(own) else tuple(dict.fromkeys(others))
        return Parameter(name, numbers, kinds, may_be_absent)
    kinds = tuple(dict.fromkeys(category(value) for value in present))
    if 2 * len({category(value) for value in own}) > len(own):
        kinds = ()  # next to nothing is said twice
    return Parameter(name, None, kinds, may_be_absent)
