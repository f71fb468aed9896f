"""Hyperband: successive halving from several starting points."""

from __future__ import annotations

from math import ceil, inf
from typing import NamedTuple

import numpy as np

from risingsearch.checks import checked_int
from risingsearch.policies.arrays import (
    Bools,
    Floats,
    Ints,
    Rng,
    int_zeros,
    zeros,
)
from risingsearch.policies.base import WAIT, arm_arrays, leader, pull_limit
from risingsearch.policies.shared.race import lacks_pulls, next_below, round_is_over
from risingsearch.policies.tuning.successive_halving import keep_best


class Hyperband(NamedTuple):
    """Successive halving from several starting points, one bracket after the other.

    Good for tuning when it is unknown how early scores can be trusted, with a budget of
    several full trainings.

    For ``s = s_max, ..., 0`` a bracket starts ``ceil((s_max + 1) eta^s / (s + 1))``
    arms at ``floor(R eta^-s)`` pulls and keeps one in ``eta`` at each rung, up to
    ``R``; after the last bracket the first comes again. ``s_max`` is the largest with
    ``eta^s_max <= R``, counted in integers: logarithms get 3^5 wrong.

    The paper samples new arms for every bracket. Here a bracket takes the next arms
    that can still train, in the order of their index, and starts over at the first when
    they run out; training is kept, so such an arm resumes where it was. The policy
    stops when every arm has given all its pulls.

    References
    ----------
    Li, Jamieson, DeSalvo, Rostamizadeh, Talwalkar: "Hyperband: A Novel Bandit-Based
    Approach to Hyperparameter Optimization", JMLR 2018, Algorithm 1.

    Examples
    --------
    >>> Hyperband.brackets(81, 3)
    [(81, 1), (34, 3), (15, 9), (8, 27), (5, 81)]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    level: Ints  # (n_brackets, n_brackets), pulls by rung; 0: no such rung
    size: Ints  # (n_brackets, n_brackets), arms by rung
    bracket: Ints  # (1,)
    rung: Ints  # (1,)
    due: Ints  # (1,), its level
    next_arm: Ints  # (1,), first of the next bracket
    member: Bools  # (n_arms,), arms on the current rung
    rewards: Floats  # (n_arms, max_pulls + 1)
    score: Floats  # (n_arms,), reward at the rung's level
    heap: Ints  # (n_arms,), room to rank the members in

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        eta: int = 3,
    ) -> Hyperband:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        eta : int, default 3
            One arm in ``eta`` is kept, at least 2.
        """
        limit = pull_limit(horizon, max_pulls)
        brackets = cls.brackets(limit, checked_int("eta", eta, 2))
        level = int_zeros((len(brackets), len(brackets)))
        size = np.zeros_like(level)
        for b, (n, _) in enumerate(brackets):
            s = len(brackets) - 1 - b
            for i in range(s + 1):
                level[b, i] = max(1, limit // eta ** (s - i))
                size[b, i] = max(1, n // eta**i)
        policy = cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            level=level,
            size=size,
            bracket=int_zeros(1),
            rung=int_zeros(1),
            due=level[0, :1].copy(),
            next_arm=int_zeros(1),
            member=np.zeros(n_arms, dtype=np.bool_),
            rewards=zeros((n_arms, limit + 1)),
            score=zeros(n_arms),
            heap=int_zeros(n_arms),
        )
        start_bracket(policy)
        return policy

    @staticmethod
    def brackets(max_pulls: int, eta: int) -> list[tuple[int, int]]:
        """Return arms and first level of each bracket, from ``s_max`` down to 0.

        Parameters
        ----------
        max_pulls : int
            Pulls an arm can give at most, ``R``.
        eta : int
            One arm in ``eta`` is kept.

        Returns
        -------
        list of pairs of int
            How many arms, and how many pulls each gets first.

        Examples
        --------
        >>> Hyperband.brackets(27, 3)
        [(27, 1), (12, 3), (6, 9), (4, 27)]
        """
        s_max = 0
        while eta ** (s_max + 1) <= max_pulls:
            s_max += 1
        return [
            (ceil((s_max + 1) * eta**s / (s + 1)), max(1, max_pulls // eta**s))
            for s in range(s_max, -1, -1)
        ]

    @staticmethod
    def recommended_arms(horizon: int, max_pulls: int, *, eta: int = 3) -> int:
        """Return the arms of as many brackets as the budget pays for.

        Examples
        --------
        >>> Hyperband.recommended_arms(270, 27)
        31
        """
        brackets = Hyperband.brackets(max_pulls, eta)
        n_arms = sum(n for n, _ in brackets)
        cost = len(brackets) * len(brackets) * max_pulls
        return max(brackets[0][0], ceil(n_arms * horizon / cost))

    def select(self, t: int, rng: Rng) -> int:
        """Return the next arm of the rung; ``WAIT`` for the rung's last results."""
        due = self.due[0]
        arm, busy = next_below(
            self.available, self.pulls_left, self.member, self.pulls, due
        )
        if arm != WAIT or busy:
            return arm
        return promised(self, due)

    def started(self, t: int, arm: int) -> None:
        """Leave a rung whose last result did not come."""
        climb(self)

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Remember the reward by its pull: a later bracket may ask for it."""
        n = self.pulls[arm] + 1
        lacks = lacks_pulls(self.pulls_left, self.member, arm, n, self.due[0])
        self.pulls[arm] = n
        self.rewards[arm, n] = reward
        if not lacks:
            climb(self)

    def slice_length(self, arm: int) -> int:
        """Return the pulls that are missing to the end of the rung."""
        if not self.member[arm]:
            return 1
        return int(max(1, self.due[0] - self.pulls[arm]))

    def explain(self, arm: int) -> dict[str, float]:
        """Return the bracket and the rung, and whether the arm is on it."""
        return {
            "bracket": self.bracket[0],
            "rung": self.rung[0],
            "on_rung": self.member[arm],
        }


def start_bracket(policy: Hyperband) -> None:
    """Make the next arms that can still train, by their index, the members."""
    n_arms = len(policy.pulls)
    missing = policy.size[policy.bracket[0], 0]
    first = policy.next_arm[0]
    policy.member[:] = False
    for i in range(n_arms):
        arm = (first + i) % n_arms
        if missing > 0 and policy.pulls_left[arm] > 0:
            policy.member[arm] = True
            policy.next_arm[0] = (arm + 1) % n_arms
            missing -= 1


def promised(policy: Hyperband, level: int) -> int:
    """Return an arm that trains next in any case, where the last result is missing."""
    # The best on the rung or, after the last rung, the first of the next bracket.
    arm = WAIT
    best = -inf
    if policy.rung[0] + 1 < len(policy.size) - policy.bracket[0]:
        for i in range(len(policy.pulls)):
            if policy.available[i] and policy.member[i]:
                score = policy.rewards[i, min(level, policy.pulls[i])]
                arm, best = leader(arm, best, i, score, policy.pulls)
    if arm != WAIT:
        return arm
    n_arms = len(policy.pulls)
    for i in range(n_arms):
        arm = int((policy.next_arm[0] + i) % n_arms)
        if policy.available[arm]:
            return arm
    return WAIT


def climb(policy: Hyperband) -> None:
    """Leave the rungs and brackets whose results are in."""
    pulls_left = policy.pulls_left
    member = policy.member
    pulls = policy.pulls
    bracket = policy.bracket
    rung = policy.rung
    due = policy.due
    while round_is_over(pulls_left, member, pulls, due[0]) and pulls_left.any():
        if rung[0] + 1 < len(policy.size) - bracket[0]:
            for i in range(len(pulls)):
                policy.score[i] = policy.rewards[i, min(due[0], pulls[i])]
            rung[0] += 1
            size = policy.size[bracket[0], rung[0]]
            keep_best(member, pulls_left, policy.score, policy.heap, size)
        else:
            bracket[0] = (bracket[0] + 1) % len(policy.size)
            rung[0] = 0
            start_bracket(policy)
        due[0] = policy.level[bracket[0], rung[0]]
