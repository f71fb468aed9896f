"""Halving and its relatives: of many arms, the better part trains on.

All of them judge arms against each other after the same number of pulls. An arm that
ends early or fails leaves the race where it stands.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import checked_int
from risingsearch.policies.base import WAIT, arm_arrays, least_pulled
from risingsearch.policies.shared.race import next_below


class SuccessiveHalving(NamedTuple):
    """Successive halving with a fixed budget: equal shares for ever fewer arms.

    Good for tuning with a budget known in advance, above all a large one.

    With ``K`` arms there are ``ceil(log_eta K)`` rungs, and each gets the same share of
    the budget: on rung ``k`` each of the ``|S_k|`` arms left is pulled
    ``max(1, floor(T / (|S_k| n_rungs)))`` more times, then the best
    ``ceil(|S_k| / eta)`` by their last reward go on. What the rounding leaves over
    trains the winner; then the policy stops.

    The floor of one pull is ours: the published rule gives none where the budget is
    smaller than ``K n_rungs``. With ``max_pulls`` no rung asks for more than that.

    References
    ----------
    Karnin, Koren, Somekh: "Almost Optimal Exploration in Multi-Armed Bandits", ICML
    2013, Algorithm 1 (``eta = 2``); Jamieson, Talwalkar: "Non-stochastic Best Arm
    Identification and Hyperparameter Optimization", AISTATS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> policy = SuccessiveHalving.create(n_arms=4, horizon=16)
    >>> rng = np.random.default_rng(0)
    >>> for t in range(1, 17):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, [0.1, 0.4, 0.3, 0.2][arm], rng)
    ...     print(arm, end=" ")
    0 0 1 1 2 2 3 3 1 1 1 1 2 2 2 2
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    target: NDArray[np.int64]  # (n_rungs,), pulls in all by the end of a rung
    keep: NDArray[np.int64]  # (n_rungs,), arms that go on after it
    rung: NDArray[np.int64]  # (1,)
    member: NDArray[np.bool_]  # (n_arms,), arms on the current rung
    score: NDArray[np.float64]  # (n_arms,), last reward
    heap: NDArray[np.int64]  # (n_arms,), room to rank the members in

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        eta: int = 2,
    ) -> SuccessiveHalving:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds ``T``, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.
        eta : int, default 2
            One arm in ``eta`` goes on, at least 2.

        Returns
        -------
        SuccessiveHalving

        Raises
        ------
        InvalidParameterError
            If ``eta`` is outside its range.
        """
        limit = horizon if max_pulls is None else max_pulls
        sizes = rung_sizes(n_arms, checked_int("eta", eta, 2))
        target = []
        total = 0
        for size in sizes[:-1]:
            total += max(1, horizon // (size * (len(sizes) - 1)))
            target.append(min(total, limit))
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            target=np.array(target, dtype=np.int64),
            keep=np.array(sizes[1:], dtype=np.int64),
            rung=np.zeros(1, dtype=np.int64),
            member=np.ones(n_arms, dtype=np.bool_),
            score=np.zeros(n_arms),
            heap=np.zeros(n_arms, dtype=np.int64),
        )

    @staticmethod
    def recommended_arms(horizon: int, max_pulls: int, *, eta: int = 2) -> int:
        """Return ``0.3 T / r1`` arms, or fewer so that all rungs fit the budget."""
        n_arms = max(2, int(0.3 * horizon / max(1, max_pulls // 50)))
        while n_arms > 2 and n_arms * (len(rung_sizes(n_arms, eta)) - 1) > horizon:
            n_arms -= 1
        return n_arms

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the next arm of the rung; ``WAIT`` for the rung's last results."""
        while self.rung[0] < len(self.target):
            target = self.target[self.rung[0]]
            arm, busy = next_below(
                self.available,
                self.pulls_left,
                self.member,
                self.pulls,
                target,
            )
            if arm != WAIT or busy:
                return arm
            keep_best(self, self.keep[self.rung[0]])
            self.rung[0] += 1
        arm, _ = next_below(
            self.available,
            self.pulls_left,
            self.member,
            self.pulls,
            np.iinfo(np.int64).max,
        )
        return arm

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Remember the last reward."""
        self.pulls[arm] += 1
        self.score[arm] = reward

    def slice_length(self, arm: int) -> int:
        """Return the pulls that are missing to the end of the rung."""
        if self.rung[0] < len(self.target):
            return int(max(1, self.target[self.rung[0]] - self.pulls[arm]))
        return int(max(1, self.pulls_left[arm]))

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
        sizes.append(math.ceil(sizes[-1] / eta))
    return sizes


def keep_best(policy: SuccessiveHalving | Hyperband, n_kept: int) -> None:
    """Take all but the ``n_kept`` best members off the rung.

    They leave from the top of a heap, whose every parent is worse than its children.
    """
    heap = policy.heap
    size = 0
    for i in range(len(policy.member)):
        if policy.member[i]:
            heap[size] = i
            size += 1
    for place in range(size // 2 - 1, -1, -1):
        sink(policy, place, size)
    while size > n_kept:
        policy.member[heap[0]] = False
        size -= 1
        heap[0] = heap[size]
        sink(policy, 0, size)


def sink(policy: SuccessiveHalving | Hyperband, place: int, size: int) -> None:
    """Let the arm at this place of the heap change with worse ones below it."""
    heap = policy.heap
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and worse(policy, heap[child + 1], heap[child]):
            child += 1
        if not worse(policy, heap[child], heap[place]):
            return
        above = heap[place]
        heap[place] = heap[child]
        heap[child] = above
        place = child


def worse(policy: SuccessiveHalving | Hyperband, arm: int, other: int) -> bool:
    """Return whether ``arm`` leaves the rung before ``other``.

    First go those that can give no more rewards: the next rung has no use for them.
    Then the lower score; of equals, the higher index.
    """
    ended = policy.pulls_left[arm] == 0
    if ended != (policy.pulls_left[other] == 0):
        return bool(ended)
    if policy.score[arm] != policy.score[other]:
        return bool(policy.score[arm] < policy.score[other])
    return arm > other


class ASHA(NamedTuple):
    """Asynchronous successive halving: promote whoever can be, else open a new arm.

    Good for tuning with many workers, since none ever waits for another.

    Rungs stand at ``min_pulls * eta^k`` pulls, and at ``max_pulls``. From the top down,
    an arm among the best ``floor(n / eta)`` of the ``n`` that have reached a rung, and
    not yet promoted from it, is trained up to the next; if there is none, the next arm
    is opened. When no new arm is left, the best of the highest rung that holds an
    unfinished one is promoted: no worker idles, and the budget is used up.

    References
    ----------
    Li, Jamieson, Rostamizadeh, Gonina, Ben-tzur, Hardt, Recht, Talwalkar: "A System for
    Massively Parallel Hyperparameter Tuning", MLSys 2020, Algorithm 2. What happens
    when the arms run out is ours.

    Examples
    --------
    >>> import numpy as np
    >>> policy = ASHA.create(n_arms=9, horizon=12, max_pulls=9)
    >>> rng = np.random.default_rng(0)
    >>> for t in range(1, 13):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, 0.1 * arm, rng)
    ...     print(arm, end=" ")
    0 1 2 2 2 3 3 3 4 4 4 4
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    eta: int
    level: NDArray[np.int64]  # (n_rungs,), pulls of an arm that reaches a rung
    score: NDArray[np.float64]  # (n_arms, n_rungs), reward on reaching it
    board: NDArray[np.int64]  # (n_rungs, n_arms), arms there, the best first
    reached: NDArray[np.int64]  # (n_rungs,), how many

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
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most, ``R``; by default the horizon.
        eta : int, default 3
            One arm in ``eta`` goes on, at least 2.
        min_pulls : int, default 1
            Pulls before an arm is first judged, ``r``, at least 1.

        Returns
        -------
        ASHA

        Raises
        ------
        InvalidParameterError
            If a parameter is outside its range.
        """
        eta = checked_int("eta", eta, 2)
        limit = horizon if max_pulls is None else max_pulls
        level = rung_levels(checked_int("min_pulls", min_pulls, 1), limit, eta)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            eta=eta,
            level=np.array(level, dtype=np.int64),
            score=np.zeros((n_arms, len(level))),
            board=np.zeros((len(level), n_arms), dtype=np.int64),
            reached=np.zeros(len(level), dtype=np.int64),
        )

    @staticmethod
    def recommended_arms(
        horizon: int, max_pulls: int, *, eta: int = 3, min_pulls: int = 1
    ) -> int:
        """Return as many arms as half the budget opens."""
        return max(2, horizon // (2 * min_pulls))

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return a promotable arm of the highest rung, or one never pulled."""
        arm = between_rungs(self)
        if arm == WAIT:
            arm = promotable(self, self.eta)
        if arm == WAIT:
            arm = least_pulled(self.available, self.pulls, 1)
        if arm == WAIT:
            arm = promotable(self, 1)
        return arm

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Enter the arm on the board of the rung it has reached, if any."""
        self.pulls[arm] += 1
        for rung in range(len(self.level)):
            if self.level[rung] == self.pulls[arm]:
                enter_board(self, rung, arm, reward)

    def slice_length(self, arm: int) -> int:
        """Return the pulls that are missing to the next rung."""
        for level in self.level:
            if level > self.pulls[arm]:
                return int(level - self.pulls[arm])
        return 1

    def explain(self, arm: int) -> dict[str, float]:
        """Return the rung reached, from 1, and the reward there."""
        rung = 0
        while rung < len(self.level) and self.level[rung] <= self.pulls[arm]:
            rung += 1
        return {
            "rung": rung,
            "rung_reward": self.score[arm, rung - 1] if rung else math.nan,
        }


def rung_levels(min_pulls: int, max_pulls: int, eta: int) -> list[int]:
    """Return the pulls at which arms are judged, up to ``max_pulls``.

    Examples
    --------
    >>> rung_levels(1, 50, 3)
    [1, 3, 9, 27, 50]
    """
    levels = [min(min_pulls, max_pulls)]
    while levels[-1] < max_pulls:
        levels.append(min(levels[-1] * eta, max_pulls))
    return levels


def between_rungs(policy: ASHA) -> int:
    """Return an available arm whose promotion was cut short, or ``WAIT``."""
    for i in range(len(policy.pulls)):
        if policy.available[i] and policy.pulls[i] > 0:
            on_level = False
            for rung in range(len(policy.level)):
                if policy.level[rung] == policy.pulls[i]:
                    on_level = True
            if not on_level:
                return i
    return WAIT


def promotable(policy: ASHA, eta: int) -> int:
    """Return the best arm to promote, from the top rung down, or ``WAIT``.

    An arm counts as promoted once it has been pulled beyond the rung or is in flight.
    """
    for rung in range(len(policy.level) - 2, -1, -1):
        for place in range(policy.reached[rung] // eta):
            arm = policy.board[rung, place]
            if policy.available[arm] and policy.pulls[arm] == policy.level[rung]:
                return int(arm)
    return WAIT


def enter_board(policy: ASHA, rung: int, arm: int, reward: float) -> None:
    """Insert the arm behind those that reached the rung with the same or more."""
    policy.score[arm, rung] = reward
    board = policy.board[rung]
    place = policy.reached[rung]
    while place > 0 and policy.score[board[place - 1], rung] < reward:
        board[place] = board[place - 1]
        place -= 1
    board[place] = arm
    policy.reached[rung] += 1


class Hyperband(NamedTuple):
    """Successive halving from several starting points, one bracket after the other.

    Good for tuning when nobody knows how early scores can be trusted, with a budget of
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

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    level: NDArray[np.int64]  # (n_brackets, n_brackets), pulls by rung; 0: no such rung
    size: NDArray[np.int64]  # (n_brackets, n_brackets), arms by rung
    bracket: NDArray[np.int64]  # (1,)
    rung: NDArray[np.int64]  # (1,)
    next_arm: NDArray[np.int64]  # (1,), first of the next bracket
    member: NDArray[np.bool_]  # (n_arms,), arms on the current rung
    rewards: NDArray[np.float64]  # (n_arms, max_pulls + 1)
    score: NDArray[np.float64]  # (n_arms,), reward at the rung's level
    heap: NDArray[np.int64]  # (n_arms,), room to rank the members in

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        eta: int = 3,
    ) -> Hyperband:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most, ``R``; by default the horizon.
        eta : int, default 3
            One arm in ``eta`` goes on, at least 2.

        Returns
        -------
        Hyperband

        Raises
        ------
        InvalidParameterError
            If ``eta`` is outside its range.
        """
        limit = horizon if max_pulls is None else max_pulls
        brackets = cls.brackets(limit, checked_int("eta", eta, 2))
        level = np.zeros((len(brackets), len(brackets)), dtype=np.int64)
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
            bracket=np.zeros(1, dtype=np.int64),
            rung=np.zeros(1, dtype=np.int64),
            next_arm=np.zeros(1, dtype=np.int64),
            member=np.zeros(n_arms, dtype=np.bool_),
            rewards=np.zeros((n_arms, limit + 1)),
            score=np.zeros(n_arms),
            heap=np.zeros(n_arms, dtype=np.int64),
        )
        start_bracket(policy)
        return policy

    @staticmethod
    def brackets(max_pulls: int, eta: int) -> list[tuple[int, int]]:
        """Return arms and first level of each bracket, from ``s_max`` down to 0."""
        s_max = 0
        while eta ** (s_max + 1) <= max_pulls:
            s_max += 1
        return [
            (math.ceil((s_max + 1) * eta**s / (s + 1)), max(1, max_pulls // eta**s))
            for s in range(s_max, -1, -1)
        ]

    @staticmethod
    def recommended_arms(horizon: int, max_pulls: int, *, eta: int = 3) -> int:
        """Return the arms of as many brackets as the budget pays for."""
        brackets = Hyperband.brackets(max_pulls, eta)
        n_arms = sum(n for n, _ in brackets)
        cost = len(brackets) * len(brackets) * max_pulls
        return max(brackets[0][0], math.ceil(n_arms * horizon / cost))

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the next arm of the rung; ``WAIT`` for the rung's last results."""
        while most_pulls_left(self.pulls_left) > 0:
            level = self.level[self.bracket[0], self.rung[0]]
            arm, busy = next_below(
                self.available,
                self.pulls_left,
                self.member,
                self.pulls,
                level,
            )
            if arm != WAIT or busy:
                return arm
            climb(self, level)
        return WAIT

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Remember the reward by its pull: a later bracket may ask for it."""
        self.pulls[arm] += 1
        self.rewards[arm, self.pulls[arm]] = reward

    def slice_length(self, arm: int) -> int:
        """Return the pulls that are missing to the end of the rung."""
        level = self.level[self.bracket[0], self.rung[0]]
        return int(max(1, level - self.pulls[arm]))

    def explain(self, arm: int) -> dict[str, float]:
        """Return the bracket and the rung, and whether the arm is on it."""
        return {
            "bracket": self.bracket[0],
            "rung": self.rung[0],
            "on_rung": self.member[arm],
        }


def most_pulls_left(pulls_left: NDArray[np.int64]) -> int:
    """Return the most pulls that any arm has left."""
    most = 0
    for i in range(len(pulls_left)):
        if pulls_left[i] > most:
            most = pulls_left[i]
    return most


def start_bracket(policy: Hyperband) -> None:
    """Make the next arms that can still train, by their index, the members."""
    n_arms = len(policy.pulls)
    missing = policy.size[policy.bracket[0], 0]
    first = policy.next_arm[0]
    for i in range(n_arms):
        policy.member[i] = False
    for i in range(n_arms):
        arm = (first + i) % n_arms
        if missing > 0 and policy.pulls_left[arm] > 0:
            policy.member[arm] = True
            policy.next_arm[0] = (arm + 1) % n_arms
            missing -= 1


def climb(policy: Hyperband, level: int) -> None:
    """Leave a rung whose results are in: for the next rung, or the next bracket."""
    bracket, rung = policy.bracket, policy.rung
    n_rungs = len(policy.size) - bracket[0]
    if rung[0] + 1 < n_rungs:
        for i in range(len(policy.pulls)):
            policy.score[i] = policy.rewards[i, min(level, policy.pulls[i])]
        rung[0] += 1
        keep_best(policy, policy.size[bracket[0], rung[0]])
    else:
        bracket[0] = (bracket[0] + 1) % len(policy.size)
        rung[0] = 0
        start_bracket(policy)
