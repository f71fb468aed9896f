"""Epsilon-greedy: the best mean so far, and now and then any arm."""

from __future__ import annotations

from typing import NamedTuple

from risingsearch.checks import checked_float
from risingsearch.policies.arrays import Bools, Floats, Ints, Rng, zeros
from risingsearch.policies.base import (
    WAIT,
    arm_arrays,
    best_available,
    least_pulled,
    uniform_arm,
)
from risingsearch.policies.shared.rewards import record_mean


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
    >>> from risingsearch.policies.base import play_alone
    >>> policy = EpsilonGreedy.create(n_arms=2, horizon=6, epsilon=0.0)
    >>> play_alone(policy, lambda arm, n, t: [0.2, 0.6][arm], 6)
    [0, 1, 1, 1, 1, 1]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    epsilon: float
    mean: Floats  # (n_arms,)

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        epsilon: float = 0.1,
    ) -> EpsilonGreedy:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        epsilon : float, default 0.1
            Probability of a random arm, from 0 to 1.
        """
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            epsilon=checked_float("epsilon", epsilon, 0.0, 1.0),
            mean=zeros(n_arms),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return an arm never pulled, a random one, or the one of highest mean."""
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        if rng.random() < self.epsilon:
            return uniform_arm(self.available, rng)
        return best_available(self.available, self.mean, self.pulls)

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Move the arm's mean."""
        record_mean(self.pulls, self.mean, arm, reward)

    def explain(self, arm: int) -> dict[str, float]:
        """Return the arm's mean."""
        return {"mean": self.mean[arm]}
