"""Random search: full trainings, one after another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from risingsearch.policies.arrays import Bools, Floats, Ints
from risingsearch.policies.base import arm_arrays, best_available


class RandomSearch(NamedTuple):
    """Random search: one arm after another, each trained to its end.

    The baseline of every tuner, and right where early scores mislead.

    References
    ----------
    Bergstra, Bengio: "Random Search for Hyper-Parameter Optimization", JMLR 13, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> policy = RandomSearch.create(n_arms=3, horizon=6, max_pulls=2)
    >>> policy.select(1, np.random.default_rng(0)), policy.slice_length(0)
    (0, 2)
    """

    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)

    @classmethod
    def create(
        cls, n_arms: int, horizon: int, max_pulls: int | None = None
    ) -> RandomSearch:
        """Return a new policy; shared parameters: ``risingsearch.policies.base``."""
        return cls(*arm_arrays(n_arms, horizon, max_pulls))

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the arm in training, or the next one."""
        return best_available(self.available, self.pulls, self.pulls)

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Count the pull."""
        self.pulls[arm] += 1

    def slice_length(self, arm: int) -> int:
        """Return all that the arm has left."""
        return int(self.pulls_left[arm])
