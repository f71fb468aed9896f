"""Halving and its relatives against slow readings of their papers."""

import math

import numpy as np
import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.policies import WAIT, explain, make_policy, recommended_arms
from risingsearch.policies.tuning.successive_halving import (
    ASHA,
    Hyperband,
    SuccessiveHalving,
    rung_levels,
    rung_sizes,
)


def pulls_of(arms, n_arms):
    return np.bincount(arms, minlength=n_arms).tolist()


def flat(values, max_pulls):
    """Return constant rewards, (n_arms, max_pulls)."""
    return np.tile(np.array(values, dtype=float)[:, None], (1, max_pulls))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("successive-halving", {"eta": 1}),
        ("asha", {"eta": 1.5}),
        ("asha", {"min_pulls": 0}),
        ("hyperband", {"eta": True}),
    ],
)
def test_parameters_outside_their_range_are_refused(name, parameters):
    with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
        make_policy(name, 4, 20, **parameters)


# -------------------------------------------------------------- successive halving


def halving_run(rewards, horizon, eta):
    """Algorithm 1 of Karnin et al., by rungs; the winner trains with what is left."""
    n_arms, max_pulls = rewards.shape
    n_rungs = 0
    while eta**n_rungs < n_arms:
        n_rungs += 1
    pulls = [0] * n_arms
    arms = []
    alive = list(range(n_arms))
    for _ in range(n_rungs):
        share = max(1, horizon // (len(alive) * n_rungs))
        for arm in alive:
            n = min(share, max_pulls - pulls[arm])
            pulls[arm] += n
            arms += [arm] * n
        alive.sort(key=lambda i: (-rewards[i, pulls[i] - 1], i))
        alive = sorted(alive[: math.ceil(len(alive) / eta)])
    arms += [alive[0]] * (max_pulls - pulls[alive[0]])
    return arms[:horizon]


@pytest.mark.parametrize("eta", [2, 3, 4])
@pytest.mark.parametrize(
    ("n_arms", "max_pulls", "horizon"), [(8, 96, 96), (9, 30, 100), (16, 200, 331)]
)
def test_halving_equals_its_algorithm(n_arms, max_pulls, horizon, eta, play, concave):
    for seed in range(3):
        rewards = concave(n_arms, max_pulls, seed)
        policy = SuccessiveHalving.create(n_arms, horizon, max_pulls, eta=eta)
        assert play(policy, rewards, horizon) == halving_run(rewards, horizon, eta)


def test_halving_gives_each_rung_the_same_share_of_the_budget(play):
    rewards = flat([0.8, 0.1, 0.7, 0.2, 0.6, 0.3, 0.5, 0.4], 96)
    arms = play(SuccessiveHalving.create(8, 96), rewards, 96)
    assert pulls_of(arms, 8) == [28, 4, 28, 4, 12, 4, 12, 4]


def test_halving_counts_its_rungs_in_integers():
    assert rung_sizes(243, 3) == [243, 81, 27, 9, 3, 1]
    assert rung_sizes(1000, 10) == [1000, 100, 10, 1]
    assert rung_sizes(1, 2) == [1]


def test_halving_looks_at_every_arm_even_where_the_budget_is_too_small(play):
    arms = play(SuccessiveHalving.create(8, 10), flat([0.1] * 8, 10), 10)
    assert arms == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]


def test_halving_never_asks_for_more_than_an_arm_can_give(play):
    policy = SuccessiveHalving.create(4, 100, 6)
    assert policy.target.tolist() == [6, 6]
    arms = play(policy, flat([0.4, 0.3, 0.2, 0.1], 6), 100)
    assert pulls_of(arms, 4) == [6, 6, 6, 6]


def test_halving_trains_the_winner_with_what_is_left_and_stops(play):
    policy = SuccessiveHalving.create(3, 50, 20)
    arms = play(policy, flat([0.1, 0.9, 0.5], 20), 50)
    # 50 // (3 * 2) = 8 each, then 50 // (2 * 2) = 12 more for two of them.
    assert pulls_of(arms, 3) == [8, 20, 20]
    assert policy.select(len(arms) + 1, None) == WAIT


def test_halving_waits_for_the_last_results_of_a_rung():
    policy = SuccessiveHalving.create(2, 8)
    for arm, reward in ((0, 0.1), (1, 0.2)):
        assert policy.select(1, None) == arm
        policy.available[arm] = False
        for _ in range(policy.slice_length(arm)):
            if arm == 0:
                policy.update(1, arm, reward, None)
    policy.available[0] = True
    assert policy.select(5, None) == WAIT
    for _ in range(4):
        policy.update(5, 1, 0.2, None)
    policy.available[1] = True
    assert policy.select(5, None) == 1


def test_halving_breaks_ties_by_the_lower_index(play):
    arms = play(SuccessiveHalving.create(4, 8), flat([0.5] * 4, 8), 8)
    assert arms == [0, 1, 2, 3, 0, 0, 1, 1]


def test_halving_drops_arms_without_a_single_reward_first():
    policy = SuccessiveHalving.create(4, 16)
    for arm in (1, 3):
        for _ in range(2):
            policy.update(1, arm, -5.0, None)
    for arm in (0, 2):  # failed before they gave anything
        policy.available[arm] = False
        policy.pulls_left[arm] = 0
    assert policy.select(5, None) == 1
    assert policy.member.tolist() == [False, True, False, True]


def test_halving_keeps_the_best_of_many_arms():
    rng = np.random.default_rng(0)
    for n_arms in (2, 3, 10, 101):
        policy = SuccessiveHalving.create(n_arms, 10_000, eta=3)
        score = rng.integers(0, n_arms // 2 + 1, n_arms) / 8.0  # with ties
        for arm in rng.permutation(n_arms):
            for _ in range(policy.slice_length(arm)):
                policy.update(1, arm, score[arm], None)
        failed = rng.random(n_arms) < 0.3
        policy.pulls_left[failed] = 0
        policy.available[failed] = False
        ranked = sorted(range(n_arms), key=lambda i: (failed[i], -score[i], i))
        policy.select(2, None)
        kept = math.ceil(n_arms / 3)
        assert np.flatnonzero(policy.member).tolist() == sorted(ranked[:kept])


def test_halving_explains_rung_and_last_reward(play):
    policy = SuccessiveHalving.create(2, 8)
    play(policy, flat([0.1, 0.3], 8), 8)
    assert explain(policy, 1) == {"rung": 0.0, "on_rung": 1.0, "last_reward": 0.3}


def test_halving_is_recommended_as_many_arms_as_all_rungs_can_pay():
    n_arms = recommended_arms("successive-halving", 1000, 50)
    assert n_arms * (len(rung_sizes(n_arms, 2)) - 1) <= 1000
    assert (n_arms + 1) * (len(rung_sizes(n_arms + 1, 2)) - 1) > 1000
    assert recommended_arms("successive-halving", 1000, 50, eta=4) > n_arms


# ------------------------------------------------------------------------------ ASHA


class DirectASHA:
    """Algorithm 2 of Li et al. for one worker, with sorting at every decision."""

    def __init__(self, rewards, eta, levels):
        self.rewards = rewards
        self.eta = eta
        self.levels = levels
        self.rungs = [{} for _ in levels]  # rung -> {arm: reward there}
        self.promoted = [set() for _ in levels]
        self.opened = 0

    def candidates(self, k, eta):
        best = sorted(self.rungs[k], key=lambda i: -self.rungs[k][i])
        best = best[: len(best) // eta]
        return [arm for arm in best if arm not in self.promoted[k]]

    def job(self):
        """Return the arm and the rung it is trained up to."""
        for eta in (self.eta, 1):
            for k in reversed(range(len(self.levels) - 1)):
                for arm in self.candidates(k, eta):
                    self.promoted[k].add(arm)
                    return arm, k + 1
            if self.opened < len(self.rewards):
                self.opened += 1
                return self.opened - 1, 0
        return None

    def run(self, horizon):
        arms = []
        while len(arms) < horizon and (job := self.job()):
            arm, k = job
            arms += [arm] * (self.levels[k] - (self.levels[k - 1] if k else 0))
            self.rungs[k][arm] = self.rewards[arm, self.levels[k] - 1]
        return arms[:horizon]


@pytest.mark.parametrize(
    ("n_arms", "max_pulls", "horizon", "eta", "min_pulls"),
    [(40, 27, 200, 3, 1), (12, 50, 400, 3, 2), (30, 16, 300, 2, 1), (5, 9, 45, 4, 1)],
)
def test_asha_equals_its_algorithm(
    n_arms, max_pulls, horizon, eta, min_pulls, play, concave
):
    for seed in range(3):
        rewards = concave(n_arms, max_pulls, seed, noise=0.05)
        policy = ASHA.create(n_arms, horizon, max_pulls, eta=eta, min_pulls=min_pulls)
        direct = DirectASHA(rewards, eta, policy.level.tolist()).run(horizon)
        assert play(policy, rewards, horizon) == direct
        assert len(direct) == min(horizon, n_arms * max_pulls)


def test_asha_rungs_end_at_max_pulls():
    assert rung_levels(1, 81, 3) == [1, 3, 9, 27, 81]
    assert rung_levels(2, 50, 4) == [2, 8, 32, 50]
    assert rung_levels(5, 3, 2) == [3]


def test_asha_promotes_an_arm_in_flight_only_once():
    policy = ASHA.create(8, 50, 9)
    for arm, reward in enumerate([0.1, 0.2, 0.9, 0.3, 0.4, 0.8]):
        policy.update(1, arm, reward, None)
    assert policy.select(7, None) == 2
    assert policy.slice_length(2) == 2
    policy.available[2] = False
    assert policy.select(9, None) == 5
    policy.available[5] = False
    assert policy.select(11, None) == 6


def test_asha_goes_on_with_a_promotion_that_was_cut_short():
    policy = ASHA.create(4, 50, 9)
    for arm in (0, 1, 2, 2):
        policy.update(1, arm, 0.1 * arm, None)
    assert policy.select(5, None) == 2
    assert policy.slice_length(2) == 1


def test_asha_keeps_every_worker_busy_when_the_arms_run_out():
    policy = ASHA.create(2, 50, 9)
    for arm in (0, 1):
        policy.update(1, arm, 0.5 - 0.1 * arm, None)
    for expected in (0, 1):
        assert policy.select(3, None) == expected
        policy.available[expected] = False


def test_asha_explains_the_rung_reached():
    policy = ASHA.create(2, 50, 9)
    assert explain(policy, 0)["rung"] == 0
    assert math.isnan(explain(policy, 0)["rung_reward"])
    for reward in (0.1, 0.2, 0.3, 0.4):
        policy.update(1, 0, reward, None)
    assert explain(policy, 0) == {"rung": 2.0, "rung_reward": 0.3}


# ------------------------------------------------------------------------- Hyperband


def test_hyperband_brackets_are_those_of_the_paper():
    assert Hyperband.brackets(81, 3) == [(81, 1), (34, 3), (15, 9), (8, 27), (5, 81)]


def test_hyperband_counts_its_brackets_in_integers():
    # log(243) / log(3) is 4.999... in floating point.
    assert len(Hyperband.brackets(243, 3)) == 6
    assert Hyperband.brackets(1, 3) == [(1, 1)]


def bracket_run(rewards, arms_of_bracket, first_level, n_rungs, eta):
    """One bracket on fresh arms: keep one in eta at every rung."""
    max_pulls = rewards.shape[1]
    n = len(arms_of_bracket)
    alive = list(arms_of_bracket)
    arms, before = [], 0
    for i in range(n_rungs):
        level = max(first_level, max_pulls // eta ** (n_rungs - 1 - i))
        for arm in alive:
            arms += [arm] * (level - before)
        alive.sort(key=lambda k: (-rewards[k, level - 1], k))
        alive = sorted(alive[: max(1, n // eta ** (i + 1))])
        before = level
    return arms


@pytest.mark.parametrize(("max_pulls", "eta"), [(81, 3), (20, 3), (16, 2)])
def test_hyperband_runs_bracket_after_bracket_on_new_arms(
    max_pulls, eta, play, concave
):
    brackets = Hyperband.brackets(max_pulls, eta)
    n_arms = sum(n for n, _ in brackets)
    rewards = concave(n_arms, max_pulls, seed=1, noise=0.05)
    direct, first = [], 0
    for i, (n, level) in enumerate(brackets):
        members = range(first, first + n)
        direct += bracket_run(rewards, members, level, len(brackets) - i, eta)
        first += n
    policy = Hyperband.create(n_arms, len(direct), max_pulls, eta=eta)
    assert play(policy, rewards, len(direct)) == direct


def test_hyperband_starts_over_until_every_arm_is_trained(play):
    # 9 + 5 + 3 arms: each round of brackets would begin with the same arms.
    policy = Hyperband.create(17, 1000, 20)
    arms = play(policy, flat(np.arange(17) / 17, 20), 1000)
    assert pulls_of(arms, 17) == [20] * 17


def test_hyperband_resumes_an_arm_that_comes_again(play):
    policy = Hyperband.create(2, 18, 9)
    arms = play(policy, flat([0.2, 0.4], 9), 18)
    # Up to 1, to 3, the better one to 9; the next bracket has only arm 0 to take on.
    assert arms == [0, 1, 0, 0, 1, 1, *[1] * 6, *[0] * 6]


def test_hyperband_waits_for_the_last_results_of_a_rung():
    policy = Hyperband.create(9, 100, 9)
    for arm in range(9):
        assert policy.select(1, None) == arm
        policy.available[arm] = False
    policy.available[0] = True
    policy.update(1, 0, 0.5, None)
    assert policy.select(10, None) == WAIT
    for arm in range(1, 9):
        policy.available[arm] = True
        policy.update(1, arm, 0.1 * arm, None)
    assert policy.select(10, None) == 6
    assert policy.slice_length(6) == 2
    assert explain(policy, 6) == {"bracket": 0.0, "rung": 1.0, "on_rung": 1.0}


def test_hyperband_is_recommended_the_arms_of_its_brackets():
    assert recommended_arms("hyperband", 25 * 81, 81) == 143
    assert recommended_arms("hyperband", 81, 81) == 81
