"""The eliminations against the papers' loops over the raw rewards."""

import math

import numpy as np
import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.policies import explain
from risingsearch.policies.rising.r_ed_ae import (
    NEVER,
    ImprovedUCB,
    REdAE,
    RisingBandits,
    judge_lines,
)


class Race:
    """A run of the papers' loops: rewards taken one by one, some arms dropped."""

    def __init__(self, curves, horizon):
        self.curves, self.horizon = curves, horizon
        self.seen = [[] for _ in curves]
        self.dropped = set()
        self.arms = []
        self.value = dict.fromkeys(range(len(curves)), 0.0)

    def pull(self, arm):
        self.seen[arm].append(float(self.curves[arm][len(self.seen[arm])]))
        self.arms.append(arm)

    def over(self):
        return len(self.arms) == self.horizon or not self.trainable()

    def trainable(self):
        return [i for i, x in enumerate(self.seen) if len(x) < len(self.curves[i])]

    def racing(self):
        return [i for i in self.trainable() if i not in self.dropped]

    def sweep_order(self):
        """Return the next arm of a round-robin, or the best of the others."""
        if self.racing():
            return min(self.racing(), key=lambda i: (len(self.seen[i]), i))
        return min(
            self.trainable(), key=lambda i: (-self.value[i], len(self.seen[i]), i)
        )

    def pulls_of_all(self):
        return min((len(self.seen[i]) for i in self.racing()), default=0)


SIZES = pytest.mark.parametrize(
    ("n_arms", "horizon", "max_pulls"),
    [(2, 120, 120), (4, 160, 50), (6, 100, 100), (3, 7, 7)],
)


# ------------------------------------------------------------------------- R-ed-AE


def lines_run(curves, horizon, *, sigma, delta=0.01):
    """Judge after every double sweep; ``sigma`` gives the noise of what was seen."""
    race = Race(curves, horizon)
    n_arms, T = len(curves), horizon
    judged = 0
    while not race.over():
        race.pull(race.sweep_order())
        if race.pulls_of_all() // 2 <= judged:
            continue
        judged = M = race.pulls_of_all() // 2
        scale = sigma(race.seen)
        if scale is None:
            continue
        ahead = max(0, T - 2 * M)
        root = math.sqrt(math.log(2 * n_arms * T / delta) * (1 / M + ahead**2 / M**3))
        for i in race.racing():
            first, second = np.sum(race.seen[i][:M]), np.sum(race.seen[i][M : 2 * M])
            mean = (first + second) / (2 * M)
            race.value[i] = mean + (second - first) / M**2 * ahead / 2
        floor = max((race.value[i] for i in race.racing()), default=0) - scale * root
        race.dropped |= {
            i for i in race.racing() if race.value[i] + scale * root < floor
        }
    return race.arms


def straight_lines(n_arms, max_pulls, seed, noise):
    rng = np.random.default_rng(seed)
    start, end = rng.uniform(0.0, 0.5, (2, n_arms, 1))
    curves = start + end * np.arange(1, max_pulls + 1) / max_pulls
    return curves + rng.normal(0.0, noise, curves.shape)


@SIZES
@pytest.mark.parametrize("sigma", [0.0, 1e-4, 2e-3, None])
def test_r_ed_ae_equals_the_direct_policy(
    n_arms, horizon, max_pulls, sigma, play, estimated_sigma
):
    def scale(seen):
        return estimated_sigma(seen, unknown=None) if sigma is None else sigma

    for seed in range(4):
        curves = straight_lines(n_arms, max_pulls, seed, noise=1e-4)
        policy = REdAE.create(n_arms, horizon, max_pulls, sigma=sigma)
        assert play(policy, curves, horizon) == lines_run(curves, horizon, sigma=scale)


def test_r_ed_ae_plays_the_arm_of_the_highest_total(play):
    curves = straight_lines(5, 400, seed=0, noise=1e-4)
    arms = play(REdAE.create(5, 400, sigma=1e-4), curves, 400)
    pulls = np.bincount(arms, minlength=5)
    assert pulls.argmax() == curves.sum(axis=1).argmax()
    assert pulls.max() > 250


@pytest.mark.parametrize(
    ("sigma", "half", "radius"),
    [
        (0.5, 5_000, 0.24),
        (0.01, 5_000, 0.005),
        (0.01, 1_000, 0.064),
        (0.5, 25_000, 0.0133),  # nothing left to project
    ],
)
def test_r_ed_ae_needs_little_noise_to_drop_anything(sigma, half, radius):
    policy = REdAE.create(5, 50_000, sigma=sigma)
    judge_lines(policy, half)
    assert explain(policy, 0)["radius"] == pytest.approx(radius, rel=0.05)


def test_r_ed_ae_drops_nothing_before_the_noise_can_be_estimated():
    policy = REdAE.create(2, 40)
    for n in range(1, 4):
        for arm, reward in [(0, 0.1 * n), (1, -0.1 * n)]:
            policy.update(1, arm, reward, None)
        assert policy.alive.all()
    for arm, reward in [(0, 0.4), (1, -0.4)]:
        policy.update(1, arm, reward, None)
    assert policy.alive.tolist() == [True, False]


def test_r_ed_ae_keeps_equal_arms():
    policy = REdAE.create(3, 30, sigma=0.0)
    for reward in (0.5, 0.6, 0.7, 0.8):
        for arm, factor in [(0, 1.0), (1, 0.9), (2, 1.0)]:
            policy.update(1, arm, factor * reward, None)
    assert policy.alive.tolist() == [True, False, True]


def test_r_ed_ae_judges_by_sweeps_whatever_order_the_rewards_come_in():
    curves = straight_lines(3, 30, seed=1, noise=1e-4)
    in_turn, late = (REdAE.create(3, 90, sigma=3e-3) for _ in range(2))
    for n in range(30):
        for arm in (0, 1, 2):
            in_turn.update(1, arm, curves[arm, n], None)
        for arm in (0, 2):
            late.update(1, arm, curves[arm, n], None)
    for reward in curves[1]:
        late.update(1, 1, reward, None)
    assert in_turn.alive.sum() == 1
    assert late.alive.tolist() == in_turn.alive.tolist()


@pytest.mark.parametrize(
    "parameters",
    [{"sigma": -0.1}, {"sigma": math.nan}, {"delta": 0.0}, {"delta": 2.0}],
)
def test_r_ed_ae_refuses_parameters_outside_their_range(parameters):
    with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
        REdAE.create(2, 10, **parameters)


# ------------------------------------------------------- rising bandits for CASH


def bounds_run(curves, horizon, *, window=7, low=0.0, high=1.0):
    """Sweep, bound and drop as the public code does, arm against arm."""
    race = Race(curves, horizon)
    judged = 0
    while not race.over():
        race.pull(race.sweep_order())
        best = [
            np.maximum.accumulate(np.clip((np.array(x) - low) / (high - low), 0, 1))
            for x in race.seen
        ]
        race.value = {i: y[-1] if len(y) else 0.0 for i, y in enumerate(best)}
        if race.pulls_of_all() <= judged:
            continue
        judged = race.pulls_of_all()
        upper = {}
        for i in race.racing():
            past = best[i][-1 - window] if len(best[i]) > window else -1.0
            slope = (best[i][-1] - past) / window
            upper[i] = min(1.0, best[i][-1] + slope * (horizon - len(race.arms)))
        for i in list(upper):
            for j in list(upper):
                if i != j and i in race.racing() and race.value[i] >= upper[j]:
                    race.dropped.add(j)
    return race.arms


@SIZES
@pytest.mark.parametrize("parameters", [{}, {"window": 1}, {"window": 20}])
def test_rising_bandits_equal_the_direct_policy(
    n_arms, horizon, max_pulls, parameters, play, concave
):
    for seed in range(4):
        curves = concave(n_arms, max_pulls, seed, noise=0.003)
        policy = RisingBandits.create(n_arms, horizon, max_pulls, **parameters)
        assert play(policy, curves, horizon) == bounds_run(
            curves, horizon, **parameters
        )


def test_rising_bandits_keep_the_first_of_equal_plateaus(play):
    policy = RisingBandits.create(3, 40, window=2)
    play(policy, np.full((3, 40), 0.5), 40)
    assert policy.alive.tolist() == [True, False, False]


def test_rising_bandits_drop_a_plateau_that_a_rising_arm_has_reached():
    policy = RisingBandits.create(2, 40, window=2)
    for t, (plateau, rising) in enumerate([(0.6, 0.4), (0.6, 0.5), (0.6, 0.6)]):
        policy.update(2 * t + 1, 0, plateau, None)
        policy.update(2 * t + 2, 1, rising, None)
    assert policy.alive.tolist() == [False, True]
    assert explain(policy, 0) == pytest.approx({"best_reward": 0.6, "upper_bound": 0.6})
    assert explain(policy, 1) == pytest.approx({"best_reward": 0.6, "upper_bound": 1.0})


def test_rising_bandits_start_from_minus_one_until_the_window_is_passed():
    policy = RisingBandits.create(2, 10, window=3)
    bounds = []
    for t in range(1, 9):
        policy.update(t, t % 2, 0.1, None)
        if t % 2 == 0:
            bounds.append(explain(policy, 0)["upper_bound"])
    # 0.1 + (10 - t) (0.1 - (-1)) / 3, at most 1; after 4 pulls the slope is 0
    assert bounds == pytest.approx([1.0, 1.0, 1.0, 0.1])
    late = RisingBandits.create(2, 7, window=3)
    for t in range(1, 7):
        late.update(t, t % 2, 0.1, None)
    assert explain(late, 0)["upper_bound"] == pytest.approx(0.1 + 1.1 / 3)


def test_rising_bandits_map_rewards_from_their_range_and_clip_them(play, concave):
    curves = concave(4, 120, seed=3, noise=0.003)
    arms = play(RisingBandits.create(4, 120), curves, 120)
    percent = RisingBandits.create(4, 120, reward_range=(0.0, 100.0))
    assert play(percent, 100.0 * curves, 120) == arms
    policy = RisingBandits.create(1, 9, reward_range=(-1.0, 1.0))
    for reward, best in [(-4.0, 0.0), (0.5, 0.75), (7.0, 1.0)]:
        policy.update(1, 0, reward, None)
        assert explain(policy, 0)["best_reward"] == best


@pytest.mark.parametrize(
    "parameters", [{"window": 0}, {"window": 1.5}, {"reward_range": (1.0, 1.0)}]
)
def test_rising_bandits_refuse_parameters_outside_their_range(parameters):
    with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
        RisingBandits.create(2, 10, **parameters)


# -------------------------------------------------------------------- UCB-Improved


def stages_run(curves, horizon, *, order="round-robin", seed=0, span=1.0):
    rng = np.random.default_rng(seed)
    race = Race(curves, horizon)
    resolution = 1.0
    while not race.over():
        arm = race.sweep_order()
        if order == "random" and race.racing() and len(race.seen[arm]) > 0:
            racing = race.racing()
            arm = racing[int(rng.random() * len(racing))]
        race.pull(arm)
        race.value[arm] = np.mean(race.seen[arm])
        if horizon * resolution**2 < math.e:
            continue
        log_term = math.log(horizon * resolution**2)
        n = math.ceil(2 * log_term / resolution**2)
        if all(len(race.seen[i]) >= n for i in race.racing()):
            width = span * math.sqrt(log_term / (2 * n))
            floor = max((race.value[i] for i in race.racing()), default=0) - width
            race.dropped |= {i for i in race.racing() if race.value[i] + width < floor}
            resolution /= 2
    return race.arms


@pytest.mark.parametrize("order", ["round-robin", "random"])
@pytest.mark.parametrize(
    ("n_arms", "horizon", "max_pulls"),
    [(2, 1500, 1500), (4, 1000, 300), (5, 900, 900), (3, 2, 2), (3, 7, 7)],
)
def test_ucb_improved_equals_the_direct_policy(order, n_arms, horizon, max_pulls, play):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        rewards = rng.normal(rng.random((n_arms, 1)), 0.1, (n_arms, max_pulls))
        policy = ImprovedUCB.create(n_arms, horizon, max_pulls, order=order)
        direct = stages_run(rewards, horizon, order=order, seed=5)
        assert play(policy, rewards, horizon, seed=5) == direct


def test_ucb_improved_widths_are_in_units_of_the_reward_range(play):
    rng = np.random.default_rng(3)
    rewards = rng.normal(rng.random((4, 1)), 0.1, (4, 900))
    arms = play(ImprovedUCB.create(4, 900), rewards, 900)
    percent = ImprovedUCB.create(4, 900, reward_range=(0.0, 100.0))
    assert play(percent, 100.0 * rewards, 900) == arms
    cautious = ImprovedUCB.create(4, 900, reward_range=(-5.0, 5.0))
    assert play(cautious, rewards, 900) == stages_run(rewards, 900, span=10.0) != arms


def test_ucb_improved_stops_refining_when_the_horizon_cannot_tell_finer():
    policy = ImprovedUCB.create(2, 30)  # 30 / 4 > e > 30 / 16
    targets = [int(policy.target[0])]
    for _ in range(30):
        policy.update(1, 0, 0.5, None)
        policy.update(1, 1, 0.5, None)
        if policy.target[0] != targets[-1]:
            targets.append(int(policy.target[0]))
    assert targets == [7, 17, NEVER]
    assert ImprovedUCB.create(2, 2).target.tolist() == [NEVER]


def test_ucb_improved_explains_mean_and_width():
    policy = ImprovedUCB.create(2, 100)
    for reward in (0.2, 0.6):
        policy.update(1, 0, reward, None)
    width = math.sqrt(math.log(100) / (2 * 10))
    assert explain(policy, 0) == pytest.approx({"mean": 0.4, "width": width})


@pytest.mark.parametrize(
    "parameters", [{"order": "sorted"}, {"reward_range": (1.0, 0.0)}]
)
def test_ucb_improved_refuses_unknown_parameters(parameters):
    with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
        ImprovedUCB.create(2, 10, **parameters)


# ----------------------------------------------------------------------- all three


@pytest.mark.parametrize("policy_class", [REdAE, RisingBandits, ImprovedUCB])
def test_sweeps_are_given_the_arms_that_the_budget_trains_in_full(policy_class):
    assert policy_class.recommended_arms(100, 20) == 5
    assert policy_class.recommended_arms(10, 20) == 2
