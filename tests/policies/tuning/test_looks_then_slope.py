"""The default against a direct implementation of its rules, and its corners."""

import statistics

import numpy as np
import pytest

from risingsearch import Scheduler
from risingsearch.errors import InvalidParameterError
from risingsearch.policies import explain, make_policy, recommended_arms
from risingsearch.policies.base import WAIT, started
from risingsearch.policies.tuning.looks_then_slope import LooksThenSlope


def lowest_counted(scores):
    return 2 * sorted(scores)[len(scores) // 2] - max(scores)


def correlation_of_all(lower, pairs):
    """How well scores on a rung tell those on the next, by the textbook."""
    x, y = np.array(pairs[-32:]).T
    lowest = lowest_counted(lower[-32:])
    spread = np.maximum(lower[-32:], lowest).std()
    x, y = np.maximum(x, lowest), np.maximum(y, lowest_counted(y))
    has_moved = abs(y - x) > 0.1 * spread
    x, y = x[has_moved], y[has_moved]
    if len(x) < 4:
        return 0.9
    rho = 0.0
    if x.std() * y.std() > 0:
        rho = np.corrcoef(x, y)[0, 1]
        wider = spread / x.std()
        rho = rho * wider / np.sqrt(1 - rho**2 + (rho * wider) ** 2)
    z = np.arctanh(np.clip(rho, 0, 0.995)), np.arctanh(0.9)
    return np.tanh(np.average(z, weights=[len(x) - 3, 6]))


class DirectSearch:
    """One worker that follows the rules to the letter."""

    def __init__(self, rewards, horizon, opening=0.3, kept=1 / 3, later=0.2):
        self.rewards, self.T = rewards, horizon
        self.opening, self.kept, self.later = opening, kept, later
        self.n_arms, self.R = rewards.shape
        r1 = max(1, self.R // 50)
        self.rungs = [r1 * 2**k for k in range(12)]
        n_links = sum(r1 < n <= self.R // 2 for n in self.rungs)
        self.lower = [[] for _ in range(n_links)]  # averages of all arms on a rung
        self.pairs = [[] for _ in range(n_links)]  # of those on it and on the next
        self.told = [0.9] * n_links
        self.seen = [[] for _ in range(self.n_arms)]
        self.climbed = [set() for _ in self.rungs]
        self.arms = []

    def train(self, arm, n_epochs):
        for _ in range(n_epochs):
            seen = self.seen[arm]
            if len(self.arms) < self.T and len(seen) < self.R:
                seen.append(float(self.rewards[arm, len(seen)]))
                self.arms.append(arm)
                self.learn(seen)

    def learn(self, seen):
        def average(n):
            return statistics.fmean(seen[n - max(1, n // 4) : n])

        if len(seen) not in self.rungs:
            return
        k = self.rungs.index(len(seen))
        if 0 < k <= len(self.told):
            pair = average(self.rungs[k - 1]), average(self.rungs[k])
            self.pairs[k - 1].append(pair)
            lower, pairs = self.lower[k - 1], self.pairs[k - 1]
            self.told[k - 1] = correlation_of_all(lower, pairs)
        if k < len(self.told):
            self.lower[k].append(average(self.rungs[k]))

    def look(self):
        share = self.opening + self.later * (1 - self.opening)
        if not self.arms:
            return self.rungs[0]

        def expected(k):
            n = max(1, share * self.T / self.rungs[k])
            maximum = statistics.NormalDist().inv_cdf((n - 0.375) / (n + 0.25))
            return np.prod(self.told[k:]) * maximum

        rungs = range(len(self.told) + 1)
        return self.rungs[max(rungs, key=lambda k: (expected(k), -k))]

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
        self.share = share = max(2 * self.rungs[0], self.opening * self.T)
        while len(self.arms) < self.T:
            late = self.later * (len(self.arms) - share) - self.look()
            live = [i for i in range(opened) if len(self.seen[i]) < self.R]
            if opened < self.n_arms and (
                self.planned < share + max(0, late) or not live
            ):
                look = self.look()
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
    firsts = [(at, length) for at, length in opened if at < 40]
    later = opened[len(firsts) :]
    assert 40 <= sum(length for _, length in firsts) <= 48
    assert len(later) == proposed
    begun = 40 + np.cumsum([length for _, length in later])
    due = [40 + later_share * (at - 40) for at, _ in later]
    assert all(begun <= np.array(due) + 1e-9)
    assert sum(length for _, length in later) == pytest.approx(
        later_share * 160, abs=16
    )


def test_looks_are_long_where_early_scores_say_nothing(play):
    rng = np.random.default_rng(0)
    n = np.arange(1, 41)
    ends = rng.random((200, 1))
    noise = 0.01 * rng.standard_normal((200, 40))
    tells = ends * (1 - 1 / (n + 1)) + noise
    starts_late = np.where(n < 6, 0.0, ends) + noise

    def last_looks(curves):
        policy = make_policy("looks-then-slope", 200, 800, 40)
        play(policy, curves, 800)
        return policy.slice_length(199)

    assert last_looks(tells) == 1
    assert last_looks(starts_late) == 8


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
    policy.told[:] = 0.99  # looks of one pull
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

    assert opened(200, 50) == 88
    assert opened(200, 50, later_share=0.0) == 60
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
