"""Policies that judge an arm by where its curve will end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from risingsearch.checks import checked_float, checked_range
from risingsearch.policies.arrays import Bools, Floats, Ints
from risingsearch.policies.base import WAIT, arm_arrays, leader, least_pulled
from risingsearch.policies.shared.sums import (
    SLOPE_PULLS,
    append_reward,
    checked_eps,
    prefix_sums,
    refresh_slope,
)


class ScreenedDampedSlope(NamedTuple):
    r"""Screen many arms cheaply, then train where the damped slope points highest.

    The default for tuning: it wants the best model at the end of the budget, not the
    sum of all scores on the way. Two rules make it work on real learning curves.

    *Screening.* How many arms are opened decides more than anything else. A fixed
    share of the budget opens arms, ``r1 = max(1, R // 50)`` epochs each (``R`` is
    ``max_pulls``), so ``K = max(2, floor(screening_share * T / r1))`` of them; the
    best ``promoted_share * K``, by recent average, get ``r1`` more: the better half,
    or a larger part of a list shorter than ``K``.

    *Damped slope.* Curves flatten. With :math:`N` epochs behind the arm, the mean
    :math:`m` and the slope :math:`s \ge 0` of its last windows of
    :math:`h = \max(1, \lfloor \epsilon N \rfloor)` scores, the curve
    :math:`y = a - b / n` through them reaches

    .. math:: m + s N (1 - N / n_2), \qquad n_2 = N + \min(R - N,\; T - t + 1)

    at the last epoch the arm can still get. The highest such end is trained for
    ``1 + floor(N / 4)`` epochs, then the choice is made again; a paused arm comes back
    as soon as its end is the highest.

    With several workers, one waits where the arms in flight could use up all that is
    left of the budget: it would only take from better choices. So a small budget is
    spent as well as by one worker, not as fast as by four.

    When all opened arms have finished, another is opened, so no epoch is left unused.

    Provenance: own rule, from a comparison of 26 schedulers on recorded curves; it has
    no published guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> policy = ScreenedDampedSlope.create(n_arms=4, horizon=20, max_pulls=10)
    >>> rng = np.random.default_rng(0)
    >>> ends = [0.3, 0.9, 0.5, 0.7]
    >>> chosen = []
    >>> for t in range(1, 10):
    ...     arm = policy.select(t, rng)
    ...     chosen.append(arm)
    ...     n = policy.pulls[arm] + 1
    ...     policy.update(t, arm, ends[arm] * (1 - 1 / (n + 1)), rng)
    >>> chosen
    [0, 1, 2, 3, 1, 3, 2, 1, 1]
    """

    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    eps: float
    screening_share: float
    promoted_share: float
    screening_pulls: int  # r1
    ceiling: float  # highest reward possible
    P: Floats  # (n_arms, max_pulls + 1), sums of the rewards
    average: Floats  # (n_arms,), m
    slope: Floats  # (n_arms,), s, per pull
    screened: Floats  # (n_arms,), m after the screening pulls

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        eps: float = 0.25,
        screening_share: float = 0.3,
        promoted_share: float = 0.5,
        reward_range: tuple[float, float] = (-math.inf, math.inf),
    ) -> ScreenedDampedSlope:
        """Return a new policy; for the sizes see ``risingsearch.policies.base``.

        Parameters
        ----------
        eps : float, default 0.25
            Share of an arm's pulls in its window, above 0 and at most 1/2.
        screening_share : float, default 0.3
            Share of the budget that opens arms, above 0 and at most 1.
        promoted_share : float, default 0.5
            Share of the ``K`` arms that get ``r1`` pulls more, above 0 and at most 1.
        reward_range : (float, float), optional
            Lowest and highest reward possible; no projection exceeds the highest.
        """
        limit = horizon if max_pulls is None else max_pulls
        share = checked_float(
            "screening_share", screening_share, 0.0, 1.0, open_low=True
        )
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            eps=checked_eps(eps),
            screening_share=share,
            promoted_share=checked_float(
                "promoted_share", promoted_share, 0.0, 1.0, open_low=True
            ),
            screening_pulls=screening_pulls(limit),
            ceiling=checked_range("reward_range", reward_range)[1],
            P=prefix_sums(n_arms, horizon, max_pulls),
            average=np.zeros(n_arms),
            slope=np.zeros(n_arms),
            screened=np.zeros(n_arms),
        )

    @staticmethod
    def recommended_arms(
        horizon: int, max_pulls: int, *, screening_share: float = 0.3
    ) -> int:
        """Return ``K``, the number of arms that this budget opens."""
        return arms_to_open(screening_share, horizon, screening_pulls(max_pulls))

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return an arm to screen while there is one, then the highest end."""
        arm = arm_to_screen(self)
        if arm != WAIT:
            return arm
        if is_claimed(self.available, self.pulls_left, self.pulls, self.horizon):
            return WAIT
        best = -math.inf
        for i in range(len(self.pulls)):
            if self.available[i] and self.pulls[i] > 0:
                end = min(self.ceiling, self.average[i] + expected_gain(self, i, t))
                arm, best = leader(arm, best, i, end, self.pulls)
        if arm == WAIT:
            return least_pulled(self.available, self.pulls, 1)
        return arm

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Append the reward and refresh the arm's recent average and slope."""
        n = append_reward(self.P, self.pulls, arm, reward)
        record_slope(self.P, self.average, self.slope, arm, n, self.eps)
        if n == self.screening_pulls:
            self.screened[arm] = self.average[arm]

    def slice_length(self, arm: int) -> int:
        """Return ``r1`` while screening, then a quarter of the arm's epochs more."""
        n = self.pulls[arm]
        r1 = self.screening_pulls
        if n < r1:
            return int(r1 - n)
        if n == r1 and arm_to_screen(self) == arm:
            return int(r1)
        return int(1 + n // 4)

    def explain(self, arm: int) -> dict[str, float]:
        """Return recent average and expected gain at the coming round."""
        t = int(self.pulls.sum()) + 1
        gain = expected_gain(self, arm, t) if self.pulls[arm] > 0 else 0.0
        return {"recent_average": self.average[arm], "expected_gain": gain}


def screening_pulls(max_pulls: int) -> int:
    """Return ``r1 = max(1, R // 50)``, the length of the first rung."""
    return max(1, max_pulls // 50)


def arms_to_open(screening_share: float, horizon: float, r1: int) -> int:
    """Return ``K = max(2, floor(screening_share * T / r1))``."""
    return max(2, int(screening_share * horizon / r1))


def arm_to_screen(policy: ScreenedDampedSlope) -> int:
    """Return the arm that the screening pulls next, or ``WAIT`` when it is over.

    First the opened arms that lack some of their ``r1`` pulls, then arms never opened
    up to ``K``, then the best of the promoted share that have yet to be promoted. Arms
    in flight count as opened, and as promoted if this is their second rung, so several
    workers screen without waiting for each other.
    """
    r1 = policy.screening_pulls
    n_opened = 0
    n_promoted = 0
    horizon = 0.0
    unopened = WAIT
    candidate = WAIT
    for i in range(len(policy.pulls)):
        n = policy.pulls[i]
        horizon += policy.horizon[i]
        if n == 0 and policy.available[i]:
            if unopened == WAIT:
                unopened = i
            continue
        n_opened += 1
        if n > r1:
            n_promoted += 1
        elif not policy.available[i]:
            if n == r1 and policy.pulls_left[i] > 0:
                n_promoted += 1
        elif n < r1:
            return i
        elif candidate == WAIT or policy.screened[i] > policy.screened[candidate]:
            candidate = i
    return screening_choice(policy, horizon, n_opened, n_promoted, unopened, candidate)


def screening_choice(
    policy: ScreenedDampedSlope,
    horizon: float,
    n_opened: int,
    n_promoted: int,
    unopened: int,
    candidate: int,
) -> int:
    """Return the unopened arm, the candidate for the second rung, or ``WAIT``.

    ``horizon`` is the sum over the arms.
    """
    n_arms = len(policy.pulls)
    r1 = policy.screening_pulls
    planned = arms_to_open(policy.screening_share, horizon / n_arms, r1)
    k = min(n_arms, planned)
    if n_opened < k and unopened != WAIT:
        return unopened
    # The share is of the screening's own arms: one opened later, when all these have
    # finished, starts no new round of screening.
    if n_promoted < min(k, math.ceil(policy.promoted_share * planned)):
        return candidate
    return WAIT


def is_claimed(
    available: Bools, pulls_left: Ints, pulls: Ints, horizon: Floats
) -> bool:
    """Return whether the arms in flight could use up all that is left of the horizon.

    Training another would take from them, and they were the better choices.
    """
    claimed = 0
    for i in range(len(pulls)):
        if not available[i]:
            claimed += pulls_left[i]
    if claimed == 0:
        return False
    latest = 0.0
    pulled = 0
    for i in range(len(pulls)):
        latest = max(latest, horizon[i])
        pulled += pulls[i]
    return claimed >= latest - pulled


def record_slope(
    sums: Floats, average: Floats, slope: Floats, arm: int, n: int, eps: float
) -> None:
    """Record the mean of the arm's last window, and its slope, 0 where it falls."""
    if n < SLOPE_PULLS:
        average[arm] = sums[arm, n]
        return
    refresh_slope(sums, average, slope, arm, n, eps)
    slope[arm] = max(0.0, slope[arm])


def expected_gain(policy: ScreenedDampedSlope, arm: int, t: int) -> float:
    """Return what the arm gains by the last epoch it can still get."""
    left = epochs_left(policy.pulls_left, policy.horizon, arm, t)
    return damped_gain(policy.slope[arm], float(policy.pulls[arm]), left)


def epochs_left(pulls_left: Ints, horizon: Floats, arm: int, t: int) -> float:
    """Return how many epochs the arm can still get from round ``t`` on."""
    return min(float(pulls_left[arm]), float(horizon[arm]) - t + 1.0)


def highest_end(scores: Sequence[float], max_pulls: int, eps: float = 0.25) -> float:
    """Return where the last slope of an arm's scores leads in a straight line.

    A curve that flattens ends below that, so what cannot win by it cannot win.

    Parameters
    ----------
    scores : sequence of float
        What the arm has paid so far, at least one; higher is better.
    max_pulls : int
        Pulls the arm can give in all.
    eps : float, default 0.25
        Share of the arm's pulls in its window, above 0 and at most 1/2.

    Examples
    --------
    >>> highest_end([0.5, 0.6, 0.7, 0.75], max_pulls=8)
    0.95
    """
    n = len(scores)
    sums = np.concatenate([[0.0], np.cumsum(scores)])[None]
    average, slope = np.zeros(1), np.zeros(1)
    record_slope(sums, average, slope, 0, n, eps)
    return float(average[0] + slope[0] * max(0, max_pulls - n))


def damped_gain(slope: float, n: float, left: float) -> float:
    """Return ``s N (1 - N / n2)``, with ``n2 = N + left`` and at least ``N``."""
    if n == 0.0:
        return 0.0
    return float(slope * n * (1.0 - n / (n + max(0.0, left))))
