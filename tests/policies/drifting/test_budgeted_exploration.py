import math

import numpy as np
import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.policies import explain
from risingsearch.policies.drifting.budgeted_exploration import BudgetedExploration


@pytest.mark.parametrize(
    ("horizon", "rate", "epoch_length", "loss_budget"),
    [
        (1_000_000, "non-smooth", 23_995, 576),
        (1_000_000, "smooth", 106_678, 1_214),
        (86_400, "non-smooth", 4_394, 223),
        (86_400, "smooth", 14_466, 405),
    ],
)
def test_one_armed_parameters_are_those_of_the_theorems(
    horizon, rate, epoch_length, loss_budget
):
    policy = BudgetedExploration.create(2, horizon, rate=rate, known_reward=0.0)
    assert policy.epoch_length == epoch_length
    assert round(policy.loss_budget) == loss_budget


def test_k_armed_parameters_are_those_of_theorem_6_2():
    T, k, lipschitz = 50_000.0, 7, 3.0
    log_t, log_k = math.log(T), math.log(k)
    delta = lipschitz**-0.4 * k**-0.6 * T**-0.2 * log_t**0.2 * log_k**0.2
    budget = math.sqrt(delta * T * log_t * log_k / k)
    policy = BudgetedExploration.create(k, int(T), lipschitz=lipschitz)
    assert policy.epoch_length == round(delta * T)
    assert policy.loss_budget == pytest.approx(budget)


def test_a_known_reward_needs_two_arms():
    with pytest.raises(InvalidParameterError, match="with 2 arms; got 3"):
        BudgetedExploration.create(3, 100, known_reward=0.5)


def be_run(rewards, horizon, epoch_length, loss_budget):
    """Algorithm 2, epoch by epoch and sweep by sweep; rewards are (n_arms, horizon)."""
    arms = []
    for start in range(0, horizon, epoch_length):
        end = min(start + epoch_length, horizon)
        total = np.zeros(len(rewards))
        alive = list(range(len(rewards)))
        t = start
        while t < end:
            sweep = alive[: end - t]
            for arm in sweep:
                arms.append(arm)
                total[arm] += rewards[arm, t]
                t += 1
            if len(sweep) == len(alive):
                best = max(total[i] for i in alive)
                alive = [i for i in alive if total[i] >= best - loss_budget]
    return arms


def one_armed_run(rewards, horizon, epoch_length, loss_budget, known_reward):
    """Algorithm 1: arm 1 until it has lost more than the budget, then arm 0."""
    arms = []
    for start in range(0, horizon, epoch_length):
        total, exploring = 0.0, True
        for t in range(start, min(start + epoch_length, horizon)):
            arms.append(1 if exploring else 0)
            if exploring:
                total += rewards[1, t] - known_reward
                exploring = total >= -loss_budget
    return arms


def restless_run(policy, rewards, horizon):
    rng = np.random.default_rng(0)
    arms = []
    for t in range(1, horizon + 1):
        arm = policy.select(t, rng)
        policy.update(t, arm, float(rewards[arm, t - 1]), rng)
        arms.append(arm)
    return arms


def drifting(n_arms, horizon, seed):
    rng = np.random.default_rng(seed)
    phase = rng.uniform(0, 2 * math.pi, size=(n_arms, 1))
    t = np.arange(horizon) / horizon
    means = 0.5 + 0.4 * np.sin(6 * math.pi * t + phase)
    return means + rng.normal(0.0, 0.1, (n_arms, horizon))


@pytest.mark.parametrize("n_arms", [2, 3, 5])
def test_run_equals_algorithm_2(n_arms):
    for seed in range(2):
        rewards = drifting(n_arms, 1000, seed)
        policy = BudgetedExploration.create(
            n_arms, 1000, budget_factor=0.2, epoch_factor=0.5
        )
        direct = be_run(rewards, 1000, policy.epoch_length, policy.loss_budget)
        assert restless_run(policy, rewards, 1000) == direct


def test_run_equals_algorithm_1():
    for seed in range(2):
        rewards = drifting(2, 1000, seed)
        policy = BudgetedExploration.create(
            2, 1000, known_reward=0.5, budget_factor=0.1, epoch_factor=0.3
        )
        direct = one_armed_run(
            rewards, 1000, policy.epoch_length, policy.loss_budget, 0.5
        )
        assert restless_run(policy, rewards, 1000) == direct
        assert {0, 1} == set(direct)


def test_one_arm_is_left_after_elimination_in_every_epoch():
    horizon = 500
    policy = BudgetedExploration.create(3, horizon, budget_factor=0.05)
    length = policy.epoch_length
    rewards = np.tile([[0.2], [0.9], [0.5]], (1, horizon))
    arms = restless_run(policy, rewards, horizon)
    assert len(arms) == horizon
    epochs = [arms[start : start + length] for start in range(0, horizon, length)]
    assert len(epochs) == math.ceil(horizon / length) > 1
    for epoch in epochs:
        assert epoch[:3] == [0, 1, 2]
        assert set(epoch[9:]) <= {1}
    assert policy.alive.tolist() == [False, True, False]


@pytest.fixture
def two_epochs():
    """Return a policy with two arms and epochs of 10 rounds."""
    policy = BudgetedExploration.create(2, 20, budget_factor=0.1)
    return policy._replace(epoch_length=10, loss_budget=0.5)


def test_late_results_of_an_earlier_epoch_count_no_more(two_epochs):
    policy = two_epochs
    policy.started(9, 0)
    policy.update(9, 0, 1.0, None)
    policy.started(11, 0)
    policy.update(10, 1, -5.0, None)
    assert policy.pulls.tolist() == [1, 1]
    assert explain(policy, 1)["epoch_total"] == 0.0
    assert policy.alive.all()


def test_a_result_may_be_the_first_news_of_its_epoch(two_epochs):
    policy = two_epochs
    policy.update(1, 0, 1.0, None)
    policy.update(11, 1, 0.25, None)
    assert [explain(policy, arm)["epoch_total"] for arm in (0, 1)] == [0.0, 0.25]


def test_the_last_arm_is_played_to_the_end_of_the_epoch(two_epochs):
    policy = two_epochs
    policy.started(1, 0)
    policy.update(1, 0, 1.0, None)
    policy.update(2, 1, 0.0, None)
    assert [policy.select(t, None) for t in (3, 10)] == [0, 0]
    policy.started(11, 0)
    assert policy.alive.all()


def test_the_best_of_the_others_takes_over_once_the_last_arm_has_ended():
    policy = BudgetedExploration.create(3, 30)._replace(
        epoch_length=30, loss_budget=0.5
    )
    for t, (arm, reward) in enumerate([(0, 1.0), (1, 0.3), (2, 0.2)], start=1):
        policy.update(t, arm, reward, None)
    policy.available[0] = False
    policy.pulls_left[0] = 0
    assert policy.select(4, None) == 1
    policy.update(4, 1, -1.0, None)
    assert policy.select(5, None) == 2


def test_one_armed_runs_fall_back_on_the_arm_that_is_free():
    policy = BudgetedExploration.create(2, 100, known_reward=0.5)
    assert policy.select(1, None) == 1
    policy.available[1] = False
    assert policy.select(1, None) == 0
