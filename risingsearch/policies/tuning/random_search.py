"""Policies for arms that do not change, and the plainest baselines."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import checked_float
from risingsearch.policies.base import (
    WAIT,
    arm_arrays,
    best_available,
    least_pulled,
    uniform_arm,
)


class UniformRandom(NamedTuple):
    """A uniformly random arm at every round: the floor that any policy must beat.

    Good for nothing else; every arm gets about the same number of pulls.

    Examples
    --------
    >>> import numpy as np
    >>> policy = UniformRandom.create(n_arms=3, horizon=5)
    >>> rng = np.random.default_rng(0)
    >>> [policy.select(t, rng) for t in range(1, 6)]
    [1, 0, 0, 0, 2]
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)

    @classmethod
    def create(
        cls, n_arms: int, horizon: int, max_pulls: int | None = None
    ) -> UniformRandom:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.

        Returns
        -------
        UniformRandom
        """
        return cls(*arm_arrays(n_arms, horizon, max_pulls))

    @staticmethod
    def recommended_arms(horizon: int, max_pulls: int) -> int:
        """Return as many arms as the budget could train in full."""
        return max(2, horizon // max_pulls)

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return an available arm, each with the same probability."""
        return uniform_arm(self.available, rng)

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Count the pull."""
        self.pulls[arm] += 1


class RoundRobin(NamedTuple):
    """Every arm in turn: the least pulled, the lowest index first.

    Good for recording curves, and as a baseline that gives all arms the same.

    Examples
    --------
    >>> import numpy as np
    >>> policy = RoundRobin.create(n_arms=3, horizon=5)
    >>> rng = np.random.default_rng(0)
    >>> for t in range(1, 6):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, 0.0, rng)
    ...     print(arm, end=" ")
    0 1 2 0 1
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)

    @classmethod
    def create(
        cls, n_arms: int, horizon: int, max_pulls: int | None = None
    ) -> RoundRobin:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.

        Returns
        -------
        RoundRobin
        """
        return cls(*arm_arrays(n_arms, horizon, max_pulls))

    @staticmethod
    def recommended_arms(horizon: int, max_pulls: int) -> int:
        """Return as many arms as the budget could train in full."""
        return max(2, horizon // max_pulls)

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the available arm with fewest pulls."""
        return least_pulled(self.available, self.pulls, np.iinfo(np.int64).max)

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Count the pull."""
        self.pulls[arm] += 1


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

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)

    @classmethod
    def create(
        cls, n_arms: int, horizon: int, max_pulls: int | None = None
    ) -> RandomSearch:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.

        Returns
        -------
        RandomSearch
        """
        return cls(*arm_arrays(n_arms, horizon, max_pulls))

    @staticmethod
    def recommended_arms(horizon: int, max_pulls: int) -> int:
        """Return as many arms as the budget trains in full, and one for the rest."""
        return max(2, math.ceil(horizon / max_pulls))

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the arm in training, or the next one."""
        return best_available(self.available, self.pulls, self.pulls)

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Count the pull."""
        self.pulls[arm] += 1

    def slice_length(self, arm: int) -> int:
        """Return all that the arm has left."""
        return int(self.pulls_left[arm])


class EpsilonGreedy(NamedTuple):
    """The best arm so far by its mean, and with probability ``epsilon`` any arm.

    Simple, and on noisy learning curves hard to beat. Every arm is pulled once first.

    References
    ----------
    Sutton, Barto: "Reinforcement Learning", section 2.2; as a baseline with a constant
    ``epsilon = 0.1`` in Fang et al., "From Theory to Practice with RAVEN-UCB",
    section 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> policy = EpsilonGreedy.create(n_arms=2, horizon=6, epsilon=0.0)
    >>> rng = np.random.default_rng(0)
    >>> for t in range(1, 7):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, [0.2, 0.6][arm], rng)
    ...     print(arm, end=" ")
    0 1 1 1 1 1
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    epsilon: float
    mean: NDArray[np.float64]  # (n_arms,)

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        epsilon: float = 0.1,
    ) -> EpsilonGreedy:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.
        epsilon : float, default 0.1
            Probability of a random arm, from 0 to 1.

        Returns
        -------
        EpsilonGreedy

        Raises
        ------
        InvalidParameterError
            If ``epsilon`` is outside its range.
        """
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            epsilon=checked_float("epsilon", epsilon, 0.0, 1.0, open_low=False),
            mean=np.zeros(n_arms),
        )

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return an arm never pulled, a random one, or the one of highest mean."""
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        if rng.random() < self.epsilon:
            return uniform_arm(self.available, rng)
        return best_available(self.available, self.mean, self.pulls)

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Move the arm's mean."""
        self.pulls[arm] += 1
        self.mean[arm] += (reward - self.mean[arm]) / self.pulls[arm]

    def explain(self, arm: int) -> dict[str, float]:
        """Return the arm's mean."""
        return {"mean": self.mean[arm]}
