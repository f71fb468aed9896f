import numpy as np

from risingsearch.policies import WAIT, explain
from risingsearch.policies.tuning.median_stopping import MedianStopping


def constant(values):
    """Return constant rewards, (n_arms, 5)."""
    return np.tile(np.array(values)[:, None], (1, 5))


def test_an_arm_is_stopped_when_its_best_is_below_the_median_of_averages():
    rng = np.random.default_rng(0)
    n_checked = 0
    for n_arms in (4, 5, 8):
        policy = MedianStopping.create(n_arms, 200, 20, min_arms=3)
        rewards = rng.normal(0.5, 0.2, (n_arms, 20))
        stopped = [False] * n_arms
        pulls = [0] * n_arms
        for _ in range(15 * n_arms):
            arm = int(rng.integers(n_arms))
            if pulls[arm] == 20:
                continue
            policy.update(1, arm, float(rewards[arm, pulls[arm]]), rng)
            pulls[arm] += 1
            n = pulls[arm]
            others = [
                rewards[i, :n].mean()
                for i in range(n_arms)
                if i != arm and pulls[i] >= n
            ]
            if len(others) >= 3:
                n_checked += 1
                stopped[arm] |= bool(rewards[arm, :n].max() < np.median(others))
            assert policy.stopped.tolist() == stopped
    assert n_checked > 80


def test_the_median_of_an_even_number_lies_between_the_middle_two():
    def judged(best):
        policy = MedianStopping.create(3, 10, 5, min_arms=2)
        for arm, reward in enumerate([0.2, 0.6, best]):
            policy.update(1, arm, reward, None)
        return bool(policy.stopped[2])

    assert [judged(b) for b in (0.3, 0.399, 0.401, 0.5)] == [True, True, False, False]


def test_a_stopped_arm_never_comes_back_and_the_policy_stops(play):
    policy = MedianStopping.create(4, 40, 5, min_arms=2)
    arms = play(policy, constant([0.5, 0.6, 0.1, 0.9]), 40)
    assert np.bincount(arms).tolist() == [5, 5, 1, 5]
    assert policy.available.tolist() == [False, False, True, False]
    assert policy.select(17, None) == WAIT
    assert explain(policy, 2) == {"best_reward": 0.1, "stopped": 1.0}


def test_no_arm_is_judged_by_too_few_others(play):
    policy = MedianStopping.create(4, 40, 5, min_arms=4)
    arms = play(policy, constant([0.9, 0.8, 0.1, 0.2]), 40)
    assert np.bincount(arms).tolist() == [5, 5, 5, 5]
