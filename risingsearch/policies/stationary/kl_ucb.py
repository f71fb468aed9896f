"""Optimism for arms that do not change: the mean, and a bonus for what is uncertain.

What an index needs of an arm alone is refreshed in ``update``, so that ``select`` is
left with a product per arm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import checked_choice, checked_finite_range, checked_float
from risingsearch.policies.base import WAIT, arm_arrays, better, least_pulled
from risingsearch.policies.shared.kl import kl_exploration, kl_upper, surely_below
from risingsearch.policies.shared.rewards import unit_reward

DENOMINATORS = ("n", "n+1")


class UCB1(NamedTuple):
    r"""UCB1: the mean of an arm, and a bonus that shrinks with its pulls.

    The reference for arms that do not change, and a cautious one: with rewards of low
    noise it explores far longer than needed; a smaller ``c`` helps.

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
    >>> import numpy as np
    >>> policy = UCB1.create(n_arms=2, horizon=20)
    >>> rng = np.random.default_rng(0)
    >>> for t in range(1, 21):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, [0.5, 0.8][arm], rng)
    ...     print(arm, end=" ")
    0 1 1 0 1 1 0 1 1 0 1 1 0 1 1 0 1 1 1 0
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    c: float
    extra: float  # added to N under the root
    width: float  # B
    mean: NDArray[np.float64]  # (n_arms,)
    inverse_root: NDArray[np.float64]  # (n_arms,), 1 / sqrt(N + extra)

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        c: float = 2.0,
        denominator: str = "n",
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> UCB1:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.
        c : float, default 2.0
            Weight of the bonus, at least 0; 0 is greedy.
        denominator : {"n", "n+1"}, default "n"
            What divides the bonus.
        reward_range : (float, float), default (0.0, 1.0)
            Lowest and highest reward; the bonus grows with the width. Rewards outside
            are taken as they are.

        Returns
        -------
        UCB1

        Raises
        ------
        InvalidParameterError
            If a parameter is outside its range.
        """
        low, high = checked_finite_range("reward_range", reward_range)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            c=checked_float("c", c, 0.0, open_low=False),
            extra=extra_pulls(denominator),
            width=high - low,
            mean=np.zeros(n_arms),
            inverse_root=np.zeros(n_arms),
        )

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the arm of highest index, after one pull of each."""
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        scale = ucb1_scale(self, t)
        best = -math.inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                index = self.mean[i] + scale * self.inverse_root[i]
                if arm == WAIT or better(index, self.pulls[i], best, self.pulls[arm]):
                    best = index
                    arm = i
        return arm

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Move the arm's mean."""
        n = self.pulls[arm] + 1
        self.pulls[arm] = n
        self.mean[arm] += (reward - self.mean[arm]) / n
        self.inverse_root[arm] = 1.0 / math.sqrt(n + self.extra)

    def explain(self, arm: int) -> dict[str, float]:
        """Return mean and bonus at the coming round."""
        if self.pulls[arm] == 0:
            return {"mean": 0.0, "bonus": math.inf}
        scale = ucb1_scale(self, int(self.pulls.sum()) + 1)
        return {"mean": self.mean[arm], "bonus": scale * self.inverse_root[arm]}


def extra_pulls(denominator: str) -> float:
    """Return what ``denominator`` adds to the number of pulls, 0 or 1."""
    checked_choice("denominator", denominator, DENOMINATORS)
    return float(DENOMINATORS.index(denominator))


def ucb1_scale(policy: UCB1, t: int) -> float:
    """Return ``B sqrt(c ln t)``, the part of the bonus that is the same for all."""
    return policy.width * math.sqrt(policy.c * math.log(t))


class KLUCB(NamedTuple):
    r"""KL-UCB: the highest mean that an arm's rewards in [0, 1] do not contradict.

    The sharpest of the confidence bounds for rewards in [0, 1] that do not change,
    above all where means are close to 0 or 1.

    With :math:`m` the mean of the arm's :math:`N` rewards, the index is

    .. math:: \max\{q \in [m, 1]: N\,\mathrm{kl}(m, q) \le \ln t + c \ln \ln t\}

    where kl is the divergence of two coins; the term with ``c`` counts from
    :math:`t = 3`. Every arm is pulled once first. Rewards are mapped from
    ``reward_range`` to [0, 1] and clipped there.

    References
    ----------
    Garivier, Cappe: "The KL-UCB Algorithm for Bounded Stochastic Bandits and Beyond",
    COLT 2011.

    Examples
    --------
    >>> import numpy as np
    >>> policy = KLUCB.create(n_arms=2, horizon=20)
    >>> rng = np.random.default_rng(0)
    >>> for t in range(1, 21):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, [0.5, 0.8][arm], rng)
    ...     print(arm, end=" ")
    0 1 1 1 1 0 1 1 1 1 1 0 1 1 1 1 1 1 1 0
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    c: float
    low: float
    high: float
    mean: NDArray[np.float64]  # (n_arms,), in [0, 1]

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        c: float = 0.0,
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> KLUCB:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.
        c : float, default 0.0
            Weight of the term ``ln ln t``, at least 0; 3 in the theory, 0 in practice.
        reward_range : (float, float), default (0.0, 1.0)
            Lowest and highest reward; what is outside is clipped.

        Returns
        -------
        KLUCB

        Raises
        ------
        InvalidParameterError
            If a parameter is outside its range.
        """
        low, high = checked_finite_range("reward_range", reward_range)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            c=checked_float("c", c, 0.0, open_low=False),
            low=low,
            high=high,
            mean=np.zeros(n_arms),
        )

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the arm of highest bound, after one pull of each."""
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        exploration = kl_exploration(self.c, t)
        best = -math.inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                level = exploration / self.pulls[i]
                if arm == WAIT or not surely_below(self.mean[i], level, best):
                    index = kl_upper(self.mean[i], level)
                    if arm == WAIT or better(
                        index, self.pulls[i], best, self.pulls[arm]
                    ):
                        best = index
                        arm = i
        return arm

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Move the arm's mean."""
        self.pulls[arm] += 1
        reward = unit_reward(reward, self.low, self.high)
        self.mean[arm] += (reward - self.mean[arm]) / self.pulls[arm]

    def explain(self, arm: int) -> dict[str, float]:
        """Return mean and bonus at the coming round, in units of [0, 1]."""
        n = self.pulls[arm]
        if n == 0:
            return {"mean": 0.0, "bonus": math.inf}
        mean = self.mean[arm]
        level = kl_exploration(self.c, int(self.pulls.sum()) + 1) / n
        return {"mean": mean, "bonus": kl_upper(mean, level) - mean}


class CCB(NamedTuple):
    r"""CCB: a bonus of the fourth root of T / N that shrinks in steps.

    A strong baseline where many arms have similar means and the horizon is known.

    With :math:`m` the mean of the arm's :math:`N` rewards, :math:`B` the width of
    ``reward_range`` and :math:`\Delta` a gap that starts at 1, the index is

    .. math:: m + B \frac{\Delta}{2} \Big(\frac{T}{N}\Big)^{1/4}

    Whenever an arm just pulled has at least :math:`n_\Delta` pulls (0 at first),
    :math:`\Delta` is halved and :math:`n_\Delta` grows by
    :math:`\lceil 2 \ln(T \Delta^2) / \Delta^2 \rceil`; no step is taken that would
    leave :math:`T \Delta^2 \le e`. Every arm is pulled once first.

    The rule is that of the public script of the RAVEN-UCB paper, which runs it as a
    baseline under this name; stopping the halving is our reading, there the logarithm
    may become negative.

    References
    ----------
    Liu, Tsuruoka: "Modification of improved upper confidence bounds for regulating
    exploration in Monte-Carlo tree search", Theoretical Computer Science 644, 2016;
    as in Fang et al., "From Theory to Practice with RAVEN-UCB", section 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> policy = CCB.create(n_arms=2, horizon=20)
    >>> rng = np.random.default_rng(0)
    >>> for t in range(1, 21):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, [0.5, 0.6][arm], rng)
    ...     print(arm, end=" ")
    0 1 1 1 0 1 1 1 0 1 1 1 1 0 1 1 1 1 0 1
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    width: float  # B
    mean: NDArray[np.float64]  # (n_arms,)
    gap: NDArray[np.float64]  # (1,), Delta
    enough: NDArray[np.float64]  # (1,), pulls of an arm that halve the gap

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> CCB:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds ``T``, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.
        reward_range : (float, float), default (0.0, 1.0)
            Lowest and highest reward; the bonus grows with the width. Rewards outside
            are taken as they are.

        Returns
        -------
        CCB

        Raises
        ------
        InvalidParameterError
            If ``reward_range`` is no finite range.
        """
        low, high = checked_finite_range("reward_range", reward_range)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            width=high - low,
            mean=np.zeros(n_arms),
            gap=np.ones(1),
            enough=np.zeros(1),
        )

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the arm of highest index, after one pull of each."""
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        best = -math.inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                index = self.mean[i] + ccb_bonus(self, i)
                if arm == WAIT or better(index, self.pulls[i], best, self.pulls[arm]):
                    best = index
                    arm = i
        return arm

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Move the arm's mean; halve the gap when the arm has had enough pulls."""
        n = self.pulls[arm] + 1
        self.pulls[arm] = n
        self.mean[arm] += (reward - self.mean[arm]) / n
        half = 0.5 * self.gap[0]
        square = half * half
        if n >= self.enough[0] and self.horizon[arm] * square > math.e:
            self.gap[0] = half
            more = 2.0 * math.log(self.horizon[arm] * square) / square
            self.enough[0] += math.ceil(more)

    def explain(self, arm: int) -> dict[str, float]:
        """Return mean and bonus."""
        if self.pulls[arm] == 0:
            return {"mean": 0.0, "bonus": math.inf}
        return {"mean": self.mean[arm], "bonus": ccb_bonus(self, arm)}


def ccb_bonus(policy: CCB, arm: int) -> float:
    """Return ``B Delta / 2`` times the fourth root of ``T / N``."""
    gap: float = policy.gap[0]
    ratio = policy.horizon[arm] / policy.pulls[arm]
    return policy.width * 0.5 * gap * math.sqrt(math.sqrt(ratio))
