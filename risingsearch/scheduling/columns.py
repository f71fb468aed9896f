"""Tables of a scheduler: arrays that are saved, restored and resized by their names."""

from typing import Any, ClassVar

import numpy as np

from risingsearch.json_values import Json


class Columns:
    """Base class of tables with arrays of a value for each arm, and some numbers."""

    arrays: ClassVar[tuple[str, ...]]
    numbers: ClassVar[tuple[str, ...]]

    def resize(self, n: int) -> None:
        """Have so many arms, of which new ones have zeros."""
        for name in self.arrays:
            before = getattr(self, name)
            resized = np.zeros(n, before.dtype)
            n_kept = min(n, len(before))
            resized[:n_kept] = before[:n_kept]
            setattr(self, name, resized)

    def state_dict(self) -> Json:
        """Return the table as JSON values."""
        state: dict[str, Any] = {name: getattr(self, name) for name in self.numbers}
        for name in self.arrays:
            state[name] = (1 * getattr(self, name)).tolist()  # 0 and 1 for flags
        return state

    def load_state_dict(self, state: Json) -> None:
        """Put the values of ``state_dict`` in place, in new arrays."""
        for name in self.numbers:
            setattr(self, name, state[name])
        for name in self.arrays:
            before = getattr(self, name)
            values = np.array(state[name], before.dtype)
            setattr(self, name, values.reshape(before.shape))
