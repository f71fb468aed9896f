"""Damped slopes after looks that last as long as early scores can be trusted."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from risingsearch.checks import checked_float, checked_int, checked_range
from risingsearch.policies.arrays import Bools, Floats, Ints
from risingsearch.policies.base import WAIT, arm_arrays, leader, least_pulled
from risingsearch.policies.shared.normal_scores import corrected, normal_score
from risingsearch.policies.shared.rewards import (
    append_reward,
    checked_eps,
    damped_gain,
    epochs_left,
    is_claimed,
    prefix_sums,
    record_slope,
    screening_pulls,
)

EXPECTED_PAIRS = 4.0
FEWEST_PAIRS = 4
LUBY_BASE, LONGEST = 4, 16
NOISE_MARGIN = 2.0
ROUNDING = 1e-9  # of sums, by which a flat arm seems to rise
FEWEST_TO_PROPOSE = 24


class TrustedDampedSlope(NamedTuple):
    r"""Learn from this search what an early score is worth, and look as long as that.

    The default for tuning: it wants the best model at the end of the budget. With
    ``r1 = max(1, R // 50)``, or ``shortest_look`` if that is more, *rungs* are
    ``r1, 2 r1, 4 r1, ...`` pulls of an arm.

    *Trust.* All arms together tell how much a score is worth: ``c`` is the correlation
    between the normal scores (ranks, as quantiles of the normal distribution) of the
    recent averages on a rung and on the next, over the arms that reached both, pooled
    over the rungs by the number of arms less two. The better arms continue, so each is
    corrected for that selection: ``r`` among the selected becomes
    :math:`r u / \sqrt{1 + r^2 (u^2 - 1)}`, with ``u`` the standard deviation of the
    scores of all over that of the selected (Thorndike's case 2). Four pairs of the
    ``expected_correlation`` are there from the start.

    *Looks.* A share of the budget opens arms. While ``c`` is at least ``trust``, a look
    lasts ``r1`` pulls; below, the j-th lasts ``r1`` times the largest power of 4 that
    divides j, up to 16 (a base-4 Luby sequence): these arms were chosen by no score, so
    they tell what early scores hide. An arm among the best ``promoted_share`` at the
    end of its look gets as many pulls again at once; with few arms, whose looks leave
    some of the share, so do the others, the best first.

    *Later looks*, of the highest rung within ``R // 5``, get the ``later_share`` of all
    pulls after the opening share. In an open space these arms are proposed by what is
    known; without one the share is 0.

    *Controls.* Up to ``control_share`` of the budget trains arms to their last pull,
    regardless of their scores: one at a time, the first to be opened of those that had
    nothing but their look. They alone can show what blooms late. A budget of less than
    ten full trainings has none.

    *Damped slope.* Otherwise the arm is trained that will end highest if its recent
    slope flattens as in ``shared/rewards.py``, a quarter of its pulls at a time.

    *Who else?* Where that end is not above the highest reward seen, less two standard
    deviations of the arm's noise, the leader has stopped rising. It then takes turns
    with another: the highest end on the rung that had the fewest pulls so far, so that
    an arm that was left behind early is given its chance.

    Provenance: own rule. Its constants were chosen on recorded curves, and its figures
    are reported for families left out of that choice; no published guarantee. The
    correction is R. L. Thorndike, Personnel Selection (1949); the sequence is Luby,
    Sinclair, Zuckerman (1993), Information Processing Letters 47, with base 4.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = TrustedDampedSlope.create(n_arms=9, horizon=40, max_pulls=10)
    >>> reward = lambda arm, n, t: (arm + 1) / 10 * (1 - 1 / (n + 1))
    >>> chosen = play_alone(policy, reward, 24)
    >>> chosen[:14]
    [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    >>> float(policy.step_correlation[0]) > 0.9, chosen[14:]
    (True, [7, 7, 8, 8, 8, 8, 8, 8, 8, 8])
    """

    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    eps: float
    trust: float
    expected_correlation: float
    opening_share: float
    promoted_share: float
    control_share: float
    later_share: float
    first_rung: int  # r1
    later_look: int
    ceiling: float  # highest reward possible
    P: Floats  # (n_arms, max_pulls + 1), sums of the rewards
    average: Floats  # (n_arms,), m
    slope: Floats  # (n_arms,), s, per pull
    look: Ints  # (n_arms,), pulls of the arm's look; 0 before it is opened
    promoted: Bools  # (n_arms,), the look was doubled
    control: Bools  # (n_arms,), trains to its last pull in any case
    rung_average: Floats  # (n_rungs * n_arms,), m on each rung; NaN before it
    rung_rank: Ints  # (n_rungs * n_arms,), arms below it there, less those above
    rung_pulls: Ints  # (n_rungs,), spent from each rung to the next
    step_correlation: Floats  # (1,), c
    best: Floats  # (1,), highest reward
    last_arm: Ints  # (1,), of the last reward
    n_long_looks: Ints  # (1,), looks drawn from the sequence, j
    n_look_pulls: Ints  # (1,), of all looks as they were planned

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        eps: float = 0.25,
        trust: float = 0.85,
        expected_correlation: float = 0.9,
        opening_share: float = 0.4,
        promoted_share: float = 0.33,
        control_share: float = 0.1,
        later_share: float = 0.0,
        shortest_look: int = 1,
        reward_range: tuple[float, float] = (-math.inf, math.inf),
    ) -> TrustedDampedSlope:
        """Return a new policy; shared parameters: ``risingsearch.policies.base``.

        Parameters
        ----------
        trust : float, default 0.85
            Correlation from which the shortest look is enough, from -1 to 1.
        expected_correlation : float, default 0.9
            What the correlation is believed to be before the first pairs, from -1 to 1.
        opening_share : float, default 0.4
            Share of the budget for the looks at new arms, above 0 and at most 1.
        promoted_share : float, default 0.33
            Share of the arms of a rung whose look is doubled, above 0 and at most 1.
        control_share : float, default 0.1
            Share of the budget for controls, from 0 to 1.
        later_share : float, default 0.0
            Share of what follows the first looks for later ones, from 0 to 1.
        shortest_look : int, default 1
            In pulls, at least 1; a search takes its ``min_epochs``.
        reward_range : (float, float), optional
            Lowest and highest reward possible; no projection exceeds the highest.
        """
        expected = checked_float(
            "expected_correlation", expected_correlation, -1.0, 1.0, open_low=False
        )
        limit = horizon if max_pulls is None else max_pulls
        r1 = first_rung(limit, checked_int("shortest_look", shortest_look, 1))
        n_rungs = rung_of(limit, r1) + 1
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            eps=checked_eps(eps),
            trust=checked_float("trust", trust, -1.0, 1.0, open_low=False),
            expected_correlation=expected,
            opening_share=checked_float(
                "opening_share", opening_share, 0.0, 1.0, open_low=True
            ),
            promoted_share=checked_float(
                "promoted_share", promoted_share, 0.0, 1.0, open_low=True
            ),
            control_share=checked_float(
                "control_share", control_share, 0.0, 1.0, open_low=False
            ),
            later_share=checked_float(
                "later_share", later_share, 0.0, 1.0, open_low=False
            ),
            first_rung=r1,
            later_look=length_of_later_looks(limit, r1),
            ceiling=checked_range("reward_range", reward_range)[1],
            P=prefix_sums(n_arms, horizon, max_pulls),
            average=np.zeros(n_arms),
            slope=np.zeros(n_arms),
            look=np.zeros(n_arms, dtype=np.int64),
            promoted=np.zeros(n_arms, dtype=np.bool_),
            control=np.zeros(n_arms, dtype=np.bool_),
            rung_average=np.full(n_rungs * n_arms, math.nan),
            rung_rank=np.zeros(n_rungs * n_arms, dtype=np.int64),
            rung_pulls=np.zeros(n_rungs, dtype=np.int64),
            step_correlation=np.full(1, expected),
            best=np.full(1, -math.inf),
            last_arm=np.full(1, WAIT),
            n_long_looks=np.zeros(1, dtype=np.int64),
            n_look_pulls=np.zeros(1, dtype=np.int64),
        )

    @staticmethod
    def recommended_arms(
        horizon: int,
        max_pulls: int,
        *,
        opening_share: float = 0.4,
        later_share: float = 0.0,
        shortest_look: int = 1,
    ) -> int:
        """Return how many arms this budget opens while all looks are short."""
        r1 = first_rung(max_pulls, shortest_look)
        per_later_look = length_of_later_looks(max_pulls, r1)
        later = later_share * (1.0 - opening_share) * horizon / per_later_look
        return max(2, int(opening_share * horizon / r1) + int(later))

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return an arm to look at while one is due, a control, or the highest end."""
        arm = arm_to_look_at(self)
        if arm != WAIT:
            return arm
        if is_claimed(self.available, self.pulls_left, self.pulls, self.horizon):
            return WAIT
        arm = control_arm(self, t)
        if arm != WAIT:
            return arm
        arm = highest_end(self, t)
        if arm == WAIT:
            return least_pulled(self.available, self.pulls, 1)
        if takes_turns(self, arm, t):
            rung = least_funded_rung(self, arm)
            return arm if rung == WAIT else highest_end(self, t, rung, arm)
        return arm

    def started(self, t: int, arm: int) -> None:
        """Plan the look of a new arm; after it, double it or make the arm a control."""
        if self.look[arm] == 0:
            plan_look(self, arm, mean_horizon(self.horizon))
        elif self.pulls[arm] == self.look[arm]:
            if not self.promoted[arm] and arm_to_look_at(self) == arm:
                look_again(self, arm)
            elif control_arm(self, t) == arm:
                self.control[arm] = True

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Record the reward; on a rung, learn from it and decide on a longer look."""
        rung = record(self, arm, reward)
        if rung != WAIT:
            n_better, n_there = enter_rung(self, arm, rung)
            promote(self, arm, n_better, n_there)
            self.step_correlation[0] = pooled_correlation(self)

    def slice_length(self, arm: int) -> int:
        """Return the pulls missing of the arm's look, then a quarter of its pulls."""
        n, look = self.pulls[arm], self.look[arm]
        if look == 0:
            return look_at_new(self, mean_horizon(self.horizon))
        if n == look and not self.promoted[arm] and arm_to_look_at(self) == arm:
            return int(look)
        return int(look - n if n < look else 1 + n // 4)

    def proposing(self) -> bool:
        """Return whether an arm opened now is worth a proposal.

        Every second one is while first looks are trusted, and each of a later look.
        """
        if looks_are_over(self, mean_horizon(self.horizon)):
            return True
        n_opened = int(np.count_nonzero(self.pulls))
        enough = n_opened >= FEWEST_TO_PROPOSE and n_opened % 2 == 1
        return enough and self.trusts_first_looks()

    def trusts_first_looks(self) -> bool:
        """Return whether the shortest look is enough."""
        return bool(self.step_correlation[0] >= self.trust)

    def projection(self, arm: int) -> float:
        """Return where the arm's damped slope ends with all its pulls."""
        return end_after(self, arm, float(self.pulls_left[arm]))

    def explain(self, arm: int) -> dict[str, float]:
        """Return recent average, expected gain, and what an early score is worth.

        ``step_correlation`` is the trust ``c``, and ``compared_arms`` how many pairs of
        one arm's rungs it was learnt from. ``control`` is 1 for an arm that trains
        regardless of its scores, and else 0.
        """
        t = int(self.pulls.sum()) + 1
        left = epochs_left(self.pulls_left, self.horizon, arm, t)
        n_later = np.count_nonzero(~np.isnan(self.rung_average[len(self.pulls) :]))
        return {
            "recent_average": self.average[arm],
            "expected_gain": end_after(self, arm, left) - self.average[arm],
            "step_correlation": self.step_correlation[0],
            "compared_arms": float(n_later),
            "control": float(self.control[arm]),
        }


def first_rung(max_pulls: int, shortest_look: int) -> int:
    """Return the pulls of the shortest look."""
    return max(screening_pulls(max_pulls), min(shortest_look, max_pulls))


def length_of_later_looks(max_pulls: int, r1: int) -> int:
    """Return the pulls of a later look."""
    return rung_start(rung_of(max_pulls // 5, r1), r1)


def rung_start(rung: int, r1: int) -> int:
    """Return the pulls at which a rung, from 0, begins: ``r1`` times a power of 2."""
    return r1 << rung


def rung_of(n: int, r1: int) -> int:
    """Return the highest rung that ``n`` pulls have reached; 0 below the first too."""
    rung = 0
    start = 2 * r1
    while start <= n:
        rung += 1
        start *= 2
    return rung


def arm_to_look_at(policy: TrustedDampedSlope) -> int:
    """Return the arm whose look is not over, or a new one if due, or ``WAIT``."""
    unopened = WAIT
    seen = WAIT
    for i in range(len(policy.pulls)):
        if policy.available[i]:
            n = policy.pulls[i]
            if n < policy.look[i]:
                return i
            if n == 0:
                unopened = i if unopened == WAIT else unopened
            elif (
                n == policy.look[i]
                and not policy.promoted[i]
                and (seen == WAIT or policy.average[i] > policy.average[seen])
            ):
                seen = i
    horizon = mean_horizon(policy.horizon)
    if looks_are_over(policy, horizon):
        return unopened if later_look_is_due(policy, horizon) else WAIT
    # Where no arm is unopened, what is left for looks doubles those that are over.
    return seen if unopened == WAIT else unopened


def mean_horizon(horizon: Floats) -> float:
    """Return the mean over the arms."""
    total = 0.0
    for i in range(len(horizon)):
        total += horizon[i]
    return total / len(horizon)


def first_looks(policy: TrustedDampedSlope, horizon: float) -> float:
    """Return how many pulls first looks get."""
    return max(2.0 * policy.first_rung, policy.opening_share * horizon)


def looks_are_over(policy: TrustedDampedSlope, horizon: float) -> bool:
    """Return whether the first of them are planned."""
    return bool(policy.n_look_pulls[0] >= first_looks(policy, horizon))


def later_look_is_due(policy: TrustedDampedSlope, horizon: float) -> bool:
    """Return whether another later look is within its share."""
    first = first_looks(policy, horizon)
    later = policy.n_look_pulls[0] + policy.later_look - first
    n_pulls = 0
    for n in policy.pulls:
        n_pulls += n
    return bool(later <= policy.later_share * (n_pulls - first))


def look_at_new(policy: TrustedDampedSlope, horizon: float) -> int:
    """Return how many pulls the look at a new arm has."""
    r1 = policy.first_rung
    if looks_are_over(policy, horizon):
        return policy.later_look if policy.later_share > 0.0 else r1
    if policy.step_correlation[0] >= policy.trust:
        return r1
    n = min(r1 * luby(policy.n_long_looks[0] + 1), len(policy.P[0]) - 1)
    spent = policy.n_look_pulls[0]
    return r1 if spent > 0 and spent + 0.5 * n > policy.opening_share * horizon else n


def plan_look(policy: TrustedDampedSlope, arm: int, horizon: float) -> None:
    """Plan the look at a new arm."""
    n = look_at_new(policy, horizon)
    trusts = policy.step_correlation[0] >= policy.trust
    if not (looks_are_over(policy, horizon) or trusts):
        policy.n_long_looks[0] += 1
    policy.look[arm] = n
    policy.n_look_pulls[0] += n


def look_again(policy: TrustedDampedSlope, arm: int) -> None:
    """Double the look of an arm, at the cost of further looks."""
    policy.n_look_pulls[0] += policy.look[arm]
    double_look(policy, arm)


def luby(j: int) -> int:
    """Return the largest power of 4 that divides ``j``, 16 at most."""
    n = 1
    while n < LONGEST and j % LUBY_BASE == 0:
        j //= LUBY_BASE
        n *= LUBY_BASE
    return n


def control_arm(policy: TrustedDampedSlope, t: int) -> int:
    """Return the control, or the arm that becomes one, if it can train; or ``WAIT``."""
    arm = WAIT
    n_controls = 0
    for i in range(len(policy.pulls)):
        if policy.control[i]:
            if policy.pulls_left[i] > 0:
                return i if policy.available[i] else WAIT
            n_controls += 1
        elif arm == WAIT and policy.available[i]:
            n = policy.pulls[i]
            arm = i if 0 < n == policy.look[i] else WAIT  # nothing since its look
    return arm if arm != WAIT and becomes_control(policy, arm, n_controls, t) else WAIT


def becomes_control(
    policy: TrustedDampedSlope, arm: int, n_controls: int, t: int
) -> bool:
    """Return whether the budget allows another control after so many."""
    last = len(policy.P[0]) - 1
    left = epochs_left(policy.pulls_left, policy.horizon, arm, t)
    affordable = policy.control_share * policy.horizon[arm]
    return bool(
        policy.pulls[arm] + left >= last and (n_controls + 1) * last <= affordable
    )


def highest_end(
    policy: TrustedDampedSlope, t: int, rung: int = WAIT, besides: int = WAIT
) -> int:
    """Return the arm that ends highest, of a rung if one is given, or ``WAIT``."""
    arm = WAIT
    best = -math.inf
    for i in range(len(policy.pulls)):
        n = policy.pulls[i]
        if n == 0 or not policy.available[i] or i == besides:
            continue
        if rung == WAIT or rung_of(n, policy.first_rung) == rung:
            left = epochs_left(policy.pulls_left, policy.horizon, i, t)
            end = end_after(policy, i, left)
            arm, best = leader(arm, best, i, end, policy.pulls)
    return arm


def end_after(policy: TrustedDampedSlope, arm: int, left: float) -> float:
    """Return where the damped slope ends after the epochs left."""
    gain = damped_gain(policy.slope[arm], float(policy.pulls[arm]), left)
    return float(min(policy.ceiling, policy.average[arm] + gain))


def takes_turns(policy: TrustedDampedSlope, arm: int, t: int) -> bool:
    """Return whether the leader has stopped rising, and had the last turn."""
    if policy.last_arm[0] != arm:
        return False
    left = epochs_left(policy.pulls_left, policy.horizon, arm, t)
    margin = NOISE_MARGIN * noise(policy, arm) - ROUNDING * abs(policy.best[0])
    return bool(end_after(policy, arm, left) <= policy.best[0] - margin)


def noise(policy: TrustedDampedSlope, arm: int) -> float:
    """Return the standard deviation of the arm's noise, from its later half."""
    # Second differences of white noise have six times its variance.
    n = policy.pulls[arm]
    sums = policy.P[arm]
    total = 0.0
    first = max(2, n // 2)
    for j in range(first, n):
        bend = sums[j + 1] - 3.0 * sums[j] + 3.0 * sums[j - 1] - sums[j - 2]
        total += bend * bend
    return math.sqrt(total / (6.0 * (n - first))) if n > first else 0.0


def least_funded_rung(policy: TrustedDampedSlope, besides: int) -> int:
    """Return the rung with the fewest pulls and an available arm, or ``WAIT``."""
    rung = WAIT
    for i in range(len(policy.pulls)):
        if i != besides and policy.available[i] and policy.pulls[i] > 0:
            k = rung_of(policy.pulls[i], policy.first_rung)
            spent = policy.rung_pulls[k]
            if rung == WAIT or (spent, k) < (policy.rung_pulls[rung], rung):
                rung = k
    return rung


def record(policy: TrustedDampedSlope, arm: int, reward: float) -> int:
    """Record a reward; return the rung that the arm has reached by it, or ``WAIT``."""
    n = append_reward(policy.P, policy.pulls, arm, reward)
    record_slope(policy.P, policy.average, policy.slope, arm, n, policy.eps)
    policy.best[0] = max(policy.best[0], reward)
    policy.last_arm[0] = arm
    r1 = policy.first_rung
    if n > r1:
        policy.rung_pulls[rung_of(n - 1, r1)] += 1
    rung = rung_of(n, r1)
    return rung if n == rung_start(rung, r1) else WAIT


def enter_rung(policy: TrustedDampedSlope, arm: int, rung: int) -> tuple[int, int]:
    """Rank the arm on a rung; return how many are better there, and how many are."""
    n_arms = len(policy.pulls)
    first = rung * n_arms
    value = policy.average[arm]
    rank = 0
    n_better = 0
    n_there = 1
    for i in range(first, first + n_arms):
        other = policy.rung_average[i]
        if math.isnan(other):
            continue
        n_there += 1
        if other < value:
            rank += 1
            policy.rung_rank[i] -= 1
        elif other > value:
            rank -= 1
            n_better += 1
            policy.rung_rank[i] += 1
    policy.rung_average[first + arm] = value
    policy.rung_rank[first + arm] = rank
    return n_better, n_there


def promote(policy: TrustedDampedSlope, arm: int, n_better: int, n_there: int) -> None:
    """Double a look that is over, once, if the arm is among the best of its rung."""
    ended = policy.pulls[arm] == policy.look[arm] and not policy.promoted[arm]
    if ended and n_better < policy.promoted_share * n_there:
        double_look(policy, arm)


def double_look(policy: TrustedDampedSlope, arm: int) -> None:
    """Give an arm as many pulls again as its look had."""
    policy.promoted[arm] = True
    policy.look[arm] = 2 * policy.look[arm]


def pooled_correlation(policy: TrustedDampedSlope) -> float:
    """Return ``c``, from the normal scores of the arms on all pairs of rungs."""
    n_arms = len(policy.pulls)
    pairs = EXPECTED_PAIRS
    total = EXPECTED_PAIRS * policy.expected_correlation
    n_all = n_on_rung(policy, 0)
    for rung in range(len(policy.rung_pulls) - 1):
        n = n_on_rung(policy, rung + 1)
        if n < FEWEST_PAIRS:
            break
        x_all = xx_all = x_sum = y_sum = xx = xy = yy = 0
        for i in range(rung * n_arms, (rung + 1) * n_arms):
            if math.isnan(policy.rung_average[i]):
                continue
            x = normal_score(policy.rung_rank[i], n_all)
            x_all += x
            xx_all += x * x
            if not math.isnan(policy.rung_average[i + n_arms]):
                y = normal_score(policy.rung_rank[i + n_arms], n)
                x_sum += x
                y_sum += y
                xx += x * x
                xy += x * y
                yy += y * y
        r = corrected(n_all, x_all, xx_all, n, x_sum, y_sum, xx, xy, yy)
        pairs += n - 2.0
        total += (n - 2.0) * r
        n_all = n
    return total / pairs


def n_on_rung(policy: TrustedDampedSlope, rung: int) -> int:
    """Return how many arms have reached a rung."""
    n_arms = len(policy.pulls)
    n = 0
    for i in range(rung * n_arms, (rung + 1) * n_arms):
        if not math.isnan(policy.rung_average[i]):
            n += 1
    return n
