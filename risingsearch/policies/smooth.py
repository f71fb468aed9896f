"""Budgeted exploration for arms that drift smoothly with time."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import checked_choice, checked_float
from risingsearch.errors import InvalidParameterError
from risingsearch.policies.base import WAIT, arm_arrays, best_available

CHANGING_ARM = 1


class BudgetedExploration(NamedTuple):
    r"""BE: explore each epoch afresh until an arm has lost more than a fixed budget.

    For restless arms: the rewards drift with the round, whether pulled or not. The
    rounds are cut into epochs of equal length ``E``; in each one every arm starts anew.

    *One-armed* (Algorithm 1; two arms and ``known_reward``): arm 0 pays a known
    constant, arm 1 drifts. Each epoch plays arm 1 and adds up what it pays above arm 0;
    once that falls below ``-B``, arm 0 is played to the end of the epoch.

    *k-armed* (Algorithm 2): each epoch sweeps over the arms still alive; after a sweep
    every arm whose sum is more than ``B`` below the best leaves. The last one alive is
    played to the end of the epoch. Where an epoch ends within a sweep the paper leaves
    the remaining rounds open; here the sweep just goes on.

    Rate-optimal parameters, with ``L`` = ``lipschitz`` and natural logarithms:

    =================  ==========================  ===================================
    ``rate``           ``E``                       ``B``
    =================  ==========================  ===================================
    "smooth" (5.4)     L^-2/5 T^4/5 ln^1/5 T       L^-1/5 T^2/5 ln^3/5 T
    "smooth", k (6.2)  that k^-3/5 ln^1/5 k        sqrt(E ln T ln k / k)
    "non-smooth" (5.2) L^-2/3 T^2/3 ln^1/3 T       L^-1/3 T^1/3 ln^2/3 T
    =================  ==========================  ===================================

    Theorem 6.2 holds for smooth arms; with several drifting arms and "non-smooth" the
    one-armed parameters are used, as in the paper's own experiments. Constants matter
    more than rates: ``epoch_factor`` and ``budget_factor`` multiply ``E`` and ``B``.

    **In a live search** the epochs of BE are rounds of the search, and an arm that
    waits is taken to drift as published, although a paused training run does not: what
    was learnt about it is forgotten at the end of each of these epochs. That makes BE a
    faithful baseline, not a good tuner.

    References
    ----------
    Jia, Xie, Kallus, Frazier: "Smooth Non-Stationary Bandits"; Algorithms 1 and 2,
    Theorems 5.2, 5.4 and 6.2.

    Examples
    --------
    >>> import numpy as np
    >>> policy = BudgetedExploration.create(
    ...     n_arms=2, horizon=12, known_reward=0.5, budget_factor=0.2
    ... )
    >>> policy.epoch_length, round(policy.loss_budget, 2)
    (9, 0.93)
    >>> rng = np.random.default_rng(0)
    >>> for t in range(1, 13):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, [0.5, 0.1][arm], rng)
    ...     print(arm, end=" ")
    1 1 1 0 0 0 0 0 0 1 1 1
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    epoch_length: int  # E, in rounds
    loss_budget: float  # B
    known_reward: float  # NaN: k-armed
    epoch: NDArray[np.int64]  # (1,), the epoch that the next three belong to
    total: NDArray[np.float64]  # (n_arms,), rewards of the epoch
    epoch_pulls: NDArray[np.int64]  # (n_arms,)
    alive: NDArray[np.bool_]  # (n_arms,)

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        rate: str = "smooth",
        known_reward: float | None = None,
        lipschitz: float = 1.0,
        epoch_factor: float = 1.0,
        budget_factor: float = 1.0,
    ) -> BudgetedExploration:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds ``T``, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.
        rate : {"smooth", "non-smooth"}, default "smooth"
            BE-S or BE-NS: whether the means have a Lipschitz derivative or are
            Lipschitz only.
        known_reward : float, optional
            The constant reward of arm 0; then there are two arms, arm 1 drifts, and
            Algorithm 1 runs.
        lipschitz : float, default 1.0
            The constant ``L`` of the drift, in horizon units, above 0.
        epoch_factor, budget_factor : float, default 1.0
            Multiply ``E`` and ``B``; above 0.

        Returns
        -------
        BudgetedExploration

        Raises
        ------
        InvalidParameterError
            If a parameter is outside its range.
        """
        checked_choice("rate", rate, ("smooth", "non-smooth"))
        lipschitz = checked_float("lipschitz", lipschitz, 0.0, open_low=True)
        epoch_factor = checked_float("epoch_factor", epoch_factor, 0.0, open_low=True)
        budget_factor = checked_float(
            "budget_factor", budget_factor, 0.0, open_low=True
        )
        known = math.nan
        if known_reward is not None:
            known = checked_float(
                "known_reward", known_reward, -math.inf, open_low=False
            )
            if n_arms != 2:
                msg = f"known_reward makes BE one-armed, with 2 arms; got {n_arms}"
                raise InvalidParameterError(msg)
        one_armed = known_reward is not None or n_arms == 1
        length, budget = rate_optimal(
            rate, horizon, 1 if one_armed else n_arms, lipschitz
        )
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            epoch_length=max(1, round(epoch_factor * length)),
            loss_budget=budget_factor * budget,
            known_reward=known,
            epoch=np.zeros(1, dtype=np.int64),
            total=np.zeros(n_arms),
            epoch_pulls=np.zeros(n_arms, dtype=np.int64),
            alive=np.ones(n_arms, dtype=np.bool_),
        )

    @staticmethod
    def recommended_arms(horizon: int, max_pulls: int) -> int:
        """Return as many arms as the budget could train in full."""
        return max(2, horizon // max_pulls)

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the next arm of the sweep, or the one that is left."""
        start_epoch(self, (t - 1) // self.epoch_length)
        if not math.isnan(self.known_reward):
            arm = CHANGING_ARM if self.alive[CHANGING_ARM] else 0
            return arm if self.available[arm] else 1 - arm
        return next_of_sweep(self)

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Add the reward to the epoch it was decided in; late ones count no more."""
        self.pulls[arm] += 1
        epoch = (t - 1) // self.epoch_length
        if epoch < self.epoch[0]:
            return
        start_epoch(self, epoch)
        self.epoch_pulls[arm] += 1
        if math.isnan(self.known_reward):
            self.total[arm] += reward
            end_sweep(self)
        elif arm == CHANGING_ARM:
            self.total[arm] += reward - self.known_reward
            if self.total[arm] < -self.loss_budget:
                self.alive[arm] = False

    def until(self, t: int) -> int:
        """Return the end of the epoch once a single arm is left to play in it."""
        n_alive = 0
        ended = False
        for i in range(len(self.alive)):
            if self.alive[i]:
                n_alive += 1
                ended = self.pulls_left[i] == 0
        if n_alive > 1 or ended:
            return t
        return ((t - 1) // self.epoch_length + 1) * self.epoch_length

    def explain(self, arm: int) -> dict[str, float]:
        """Return the arm's sum in this epoch, and what it may fall behind."""
        return {"epoch_total": self.total[arm], "loss_budget": self.loss_budget}


def rate_optimal(
    rate: str, horizon: int, n_arms: int, lipschitz: float
) -> tuple[float, float]:
    """Return epoch length ``E`` and budget ``B`` of Theorems 5.2, 5.4 and 6.2."""
    T = float(horizon)
    log_t = math.log(T)
    if rate == "non-smooth":
        return (
            math.pow(lipschitz, -2 / 3) * math.pow(T, 2 / 3) * math.pow(log_t, 1 / 3),
            math.pow(lipschitz, -1 / 3) * math.pow(T, 1 / 3) * math.pow(log_t, 2 / 3),
        )
    length = math.pow(lipschitz, -2 / 5) * math.pow(T, 4 / 5) * math.pow(log_t, 1 / 5)
    if n_arms == 1:
        return (
            length,
            math.pow(lipschitz, -1 / 5) * math.pow(T, 2 / 5) * math.pow(log_t, 3 / 5),
        )
    log_k = math.log(n_arms)
    length *= math.pow(n_arms, -3 / 5) * math.pow(log_k, 1 / 5)
    return length, math.sqrt(length * log_t * log_k / n_arms)


def start_epoch(policy: BudgetedExploration, epoch: int) -> None:
    """Forget the sums of an epoch that is over."""
    if epoch > policy.epoch[0]:
        policy.epoch[0] = epoch
        for i in range(len(policy.pulls)):
            policy.total[i] = 0.0
            policy.epoch_pulls[i] = 0
            policy.alive[i] = True


def next_of_sweep(policy: BudgetedExploration) -> int:
    """Return the alive arm that the sweep owes a pull.

    Where all alive arms have ended for good, the best of the others takes over.
    """
    arm = WAIT
    busy = False
    for i in range(len(policy.pulls)):
        if policy.alive[i] and policy.pulls_left[i] > 0:
            if not policy.available[i]:
                busy = True
            elif arm == WAIT or policy.epoch_pulls[i] < policy.epoch_pulls[arm]:
                arm = i
    if arm != WAIT or busy:
        return arm
    return best_available(policy.available, policy.total, policy.pulls)


def end_sweep(policy: BudgetedExploration) -> None:
    """Drop the arms that have fallen behind, once all alive have had their turn."""
    best = -math.inf
    turns = -1
    for i in range(len(policy.pulls)):
        if policy.alive[i] and policy.pulls_left[i] > 0:
            if turns < 0:
                turns = policy.epoch_pulls[i]
            elif policy.epoch_pulls[i] != turns:
                return
            best = max(best, policy.total[i])
    for i in range(len(policy.pulls)):
        if policy.alive[i] and policy.total[i] < best - policy.loss_budget:
            policy.alive[i] = False
