"""What the epochs of an arm cost one after the other, where they are not alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError

ROUNDING = 1e-9
"""Of a sum of costs, relative to the cost of a whole arm."""


class EpochCosts:
    """The cost of every epoch of an arm, known before the first one.

    Examples
    --------
    >>> costs = EpochCosts([1, 2, 4])
    >>> costs.of(from_epoch=1, n_epochs=2)
    6.0
    >>> costs.affordable(np.array([0, 1, 2]), left=3.0).tolist()
    [2, 1, 0]
    """

    def __init__(self, costs: Sequence[float]) -> None:
        self.middle = sorted(costs)[len(costs) // 2]
        self._until: NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(costs)])

    def of(self, from_epoch: int, n_epochs: int) -> float:
        """Return what some epochs of an arm cost."""
        return float(self._until[from_epoch + n_epochs] - self._until[from_epoch])

    def until(self, epochs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what the epochs up to these have cost."""
        return self._until[epochs]

    def next(self, epochs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what the next epoch of each arm costs; the last one, if none is."""
        last = np.minimum(epochs, len(self._until) - 2)
        return np.diff(self._until)[last]

    def affordable(self, epochs: NDArray[np.int64], left: Any) -> NDArray[np.int64]:
        """Return how many more epochs of each arm can be paid with what is left."""
        up_to = self._until[epochs] + left + ROUNDING * self._until[-1]
        reached = np.searchsorted(self._until, up_to, side="right") - 1
        return np.asarray(np.maximum(reached - epochs, 0), dtype=np.int64)


def checked_epoch_costs(costs: Any, max_epochs: int | None) -> tuple[float, ...] | None:
    """Return the costs, one for each epoch of an arm, or raise what is wrong."""
    if costs is None:
        return None
    numbers = tuple(float(cost) for cost in costs)
    if len(numbers) != max_epochs or not all(
        math.isfinite(cost) and cost > 0.0 for cost in numbers
    ):
        msg = (
            "epoch_costs are the costs of an arm's epochs, one above 0 for each of "
            f"max_epochs={max_epochs}; got {shown(costs)}"
        )
        raise InvalidParameterError(msg)
    return numbers
