"""Successive halving: of the arms on a rung, the better part trains on.

All arms are judged after the same number of pulls. An arm that ends early or fails
leaves the rung where it stands.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from risingsearch.checks import checked_int
from risingsearch.policies.arrays import (
    Bools,
    Floats,
    Ints,
    Rng,
    all_true,
    int_zeros,
    zeros,
)
from risingsearch.policies.base import NO_LIMIT, arm_arrays, pull_limit
from risingsearch.policies.shared.race import next_in_round, round_is_over


class SuccessiveHalving(NamedTuple):
    """Successive halving with a fixed budget: equal shares for ever fewer arms.

    Good for tuning with a budget known in advance, above all a large one.

    With ``K`` arms there are ``ceil(log_eta K)`` rungs, and each gets the same share of
    the budget: on rung ``k`` each of the ``|S_k|`` arms left is pulled
    ``max(1, floor(T / (|S_k| n_rungs)))`` more times, then the best
    ``ceil(|S_k| / eta)`` by their last reward continue. The pulls that the rounding
    leaves over train the winner; then the policy stops.

    The floor of one pull is ours: the published rule gives none where the budget is
    smaller than ``K n_rungs``. With ``max_pulls`` no rung asks for more than that.

    References
    ----------
    Karnin, Koren, Somekh: "Almost Optimal Exploration in Multi-Armed Bandits", ICML
    2013, Algorithm 1 (``eta = 2``); Jamieson, Talwalkar: "Non-stochastic Best Arm
    Identification and Hyperparameter Optimization", AISTATS 2016.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = SuccessiveHalving.create(n_arms=4, horizon=16)
    >>> play_alone(policy, lambda arm, n, t: [0.1, 0.4, 0.3, 0.2][arm], 16)
    [0, 0, 1, 1, 2, 2, 3, 3, 1, 1, 1, 1, 2, 2, 2, 2]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    target: Ints  # (n_rungs + 1,), pulls in all by the end of a rung, or no limit
    keep: Ints  # (n_rungs,), arms that continue after it
    rung: Ints  # (1,)
    due: Ints  # (1,), its target
    member: Bools  # (n_arms,), arms on the current rung
    score: Floats  # (n_arms,), last reward
    heap: Ints  # (n_arms,), room to rank the members in

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        eta: int = 2,
    ) -> SuccessiveHalving:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        eta : int, default 2
            One arm in ``eta`` is kept, at least 2.
        """
        limit = pull_limit(horizon, max_pulls)
        sizes = rung_sizes(n_arms, checked_int("eta", eta, 2))
        target = []
        total = 0
        for size in sizes[:-1]:
            total += max(1, horizon // (size * (len(sizes) - 1)))
            target.append(min(total, limit))
        target.append(NO_LIMIT)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            target=np.array(target, dtype=np.int64),
            due=np.array(target[:1], dtype=np.int64),
            keep=np.array(sizes[1:], dtype=np.int64),
            rung=int_zeros(1),
            member=all_true(n_arms),
            score=zeros(n_arms),
            heap=int_zeros(n_arms),
        )

    @staticmethod
    def recommended_arms(horizon: int, max_pulls: int, *, eta: int = 2) -> int:
        """Return ``0.3 T / r1`` arms, or fewer so that all rungs fit the budget.

        Examples
        --------
        >>> SuccessiveHalving.recommended_arms(270, 27)
        45
        """
        n_arms = max(2, int(0.3 * horizon / max(1, max_pulls // 50)))
        while n_arms > 2 and n_arms * (len(rung_sizes(n_arms, eta)) - 1) > horizon:
            n_arms -= 1
        return n_arms

    def select(self, t: int, rng: Rng) -> int:
        """Return the next arm of the rung; ``WAIT`` for the rung's last results."""
        due = self.due[0]
        return next_in_round(
            self.available, self.pulls_left, self.member, self.pulls, due, self.score
        )

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
        """Remember the last reward, and leave the rung if it was the last there."""
        n = self.pulls[arm] + 1
        self.pulls[arm] = n
        self.score[arm] = reward
        if n >= self.due[0] or self.pulls_left[arm] == 0:
            climb(self)

    def slice_length(self, arm: int) -> int:
        """Return the pulls that are missing to the end of the rung."""
        missing = self.due[0] - self.pulls[arm]
        return int(max(1, min(missing, self.pulls_left[arm])))

    def explain(self, arm: int) -> dict[str, float]:
        """Return the rung, whether the arm is still on it, and its last reward."""
        return {
            "rung": self.rung[0],
            "on_rung": self.member[arm],
            "last_reward": self.score[arm],
        }


def rung_sizes(n_arms: int, eta: int) -> list[int]:
    """Return how many arms stand on each rung, down to the winner.

    Examples
    --------
    >>> rung_sizes(10, 3)
    [10, 4, 2, 1]
    """
    sizes = [n_arms]
    while sizes[-1] > 1:
        sizes.append(ceil(sizes[-1] / eta))
    return sizes


def climb(policy: SuccessiveHalving) -> None:
    """Leave the rungs whose results are in."""
    while policy.rung[0] < len(policy.keep) and round_is_over(
        policy.pulls_left, policy.member, policy.pulls, policy.due[0]
    ):
        keep_best(
            policy.member,
            policy.pulls_left,
            policy.score,
            policy.heap,
            policy.keep[policy.rung[0]],
        )
        policy.rung[0] += 1
        policy.due[0] = policy.target[policy.rung[0]]


# These take arrays: a NamedTuple is copied where the compiler does not inline the call.


def keep_best(
    member: Bools,
    pulls_left: Ints,
    score: Floats,
    heap: Ints,
    n_kept: int,
) -> None:
    """Take all but the ``n_kept`` best members off the rung."""
    # They leave from the top of a heap, whose every parent is worse than its children.
    size = 0
    for i in range(len(member)):
        if member[i]:
            heap[size] = i
            size += 1
    for place in range(size // 2 - 1, -1, -1):
        sink(pulls_left, score, heap, place, size)
    while size > n_kept:
        member[heap[0]] = False
        size -= 1
        heap[0] = heap[size]
        sink(pulls_left, score, heap, 0, size)


def sink(
    pulls_left: Ints,
    score: Floats,
    heap: Ints,
    place: int,
    size: int,
) -> None:
    """Let the arm at this place of the heap change places with worse ones below it."""
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and worse(pulls_left, score, heap[child + 1], heap[child]):
            child += 1
        if not worse(pulls_left, score, heap[child], heap[place]):
            return
        above = heap[place]
        heap[place] = heap[child]
        heap[child] = above
        place = child


def worse(
    pulls_left: Ints,
    score: Floats,
    arm: int,
    other: int,
) -> bool:
    """Return whether ``arm`` leaves the rung before ``other``."""
    # First those that can give no more rewards: the next rung has no use for them.
    ended = pulls_left[arm] == 0
    if ended != (pulls_left[other] == 0):
        return bool(ended)
    if score[arm] != score[other]:
        return bool(score[arm] < score[other])
    return arm > other
