"""UCB1: the mean of an arm, and a bonus for its uncertainty."""

from __future__ import annotations

from math import inf, log, sqrt
from typing import NamedTuple

from risingsearch.checks import checked_choice, checked_float, checked_reward_range
from risingsearch.policies.arrays import Bools, Floats, Ints, RewardRange, Rng, zeros
from risingsearch.policies.base import (
    WAIT,
    arm_arrays,
    coming_round,
    leader,
    least_pulled,
)
from risingsearch.policies.shared.rewards import range_width, record_mean


class UCB1(NamedTuple):
    r"""UCB1: the mean of an arm, and a bonus that shrinks with its pulls.

    With :math:`m` the mean of the arm's :math:`N` rewards and :math:`B` the width of
    ``reward_range``, the index is

    .. math:: m + B \sqrt{c \ln t / N}

    Every arm is pulled once first. ``denominator="n+1"`` puts :math:`N + 1` under the
    root, as the public script of the RAVEN-UCB paper does.

    References
    ----------
    Auer, Cesa-Bianchi, Fischer: "Finite-time Analysis of the Multiarmed Bandit
    Problem", Machine Learning 47, 2002.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = UCB1.create(n_arms=2, horizon=20)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.8][arm], 20)
    [0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    c: float
    extra: float  # added to N under the root
    width: float  # B
    mean: Floats  # (n_arms,)
    inverse_root: Floats  # (n_arms,), 1 / sqrt(N + extra)

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        c: float = 2.0,
        denominator: str = "n",
        reward_range: RewardRange = (0.0, 1.0),
    ) -> UCB1:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, reward_range
            See ``risingsearch.policies.base``.
        c : float, default 2.0
            Weight of the bonus, at least 0, which is greedy; less suits low noise.
        denominator : {"n", "n+1"}, default "n"
            The divisor of the bonus.
        """
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            c=checked_float("c", c, 0.0),
            extra=extra_pulls(denominator),
            width=range_width(checked_reward_range(reward_range)),
            mean=zeros(n_arms),
            inverse_root=zeros(n_arms),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of highest index, after one pull of each."""
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        scale = ucb1_scale(self, t)
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                index = self.mean[i] + scale * self.inverse_root[i]
                arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Move the arm's mean."""
        n = record_mean(self.pulls, self.mean, arm, reward)
        self.inverse_root[arm] = 1.0 / sqrt(n + self.extra)

    def explain(self, arm: int) -> dict[str, float]:
        """Return mean and bonus at the coming round."""
        if self.pulls[arm] == 0:
            return {
                "mean": 0.0,
                "bonus": inf,
            }
        scale = ucb1_scale(self, coming_round(self.pulls))
        return {
            "mean": self.mean[arm],
            "bonus": scale * self.inverse_root[arm],
        }


def extra_pulls(denominator: str) -> float:
    """Return the number that ``denominator`` adds to the pulls, 0 or 1."""
    return float(checked_choice("denominator", denominator, ("n", "n+1")) == "n+1")


def ucb1_scale(policy: UCB1, t: int) -> float:
    """Return ``B sqrt(c ln t)``, the part of the bonus that is the same for all."""
    return policy.width * sqrt(policy.c * log(t))
