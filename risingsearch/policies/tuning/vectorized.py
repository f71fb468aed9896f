"""The default policy over many arms, in numpy: the same choices in less time.

A policy goes through the arms one by one, which is fast when compiled. A live search
interprets it, and then thousands of arms cost milliseconds a decision. Here the same
rules are vectorized over the arms; what few arms decide stays with the policy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from risingsearch.policies.arrays import Bools, Floats
from risingsearch.policies.base import WAIT, Policy
from risingsearch.policies.shared.normal_scores import corrected, normal_score
from risingsearch.policies.tuning.trusted_damped_slope import (
    EXPECTED_PAIRS,
    FEWEST_PAIRS,
    TrustedDampedSlope,
    becomes_control,
    later_look_is_due,
    look_again,
    look_at_new,
    looks_are_over,
    plan_look,
    promote,
    record,
    takes_turns,
)


def vectorized(policy: Policy) -> Any:
    """Return what chooses as the policy does and shares its arrays, or the policy."""
    if isinstance(policy, TrustedDampedSlope):
        return _VectorizedSlope(policy)
    return policy


class _VectorizedSlope:
    """``TrustedDampedSlope``."""

    def __init__(self, policy: TrustedDampedSlope) -> None:
        self._policy = policy

    def select(self, t: int, rng: np.random.Generator) -> int:
        policy = self._policy
        arm = self._arm_to_look_at()
        if arm != WAIT:
            return arm
        claimed = int(policy.pulls_left[~policy.available].sum())
        left = policy.horizon.max(initial=0.0) - int(policy.pulls.sum())
        if claimed and claimed >= left:
            return WAIT
        arm = self._control(t)
        if arm != WAIT:
            return arm
        arm = _highest_end(policy, t)
        if arm == WAIT or policy.pulls[arm] == 0:
            return arm
        if takes_turns(policy, arm, t):
            others = self._on_least_funded_rung(besides=arm)
            if others.any():
                return _highest_end(policy, t, others)
        return arm

    def started(self, t: int, arm: int) -> None:
        policy = self._policy
        if policy.look[arm] == 0:
            plan_look(policy, arm, self._horizon())
        elif policy.pulls[arm] == policy.look[arm]:
            if not policy.promoted[arm] and self._arm_to_look_at() == arm:
                look_again(policy, arm)
            elif self._control(t) == arm:
                policy.control[arm] = True

    def slice_length(self, arm: int) -> int:
        policy = self._policy
        n, look = policy.pulls[arm], policy.look[arm]
        if look == 0:
            return look_at_new(policy, self._horizon())
        if n == look and not policy.promoted[arm] and self._arm_to_look_at() == arm:
            return int(look)
        return int(look - n if n < look else 1 + n // 4)

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        policy = self._policy
        rung = record(policy, arm, reward)
        if rung == WAIT:
            return
        promote(policy, arm, *self.enter_rung(arm, rung))
        policy.step_correlation[0] = self.pooled_correlation()

    def _arm_to_look_at(self) -> int:
        policy = self._policy
        n, look, free = policy.pulls, policy.look, policy.available
        arm = _first(free & (n < look))
        if arm != WAIT:
            return arm
        unopened, horizon = _first(free & (n == 0)), self._horizon()
        if looks_are_over(policy, horizon):
            return unopened if later_look_is_due(policy, horizon) else WAIT
        ended = free & (n > 0) & (n == look) & ~policy.promoted
        return _highest(policy.average, ended) if unopened == WAIT else unopened

    def _horizon(self) -> float:
        horizon = self._policy.horizon
        return float(horizon.cumsum()[-1]) / len(horizon)  # in a policy's order

    def _control(self, t: int) -> int:
        policy = self._policy
        arm = _first(policy.control & (policy.pulls_left > 0))
        if arm != WAIT:
            return arm if policy.available[arm] else WAIT
        n = policy.pulls
        left_behind = policy.available & (n > 0) & (n == policy.look) & ~policy.control
        arm = _first(left_behind)
        n_controls = int(np.count_nonzero(policy.control))
        begins = arm != WAIT and becomes_control(policy, arm, n_controls, t)
        return arm if begins else WAIT

    def _on_least_funded_rung(self, besides: int) -> Bools:
        """Return which available arms are there, but one."""
        policy = self._policy
        others = policy.available & (policy.pulls > 0)
        others[besides] = False
        starts = 2 * policy.first_rung << np.arange(len(policy.rung_pulls) - 1)
        rung = np.searchsorted(starts, policy.pulls, side="right")
        known = np.unique(rung[others])
        if len(known):
            others &= rung == known[policy.rung_pulls[known].argmin()]
        return others

    def enter_rung(self, arm: int, rung: int) -> tuple[int, int]:
        """Rank the arm on a rung; return how many are better, and how many there."""
        policy = self._policy
        n_arms = len(policy.pulls)
        own = slice(rung * n_arms, (rung + 1) * n_arms)
        averages, ranks = policy.rung_average[own], policy.rung_rank[own]
        value = policy.average[arm]
        below, above = averages < value, averages > value
        ranks += above
        ranks -= below
        n_better = int(np.count_nonzero(above))
        n_there = 1 + int(np.count_nonzero(~np.isnan(averages)))
        averages[arm] = value
        ranks[arm] = np.count_nonzero(below) - n_better
        return n_better, n_there

    def pooled_correlation(self) -> float:
        """Return the pooled correlation between scores on a rung and on the next."""
        policy = self._policy
        shape = len(policy.rung_pulls), len(policy.pulls)
        averages = policy.rung_average.reshape(shape)
        ranks = policy.rung_rank.reshape(shape)
        pairs, total = EXPECTED_PAIRS, EXPECTED_PAIRS * policy.expected_correlation
        every = np.flatnonzero(~np.isnan(averages[0]))
        for rung in range(len(ranks) - 1):
            later = every[~np.isnan(averages[rung + 1, every])]
            n_all, n = len(every), len(later)
            if n < FEWEST_PAIRS:
                break
            x_all = normal_score(ranks[rung, every], n_all)
            x = normal_score(ranks[rung, later], n_all)
            y = normal_score(ranks[rung + 1, later], n)
            of_all = n_all, int(x_all.sum()), int(x_all @ x_all)
            of_pairs = x.sum(), y.sum(), x @ x, x @ y, y @ y
            r = corrected(*of_all, n, *map(int, of_pairs))
            pairs += n - 2.0
            total += (n - 2.0) * r
            every = later
        return total / pairs


def _highest_end(policy: TrustedDampedSlope, t: int, among: Bools | None = None) -> int:
    """Return the arm with the highest end, or an unopened one where there is none."""
    free, left = policy.available, policy.pulls_left
    trained = free & (policy.pulls > 0)
    arms = np.flatnonzero(trained if among is None else trained & among)
    if not len(arms):
        return _first(free)
    n = policy.pulls[arms].astype(np.float64)
    rounds_left = policy.horizon[arms] - t + 1.0
    epochs_left = np.maximum(0.0, np.minimum(left[arms], rounds_left))
    end = policy.average[arms] + policy.slope[arms] * n * (1.0 - n / (n + epochs_left))
    end = np.where(end < policy.ceiling, end, policy.ceiling)
    ties = np.flatnonzero(end == end.max())
    return int(arms[ties[n[ties].argmin()]])


def _first(mask: Bools) -> int:
    i = int(mask.argmax())
    return i if mask[i] else WAIT


def _highest(values: Floats, among: Bools) -> int:
    arms = np.flatnonzero(among)
    return int(arms[values[arms].argmax()]) if len(arms) else WAIT
