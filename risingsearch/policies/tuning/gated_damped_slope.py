"""Damped slopes after a screening whose width a pilot decides."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from risingsearch.checks import checked_flag, checked_float, checked_range
from risingsearch.policies.arrays import Bools, Floats, Ints
from risingsearch.policies.base import WAIT, arm_arrays, leader, least_pulled
from risingsearch.policies.shared.sums import append_reward, checked_eps, prefix_sums
from risingsearch.policies.tuning.screened_damped_slope import (
    damped_gain,
    epochs_left,
    is_claimed,
    record_slope,
    screening_pulls,
)

PILOT_SHARE = 0.1
PILOT_MIN = 6
PILOT_MAX = 24
OPEN_SHARE, OPEN_PROMOTED = 0.4, 0.2
CLOSED_SHARE, CLOSED_PROMOTED = 0.25, 0.5
FIRST_MIN = 40
FIRST_SHARE = 0.5
OPEN_UNTIL = 0.6
UNKNOWN, CLOSED, OPEN = -1, 0, 1


class GatedDampedSlope(NamedTuple):
    r"""A pilot tells how well first epochs rank; few or many arms are then screened.

    ``ScreenedDampedSlope`` with two questions answered by the run itself instead of by
    constants. With ``r1 = max(1, R // 50)``, ``T`` rounds and ``R`` pulls per arm:

    1. *Pilot.* The first ``n0`` arms get ``2 r1`` epochs each; ``n0`` is a tenth of
       ``T / r1``, between 6 and 24 and at most a quarter of it. Spearman's rank
       correlation between their recent averages after ``r1`` and after ``2 r1`` epochs
       tells whether the first rung ranks arms.
    2. *Gate.* At ``gate`` or above, 40 % of the budget opens arms and the best fifth
       goes on to the second rung; below, 25 % and the better half.
    3. *Screening* and 4. *damped slope* are those of ``ScreenedDampedSlope``, but what
       the screening leaves behind counts as flat until it is trained again.

    With ``late_arms`` and an open gate only half of these arms (40 at least) are
    screened together. The others are opened one by one, evenly over the time up to
    60 % of the budget: by then much is known about what a good configuration looks
    like, and a proposer of the next one can use it, when ``proposing`` says so.

    Provenance: own rule, tuned on public recorded curves; no published guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> policy = GatedDampedSlope.create(n_arms=9, horizon=40, max_pulls=10)
    >>> rng = np.random.default_rng(0)
    >>> chosen = []
    >>> for t in range(1, 21):
    ...     arm = policy.select(t, rng)
    ...     chosen.append(arm)
    ...     n = policy.pulls[arm] + 1
    ...     policy.update(t, arm, (arm + 1) / 10 * (1 - 1 / (n + 1)), rng)
    >>> chosen[:14]
    [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7]
    >>> float(policy.rank_correlation[0]), chosen[14:]
    (1.0, [8, 8, 7, 8, 8, 8])
    """

    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    eps: float
    gate: float
    late_arms: bool
    screening_pulls: int  # r1
    ceiling: float  # highest reward possible
    P: Floats  # (n_arms, max_pulls + 1), sums of the rewards
    average: Floats  # (n_arms,), m
    slope: Floats  # (n_arms,), s, per pull
    first_look: Floats  # (n_arms,), m after r1 pulls
    second_look: Floats  # (n_arms,), m after 2 r1 pulls
    promoted: Bools  # (n_arms,), to the second rung
    parked: Bools  # (n_arms,), left behind by the screening
    rank_correlation: Floats  # (1,), NaN before it is known
    pilot_arms: Ints  # (1,), n0
    gate_state: Ints  # (1,), UNKNOWN, CLOSED or OPEN
    screened_until: Ints  # (1,), last round of the screening; 0 before
    first_arms: Ints  # (1,), arms that were screened together
    planned_for: Floats  # (1,), the horizon of the plan

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        eps: float = 0.25,
        gate: float = 0.8,
        late_arms: bool = False,
        reward_range: tuple[float, float] = (-math.inf, math.inf),
    ) -> GatedDampedSlope:
        """Return a new policy; for the sizes see ``risingsearch.policies.base``.

        Parameters
        ----------
        eps : float, default 0.25
            Share of an arm's pulls in its window, above 0 and at most 1/2.
        gate : float, default 0.8
            Rank correlation from which the first rung is trusted, from -1 to 1.
        late_arms : bool, default False
            Whether to keep arms for later, for a proposer of configurations.
        reward_range : (float, float), optional
            Lowest and highest reward possible; no projection exceeds the highest.
        """
        limit = horizon if max_pulls is None else max_pulls
        r1 = screening_pulls(limit)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            eps=checked_eps(eps),
            gate=checked_float("gate", gate, -1.0, 1.0, open_low=False),
            late_arms=checked_flag("late_arms", late_arms),
            screening_pulls=r1,
            ceiling=checked_range("reward_range", reward_range)[1],
            P=prefix_sums(n_arms, horizon, max_pulls),
            average=np.zeros(n_arms),
            slope=np.zeros(n_arms),
            first_look=np.full(n_arms, math.nan),
            second_look=np.full(n_arms, math.nan),
            promoted=np.zeros(n_arms, dtype=np.bool_),
            parked=np.zeros(n_arms, dtype=np.bool_),
            rank_correlation=np.full(1, math.nan),
            pilot_arms=np.full(1, min(n_arms, pilot_size(horizon / r1))),
            gate_state=np.full(1, UNKNOWN, dtype=np.int64),
            screened_until=np.zeros(1, dtype=np.int64),
            first_arms=np.zeros(1, dtype=np.int64),
            planned_for=np.zeros(1),
        )

    @staticmethod
    def recommended_arms(
        horizon: int, max_pulls: int, *, late_arms: bool = False
    ) -> int:
        """Return the number of arms that this budget opens, were the gate open.

        With late arms there should be more to choose from: one per first rung that the
        whole budget could pay.
        """
        share = 1.0 if late_arms else OPEN_SHARE
        return max(2, int(share * horizon / screening_pulls(max_pulls)))

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return an arm to screen while there is one, then the highest end."""
        arm = arm_to_screen(self, t)
        if arm != WAIT:
            return arm
        if is_claimed(self.available, self.pulls_left, self.pulls, self.horizon):
            return WAIT
        best = -math.inf
        for i in range(len(self.pulls)):
            # No end is higher than this, so most arms need none to be worked out.
            highest = self.average[i] + self.slope[i] * self.pulls[i]
            if self.available[i] and self.pulls[i] > 0 and not highest < best:
                left = epochs_left(self.pulls_left, self.horizon, i, t)
                end = expected_end(self, i, left)
                arm, best = leader(arm, best, i, end, self.pulls)
        if arm == WAIT:
            return least_pulled(self.available, self.pulls, 1)
        return arm

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Append the reward and refresh the arm's recent average and slope."""
        if record_gated(self, arm, reward):
            self.promoted[arm] = is_promising(self, arm)

    def slice_length(self, arm: int) -> int:
        """Return what is missing of a rung, then a quarter of the epochs more."""
        n = self.pulls[arm]
        r1 = self.screening_pulls
        if arm < self.pilot_arms[0] and self.gate_state[0] == UNKNOWN and n < 2 * r1:
            return int(2 * r1 - n)
        if n < r1:
            return int(r1 - n)
        if n < 2 * r1 and self.promoted[arm]:
            return int(2 * r1 - n)
        return int(1 + n // 4)

    def proposing(self) -> bool:
        """Return whether an arm opened now is worth a proposal."""
        return self.late_arms and bool(
            self.gate_state[0] == OPEN and self.screened_until[0] > 0
        )

    def trusts_first_looks(self) -> bool:
        """Return whether the gate is open."""
        return bool(self.gate_state[0] == OPEN)

    def projection(self, arm: int) -> float:
        """Return where the arm's damped slope ends with all its pulls."""
        return expected_end(self, arm, float(self.pulls_left[arm]))

    def explain(self, arm: int) -> dict[str, float]:
        """Return recent average, expected gain, and what the pilot has found."""
        t = int(self.pulls.sum()) + 1
        left = epochs_left(self.pulls_left, self.horizon, arm, t)
        end = expected_end(self, arm, left)
        return {
            "recent_average": self.average[arm],
            "expected_gain": end - self.average[arm],
            "rank_correlation": self.rank_correlation[0],
        }


def pilot_size(n_rungs: float) -> int:
    """Return ``n0`` for a budget of so many first rungs."""
    wanted = min(max(PILOT_MIN, int(PILOT_SHARE * n_rungs)), PILOT_MAX)
    return min(wanted, max(2, int(0.25 * n_rungs)))


def arms_to_open(policy: GatedDampedSlope, horizon: float) -> tuple[int, int]:
    """Return how many arms are screened together, and how many there will be."""
    n_rungs = horizon / policy.screening_pulls
    is_open = policy.gate_state[0] == OPEN
    share = OPEN_SHARE if is_open else CLOSED_SHARE
    total = max(2, min(len(policy.pulls), int(share * n_rungs)))
    total = max(policy.pilot_arms[0], min(total, max(1, int(n_rungs))))
    if not (policy.late_arms and is_open):
        return total, total
    first = min(total, max(FIRST_MIN, math.ceil(FIRST_SHARE * total)))
    return max(policy.pilot_arms[0], first), total


def promoted_share(policy: GatedDampedSlope) -> float:
    """Return the share of the opened arms that go on to the second rung."""
    return OPEN_PROMOTED if policy.gate_state[0] == OPEN else CLOSED_PROMOTED


def expected_end(policy: GatedDampedSlope, arm: int, left: float) -> float:
    """Return where the damped slope ends after the epochs left; flat where parked."""
    slope = 0.0 if policy.parked[arm] else policy.slope[arm]
    gain = damped_gain(slope, float(policy.pulls[arm]), left)
    return float(min(policy.ceiling, policy.average[arm] + gain))


def arm_to_screen(policy: GatedDampedSlope, t: int) -> int:
    """Return the arm that pilot, screening or late opening asks for, or ``WAIT``.

    Arms in flight count as opened, so several workers never wait for each other: those
    that the pilot leaves free open more arms, those that the screening leaves free
    train on.
    """
    if policy.gate_state[0] == UNKNOWN:
        arm = pilot_arm(policy)
        if arm != WAIT:
            return arm
    r1 = policy.screening_pulls
    n_arms = len(policy.pulls)
    horizon = 0.0
    n_opened = 0
    unopened = WAIT
    for i in range(n_arms):
        horizon += policy.horizon[i]
        n = policy.pulls[i]
        if n == 0 and policy.available[i]:
            if unopened == WAIT:
                unopened = i
            continue
        n_opened += 1
        if policy.available[i] and (n < r1 or (n < 2 * r1 and policy.promoted[i])):
            return i
    horizon /= n_arms
    if opens_now(policy, horizon, n_opened) and unopened != WAIT:
        return unopened
    if is_screening(policy):
        arm = arm_to_promote(policy, n_opened)
        if arm != WAIT:
            return arm
    return late_arm(policy, t, horizon, n_opened, unopened)


def opens_now(policy: GatedDampedSlope, horizon: float, n_opened: int) -> bool:
    """Return whether the arms to be screened together are not all opened."""
    first = arms_to_open(policy, horizon)[0]
    return bool(policy.screened_until[0] == 0 and n_opened < first)


def is_screening(policy: GatedDampedSlope) -> bool:
    """Return whether arms are promoted: the gate is set, the screening not over."""
    return bool(policy.screened_until[0] == 0 and policy.gate_state[0] != UNKNOWN)


def late_arm(
    policy: GatedDampedSlope, t: int, horizon: float, n_opened: int, unopened: int
) -> int:
    """Return the unopened arm if a late one is due, or ``WAIT``.

    Enters the end of the screening, once it has come, and plans anew when the budget
    was extended.
    """
    if policy.screened_until[0] == 0:
        if policy.first_arms[0] == 0:
            return WAIT
        policy.screened_until[0] = max(1, t - 1)
        policy.planned_for[0] = horizon
    elif horizon > policy.planned_for[0]:
        policy.first_arms[0] = n_opened
        policy.screened_until[0] = t - 1
        policy.planned_for[0] = horizon
    if unopened == WAIT:
        return WAIT
    since = float(policy.screened_until[0])
    over = max(1.0, OPEN_UNTIL * horizon - since)
    total = arms_to_open(policy, horizon)[1]
    late = (total - policy.first_arms[0]) * min(1.0, (t - 1 - since) / over)
    return unopened if n_opened < policy.first_arms[0] + int(late) else WAIT


def pilot_arm(policy: GatedDampedSlope) -> int:
    """Return the pilot's next arm; once all are through, set the gate.

    ``WAIT`` where there is none: the pilot is over, or all its arms are in flight.
    """
    complete = True
    for i in range(policy.pilot_arms[0]):
        if policy.pulls[i] < 2 * policy.screening_pulls and policy.pulls_left[i] > 0:
            if policy.available[i]:
                return i
            complete = False
    if complete:
        n = policy.pilot_arms[0]
        rho = rank_correlation(policy.first_look, policy.second_look, n)
        policy.rank_correlation[0] = rho
        policy.gate_state[0] = OPEN if rho >= policy.gate else CLOSED
    return WAIT


def arm_to_promote(policy: GatedDampedSlope, n_opened: int) -> int:
    """Return the next arm of the screening for the second rung, or ``WAIT``.

    At the end of the screening, and only then, ``first_arms`` is set, and what was not
    promoted is parked.
    """
    n_promoted = 0
    in_flight = False
    for i in range(len(policy.pulls)):
        if policy.promoted[i]:
            n_promoted += 1
        elif math.isnan(policy.first_look[i]) and policy.pulls_left[i] > 0:
            in_flight = in_flight or policy.pulls[i] > 0 or not policy.available[i]
    quota = math.ceil(promoted_share(policy) * n_opened)
    while n_promoted < quota:
        best = WAIT
        for i in range(len(policy.pulls)):
            # A comparison with NaN, for an arm that has not reached the rung, is False.
            if not policy.promoted[i] and (
                policy.first_look[i] > policy.first_look[best]
                if best != WAIT
                else policy.first_look[i] > -math.inf
            ):
                best = i
        if best == WAIT:
            break
        policy.promoted[best] = True
        n_promoted += 1
        if policy.available[best] and policy.pulls[best] < 2 * policy.screening_pulls:
            return best
    if n_promoted >= quota or not in_flight:
        policy.first_arms[0] = n_opened
        for i in range(len(policy.pulls)):
            policy.parked[i] = policy.pulls[i] > 0 and not policy.promoted[i]
    return WAIT


def record_gated(policy: GatedDampedSlope, arm: int, reward: float) -> bool:
    """Record a reward; return whether it ends the first rung of a late arm."""
    n = append_reward(policy.P, policy.pulls, arm, reward)
    record_slope(policy.P, policy.average, policy.slope, arm, n, policy.eps)
    policy.parked[arm] = False
    if n == policy.screening_pulls:
        policy.first_look[arm] = policy.average[arm]
    if n == 2 * policy.screening_pulls:
        policy.second_look[arm] = policy.average[arm]
    return bool(n == policy.screening_pulls and policy.screened_until[0] > 0)


def is_promising(policy: GatedDampedSlope, arm: int) -> bool:
    """Return whether a late arm's first rung is within the promoted share of all."""
    n_opened = 0
    n_better = 0
    for i in range(len(policy.pulls)):
        if policy.pulls[i] > 0 or not policy.available[i]:
            n_opened += 1
        if policy.first_look[i] > policy.first_look[arm]:
            n_better += 1
    return n_better < promoted_share(policy) * n_opened


def rank_correlation(first: Floats, second: Floats, n: int) -> float:
    """Return Spearman's correlation of the first ``n`` pairs, ties sharing a rank.

    Pairs with a NaN are left out; 1 for fewer than three of them, 0 where all values of
    one kind are equal.
    """
    count = 0
    both = 0.0
    of_first = 0.0
    of_second = 0.0
    for i in range(n):
        if math.isnan(first[i]) or math.isnan(second[i]):
            continue
        count += 1
        # Twice the distance of the rank from its mean: how many are below, less how
        # many are above.
        x = 0
        y = 0
        for j in range(n):
            if not (math.isnan(first[j]) or math.isnan(second[j])):
                x += side(first[i], first[j])
                y += side(second[i], second[j])
        both += x * y
        of_first += x * x
        of_second += y * y
    if count < 3:
        return 1.0
    if of_first == 0.0 or of_second == 0.0:
        return 0.0
    return both / math.sqrt(of_first * of_second)


def side(value: float, other: float) -> int:
    """Return 1 for a value above the other, -1 below, 0 where they are equal."""
    if value > other:
        return 1
    return -1 if value < other else 0
