"""Elimination: pull all arms in turn and drop those that cannot win any more.

All of them keep a race. Who is dropped is judged once every arm in it has its pulls,
however many are in flight. When the last arm in the race ends before the budget, the
best of the others takes over.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import (
    checked_choice,
    checked_finite_range,
    checked_float,
    checked_int,
)
from risingsearch.policies.base import WAIT, arm_arrays
from risingsearch.policies.shared.noise import add_residual, checked_sigma, noise_scale
from risingsearch.policies.shared.race import all_have, in_race, next_in_turn
from risingsearch.policies.shared.rewards import unit_reward
from risingsearch.policies.shared.sums import append_reward, prefix_sums

NEVER = np.iinfo(np.int64).max


class REdAE(NamedTuple):
    r"""R-ed-AE: drop the arms whose line to the horizon pays less for certain.

    Good for arms that rise in straight lines, in little noise: the radius below must
    fall under the gaps between the arms before the pulls are spent.

    The arms in the race are pulled round-robin. When each has :math:`2M` pulls, with
    :math:`S_1` and :math:`S_2` the sums of its first and second ``M`` rewards,

    .. math:: V = \frac{S_1 + S_2}{2M} + \frac{S_2 - S_1}{M^2}\,\frac{T - 2M}{2}
              \qquad
              r = \sigma \sqrt{\ln\frac{2KT}{\delta}
                  \Big(\frac{1}{M} + \frac{(T - 2M)^2}{M^3}\Big)}

    are its average reward if it were played for all ``T`` rounds, and a radius around
    it. Arms with ``V + r`` below the highest ``V - r`` are dropped; the last one left
    is played to the end.

    This is a reconstruction: that the arms' lines are eliminated by their totals over a
    known horizon is the paper's, the estimator and the constants are ours.

    References
    ----------
    Amichay, Mansour: "Rising Rested MAB with Linear Drift", arXiv 2501.04403; the
    default of ``delta`` as a baseline in Song et al., arXiv 2602.10727.

    Examples
    --------
    >>> import numpy as np
    >>> policy = REdAE.create(n_arms=2, horizon=20, sigma=0.0)
    >>> rng = np.random.default_rng(0)
    >>> curves = [lambda n: 0.4, lambda n: 0.1 * n]
    >>> for t in range(1, 8):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, curves[arm](policy.pulls[arm] + 1), rng)
    ...     print(arm, end=" ")
    0 1 0 1 1 1 1
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    sigma: float  # NaN: estimated
    delta: float
    P: NDArray[np.float64]  # (n_arms, max_pulls + 1), P[i, n]: sum of n rewards
    alive: NDArray[np.bool_]  # (n_arms,)
    value: NDArray[np.float64]  # (n_arms,), V
    radius: NDArray[np.float64]  # (n_arms,), r
    judged: NDArray[np.int64]  # (1,), M
    last_two: NDArray[np.float64]  # (n_arms, 2)
    residual: NDArray[np.float64]  # (2,), sum of squared second differences, count

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        sigma: float | None = None,
        delta: float = 0.01,
    ) -> REdAE:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms ``K``, at least 1.
        horizon : int
            Number of rounds ``T``, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon. It bounds the
            memory, not the projection, which runs to the horizon.
        sigma : float, optional
            Standard deviation of the noise, at least 0. By default it is estimated
            from the second differences of the rewards seen so far; nothing is dropped
            before there are any.
        delta : float, default 0.01
            Confidence level, above 0 and at most 1.

        Returns
        -------
        REdAE

        Raises
        ------
        InvalidParameterError
            If a parameter is outside its range.
        """
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            sigma=checked_sigma(sigma),
            delta=checked_float("delta", delta, 0.0, 1.0, open_low=True),
            P=prefix_sums(n_arms, horizon, max_pulls),
            alive=np.ones(n_arms, dtype=np.bool_),
            value=np.zeros(n_arms),
            radius=np.zeros(n_arms),
            judged=np.zeros(1, dtype=np.int64),
            last_two=np.zeros((n_arms, 2)),
            residual=np.zeros(2),
        )

    @staticmethod
    def recommended_arms(horizon: int, max_pulls: int) -> int:
        """Return as many arms as the budget could train in full."""
        return max(2, horizon // max_pulls)

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the next arm of the sweep, or the one that is left."""
        return next_in_turn(
            self.available, self.pulls_left, self.alive, self.pulls, self.value
        )

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Append the reward to the prefix sums; judge all after a double sweep."""
        n = append_reward(self.P, self.pulls, arm, reward)
        add_residual(self.residual, self.last_two[arm], n, reward)
        if all_have(self.pulls_left, self.alive, self.pulls, 2 * (self.judged[0] + 1)):
            self.judged[0] += 1
            judge_lines(self, self.judged[0])

    def explain(self, arm: int) -> dict[str, float]:
        """Return the average reward to the horizon and its radius, as last judged."""
        return {"average_to_horizon": self.value[arm], "radius": self.radius[arm]}


def judge_lines(policy: REdAE, half: int) -> None:
    """Estimate all arms in the race from ``2M`` rewards each, and drop the losers."""
    if math.isnan(policy.sigma) and policy.residual[1] == 0.0:
        return
    sigma = noise_scale(policy.sigma, policy.residual)
    alive, pulls_left = policy.alive, policy.pulls_left
    P = policy.P
    M = float(half)
    floor = -math.inf
    for i in range(len(policy.pulls)):
        if in_race(alive, pulls_left, i):
            T = policy.horizon[i]
            ahead = max(0.0, T - 2.0 * M)
            slope = (P[i, 2 * half] - 2.0 * P[i, half]) / (M * M)
            spread = 1.0 / M + ahead * ahead / (M * M * M)
            log_term = math.log(2.0 * len(policy.pulls) * T / policy.delta)
            policy.value[i] = P[i, 2 * half] / (2.0 * M) + 0.5 * slope * ahead
            policy.radius[i] = sigma * math.sqrt(log_term * spread)
            floor = max(floor, policy.value[i] - policy.radius[i])
    for i in range(len(policy.pulls)):
        if in_race(alive, pulls_left, i) and policy.value[i] + policy.radius[i] < floor:
            alive[i] = False


class RisingBandits(NamedTuple):
    r"""Rising bandits for CASH: drop an arm whose best hope another has reached.

    Good for choosing between a few arms whose best reward so far is concave, such as
    model families in tuning; decisive, without a model of the noise.

    The arms in the race are pulled in sweeps. With :math:`y(N)` the arm's best reward
    so far, after each sweep, at round ``t``,

    .. math:: l = y(N) \qquad
              u = \min\Big(1,\; y(N) + (T - t)\,\frac{y(N) - y(N - C)}{C}\Big)

    bound what the arm will have reached at the horizon ``T``, and an arm is dropped
    when another has ``l`` at its ``u`` or above. Where an arm has no more than ``C``
    pulls, :math:`y(N - C)` is -1, as in the public code. The formula lives in [0, 1]:
    rewards are mapped there from ``reward_range``, and clipped.

    References
    ----------
    Li, Jiang, Gao, Shao, Zhang, Cui: "Efficient Automatic CASH via Rising Bandits",
    AAAI 2020, with ``C = 7`` as in the code of Balef et al., arXiv 2505.05226.

    Examples
    --------
    >>> import numpy as np
    >>> policy = RisingBandits.create(n_arms=2, horizon=20, window=2)
    >>> rng = np.random.default_rng(0)
    >>> curves = [lambda n: 0.4, lambda n: 0.1 * n]
    >>> for t in range(1, 13):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, curves[arm](policy.pulls[arm] + 1), rng)
    ...     print(arm, end=" ")
    0 1 0 1 0 1 0 1 1 1 1 1
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    low: float
    high: float
    past: NDArray[np.float64]  # (n_arms, C), the last C values of y, in a ring
    alive: NDArray[np.bool_]  # (n_arms,)
    value: NDArray[np.float64]  # (n_arms,), y(N), which is l
    before: NDArray[np.float64]  # (n_arms,), y(N - C)
    upper: NDArray[np.float64]  # (n_arms,), u when last judged
    judged: NDArray[np.int64]  # (1,), sweeps

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        window: int = 7,
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> RisingBandits:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds ``T``, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.
        window : int, default 7
            Pulls ``C`` that the slope is taken over, at least 1.
        reward_range : (float, float), default (0.0, 1.0)
            Lowest and highest reward; what is outside is clipped.

        Returns
        -------
        RisingBandits

        Raises
        ------
        InvalidParameterError
            If a parameter is outside its range.
        """
        low, high = checked_finite_range("reward_range", reward_range)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            low=low,
            high=high,
            past=np.zeros((n_arms, checked_int("window", window, 1))),
            alive=np.ones(n_arms, dtype=np.bool_),
            value=np.zeros(n_arms),
            before=np.full(n_arms, -1.0),
            upper=np.ones(n_arms),
            judged=np.zeros(1, dtype=np.int64),
        )

    @staticmethod
    def recommended_arms(horizon: int, max_pulls: int) -> int:
        """Return as many arms as the budget could train in full."""
        return max(2, horizon // max_pulls)

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the next arm of the sweep, or the one that is left."""
        return next_in_turn(
            self.available, self.pulls_left, self.alive, self.pulls, self.value
        )

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Raise the best reward so far; judge all after a sweep."""
        C = self.past.shape[1]
        n = int(self.pulls[arm]) + 1
        self.pulls[arm] = n
        self.value[arm] = max(self.value[arm], unit_reward(reward, self.low, self.high))
        slot = n % C
        if n > C:
            self.before[arm] = self.past[arm, slot]
        self.past[arm, slot] = self.value[arm]
        if all_have(self.pulls_left, self.alive, self.pulls, self.judged[0] + 1):
            self.judged[0] += 1
            judge_bounds(self, t)

    def explain(self, arm: int) -> dict[str, float]:
        """Return the best reward so far, from 0 to 1, and its bound as last judged."""
        return {"best_reward": self.value[arm], "upper_bound": self.upper[arm]}


def judge_bounds(policy: RisingBandits, t: int) -> None:
    """Drop all arms in the race but those that may pass the highest lower bound."""
    alive, pulls_left = policy.alive, policy.pulls_left
    C = policy.past.shape[1]
    leader = WAIT
    for i in range(len(policy.pulls)):
        if in_race(alive, pulls_left, i):
            gain = (policy.value[i] - policy.before[i]) / C
            left = max(0.0, policy.horizon[i] - t)
            policy.upper[i] = min(1.0, policy.value[i] + left * gain)
            if leader == WAIT or leads(policy, i, leader):
                leader = i
    for i in range(len(policy.pulls)):
        if in_race(alive, pulls_left, i) and policy.upper[i] <= policy.value[leader]:
            alive[i] = i == leader


def leads(policy: RisingBandits, arm: int, leader: int) -> bool:
    """Return whether the arm's best reward is higher, or as high with more to come."""
    if policy.value[arm] == policy.value[leader]:
        return bool(policy.upper[arm] > policy.upper[leader])
    return bool(policy.value[arm] > policy.value[leader])


class ImprovedUCB(NamedTuple):
    r"""UCB-Improved: elimination in stages of ever finer resolution.

    Good for arms that do not change; a classic to compare with. With many arms or a
    short budget it is close to round-robin.

    A stage has a resolution :math:`\Delta`, at first 1, and ends when every arm in the
    race has

    .. math:: n = \Big\lceil \frac{2 \ln(T \Delta^2)}{\Delta^2} \Big\rceil

    pulls in all. Then the arms whose mean plus :math:`\sqrt{\ln(T \Delta^2) / (2 n)}`
    is below the highest mean minus as much are dropped, and :math:`\Delta` is halved.
    The widths are in units of the reward range. There is no further stage once
    :math:`T \Delta^2 < e`. Under a budget in seconds ``T`` is the longest of the arms'
    horizons.

    ``order="round-robin"`` brings the arms to their pulls in turn and is the original
    (Auer and Ortner fix the number of pulls, not their order). ``order="random"`` pulls
    every arm once, then a uniformly random one of the race, as the code of Fang et al.
    does under the name UCB-Imp.

    References
    ----------
    Auer, Ortner: "UCB Revisited: Improved Regret Bounds for the Stochastic Multi-Armed
    Bandit Problem", Periodica Mathematica Hungarica 61, 2010; as a baseline in Fang et
    al., "From Theory to Practice with RAVEN-UCB".

    Examples
    --------
    >>> import numpy as np
    >>> policy = ImprovedUCB.create(n_arms=2, horizon=200)
    >>> policy.target
    array([11])
    >>> rng = np.random.default_rng(0)
    >>> for t in range(1, 201):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, [0.1, 0.9][arm], rng)
    >>> policy.pulls
    array([ 32, 168])
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    random_order: bool
    range_width: float
    resolution: NDArray[np.float64]  # (1,), Delta
    target: NDArray[np.int64]  # (1,), n
    width: NDArray[np.float64]  # (1,)
    alive: NDArray[np.bool_]  # (n_arms,)
    value: NDArray[np.float64]  # (n_arms,), mean

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        order: str = "round-robin",
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> ImprovedUCB:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds ``T``, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.
        order : {"round-robin", "random"}, default "round-robin"
            How the arms in the race get their pulls.
        reward_range : (float, float), default (0.0, 1.0)
            Lowest and highest reward; the widths grow with the distance. Rewards
            outside are taken as they are.

        Returns
        -------
        ImprovedUCB

        Raises
        ------
        InvalidParameterError
            If a parameter is outside its range.
        """
        low, high = checked_finite_range("reward_range", reward_range)
        policy = cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            random_order=checked_choice("order", order, ("round-robin", "random"))
            == "random",
            range_width=high - low,
            resolution=np.ones(1),
            target=np.zeros(1, dtype=np.int64),
            width=np.zeros(1),
            alive=np.ones(n_arms, dtype=np.bool_),
            value=np.zeros(n_arms),
        )
        begin_stage(policy)
        return policy

    @staticmethod
    def recommended_arms(horizon: int, max_pulls: int) -> int:
        """Return as many arms as the budget could train in full."""
        return max(2, horizon // max_pulls)

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the next arm of the race, in turn or at random."""
        if self.random_order:
            arm = random_of_race(self, rng)
            if arm != WAIT:
                return arm
        return next_in_turn(
            self.available, self.pulls_left, self.alive, self.pulls, self.value
        )

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Move the arm's mean; end the stage when all have their pulls."""
        self.pulls[arm] += 1
        self.value[arm] += (reward - self.value[arm]) / self.pulls[arm]
        if all_have(self.pulls_left, self.alive, self.pulls, self.target[0]):
            drop_behind(self)
            self.resolution[0] *= 0.5
            begin_stage(self)

    def explain(self, arm: int) -> dict[str, float]:
        """Return the mean, and the width it will be judged with next."""
        return {"mean": self.value[arm], "width": self.width[0]}


def begin_stage(policy: ImprovedUCB) -> None:
    """Set the pulls that the stage asks for, and the width at its end."""
    T = 1.0
    for i in range(len(policy.horizon)):
        T = max(T, policy.horizon[i])
    square = policy.resolution[0] * policy.resolution[0]
    if T * square < math.e:
        policy.target[0] = NEVER
        return
    confidence = math.log(T * square)
    policy.target[0] = math.ceil(2.0 * confidence / square)
    policy.width[0] = policy.range_width * math.sqrt(
        0.5 * confidence / policy.target[0]
    )


def drop_behind(policy: ImprovedUCB) -> None:
    """Drop the arms in the race that are worse than its best one for certain."""
    alive, pulls_left = policy.alive, policy.pulls_left
    floor = -math.inf
    for i in range(len(policy.pulls)):
        if in_race(alive, pulls_left, i):
            floor = max(floor, policy.value[i] - policy.width[0])
    for i in range(len(policy.pulls)):
        if in_race(alive, pulls_left, i) and policy.value[i] + policy.width[0] < floor:
            alive[i] = False


def random_of_race(policy: ImprovedUCB, rng: np.random.Generator) -> int:
    """Return any available arm in the race, but one never pulled before all others."""
    alive, pulls_left = policy.alive, policy.pulls_left
    n_available = 0
    for i in range(len(policy.pulls)):
        if policy.available[i] and in_race(alive, pulls_left, i):
            if policy.pulls[i] == 0:
                return i
            n_available += 1
    if n_available > 0:
        skip = int(rng.random() * n_available)
        for i in range(len(policy.pulls)):
            if policy.available[i] and in_race(alive, pulls_left, i):
                if skip == 0:
                    return i
                skip -= 1
    return WAIT
