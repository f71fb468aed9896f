"""Configurations as numbers that a model can use."""

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import Configuration
from risingsearch.space import ROOT, is_number, key_of

ABSENT = object()
MOST_CATEGORIES = 100


def encode(candidates: Sequence[Configuration]) -> NDArray[np.float64] | None:
    """Return a row of features per configuration, 0 to 1 in each column."""
    names = dict.fromkeys(chain.from_iterable(candidates))
    columns = []
    for name in names:
        values = [params.get(name, ABSENT) for params in candidates]
        columns += _columns(values)
    varying = [column for column in columns if np.ptp(column) > 0]
    if not varying:
        return None
    return np.stack(varying, axis=1)


def _columns(values: Sequence[Any]) -> list[NDArray[np.float64]]:
    here = np.array([value is not ABSENT for value in values])
    known = [value for value in values if value is not ABSENT]
    presence = ROOT * here
    if all(map(is_number, known)):
        numbers = [float(value) for value in known]
        _, rank = np.unique(numbers, return_inverse=True)
        column = np.full(len(values), 0.5)
        column[here] = rank / max(1.0, float(rank.max(initial=0)))
        return [column, presence]
    number_of: dict[Hashable, int] = {}  # by kind of value
    kinds = []
    for value in known:
        kind = number_of.setdefault(key_of(value), len(number_of))
        kinds.append(kind)
    if len(number_of) > min(len(known) / 2, MOST_CATEGORIES):  # hardly any repeat
        return [presence]
    kind_at = np.full(len(values), -1)
    kind_at[here] = kinds
    columns = [ROOT * (kind_at == kind) for kind in number_of.values()]
    return [*columns, presence]
