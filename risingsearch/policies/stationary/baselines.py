"""The plainest baselines: a random arm, and every arm in turn."""

from typing import NamedTuple, Self

from risingsearch.policies.arrays import Bools, Floats, Ints, Rng
from risingsearch.policies.base import NO_LIMIT, arm_arrays, least_pulled, uniform_arm


class Counts(NamedTuple):
    """A policy that keeps nothing but the pulls; a subclass selects."""

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)

    @classmethod
    def create(cls, n_arms: int, horizon: int, max_pulls: int | None = None) -> Self:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        """
        return cls(*arm_arrays(n_arms, horizon, max_pulls))

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Count the pull."""
        self.pulls[arm] += 1


class UniformRandom(Counts):  # numpydoc ignore=PR01
    """A uniformly random arm at every round: the floor that any policy must beat.

    Examples
    --------
    >>> import numpy as np
    >>> policy = UniformRandom.create(n_arms=3, horizon=5)
    >>> rng = np.random.default_rng(0)
    >>> [policy.select(t, rng) for t in range(1, 6)]
    [1, 0, 0, 0, 2]
    """

    def select(self, t: int, rng: Rng) -> int:
        """Return an available arm, each with the same probability."""
        return uniform_arm(self.available, rng)


class RoundRobin(Counts):  # numpydoc ignore=PR01
    """Every arm in turn: the least pulled, the lowest index first.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = RoundRobin.create(n_arms=3, horizon=5)
    >>> play_alone(policy, lambda arm, n, t: 0.0, 5)
    [0, 1, 2, 0, 1]
    """

    def select(self, t: int, rng: Rng) -> int:
        """Return the available arm with fewest pulls."""
        return least_pulled(self.available, self.pulls, NO_LIMIT)
