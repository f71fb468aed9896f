"""ASHA: asynchronous successive halving."""

from __future__ import annotations

from math import nan
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
from risingsearch.policies.base import WAIT, arm_arrays, least_pulled, pull_limit


class ASHA(NamedTuple):
    """Asynchronous successive halving: promote an arm, or else open a new one.

    Good for tuning with many workers, since none ever waits for another.

    Rungs stand at ``min_pulls * eta^k`` pulls, and at ``max_pulls``. From the top down,
    an arm among the best ``floor(n / eta)`` of the ``n`` that have reached a rung, and
    not yet promoted from it, is trained up to the next; if there is none, the next arm
    is opened. When no new arm is left, the best of the highest rung that holds an
    unfinished one is promoted: no worker idles, and the budget is used up.

    References
    ----------
    Li, Jamieson, Rostamizadeh, Gonina, Ben-tzur, Hardt, Recht, Talwalkar: "A System for
    Massively Parallel Hyperparameter Tuning", MLSys 2020, Algorithm 2. The rule for
    when the arms run out is ours.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = ASHA.create(n_arms=9, horizon=12, max_pulls=9)
    >>> play_alone(policy, lambda arm, n, t: 0.1 * arm, 12)
    [0, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 4]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    eta: int
    level: Ints  # (n_rungs,), pulls of an arm that reaches a rung
    score: Floats  # (n_arms, n_rungs), reward on reaching it
    board: Ints  # (n_rungs, n_arms), arms there, the best first
    reached: Ints  # (n_rungs,), how many

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        eta: int = 3,
        min_pulls: int = 1,
    ) -> ASHA:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        eta : int, default 3
            One arm in ``eta`` is kept, at least 2.
        min_pulls : int, default 1
            Pulls before an arm is first judged, ``r``, at least 1.
        """
        eta = checked_int("eta", eta, 2)
        limit = pull_limit(horizon, max_pulls)
        level = rung_levels(checked_int("min_pulls", min_pulls, 1), limit, eta)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            eta=eta,
            level=np.array(level, dtype=np.int64),
            score=zeros((n_arms, len(level))),
            board=int_zeros((len(level), n_arms)),
            reached=int_zeros(len(level)),
        )

    @staticmethod
    def recommended_arms(
        horizon: int,
        max_pulls: int,
        *,
        eta: int = 3,
        min_pulls: int = 1,
    ) -> int:
        """Return as many arms as half the budget opens.

        Examples
        --------
        >>> ASHA.recommended_arms(270, 27)
        135
        """
        return max(2, horizon // (2 * min_pulls))

    def select(self, t: int, rng: Rng) -> int:
        """Return a promotable arm of the highest rung, or one never pulled."""
        arm = between_rungs(self)
        if arm == WAIT:
            arm = promotable(self, self.eta)
        if arm == WAIT:
            arm = least_pulled(self.available, self.pulls, 1)
        if arm == WAIT:
            arm = promotable(self, 1)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Enter the arm on the board of the rung it has reached, if any."""
        self.pulls[arm] += 1
        rung = rungs_reached(self.level, self.pulls[arm]) - 1
        if rung >= 0 and self.level[rung] == self.pulls[arm]:
            enter_board(self, rung, arm, reward)

    def slice_length(self, arm: int) -> int:
        """Return the pulls that are missing to the next rung."""
        rung = rungs_reached(self.level, self.pulls[arm])
        if rung < len(self.level):
            return int(self.level[rung] - self.pulls[arm])
        return 1

    def explain(self, arm: int) -> dict[str, float]:
        """Return the rung reached, from 1, and the reward there."""
        rung = rungs_reached(self.level, self.pulls[arm])
        return {
            "rung": rung,
            "rung_reward": self.score[arm, rung - 1] if rung else nan,
        }


def rung_levels(min_pulls: int, max_pulls: int, eta: int) -> list[int]:
    """Return the pulls at which arms are judged, up to ``max_pulls``.

    Parameters
    ----------
    min_pulls : int
        Pulls on the first rung.
    max_pulls : int
        Pulls on the last.
    eta : int
        How many times as many pulls as on the rung before.

    Examples
    --------
    >>> rung_levels(1, 50, 3)
    [1, 3, 9, 27, 50]
    """
    levels = [min(min_pulls, max_pulls)]
    while levels[-1] < max_pulls:
        levels.append(min(levels[-1] * eta, max_pulls))
    return levels


def rungs_reached(level: Ints, n_pulls: int) -> int:
    """Return on how many rungs an arm has been after so many pulls."""
    rung = 0
    while rung < len(level) and level[rung] <= n_pulls:
        rung += 1
    return rung


def between_rungs(policy: ASHA) -> int:
    """Return an available arm whose promotion was cut short, or ``WAIT``."""
    for i in range(len(policy.pulls)):
        if policy.available[i] and policy.pulls[i] > 0:
            rung = rungs_reached(policy.level, policy.pulls[i])
            if rung == 0 or policy.level[rung - 1] < policy.pulls[i]:
                return i
    return WAIT


def promotable(policy: ASHA, eta: int) -> int:
    """Return the best arm to promote, from the top rung down, or ``WAIT``."""
    # It counts as promoted once it has been pulled beyond the rung or is in flight.
    for rung in range(len(policy.level) - 2, -1, -1):
        for place in range(policy.reached[rung] // eta):
            arm = policy.board[rung, place]
            if policy.available[arm] and policy.pulls[arm] == policy.level[rung]:
                return int(arm)
    return WAIT


def enter_board(
    policy: ASHA,
    rung: int,
    arm: int,
    reward: float,
) -> None:
    """Insert the arm behind those that reached the rung with the same or more."""
    policy.score[arm, rung] = reward
    board = policy.board[rung]
    place = policy.reached[rung]
    while place > 0 and policy.score[board[place - 1], rung] < reward:
        board[place] = board[place - 1]
        place -= 1
    board[place] = arm
    policy.reached[rung] += 1
