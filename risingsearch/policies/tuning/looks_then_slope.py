"""Looks at many arms, a third of which climb from rung to rung, then damped slopes.

Arms rest on rungs until they are chosen again. A bound for each rung and block of arms
spares a decision most of the arms. How long a look has to be is learnt: scores on one
rung are compared with those of the same arms on the next.
"""

from __future__ import annotations

from math import atanh, inf, log, log2, sqrt, tanh
from typing import NamedTuple

import numpy as np

from risingsearch.checks import checked_float, checked_int
from risingsearch.policies.arrays import (
    Bools,
    Floats,
    Ints,
    Rng,
    int_zeros,
    zeros,
)
from risingsearch.policies.base import (
    NO_LIMIT,
    WAIT,
    arm_arrays,
    leader,
    least_pulled,
    pull_limit,
)
from risingsearch.policies.shared.rewards import (
    append_reward,
    damped_gain,
    epochs_left,
    prefix_sums,
    record_slope,
    window_length,
    window_sum,
)

LOOKS, PULLED, NEW, BLOCKS, LAST = range(5)
"""Counts: pulls of all looks as planned, rewards, arms before the first that was never
started, blocks in use; and the arm of the last reward."""
BLOCK = 64  # arms
KEPT = 32
"""Arms, the latest, whose scores say how well a rung tells the next."""
EXPECTED = 0.9
"""Correlation of the scores on two rungs, before any arm has been on both."""
COUNTS_FOR = 6.0
"""Pairs of scores that the expected correlation counts for."""
MOVED = 0.1
"""Least change from rung to rung of a pair that counts, in deviations of scores."""
HIGHEST = 0.995
"""Bound of the correlations: of few pairs even noise may have one near 1."""
FEWEST = 4
"""Pairs that make a correlation."""
TINY = 1e-12


class LooksThenSlope(NamedTuple):
    """Look at many arms, keep a third of them per doubling, then follow the slopes.

    The default for tuning, level with halving and ASHA in test scores; no guarantee.
    *Rungs* are ``r1, 2 r1, 4 r1, ...`` pulls, ``r1 = max(1, R // 50, shortest_look)``.

    - ``opening_share`` of the budget opens arms, and then ``later_share`` of the rest.
      Each gets a look up to the rung from which the best of all looks would end
      highest: that with the highest product of the expected maximum of ``n`` normal
      scores, for the ``n`` looks that the shares pay, and of the correlations of the
      scores on each rung with those on the next, from there to half of an arm's pulls.
      They are learnt from the latest arms on both rungs, but for those that have not
      moved, and corrected for the choice of those that climb (Thorndike 1949, case 2).
    - Of ``n`` arms that have been on a rung, ``floor(kept_share n)`` climb to the next,
      and all while there are too few arms for ``opening_share``: the lowest such rung
      first, and those whose damped slopes end highest.
    - Otherwise the highest end trains for a quarter of its pulls, in turns with the
      highest end on the lowest rung if it is not above the best reward so far.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = LooksThenSlope.create(n_arms=9, horizon=20, max_pulls=9)
    >>> play_alone(policy, lambda arm, n, t: arm * (1 - 1 / (n + 1)), 20)
    [0, 1, 2, 3, 4, 5, 5, 4, 5, 5, 5, 5, 6, 5, 5, 5, 4, 7, 7, 7]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    opening_share: float
    kept_share: float
    later_share: float
    r1: int  # pulls on the first rung
    P: Floats  # (n_arms, max_pulls + 1), sums of the rewards
    average: Floats  # (n_arms,), m
    slope: Floats  # (n_arms,), s, per pull
    goal: Ints  # (n_arms,), pulls up to which the arm trains before a new decision
    reached: Ints  # (n_rungs + 1,), arms that have been on the rung
    planned: Ints  # (n_rungs + 1,), those that have planned to be
    counts: Ints  # (5,), from LOOKS to LAST
    best: Floats  # (1,), highest reward
    behind: Ints  # (n_arms + 1,), how many arms are below their goals, and which
    rung: Ints  # (n_arms,), on which the arm rests, from 1; 0 below its goal
    bound: Floats  # (n_arms,), of the arm's end: m + s N
    block_bound: Floats  # (n_rungs + 1, n_blocks), highest of the arms that rest there
    told: Floats  # (n_links,), rho: how well scores on a rung tell those on the next
    seen: Floats  # (n_links, KEPT), averages of the latest arms that came to the rung
    climbed: Floats  # (n_links, 2, KEPT), of those that came to the next: on both
    spare: Floats  # (KEPT,), for the scores from which a median is taken
    n_seen: Ints  # (n_links,)
    n_climbed: Ints  # (n_links,)

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        opening_share: float = 0.3,
        kept_share: float = 1 / 3,
        later_share: float = 0.2,
        shortest_look: int = 1,
    ) -> LooksThenSlope:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        opening_share : float, default 0.3
            Share of the budget for first looks, above 0 and at most 1.
        kept_share : float, default 1/3
            Share of the arms on a rung that climb to the next, from 0 to 1.
        later_share : float, default 0.2
            Share of the budget after the first looks for later ones, from 0 to 1.
        shortest_look : int, default 1
            In pulls, at least 1; a search takes its ``min_epochs``.
        """
        limit = pull_limit(horizon, max_pulls)
        r1 = first_rung(limit, checked_int("shortest_look", shortest_look, 1))
        opening = checked_float("opening_share", opening_share, 0, 1, open_low=True)
        rungs = int_zeros(rung_of(limit, r1) + 2)
        n_links = rung_of(limit // 2, r1)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            opening_share=opening,
            kept_share=checked_float("kept_share", kept_share, 0, 1),
            later_share=checked_float("later_share", later_share, 0, 1),
            r1=r1,
            P=prefix_sums(n_arms, horizon, max_pulls),
            average=zeros(n_arms),
            slope=zeros(n_arms),
            goal=int_zeros(n_arms),
            reached=rungs,
            planned=rungs.copy(),
            counts=int_zeros(5),
            best=np.full(1, -inf),
            behind=int_zeros(n_arms + 1),
            rung=int_zeros(n_arms),
            bound=zeros(n_arms),
            block_bound=np.full((len(rungs), n_arms // BLOCK + 1), -inf),
            told=np.full(n_links, EXPECTED),
            seen=zeros((n_links, KEPT)),
            climbed=zeros((n_links, 2, KEPT)),
            spare=zeros(KEPT),
            n_seen=int_zeros(n_links),
            n_climbed=int_zeros(n_links),
        )

    @staticmethod
    def recommended_arms(
        horizon: int,
        max_pulls: int,
        *,
        opening_share: float = 0.3,
        later_share: float = 0.2,
        shortest_look: int = 1,
    ) -> int:
        """Return how many arms this budget opens at most.

        Examples
        --------
        >>> LooksThenSlope.recommended_arms(270, 27)
        119
        """
        r1 = first_rung(max_pulls, shortest_look)
        pulls = (opening_share + later_share * (1.0 - opening_share)) * horizon
        return max(2, round(pulls / r1))

    def select(self, t: int, rng: Rng) -> int:
        """Return an arm below its goal, a new one, one that climbs, or the leader."""
        arm, claimed = arm_behind(self)
        if arm == WAIT:
            arm = new_arm(self, t)
        # The better choices in flight have claimed their pulls, maybe all that is left.
        if arm != WAIT or 0 < claimed >= rounds_left(self):
            return arm
        highest = highest_end(self, t, 1, len(self.planned))
        if highest == WAIT:
            return least_pulled(self.available, self.pulls, NO_LIMIT)
        stopped = False
        if self.counts[LAST] == highest:
            rounding = 1e-9 * abs(self.best[0])  # of sums
            stopped = end_of(self, highest, t) <= self.best[0] + rounding
        for rung in range(len(self.planned) - 1):
            if stopped or climbs(self, rung):
                arm = highest_end(self, t, rung + 1, rung + 2)
                if arm != WAIT:
                    return arm
        return highest

    def started(self, t: int, arm: int) -> None:
        """Plan up to which of its pulls the arm trains."""
        goal = next_goal(self, arm)
        counts = self.counts
        if goal > self.goal[arm]:
            if self.pulls[arm] == 0 or has_spare(self, arm):
                counts[LOOKS] += goal - self.pulls[arm]
            pause_on_rung(self, arm, 0)
        count_rungs(self.planned, self.r1, self.goal[arm], goal)
        self.goal[arm] = goal
        while counts[NEW] < len(self.goal) and self.goal[counts[NEW]] > 0:
            counts[NEW] += 1

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Record the reward, and the rung that the arm reaches by it."""
        n = append_reward(self.P, self.pulls, arm, reward)
        record_slope(self.P, self.average, self.slope, arm, n, 0.25)
        self.best[0] = max(self.best[0], reward)
        self.counts[LAST] = arm
        self.counts[PULLED] += 1
        count_rungs(self.reached, self.r1, n - 1, n)
        if n == self.r1 << rung_of(n, self.r1):
            learn(self, arm, rung_of(n, self.r1))
        if n >= self.goal[arm]:
            pause_on_rung(self, arm, 1 + rung_of(n, self.r1))

    def slice_length(self, arm: int) -> int:
        """Return the pulls missing to a look or rung, or a quarter of those so far."""
        return int(next_goal(self, arm) - self.pulls[arm])

    def proposing(self) -> bool:
        """Return whether an arm opened now gets a later look."""
        return not has_spare(self, 0)

    def projection(self, arm: int) -> float:
        """Return where the arm's damped slope ends with all its pulls."""
        return end_of(self, arm, 1)

    def explain(self, arm: int) -> dict[str, float]:
        """Return the recent average, and the gain expected of the epochs left."""
        end = end_of(self, arm, int(self.counts[PULLED]) + 1)
        return {
            "recent_average": self.average[arm],
            "expected_gain": end - self.average[arm],
        }


def first_rung(max_pulls: int, shortest_look: int) -> int:
    """Return ``r1``, the pulls on the first rung.

    Parameters
    ----------
    max_pulls : int
        Pulls an arm can give at most, ``R``.
    shortest_look : int
        Pulls of a look at least.

    Returns
    -------
    int
        A 50th of ``max_pulls``, or the shortest look.

    Examples
    --------
    >>> first_rung(27, 1), first_rung(200, 1)
    (1, 4)
    """
    return max(1, max_pulls // 50, min(shortest_look, max_pulls))


def best_look(told: Floats, r1: int, pulls: float) -> int:
    """Return the pulls of a look after which the best of all looks ends highest.

    Parameters
    ----------
    told : ndarray of shape (n_links,)
        Correlation of the scores on each rung with those on the next.
    r1 : int
        Pulls on the first rung.
    pulls : float
        For all looks together.

    Returns
    -------
    int
        The pulls on a rung.

    Examples
    --------
    >>> best_look(np.array([0.9, 0.9, 0.9]), 1, 45.0)
    1
    >>> best_look(np.array([0.2, 0.4, 0.9]), 1, 45.0)
    4
    """
    best = r1
    highest = -inf
    rho = 1.0
    for rung in range(len(told), -1, -1):
        if rung < len(told):
            rho *= told[rung]
        expected = rho * expected_maximum(pulls / (r1 << rung))
        if expected >= highest:
            highest = expected
            best = r1 << rung
    return best


def expected_maximum(n: float) -> float:
    """Return the expected maximum of ``n`` standard normal numbers, about.

    The quantile of Blom (1958), in Formula 26.2.22 of Abramowitz and Stegun (1964).

    Examples
    --------
    >>> round(expected_maximum(10.0), 2), expected_maximum(1.0)
    (1.55, 0.0)
    """
    if n <= 1.0:
        return 0.0
    far = sqrt(2.0 * log((n + 0.25) / 0.625))
    short_by = (2.30753 + 0.27061 * far) / (1.0 + (0.99229 + 0.04481 * far) * far)
    return far - short_by


def learn(policy: LooksThenSlope, arm: int, rung: int) -> None:
    """Note an average on a rung, and how well the rung before told it."""
    link = rung - 1
    average = policy.average[arm]
    if 0 <= link < len(policy.told):
        before = policy.r1 << link
        window = window_length(0.25, before)
        at = policy.n_climbed[link] % KEPT
        lower = window_sum(policy.P, arm, before - window, before) / window
        policy.climbed[link, 0, at] = lower
        policy.climbed[link, 1, at] = average
        policy.n_climbed[link] += 1
        n_seen = min(KEPT, policy.n_seen[link])
        n_climbed = min(KEPT, policy.n_climbed[link])
        policy.told[link] = correlation(
            policy.seen[link, :n_seen],
            policy.climbed[link, 0, :n_climbed],
            policy.climbed[link, 1, :n_climbed],
            policy.spare,
        )
    if rung < len(policy.told):
        policy.seen[rung, policy.n_seen[rung] % KEPT] = average
        policy.n_seen[rung] += 1


def correlation(seen: Floats, before: Floats, after: Floats, spare: Floats) -> float:
    """Return how well scores on a rung tell those on the next, for arms of all kinds.

    Parameters
    ----------
    seen : ndarray of shape (n_seen,)
        Scores of all arms on the lower rung.
    before, after : ndarray of shape (n_climbed,)
        Scores on both rungs, of the arms that have climbed.
    spare : ndarray
        Is overwritten; at least as long as the others.

    Returns
    -------
    float
        From 0 to ``HIGHEST``; near ``EXPECTED`` for a few arms.

    Examples
    --------
    >>> seen = np.arange(10.0)
    >>> spare = np.empty(10)
    >>> round(correlation(seen, seen, 2.0 * seen + 1.0, spare), 2)
    0.98
    >>> round(correlation(seen, seen, 2.0 * seen[::-1] + 1.0, spare), 2)
    0.6
    """
    lowest = lowest_counted(seen, spare)
    lowest_after = lowest_counted(after, spare)
    spread = deviation(seen, lowest)
    if not spread + deviation(after, lowest_after) < inf:
        return EXPECTED
    n = 0.0
    mean_x = 0.0
    mean_y = 0.0
    xx = 0.0
    yy = 0.0
    xy = 0.0
    for i in range(len(before)):
        x = max(before[i], lowest)
        y = max(after[i], lowest_after)
        if abs(y - x) > MOVED * spread:
            n += 1.0
            from_mean = x - mean_x
            mean_x += from_mean / n
            xx += from_mean * (x - mean_x)
            xy += (n - 1.0) / n * from_mean * (y - mean_y)
            from_mean = y - mean_y
            mean_y += from_mean / n
            yy += from_mean * (y - mean_y)
    if n < FEWEST:
        return EXPECTED
    rho = 0.0
    if 0.0 < xy < inf:
        rho = xy / (sqrt(xx) * sqrt(yy))
        wider = spread / sqrt(xx / n)
        rho *= wider / sqrt(max(TINY, 1.0 - rho * rho) + rho * wider * rho * wider)
    weight = n - FEWEST + 1.0
    total = weight * atanh(min(HIGHEST, rho)) + COUNTS_FOR * atanh(EXPECTED)
    return tanh(total / (weight + COUNTS_FOR))


def lowest_counted(scores: Floats, spare: Floats) -> float:
    """Return the score as far below the median as the best is above it.

    Lower scores count as this one, or one training that diverges would hide the others.
    """
    n = len(scores)
    for i in range(n):
        spare[i] = scores[i]
    highest = spare[spare[:n].argmax()]
    for _ in range((n - 1) // 2):
        spare[spare[:n].argmax()] = -inf
    median = spare[spare[:n].argmax()]
    return float(2.0 * median - highest)


def deviation(scores: Floats, lowest: float) -> float:
    """Return the standard deviation of scores; lower ones count as ``lowest``."""
    mean = 0.0
    squares = 0.0
    for i in range(len(scores)):
        score = max(scores[i], lowest)
        from_mean = score - mean
        mean += from_mean / (i + 1.0)
        squares += from_mean * (score - mean)
    return sqrt(squares / len(scores))


def rung_of(n: int, r1: int) -> int:
    """Return the highest rung that ``n`` pulls have reached; 0 below the first too.

    Examples
    --------
    >>> [rung_of(n, 4) for n in (1, 4, 8, 15, 16)]
    [0, 0, 1, 1, 2]
    """
    return int(log2(max(n, r1) / r1))


def first_looks(policy: LooksThenSlope, arm: int) -> float:
    """Return how many pulls first looks get, were there this arm alone."""
    return float(max(2 * policy.r1, policy.opening_share * policy.horizon[arm]))


def has_spare(policy: LooksThenSlope, arm: int) -> bool:
    """Return whether first looks have not used their share; then all arms climb."""
    return bool(policy.counts[LOOKS] < first_looks(policy, arm))


def new_arm(policy: LooksThenSlope, t: int) -> int:
    """Return a new arm if a look is due, or ``WAIT``."""
    new = int(policy.counts[NEW])
    available = policy.available
    while new < len(available) and (policy.goal[new] > 0 or not available[new]):
        new += 1
    if new == len(available):
        return WAIT
    due = first_looks(policy, new)
    later = policy.later_share * (t - 1.0 - due)
    due += max(0.0, later - look_length(policy, new))
    if policy.counts[LOOKS] < due:
        return new
    return WAIT


def look_length(policy: LooksThenSlope, arm: int) -> int:
    """Return the pulls of a look at a new arm: of the first, as few as can be."""
    if policy.counts[PULLED] == 0:  # then the horizon may not be known in epochs
        return policy.r1
    share = policy.opening_share + policy.later_share * (1.0 - policy.opening_share)
    return best_look(policy.told, policy.r1, share * float(policy.horizon[arm]))


def next_goal(policy: LooksThenSlope, arm: int) -> int:
    """Return up to which of its pulls the arm would train if it were started."""
    n = policy.pulls[arm]
    goal = policy.goal[arm]
    if n < goal:
        return int(goal)
    if n == 0:
        return look_length(policy, arm)
    rung = rung_of(n, policy.r1)
    if climbs(policy, rung):
        return int(policy.r1 << rung + 1)
    return int(n + 1 + n // 4)


def count_rungs(
    counts: Ints,
    r1: int,
    before: int,
    after: int,
) -> None:
    """Count the rungs that an arm comes to between two numbers of pulls."""
    for rung in range(len(counts)):
        counts[rung] += before < r1 << rung <= after


def climbs(policy: LooksThenSlope, rung: int) -> bool:
    """Return whether an arm of this rung is to climb, from the last one to its end."""
    climbing = max(policy.planned[rung + 1], policy.reached[rung + 1])
    kept = int(policy.kept_share * policy.reached[rung])
    return bool(climbing < kept or has_spare(policy, 0))


def pause_on_rung(policy: LooksThenSlope, arm: int, at: int) -> None:
    """Pause an arm on a rung, from 1, or let it train to a goal, 0."""
    rung = policy.rung
    bound = policy.bound
    behind = policy.behind
    block = arm // BLOCK
    row = max(rung[arm], at)
    highest = -inf
    rung[arm] = at
    bound[arm] = policy.average[arm] + policy.slope[arm] * policy.pulls[arm]
    for i in range(block * BLOCK, min(block * BLOCK + BLOCK, len(rung))):
        if rung[i] == row and bound[i] > highest:
            highest = bound[i]
    policy.block_bound[row, block] = highest
    policy.counts[BLOCKS] = max(policy.counts[BLOCKS], block + 1)
    if at == 0:
        behind[0] += 1
        behind[behind[0]] = arm
        return
    for k in range(1, behind[0] + 1):
        if behind[k] == arm:
            behind[k] = behind[behind[0]]
            behind[0] -= 1
            break


def arm_behind(policy: LooksThenSlope) -> tuple[int, float]:
    """Return the first available arm below its goal; and pulls left to the others."""
    arm = WAIT
    claimed = 0
    behind = policy.behind
    for k in range(1, behind[0] + 1):
        if not policy.available[behind[k]]:
            claimed += policy.pulls_left[behind[k]]
        elif arm == WAIT or behind[k] < arm:
            arm = int(behind[k])
    return arm, float(claimed)


def rounds_left(policy: LooksThenSlope) -> float:
    """Return the rounds of the horizon that have no reward yet."""
    latest = policy.horizon[policy.horizon.argmax()]  # max() does not compile
    return float(latest - policy.counts[PULLED])


def highest_end(
    policy: LooksThenSlope,
    t: int,
    first: int,
    below: int,
) -> int:
    """Return the arm that ends highest among those on these rungs, or ``WAIT``."""
    arm = WAIT
    best = -inf
    pulls = policy.pulls
    available = policy.available
    rung = policy.rung
    bound = policy.bound
    for row in range(first, below):
        block_bound = policy.block_bound[row]
        for block in range(policy.counts[BLOCKS]):
            if -inf < block_bound[block] >= best:
                for i in range(block * BLOCK, min(block * BLOCK + BLOCK, len(pulls))):
                    if bound[i] >= best and rung[i] == row and available[i]:
                        end = end_of(policy, i, t)
                        arm, best = leader(arm, best, i, end, pulls)
    return arm


def end_of(policy: LooksThenSlope, arm: int, t: int) -> float:
    """Return where the arm's damped slope ends with all it can get from round ``t``."""
    left = epochs_left(policy.pulls_left, policy.horizon, arm, t)
    gain = damped_gain(policy.slope[arm], float(policy.pulls[arm]), left)
    return float(policy.average[arm] + gain)
