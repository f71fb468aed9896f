"""Configurations as numbers that a model can use."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import Configuration
from risingsearch.space import ROOT, is_number, key_of

ABSENT = object()
MOST_CATEGORIES = 100


def encode(candidates: Sequence[Configuration]) -> NDArray[np.float64] | None:
    """Return a row of features per configuration, 0 to 1 in each column."""
    names = dict.fromkeys(name for params in candidates for name in params)
    columns = [
        column
        for name in names
        for column in _columns([params.get(name, ABSENT) for params in candidates])
    ]
    varying = [column for column in columns if np.ptp(column) > 0]
    return np.stack(varying, axis=1) if varying else None


def _columns(values: Sequence[Any]) -> list[NDArray[np.float64]]:
    here = np.array([value is not ABSENT for value in values])
    known = [value for value in values if value is not ABSENT]
    presence = [] if here.all() else [ROOT * here]
    if all(is_number(value) for value in known):
        _, rank = np.unique([float(value) for value in known], return_inverse=True)
        column = np.full(len(values), 0.5)
        column[here] = rank / max(1.0, float(rank.max(initial=0)))
        return [column, *presence]
    keys = [key_of(value) for value in values]
    kinds = dict.fromkeys(key for key in keys if key is not ABSENT)
    if len(kinds) > min(len(known) / 2, MOST_CATEGORIES):  # hardly any repeat
        return presence
    number_of = {kind: number for number, kind in enumerate(kinds)}
    numbers = np.array([number_of.get(key, -1) for key in keys])
    return [*(ROOT * (numbers == k) for k in range(len(kinds))), *presence]
