"""Budgeted exploration for arms that drift smoothly with time."""

from __future__ import annotations

import math
from typing import NamedTuple

from risingsearch.checks import LARGEST_INT, checked_choice, checked_float
from risingsearch.errors import InvalidParameterError
from risingsearch.policies.arrays import (
    Bools,
    Floats,
    Ints,
    Rng,
    all_true,
    int_zeros,
    zeros,
)
from risingsearch.policies.base import arm_arrays
from risingsearch.policies.shared.race import in_race, next_in_turn

KNOWN_ARM = 0
CHANGING_ARM = 1


class BudgetedExploration(NamedTuple):
    r"""BE: explore each epoch afresh until an arm has lost more than a fixed budget.

    For restless arms, whose rewards drift with the round. The rounds are cut into
    epochs of equal length ``E``; in each one every arm starts anew.

    *k-armed* (Algorithm 2): each epoch sweeps over the arms still alive; after a sweep
    every arm whose sum is more than ``B`` below the best leaves. The last one alive is
    played to the end of the epoch. Where an epoch ends within a sweep the paper leaves
    the remaining rounds open; here the sweep just continues.

    *One-armed* (Algorithm 1; two arms and ``known_reward``): arm 0 pays that constant,
    arm 1 drifts. Each epoch plays arm 1 and adds up its rewards above the constant;
    once this falls below ``-B``, arm 0 is played to the end of the epoch.

    Rate-optimal parameters, with ``L`` = ``lipschitz`` and natural logarithms:

    ==================  ==========================  ==================================
    ``rate``            ``E``                       ``B``
    ==================  ==========================  ==================================
    "smooth" (5.4)      L^-2/5 T^4/5 ln^1/5 T       L^-1/5 T^2/5 ln^3/5 T
    "smooth", k (6.2)   that k^-3/5 ln^1/5 k        sqrt(E ln T ln k / k)
    "non-smooth" (5.2)  L^-2/3 T^2/3 ln^1/3 T       L^-1/3 T^1/3 ln^2/3 T
    ==================  ==========================  ==================================

    Theorem 6.2 holds for smooth arms; with several drifting arms and "non-smooth" the
    one-armed parameters are used, as in the paper's own experiments. Two misprints are
    not followed: a second ``L^-1/5`` in the budget of Theorem 6.2, and the budget of
    section 7.3, which contradicts Theorem 5.4. Constants matter more than rates:
    ``epoch_factor`` and ``budget_factor`` multiply ``E`` and ``B``.

    In a live search a paused training run does not drift, but is forgotten at the end
    of each of these epochs all the same: BE is a faithful baseline, not a good tuner.

    References
    ----------
    Jia, Xie, Kallus, Frazier: "Smooth Non-Stationary Bandits"; Algorithms 1 and 2,
    Theorems 5.2, 5.4 and 6.2.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = BudgetedExploration.create(n_arms=3, horizon=20, budget_factor=0.1)
    >>> policy.epoch_length, round(policy.loss_budget, 2)
    (7, 0.29)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.1, 0.7][arm], 15)
    [0, 1, 2, 0, 2, 2, 2, 0, 1, 2, 0, 2, 2, 2, 0]
    >>> policy = BudgetedExploration.create(
    ...     n_arms=2, horizon=12, known_reward=0.5, budget_factor=0.2
    ... )
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.1][arm], 12)
    [1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    epoch_length: int  # E, in rounds
    loss_budget: float  # B
    one_armed: bool
    known_reward: float  # of arm 0 if so
    epoch_end: Ints  # (1,), last round of the epoch; 0 before the first
    total: Floats  # (n_arms,), rewards of the epoch
    epoch_pulls: Ints  # (n_arms,)
    alive: Bools  # (n_arms,), still in the sweeps of the epoch

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
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        rate : {"smooth", "non-smooth"}, default "smooth"
            BE-S or BE-NS: means of a Lipschitz derivative, or Lipschitz only.
        known_reward : float, optional
            The constant reward of arm 0 of two; Algorithm 1 runs.
        lipschitz : float, default 1.0
            The constant ``L`` of the drift, in horizon units, above 0.
        epoch_factor, budget_factor : float, default 1.0
            Multiply ``E`` and ``B``; above 0.
        """
        checked_choice("rate", rate, ("smooth", "non-smooth"))
        lipschitz = checked_float("lipschitz", lipschitz, 0.0, open_low=True)
        epoch_factor = checked_float("epoch_factor", epoch_factor, 0.0, open_low=True)
        budget_factor = checked_float(
            "budget_factor", budget_factor, 0.0, open_low=True
        )
        n_drifting = n_arms
        if known_reward is not None:
            n_drifting = 1
            known_reward = checked_float("known_reward", known_reward, -math.inf)
            if n_arms != 2:
                raise InvalidParameterError(
                    f"known_reward makes BE one-armed, with 2 arms; got {n_arms}"
                )
        length, budget = rate_optimal(rate, horizon, n_drifting, lipschitz)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            epoch_length=max(1, round(min(LARGEST_INT, epoch_factor * length))),
            loss_budget=budget_factor * budget,
            one_armed=known_reward is not None,
            known_reward=known_reward or 0.0,
            epoch_end=int_zeros(1),
            total=zeros(n_arms),
            epoch_pulls=int_zeros(n_arms),
            alive=all_true(n_arms),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the next arm of the sweep, or the one that is left."""
        begins = t > self.epoch_end[0]
        if self.one_armed:
            arm = KNOWN_ARM
            if begins or self.alive[CHANGING_ARM]:
                arm = CHANGING_ARM
            if self.available[arm]:
                return arm
            return 1 - arm
        if begins:
            return int(self.available.argmax())
        return next_in_turn(
            self.available, self.pulls_left, self.alive, self.epoch_pulls, self.total
        )

    def started(self, t: int, arm: int) -> None:
        """Begin the epoch of round ``t``, unless it has begun."""
        begin_epoch(self, t)

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Add the reward to the epoch it was decided in; late ones count no more."""
        self.pulls[arm] += 1
        # A slice may reach into the next epoch.
        begin_epoch(self, t)
        if t <= self.epoch_end[0] - self.epoch_length:
            return
        if not self.one_armed:
            self.total[arm] += reward
            self.epoch_pulls[arm] += 1
            end_sweep(self, arm)
        elif arm == CHANGING_ARM:
            self.total[arm] += reward - self.known_reward
            if self.total[arm] < -self.loss_budget:
                self.alive[arm] = False

    def explain(self, arm: int) -> dict[str, float]:
        """Return the sum or gain of the arm in this epoch, and the loss it may have."""
        return {
            "epoch_total": self.total[arm],
            "loss_budget": self.loss_budget,
        }


def rate_optimal(
    rate: str,
    horizon: int,
    n_drifting: int,
    lipschitz: float,
) -> tuple[float, float]:
    """Return epoch length ``E`` and budget ``B`` of Theorems 5.2, 5.4 and 6.2.

    Parameters
    ----------
    rate : {"smooth", "non-smooth"}
        Whether the means have a Lipschitz derivative.
    horizon : int
        Number of rounds.
    n_drifting : int
        Arms that drift.
    lipschitz : float
        The constant ``L``.

    Returns
    -------
    tuple of two floats
        ``E`` and ``B``.

    Examples
    --------
    >>> [round(x, 2) for x in rate_optimal("smooth", 20, 3, 1.0)]
    [7.21, 2.81]
    """
    T = float(horizon)
    log_t = math.log(T)

    def product(of_lipschitz: float, of_horizon: float, of_log: float) -> float:
        """Return the product of L, T and ln T with these exponents."""
        return (
            math.pow(lipschitz, of_lipschitz)
            * math.pow(T, of_horizon)
            * math.pow(log_t, of_log)
        )

    if rate == "non-smooth":
        return product(-2 / 3, 2 / 3, 1 / 3), product(-1 / 3, 1 / 3, 2 / 3)
    length = product(-2 / 5, 4 / 5, 1 / 5)
    if n_drifting == 1:
        return length, product(-1 / 5, 2 / 5, 3 / 5)
    log_k = math.log(n_drifting)
    length *= math.pow(n_drifting, -3 / 5) * math.pow(log_k, 1 / 5)
    return length, math.sqrt(length * log_t * log_k / n_drifting)


def begin_epoch(policy: BudgetedExploration, t: int) -> None:
    """Bring all arms back to life, nothing known, where ``t`` is in a new epoch."""
    if t <= policy.epoch_end[0]:
        return
    policy.epoch_end[0] = ((t - 1) // policy.epoch_length + 1) * policy.epoch_length
    for i in range(len(policy.total)):
        policy.total[i] = 0.0
        policy.epoch_pulls[i] = 0
        policy.alive[i] = True


def end_sweep(policy: BudgetedExploration, arm: int) -> None:
    """Drop the arms that have fallen behind, once all in the race had their turn."""
    alive = policy.alive
    pulls_left = policy.pulls_left
    best = -math.inf
    turns = -1
    if in_race(alive, pulls_left, arm):
        turns = policy.epoch_pulls[arm]
    # A sweep ends with its last arm, which is looked at first.
    for i in range(len(alive) - 1, -1, -1):
        if in_race(alive, pulls_left, i):
            if turns < 0:
                turns = policy.epoch_pulls[i]
            elif policy.epoch_pulls[i] != turns:
                return
            best = max(best, policy.total[i])
    for i in range(len(alive)):
        if alive[i] and policy.total[i] < best - policy.loss_budget:
            alive[i] = False
