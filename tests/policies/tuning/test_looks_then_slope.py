"""The default against a direct implementation of its rules, and its corners."""

import statistics

import numpy as np
import pytest

from risingsearch import Scheduler
from risingsearch.errors import InvalidParameterError
from risingsearch.policies import explain, make_policy, recommended_arms
from risingsearch.policies.base import WAIT, started
from risingsearch.policies.tuning.looks_then_slope import LooksThenSlope


class DirectSearch:
    """One worker that follows the rules to the letter."""

    def __init__(self, rewards, horizon, opening=0.3, kept=1 / 3, later=0.2):
        self.rewards, self.T = rewards, horizon
        self.opening, self.kept, self.later = opening, kept, later
        self.n_arms, self.R = rewards.shape
        r1 = max(1, self.R // 50)
        self.rungs = [r1 * 2**k for k in range(12)]
        self.looks = r1, max(n for n in self.rungs if n <= max(r1, self.R // 5))
        self.seen = [[] for _ in range(self.n_arms)]
        self.climbed = [set() for _ in self.rungs]
        self.arms = []

    def train(self, arm, n_epochs):
        for _ in range(n_epochs):
            seen = self.seen[arm]
            if len(self.arms) < self.T and len(seen) < self.R:
                seen.append(float(self.rewards[arm, len(seen)]))
                self.arms.append(arm)

    def end(self, arm):
        seen = self.seen[arm]
        n, h = len(seen), max(1, len(seen) // 4)
        m = statistics.fmean(seen[-h:])
        slope = (m - statistics.fmean(seen[-2 * h : -h])) / h if n > 1 else 0.0
        left = min(self.R - n, self.T - len(self.arms))
        return m + max(0.0, slope) * n * (1 - n / (n + left))

    def best_of(self, arms):
        return min(arms, key=lambda i: (-self.end(i), len(self.seen[i]), i))

    def on(self, k, arms):
        n = self.rungs[k], self.rungs[k + 1]
        return [i for i in arms if n[0] <= len(self.seen[i]) < n[1]]

    def to_climb(self, live):
        for k in range(len(self.rungs) - 1):
            if self.climbs(k) and self.on(k, live):
                return k
        return None

    def climbs(self, k):
        there = [s for s in self.seen if len(s) >= self.rungs[k]]
        kept = int(self.kept * len(there))
        return len(self.climbed[k]) < kept or self.planned < self.share

    def plan(self, arm, n):
        for k, start in enumerate(self.rungs[1:]):
            if len(self.seen[arm]) < start <= n:
                self.climbed[k].add(arm)
        self.train(arm, n - len(self.seen[arm]))

    def run(self):
        opened, self.planned = 0, 0
        self.share = share = max(2 * self.looks[0], self.opening * self.T)
        while len(self.arms) < self.T:
            late = self.later * (len(self.arms) - share) - self.looks[1]
            live = [i for i in range(opened) if len(self.seen[i]) < self.R]
            if opened < self.n_arms and (
                self.planned < share + max(0, late) or not live
            ):
                look = self.looks[self.planned >= share]
                self.planned += look
                opened += 1
                self.plan(opened - 1, look)
                continue
            if not live:
                break
            arm, k = self.best_of(live), self.to_climb(live)
            best = max(max(seen) for seen in self.seen if seen)
            if self.arms[-1] == arm and self.end(arm) <= best + 1e-9 * abs(best):
                lowest = next(j for j in range(11) if self.on(j, live))
                arm = self.best_of(self.on(lowest, live))
            elif k is not None:
                arm = self.best_of(self.on(k, live))
            n = len(self.seen[arm])
            k = max(j for j in range(12) if self.rungs[j] <= n)
            goal = self.rungs[k + 1] if self.climbs(k) else n + 1 + n // 4
            self.planned += (goal - n) * (self.planned < share)
            self.plan(arm, goal)
        return self.arms


@pytest.mark.parametrize(
    ("n_arms", "max_pulls", "horizon", "sd"),
    [
        *[(80, 50, 150, 0.01), (40, 27, 120, 0.2), (60, 120, 300, 0.2)],
        *[(5, 100, 200, 0.01), (9, 1, 7, 0.01), (1, 30, 40, 0.01)],
    ],
)
@pytest.mark.parametrize("shares", [(), (0.2, 0.5, 0.4), (0.4, 0.25, 0.0)])
def test_run_equals_the_direct_rule(
    n_arms, max_pulls, horizon, sd, shares, play, concave
):
    names = ("opening_share", "kept_share", "later_share")
    given = dict(zip(names, shares, strict=False))
    rewards = concave(n_arms, max_pulls, 0, noise=sd)
    policy = LooksThenSlope.create(n_arms, horizon, max_pulls, **given)
    expected = DirectSearch(rewards, horizon, *shares).run()
    assert play(policy, rewards, horizon) == expected
    assert len(expected) == min(horizon, n_arms * max_pulls)


def test_a_leader_that_has_stopped_rising_takes_turns(play):
    n = np.arange(1, 41)
    flat = np.full(40, 0.6)
    blooms = np.where(n > 12, 0.9, 0.1)
    arms = play(make_policy("looks-then-slope", 2, 40, 40), [flat, blooms], 40)
    assert arms.count(1) > 12


@pytest.mark.parametrize("later_share", [0.0, 0.4])
def test_later_looks_are_interleaved_and_proposed(later_share):
    rng = np.random.default_rng(0)
    policy = LooksThenSlope.create(200, 200, 20, opening_share=0.2)
    policy = policy._replace(later_share=later_share)
    opened, proposed, t = [], 0, 0
    while t < 200:
        arm = policy.select(t + 1, rng)
        length = policy.slice_length(arm)
        if policy.pulls[arm] == 0:
            opened.append((t, length))
            proposed += policy.proposing()
        started(policy, t + 1, arm)
        for _ in range(min(length, policy.pulls_left[arm], 200 - t)):
            t += 1
            policy.update(t, arm, arm % 7 / 7 - 1 / (policy.pulls[arm] + 1), rng)
            policy.pulls_left[arm] -= 1
            policy.available[arm] = policy.pulls_left[arm] > 0
    assert [length for _, length in opened[:40]] == [1] * 40
    later = [(at, length) for at, length in opened if at >= 40]
    assert all(length == 4 for _, length in later)
    assert len(later) == proposed
    due = [4 * (k + 1) <= later_share * (at - 40) for k, (at, _) in enumerate(later)]
    assert all(due)
    assert 4 * len(later) == pytest.approx(later_share * 160, abs=8)


def test_more_budget_opens_more_arms_and_leaves_nothing_unspent():
    search = Scheduler("looks-then-slope", 90, 100, 10, n_jobs=3, seed=0)

    def spend():
        jobs = []
        while True:
            while (job := search.ask()) is not None:
                jobs.append(job)
            if not jobs:
                return
            job = jobs.pop(0)
            epochs = range(job.from_epoch + 1, job.from_epoch + job.n_epochs + 1)
            search.tell(job, [job.arm % 9 - 1 / epoch for epoch in epochs])

    spend()
    before = sum(arm.epochs > 0 for arm in search.explain())
    search.extend(60)
    spend()
    assert search.n_epochs == 160
    assert sum(arm.epochs > 0 for arm in search.explain()) > before


def test_what_is_in_flight_counts_as_climbing():
    rng = np.random.default_rng(0)
    policy = LooksThenSlope.create(30, 800, 16, opening_share=0.0375)
    for arm in range(30):
        started(policy, 1, arm)
        policy.update(1, arm, arm / 30, rng)
    for expected in range(29, 19, -1):
        arm = policy.select(31, rng)
        assert (arm, policy.slice_length(arm)) == (expected, 1)
        started(policy, 31, arm)
        policy.available[arm] = False
    policy.update(31, 29, 1.0, rng)
    policy.available[29] = True
    assert policy.select(31, rng) == 29  # no eleventh climbs, the leader goes on


@pytest.mark.parametrize(("horizon", "claimed"), [(24, True), (25, False)])
def test_arms_in_flight_claim_what_they_could_use(horizon, claimed):
    rng = np.random.default_rng(0)
    policy = LooksThenSlope.create(4, horizon, 10)
    for arm in (0, 1, 2, 3) * 2:
        started(policy, 1, arm)
        policy.update(1, arm, arm / 4, rng)
    policy.pulls_left[:] = 8
    for arm in (3, 2):
        started(policy, 9, arm)
        policy.available[arm] = False
    assert (policy.select(15, rng) == WAIT) == claimed


def test_rewards_beyond_all_bounds_choose_an_arm():
    policy, rng = make_policy("looks-then-slope", 4, 40, 10), np.random.default_rng(0)
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(1, 41):
            arm = policy.select(t, rng)
            assert policy.available[arm]
            policy.update(t, arm, 1e308 * (arm + 1), rng)
            policy.pulls_left[arm] -= 1
            policy.available[arm] = policy.pulls_left[arm] > 0


def test_it_explains_where_an_arm_is_and_what_it_may_gain(play, concave):
    policy = LooksThenSlope.create(20, 100, 10)
    play(policy, concave(20, 10, 0), 60)
    index = explain(policy, 0)
    assert set(index) == {"recent_average", "expected_gain"}
    assert sum(index.values()) >= policy.average[0]


def test_arms_that_the_budget_opens():
    def opened(*sizes, **given):
        return recommended_arms("looks-then-slope", *sizes, **given)

    assert opened(200, 50) == 60 + 200 * 0.2 * 0.7 // 8
    assert opened(300, 120, later_share=0.0) == 45
    assert opened(300, 120, opening_share=1.0) == 150


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("opening_share", value) for value in (0.0, 1.5)),
        *(("kept_share", value) for value in (-0.1, 1.5)),
        *(("later_share", value) for value in (-0.1, 1.5)),
        ("shortest_look", 0),
    ],
)
def test_parameters_outside_their_range_are_refused(name, value):
    with pytest.raises(InvalidParameterError, match=name):
        LooksThenSlope.create(3, 10, **{name: value})
