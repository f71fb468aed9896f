"""Which arm trains next whatever the policy prefers: one that is owed its epochs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.scheduling.arm_records import ArmRecords

ENQUEUED = "opened as enqueued"
"""Why an arm started that was to be opened before all others."""


class Openings(NamedTuple):
    """What an arm gets when it is opened, and which arms are opened first.

    An arm that is opened trains for ``min_epochs`` before it is judged, and none is
    opened that the budget cannot train so long. The arms ``enqueued`` come first, in
    that order.
    """

    min_epochs: int
    enqueued: tuple[int, ...]

    def owed(self, records: ArmRecords, affordable: NDArray[np.int64]) -> int | None:
        """Return the arm that trains before the policy is asked; None for no such."""
        if self.min_epochs == 1 and not self.enqueued:
            return None
        due = records.live() & ~records.busy & (affordable > 0)
        due &= records.epochs < self.min_epochs
        opened = due & (records.charged > 0)
        if self.min_epochs > 1 and opened.any():
            return int(opened.argmax())
        due &= ~self.too_late(records, affordable)
        return next((arm for arm in self.enqueued if due[arm]), None)

    def too_late(
        self, records: ArmRecords, affordable: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return which arms are not opened, since the budget cannot train them long."""
        late: NDArray[np.bool_] = (records.charged == 0) & (
            affordable < self.min_epochs
        )
        return late

    def missing(self, epochs: int) -> int:
        """Return how many epochs an arm with so many lacks before it is judged."""
        return max(0, self.min_epochs - epochs)
