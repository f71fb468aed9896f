"""The default against a direct implementation of its rules, and its corners."""

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from risingsearch.errors import InvalidParameterError
from risingsearch.policies import WAIT, explain, make_policy, recommended_arms
from risingsearch.policies.shared.normal_scores import CELLS
from risingsearch.policies.tuning.trusted_damped_slope import (
    TrustedDampedSlope,
    luby,
    noise,
)
from risingsearch.policies.tuning.vectorized import vectorized


def normal_scores(values):
    cells = np.floor((stats.rankdata(values) - 0.5) / len(values) * CELLS)
    return stats.norm.ppf((cells + 0.5) / CELLS)


def powers_of_two(first, last):
    while first <= last:
        yield first
        first *= 2


class DirectSearch:
    """One worker that follows the rules to the letter."""

    def __init__(self, rewards, horizon, trust=0.85, control_share=0.1):
        self.rewards = rewards
        self.n_arms, self.R = rewards.shape
        self.T = horizon
        self.trust = trust
        self.control_share = control_share
        self.control = None
        self.controls = set()
        self.look_of = {}  # with what it was doubled by
        self.r1 = max(1, self.R // 50)
        self.rungs = list(powers_of_two(self.r1, self.R))
        self.seen = [[] for _ in range(self.n_arms)]
        self.arms = []
        self.spent = dict.fromkeys(self.rungs, 0)
        self.n_long = 0
        self.looks = {}  # of the arms that have not been promoted

    def train(self, arm, n_epochs):
        for _ in range(n_epochs):
            seen = self.seen[arm]
            if len(self.arms) < self.T and len(seen) < self.R:
                reached = [rung for rung in self.rungs if rung <= len(seen)]
                if reached:
                    self.spent[reached[-1]] += 1
                seen.append(float(self.rewards[arm, len(seen)]))
                self.arms.append(arm)

    def recent(self, arm, n=None):
        seen = self.seen[arm][:n]
        return statistics.fmean(seen[-max(1, len(seen) // 4) :])

    def end(self, arm):
        seen = self.seen[arm]
        n = len(seen)
        h = max(1, n // 4)
        m, slope = self.recent(arm), 0.0
        if n > 1:
            slope = max(0.0, (m - statistics.fmean(seen[-2 * h : -h])) / h)
        left = min(self.R - n, self.T - len(self.arms))
        return m + slope * n * (1 - n / (n + left))

    def correlation(self):
        pairs, total = 4.0, 3.6
        for rung, later in zip(self.rungs, self.rungs[1:], strict=False):
            there = [i for i in range(self.n_arms) if len(self.seen[i]) >= rung]
            on = [i for i in there if len(self.seen[i]) >= later]
            if len(on) < 4:
                continue
            scores = normal_scores([self.recent(i, rung) for i in there])
            x = np.array([scores[there.index(i)] for i in on])
            y = normal_scores([self.recent(i, later) for i in on])
            r = 0.0
            if np.ptp(x) > 0 and np.ptp(y) > 0:
                u = scores.std() / x.std()
                r = np.corrcoef(x, y)[0, 1]
                r = r * u / math.sqrt(1 + r * r * (u * u - 1))
            pairs += len(on) - 2
            total += (len(on) - 2) * r
        return total / pairs

    def look_at(self, arm):
        n = self.r1
        if self.correlation() < self.trust:
            self.n_long += 1
            divisors = [size for size in (1, 4, 16) if self.n_long % size == 0]
            n = min(self.R, self.r1 * divisors[-1])
        if self.looked > 0 and self.looked + n / 2 > 0.4 * self.T:
            n = self.r1
        self.looked += n
        self.looks[arm] = self.look_of[arm] = n
        self.train(arm, n)
        there = [i for i in range(self.n_arms) if len(self.seen[i]) >= n]
        better = sum(self.recent(i, n) > self.recent(arm, n) for i in there)
        if n in self.rungs and better < 0.33 * len(there):
            self.double_look(arm)

    def double_look(self, arm):
        self.look_of[arm] *= 2
        self.train(arm, self.looks.pop(arm))

    def best_of(self, arms):
        return min(arms, key=lambda i: (-self.end(i), len(self.seen[i]), i))

    def run(self):
        opened = self.looked = 0
        while len(self.arms) < self.T:
            live = [i for i in range(opened) if len(self.seen[i]) < self.R]
            due = self.looked < max(2 * self.r1, 0.4 * self.T)
            if opened < self.n_arms and (due or not live):
                opened += 1
                self.look_at(opened - 1)
                continue
            ended = [i for i in live if len(self.seen[i]) == self.looks.get(i)]
            if due and ended:
                arm = max(ended, key=self.recent)
                self.looked += self.looks[arm]
                self.double_look(arm)
                continue
            if not live:
                break
            if (arm := self.next_control(live)) is not None:
                self.train(arm, 1 + len(self.seen[arm]) // 4)
                if len(self.seen[arm]) == self.R:
                    self.control = None
                continue
            arm = self.best_of(live)
            n = len(self.seen[arm])
            bends = np.diff(self.seen[arm][max(2, n // 2) - 2 :], n=2)
            margin = 2 * math.sqrt((bends**2).mean() / 6) if len(bends) else 0.0
            best = max(max(seen) for seen in self.seen if seen)
            if self.arms[-1] == arm and self.end(arm) <= best - margin:
                on = {i: self.rung_of(i) for i in live if i != arm}
                rungs = sorted(set(on.values()))
                least = min(rungs, key=self.spent.get, default=None)
                arm = self.best_of([i for i in on if on[i] == least] or [arm])
            self.train(arm, 1 + len(self.seen[arm]) // 4)
        return self.arms

    def next_control(self, live):
        if self.control is None:
            left_behind = [
                i
                for i in live
                if len(self.seen[i]) == self.look_of[i] and i not in self.controls
            ]
            paid = (len(self.controls) + 1) * self.R <= self.control_share * self.T
            if left_behind and paid:
                rest = self.R - len(self.seen[left_behind[0]])
                if rest <= self.T - len(self.arms):
                    self.control = left_behind[0]
                    self.controls.add(self.control)
        return self.control

    def rung_of(self, arm):
        return max(rung for rung in self.rungs if rung <= len(self.seen[arm]))


@pytest.mark.parametrize("trust", [-1.0, 0.85, 1.0])
@pytest.mark.parametrize(
    ("n_arms", "max_pulls", "horizon"),
    [
        *[(200, 50, 250), (40, 27, 120), (150, 120, 600), (5, 100, 200)],
        *[(30, 12, 250), (60, 27, 600)],
    ],
)
@pytest.mark.parametrize("sd", [0.01, 0.2])
def test_run_equals_the_direct_rule(
    n_arms, max_pulls, horizon, sd, trust, play, concave
):
    for seed in range(2):
        rewards = concave(n_arms, max_pulls, seed, noise=sd)
        policy = TrustedDampedSlope.create(n_arms, horizon, max_pulls, trust=trust)
        direct = DirectSearch(rewards, horizon, trust)
        assert play(policy, rewards, horizon) == direct.run()
        assert policy.step_correlation[0] == pytest.approx(
            direct.correlation(), abs=0.01
        )
        assert len(direct.arms) == min(horizon, n_arms * max_pulls)


def test_without_selection_trust_is_the_rank_correlation():
    rng = np.random.default_rng(0)
    first, later = rng.random(50), rng.random(50)
    later += first
    policy = TrustedDampedSlope.create(50, 1_000, 2)
    for arm in range(50):
        for value in (first[arm], later[arm]):
            policy.update(1, arm, value, rng)
    r = np.corrcoef(normal_scores(first), normal_scores(later))[0, 1]
    assert policy.step_correlation[0] == pytest.approx((48 * r + 3.6) / 52, abs=0.005)


def test_selection_hides_what_a_first_score_is_worth_and_is_corrected():
    rng = np.random.default_rng(1)
    first = rng.standard_normal(4_000)
    later = 0.9 * first + math.sqrt(1 - 0.81) * rng.standard_normal(4_000)
    policy = TrustedDampedSlope.create(4_000, 10_000, 2)
    at_once = vectorized(policy)
    for arm in range(4_000):
        at_once.update(1, arm, first[arm], rng)
    selected = np.argsort(-first)[:400]
    for arm in selected:
        at_once.update(1, int(arm), later[arm], rng)
    assert np.corrcoef(first[selected], later[selected])[0, 1] < 0.7
    assert policy.step_correlation[0] == pytest.approx(0.9, abs=0.03)


def test_equal_scores_tell_nothing():
    rng = np.random.default_rng(0)
    policy = TrustedDampedSlope.create(20, 200, 4)
    for arm in range(20):
        policy.update(1, arm, 0.5, rng)
        policy.update(1, arm, rng.random(), rng)
    assert policy.step_correlation[0] == pytest.approx(3.6 / 22)
    assert not policy.trusts_first_looks()


def test_looks_are_short_while_first_scores_are_trusted():
    assert [luby(j) for j in (1, 2, 3, 4, 8, 12, 15, 16, 32, 64)] == [
        *(1, 1, 1, 4, 4, 4, 1, 16, 16, 16)
    ]


@pytest.mark.parametrize(("trusted", "longest"), [(True, 2), (False, 32)])
def test_looks_get_longer_where_first_scores_mislead(trusted, longest, play):
    rng = np.random.default_rng(3)
    ends = rng.permutation(300)[:, None]
    n = np.arange(1, 51)
    late = ends / 300 * (n > 8)
    early = ends / 300 if trusted else 0.01 * rng.random((300, 50))
    rewards = early * (1 - 1 / (n + 1)) + late
    policy = TrustedDampedSlope.create(300, 500, 50)
    play(policy, rewards, 200)
    assert policy.trusts_first_looks() is trusted
    assert policy.look.max() == longest


def test_a_leader_that_has_stopped_rising_takes_turns(play):
    n = np.arange(1, 41)
    flat = np.full(40, 0.6)
    blooms = np.where(n > 12, 0.9, 0.1)
    arms = play(make_policy("trusted-damped-slope", 2, 40, 40), [flat, blooms], 40)
    assert arms[-10:] == [1] * 10


def late_blooms(n_arms=40, max_pulls=20):
    n = np.arange(1, max_pulls + 1)
    early = np.linspace(0.3, 0.6, n_arms)[:, None] * (1 - 1 / (n + 1))
    return np.where((n == max_pulls) & (np.arange(n_arms) < 20)[:, None], 0.9, early)


def test_a_control_trains_to_its_end_and_finds_what_blooms_late(play):
    rewards = late_blooms()
    policy = make_policy("trusted-damped-slope", 40, 200, 20)
    play(policy, rewards, 200)
    assert policy.best[0] == 0.9
    assert np.flatnonzero(policy.control).size
    assert (policy.pulls[policy.control] == 20).all()


def test_controls_are_as_many_as_their_share_pays_for(play):
    n = np.arange(1, 21)
    rewards = np.linspace(0.9, 0.3, 60)[:, None] * (1 - 1 / (n + 1))
    policy = make_policy("trusted-damped-slope", 60, 800, 20)
    play(policy, rewards, 800)
    assert np.count_nonzero(policy.control) == 4


@pytest.mark.parametrize(("horizon", "share"), [(199, 0.1), (800, 0.0)])
def test_without_a_share_for_a_whole_training_there_is_no_control(horizon, share, play):
    policy = make_policy("trusted-damped-slope", 40, horizon, 20, control_share=share)
    play(policy, late_blooms(), horizon)
    assert not policy.control.any()


def test_a_control_in_flight_is_left_alone():
    rng = np.random.default_rng(0)
    policy = make_policy("trusted-damped-slope", 40, 200, 20)
    rewards = late_blooms()
    for t in range(1, 201):
        arm = policy.select(t, rng)
        policy.started(t, arm)
        if policy.control.any():
            break
        policy.update(t, arm, rewards[arm, policy.pulls[arm]], rng)
        policy.pulls_left[arm] -= 1
        policy.available[arm] = policy.pulls_left[arm] > 0
    assert np.flatnonzero(policy.control).tolist() == [arm]
    policy.available[arm] = False
    assert policy.select(t, rng) not in (arm, WAIT)
    assert np.flatnonzero(policy.control).tolist() == [arm]
    policy.available[arm] = True
    assert policy.select(t, rng) == arm


def test_noise_is_that_of_the_later_half():
    rng = np.random.default_rng(0)
    policy = TrustedDampedSlope.create(1, 2_000)
    for reward in np.linspace(0, 1, 2_000) + 0.03 * rng.standard_normal(2_000):
        policy.update(1, 0, reward, rng)
    assert noise(policy, 0) == pytest.approx(0.03, rel=0.1)


def test_every_second_arm_is_proposed_once_some_are_known():
    rng = np.random.default_rng(0)
    policy = TrustedDampedSlope.create(100, 1_000, 50)
    proposed = []
    for arm in range(40):
        proposed.append(policy.proposing())
        policy.update(1, arm, arm / 100, rng)
    assert proposed == [n >= 24 and n % 2 == 1 for n in range(40)]
    policy.step_correlation[0] = 0.5
    assert not policy.proposing()


def test_it_explains_what_an_early_score_is_worth(play, concave):
    policy = TrustedDampedSlope.create(20, 100, 10)
    play(policy, concave(20, 10, 0), 60)
    index = explain(policy, 0)
    assert set(index) == {
        *("recent_average", "expected_gain", "step_correlation", "compared_arms"),
        "control",
    }
    assert index["step_correlation"] == policy.step_correlation[0]
    pairs = sum(np.count_nonzero(policy.pulls >= rung) for rung in (2, 4, 8))
    assert index["compared_arms"] == pairs


def test_arms_that_the_budget_opens():
    assert recommended_arms("trusted-damped-slope", 250, 50) == 100
    assert recommended_arms("trusted-damped-slope", 300, 120) == 60
    assert recommended_arms("trusted-damped-slope", 300, 120, opening_share=1.0) == 150


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("trust", value) for value in (-1.5, 1.5, math.nan)),
        *(("opening_share", value) for value in (0.0, 1.5)),
        *(("promoted_share", value) for value in (0.0, 1.5)),
        *(("control_share", value) for value in (-0.1, 1.5)),
        ("eps", 0.6),
    ],
)
def test_parameters_outside_their_range_are_refused(name, value):
    with pytest.raises(InvalidParameterError, match=name):
        TrustedDampedSlope.create(3, 10, **{name: value})
