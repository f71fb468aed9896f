"""The configurations of two searches as numbers: parameters matched by name."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, compress
from typing import NamedTuple

import numpy as np

from risingsearch.arms import Configuration
from risingsearch.proposers.base import Floats
from risingsearch.proposers.encoding import ABSENT
from risingsearch.space import ROOT, is_number

Configurations = Sequence[Configuration]

WIDE = 100.0
"""Ratio of highest to lowest from which values outside are measured in logarithms."""

Columns = Mapping[str, Sequence[Floats]]
"""By parameter, each of shape (n_runs,)."""


class Parameter(NamedTuple):
    """How the values of one parameter become columns, the same in every search."""

    name: str
    numbers: Floats | None  # those of the candidates, sorted; or None
    categories: tuple[str, ...]
    may_be_absent: bool

    def columns(self, runs: Configurations) -> list[Floats]:
        """Return the columns of some configurations, each of shape (n,)."""
        values = [params.get(self.name, ABSENT) for params in runs]
        columns = []
        if self.numbers is not None:
            columns.append(_places(values, self.numbers))
            if self.may_be_absent:
                is_present = np.array([value is not ABSENT for value in values])
                columns.append(ROOT * is_present)
        if self.categories:
            names = np.array([category(value) for value in values])
            columns += [ROOT * (names == name) for name in self.categories]
        return columns


class Matching:
    """The parameters that candidates have, and how earlier runs compare with them.

    A number becomes its place among the candidates' own numbers, from 0 to 1, which
    needs no scale; a value outside is put beyond the ends, by how far it is outside,
    in logarithms where the candidates span a factor of 100 or more. Everything else is
    a category, with a column of 0 and the root of 1/2 for each. A parameter that
    some configurations do not have gets a column more for that.

    Parameters
    ----------
    candidates : sequence of dict
        The configurations of the new search.
    searches : iterable of sequence of dict, optional
        Those of the runs of each earlier one.

    Examples
    --------
    >>> matching = Matching([{"rate": 0.1}, {"rate": 0.2}, {"rate": 0.4}])
    >>> matching.features([{"rate": 0.3}, {"rate": 0.5}], ["rate"])
    array([[0.75      ],
           [1.33333333]])
    """

    def __init__(
        self,
        candidates: Configurations,
        searches: Iterable[Configurations] = (),
    ) -> None:
        everybody = [*candidates, *chain.from_iterable(searches)]
        names = dict.fromkeys(chain.from_iterable(candidates))
        self._parameters = {
            name: _parameter(name, candidates, everybody) for name in names
        }

    @property
    def names(self) -> list[str]:
        """The parameters of the candidates."""
        return list(self._parameters)

    def shared(self, runs: Configurations) -> list[str]:
        """Return the parameters that some of the runs have and that vary in them."""
        shared = []
        for name, parameter in self._parameters.items():
            if any(name in params for params in runs):
                columns = parameter.columns(runs)
                if any(np.ptp(column) > 0 for column in columns):
                    shared.append(name)
        return shared

    def columns(self, runs: Configurations) -> Columns:
        """Return the columns of configurations, by parameter."""
        parameters = self._parameters.items()
        return {name: parameter.columns(runs) for name, parameter in parameters}

    def features(self, runs: Configurations, names: Sequence[str]) -> Floats:
        """Return a row per configuration, of these parameters."""
        return features(self.columns(runs), names)


def features(columns: Columns, names: Iterable[str]) -> Floats:
    """Return a row per configuration, of the columns of these parameters."""
    return np.column_stack([column for name in names for column in columns[name]])


def category(value: object) -> str:
    """Return the same text for values that are equal in every file and library.

    Examples
    --------
    >>> [category(value) for value in ((64, 32), [64, 32], True, 3.0)]
    ['[64, 32]', '[64, 32]', 'True', '3']
    """
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(category, value))}]"
    if is_number(value) and float(value).is_integer():
        return str(int(value))
    return str(value)


def relative_places(values: Floats, among: Floats) -> Floats:
    """Return where values lie among sorted different numbers.

    Parameters
    ----------
    values : array of shape (n,)
        Any numbers.
    among : array of shape (m,)
        Numbers in rising order, at places from 0 to 1.

    Returns
    -------
    array of shape (n,)
        From -1 to 2; below 0 and above 1 where a value is outside.

    Examples
    --------
    >>> relative_places(np.array([15.0, 30.0]), np.array([10.0, 20.0]))
    array([0.5, 2. ])
    """
    if len(among) == 1:
        return np.full(len(values), 0.5)
    low = among[0]
    high = among[-1]
    with np.errstate(over="ignore"):  # what is infinite is as far outside as can be
        if np.isinf(high - low):
            return relative_places(0.25 * values, 0.25 * among)
        places = np.interp(
            values,
            among,
            np.linspace(0.0, 1.0, len(among)),
        )
        if low > 0.0 and high / low >= WIDE:
            positive = np.maximum(values, np.nextafter(0.0, 1.0))
            values = np.log(positive)
            low, high = np.log([low, high])
        outside = (values - low) / (high - low)
    outside = np.clip(outside, -1.0, 2.0)
    is_outside = (outside < 0.0) | (outside > 1.0)
    return np.where(is_outside, outside, places)


def _places(values: Sequence[object], among: Floats) -> Floats:
    """Return the place of every number, and the middle for other values."""
    column = np.full(len(values), 0.5)
    are_numbers = [is_number(value) for value in values]
    numbers = np.array([*compress(values, are_numbers)], dtype=float)
    column[are_numbers] = relative_places(numbers, among)
    return column


def _parameter(
    name: str,
    candidates: Configurations,
    everybody: Configurations,
) -> Parameter:
    """Return how the values of a parameter become columns."""
    values = [params[name] for params in candidates if name in params]
    all_values = [params[name] for params in everybody if name in params]
    may_be_absent = len(values) < len(candidates)
    different = np.unique([float(value) for value in values if is_number(value)])
    numbers: Floats | None = different
    texts = [category(value) for value in values if not is_number(value)]
    all_texts = texts
    if len(different) < 2 and not all(map(is_number, all_values)):
        numbers = None
        texts = list(map(category, values))
        all_texts = list(map(category, all_values))
    if 2 * len(set(texts)) > len(values):
        all_texts = []  # next to nothing is said twice
    categories = tuple(dict.fromkeys(all_texts))
    return Parameter(name, numbers, categories, may_be_absent)
