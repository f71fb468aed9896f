"""Random search: full trainings, one after another."""

from __future__ import annotations

from risingsearch.policies.arrays import Rng
from risingsearch.policies.base import best_available
from risingsearch.policies.stationary.baselines import Counts


class RandomSearch(Counts):  # numpydoc ignore=PR01
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

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm in training, or the next one."""
        return best_available(self.available, self.pulls, self.pulls)

    def slice_length(self, arm: int) -> int:
        """Return all that the arm has left."""
        return int(self.pulls_left[arm])
