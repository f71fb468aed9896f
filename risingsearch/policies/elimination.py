"""Elimination: pull all arms in turn and drop those that cannot win any more.

All of them keep a race: the arms not dropped that can still train. Who is dropped is
judged once every arm in the race has its pulls, however many are in flight. When the
last arm in the race ends before the budget, the best of the others takes over.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import (
    checked_choice,
    checked_float,
    checked_int,
    checked_range,
)
from risingsearch.policies.base import WAIT, arm_arrays, best_available, better
from risingsearch.policies.rewards import unit_reward
from risingsearch.policies.rising import (
    add_residual,
    checked_eps,
    checked_sigma,
    noise_scale,
    window_length,
)

NEVER = np.iinfo(np.int64).max


def in_race(policy: Elimination, arm: int) -> bool:
    """Return whether the arm is neither dropped nor at its end."""
    return bool(policy.alive[arm] and policy.pulls_left[arm] > 0)


def next_of_race(policy: Elimination) -> int:
    """Return the arm in the race with fewest pulls; ``WAIT`` for those in flight."""
    arm = WAIT
    busy = False
    for i in range(len(policy.pulls)):
        if in_race(policy, i):
            if not policy.available[i]:
                busy = True
            elif arm == WAIT or policy.pulls[i] < policy.pulls[arm]:
                arm = i
    if arm != WAIT or busy:
        return arm
    return best_available(policy.available, policy.value, policy.pulls)


def all_have(policy: Elimination, n_pulls: int) -> bool:
    """Return whether the race has arms to compare, each with its pulls."""
    n_arms = 0
    for i in range(len(policy.pulls) - 1, -1, -1):  # a sweep ends with the last
        if in_race(policy, i):
            if policy.pulls[i] < n_pulls:
                return False
            n_arms += 1
    return n_arms > 1


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
        columns = (horizon if max_pulls is None else max_pulls) + 1
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            sigma=checked_sigma(sigma),
            delta=checked_float("delta", delta, 0.0, 1.0, open_low=True),
            P=np.zeros((n_arms, columns)),
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
        return next_of_race(self)

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Append the reward to the prefix sums; judge all after a double sweep."""
        n = int(self.pulls[arm]) + 1
        self.pulls[arm] = n
        self.P[arm, n] = self.P[arm, n - 1] + reward
        add_residual(self.residual, self.last_two[arm], n, reward)
        if all_have(self, 2 * (self.judged[0] + 1)):
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
    P = policy.P
    M = float(half)
    floor = -math.inf
    for i in range(len(policy.pulls)):
        if in_race(policy, i):
            T = policy.horizon[i]
            ahead = max(0.0, T - 2.0 * M)
            slope = (P[i, 2 * half] - 2.0 * P[i, half]) / (M * M)
            spread = 1.0 / M + ahead * ahead / (M * M * M)
            log_term = math.log(2.0 * len(policy.pulls) * T / policy.delta)
            policy.value[i] = P[i, 2 * half] / (2.0 * M) + 0.5 * slope * ahead
            policy.radius[i] = sigma * math.sqrt(log_term * spread)
            floor = max(floor, policy.value[i] - policy.radius[i])
    for i in range(len(policy.pulls)):
        if in_race(policy, i) and policy.value[i] + policy.radius[i] < floor:
            policy.alive[i] = False


class RSR(NamedTuple):
    r"""R-SR: successive rejects, by the average of each arm's newest rewards.

    Good for finding the arm that is best at the end of a fixed budget without any
    parameter to tune: the noise need not be known.

    With ``K`` arms and ``T`` rounds there are ``K - 1`` phases. In phase ``j`` every
    arm left is brought to

    .. math:: n_j = \Big\lceil \frac{T - K}{\overline{\log}(K)\,(K + 1 - j)} \Big\rceil
              \qquad
              \overline{\log}(K) = \frac{1}{2} + \sum_{i=2}^{K} \frac{1}{i}

    pulls, one arm after another; then the one with the lowest average over its last
    :math:`\lfloor \epsilon N \rfloor` rewards goes. The last one left is recommended;
    here it also trains on with what is left of the budget.

    Two floors of 1 are ours: ``n_j`` where the budget has fewer rounds than arms, and
    the window, where the authors' code has no average and drops arms at random. With
    ``max_pulls`` no phase asks for more than that, and an arm that has ended is judged
    by what it has shown.

    References
    ----------
    Mussi, Montenegro, Trovo, Restelli, Metelli: "Best Arm Identification for Stochastic
    Rising Bandits", arXiv 2302.07510, and the authors' code.

    Examples
    --------
    >>> import numpy as np
    >>> policy = RSR.create(n_arms=3, horizon=15)
    >>> policy.target
    array([3, 5])
    >>> rng = np.random.default_rng(0)
    >>> for t in range(1, 16):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, [0.1, 0.4, 0.3][arm], rng)
    ...     print(arm, end=" ")
    0 0 0 1 1 1 2 2 2 1 1 2 2 1 1
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    eps: float
    target: NDArray[np.int64]  # (n_arms - 1,), pulls in all by the end of a phase
    phase: NDArray[np.int64]  # (1,)
    P: NDArray[np.float64]  # (n_arms, max_pulls + 1), P[i, n]: sum of n rewards
    alive: NDArray[np.bool_]  # (n_arms,)
    value: NDArray[np.float64]  # (n_arms,), average of the last h rewards

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        eps: float = 0.25,
    ) -> RSR:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms ``K``, at least 1.
        horizon : int
            Number of rounds ``T``, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.
        eps : float, default 0.25
            Share of an arm's pulls in its window, above 0 and at most 1/2.

        Returns
        -------
        RSR

        Raises
        ------
        InvalidParameterError
            If ``eps`` is outside its range.
        """
        limit = horizon if max_pulls is None else max_pulls
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            eps=checked_eps(eps),
            target=np.minimum(phase_targets(n_arms, horizon), limit),
            phase=np.zeros(1, dtype=np.int64),
            P=np.zeros((n_arms, limit + 1)),
            alive=np.ones(n_arms, dtype=np.bool_),
            value=np.zeros(n_arms),
        )

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the next arm of the phase; ``WAIT`` for the phase's last results."""
        while self.phase[0] < len(self.target):
            arm, busy = next_of_phase(self, self.target[self.phase[0]])
            if arm != WAIT or busy:
                return arm
            reject_worst(self)
            self.phase[0] += 1
        return next_of_race(self)

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Append the reward to the prefix sums and refresh the average."""
        n = int(self.pulls[arm]) + 1
        self.pulls[arm] = n
        self.P[arm, n] = self.P[arm, n - 1] + reward
        h = window_length(self.eps, n)
        self.value[arm] = (self.P[arm, n] - self.P[arm, n - h]) / h

    def slice_length(self, arm: int) -> int:
        """Return the pulls that are missing to the end of the phase."""
        if self.phase[0] < len(self.target):
            return int(max(1, self.target[self.phase[0]] - self.pulls[arm]))
        return int(max(1, self.pulls_left[arm]))

    def explain(self, arm: int) -> dict[str, float]:
        """Return the phase, whether the arm is still in it, and its recent average."""
        return {
            "phase": self.phase[0] + 1,
            "in_race": self.alive[arm],
            "recent_average": self.value[arm],
        }


def phase_targets(n_arms: int, horizon: int) -> NDArray[np.int64]:
    """Return the pulls that each arm left has at the end of each phase.

    Examples
    --------
    >>> phase_targets(4, 100)
    array([16, 21, 31])
    """
    log_bar = 0.5 + math.fsum(1.0 / i for i in range(2, n_arms + 1))
    targets = [
        max(1, math.ceil((horizon - n_arms) / (log_bar * (n_arms + 1 - j))))
        for j in range(1, n_arms)
    ]
    return np.array(targets, dtype=np.int64)


def next_of_phase(policy: RSR, target: int) -> tuple[int, bool]:
    """Return an arm that lacks pulls, or ``WAIT`` and whether one is in flight."""
    busy = False
    for i in range(len(policy.pulls)):
        if in_race(policy, i) and policy.pulls[i] < target:
            if policy.available[i]:
                return i, True
            busy = True
    return WAIT, busy


def reject_worst(policy: RSR) -> None:
    """Drop the arm of the lowest average; one that never paid anything goes first."""
    worst = WAIT
    lowest = math.inf
    for i in range(len(policy.pulls)):
        if policy.alive[i]:
            value = policy.value[i] if policy.pulls[i] > 0 else -math.inf
            if worst == WAIT or not better(
                value, policy.pulls[i], lowest, policy.pulls[worst]
            ):
                worst = i
                lowest = value
    policy.alive[worst] = False


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
    rewards are mapped there from ``reward_range``, and clipped outside of it.

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
        reward_range : tuple of float, default (0.0, 1.0)
            Lowest and highest reward.

        Returns
        -------
        RisingBandits

        Raises
        ------
        InvalidParameterError
            If a parameter is outside its range.
        """
        low, high = checked_range("reward_range", reward_range)
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
        return next_of_race(self)

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
        if all_have(self, self.judged[0] + 1):
            self.judged[0] += 1
            judge_bounds(self, t)

    def explain(self, arm: int) -> dict[str, float]:
        """Return the best reward so far, from 0 to 1, and its bound as last judged."""
        return {"best_reward": self.value[arm], "upper_bound": self.upper[arm]}


def judge_bounds(policy: RisingBandits, t: int) -> None:
    """Drop all arms in the race but those that may pass the highest lower bound."""
    C = policy.past.shape[1]
    leader = WAIT
    for i in range(len(policy.pulls)):
        if in_race(policy, i):
            gain = (policy.value[i] - policy.before[i]) / C
            left = max(0.0, policy.horizon[i] - t)
            policy.upper[i] = min(1.0, policy.value[i] + left * gain)
            if leader == WAIT or leads(policy, i, leader):
                leader = i
    for i in range(len(policy.pulls)):
        if in_race(policy, i) and policy.upper[i] <= policy.value[leader]:
            policy.alive[i] = i == leader


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
    span: float  # of the reward range
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
        reward_range : tuple of float, default (0.0, 1.0)
            Lowest and highest reward; only the distance matters, nothing is clipped.

        Returns
        -------
        ImprovedUCB

        Raises
        ------
        InvalidParameterError
            If a parameter is outside its range.
        """
        low, high = checked_range("reward_range", reward_range)
        policy = cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            random_order=checked_choice("order", order, ("round-robin", "random"))
            == "random",
            span=high - low,
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
        arm = random_of_race(self, rng) if self.random_order else WAIT
        return next_of_race(self) if arm == WAIT else arm

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Move the arm's mean; end the stage when all have their pulls."""
        self.pulls[arm] += 1
        self.value[arm] += (reward - self.value[arm]) / self.pulls[arm]
        if all_have(self, self.target[0]):
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
    policy.width[0] = policy.span * math.sqrt(0.5 * confidence / policy.target[0])


def drop_behind(policy: ImprovedUCB) -> None:
    """Drop the arms in the race that are worse than its best one for certain."""
    floor = -math.inf
    for i in range(len(policy.pulls)):
        if in_race(policy, i):
            floor = max(floor, policy.value[i] - policy.width[0])
    for i in range(len(policy.pulls)):
        if in_race(policy, i) and policy.value[i] + policy.width[0] < floor:
            policy.alive[i] = False


def random_of_race(policy: ImprovedUCB, rng: np.random.Generator) -> int:
    """Return any available arm in the race, but one never pulled before all others."""
    n_available = 0
    for i in range(len(policy.pulls)):
        if policy.available[i] and in_race(policy, i):
            if policy.pulls[i] == 0:
                return i
            n_available += 1
    if n_available > 0:
        skip = int(rng.random() * n_available)
        for i in range(len(policy.pulls)):
            if policy.available[i] and in_race(policy, i):
                if skip == 0:
                    return i
                skip -= 1
    return WAIT


Elimination: TypeAlias = REdAE | RSR | RisingBandits | ImprovedUCB
