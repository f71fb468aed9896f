import numpy as np
import pytest

from risingsearch.policies import WAIT, slice_length


def play_alone(policy, rewards, horizon, seed=0):
    """Play a policy with nothing else in flight; return the arm of every pull.

    ``rewards[arm][n]`` is paid by the pull after the arm's ``n``-th.
    """
    rng = np.random.default_rng(seed)
    rewards = np.asarray(rewards).tolist()
    taken = [0] * len(rewards)
    arms = []
    t = 1
    while t <= horizon and policy.available.any():
        arm = policy.select(t, rng)
        if arm == WAIT:
            break
        left = min(int(policy.pulls_left[arm]), horizon - t + 1)
        for _ in range(min(slice_length(policy, arm), left)):
            policy.pulls_left[arm] -= 1
            policy.available[arm] = policy.pulls_left[arm] > 0
            policy.update(t, arm, rewards[arm][taken[arm]], rng)
            taken[arm] += 1
            arms.append(arm)
            t += 1
    return arms


@pytest.fixture
def play():
    return play_alone


@pytest.fixture
def concave():
    """Return noisy concave rewards, (n_arms, max_pulls), from a seed."""

    def curves(n_arms, max_pulls, seed, noise=0.02):
        rng = np.random.default_rng(seed)
        start, end = rng.uniform(0.0, 0.4, n_arms), rng.uniform(0.4, 1.0, n_arms)
        half = rng.uniform(1.0, 0.5 * max_pulls + 1.0, n_arms)
        n = np.arange(1, max_pulls + 1)
        share = n / (n + half[:, None])
        rewards = start[:, None] + (end - start)[:, None] * share
        return rewards + rng.normal(0.0, noise, (n_arms, max_pulls))

    return curves
