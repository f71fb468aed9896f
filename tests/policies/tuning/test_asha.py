"""ASHA against a slow reading of its paper."""

import pytest

from risingsearch.policies.tuning.asha import ASHA


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
    for seed in range(2):
        rewards = concave(n_arms, max_pulls, seed, noise=0.05)
        policy = ASHA.create(n_arms, horizon, max_pulls, eta=eta, min_pulls=min_pulls)
        direct = DirectASHA(rewards, eta, policy.level.tolist()).run(horizon)
        assert play(policy, rewards, horizon) == direct
        assert len(direct) == min(horizon, n_arms * max_pulls)


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
