import math

import numpy as np
import pytest

from risingsearch.policies.base import play_alone


def play_table(policy, rewards, horizon, seed=0):
    """Play a policy alone; ``rewards[arm][n]`` is paid by the pull after its n-th."""
    rewards = np.asarray(rewards).tolist()
    return play_alone(policy, lambda arm, n, t: rewards[arm][n - 1], horizon, seed)


class Past(list):
    """The rewards of an arm, and in ``rounds`` when they came."""

    def __init__(self):
        self.rounds = []


def play_directly(
    values, rewards, horizon, *, first=1, seed=0, kept=lambda reward, rng: reward
):
    """Play what is written down on the raw rewards; return the arm of every pull.

    ``values(t, seen, left, rng)`` gives the value of every arm in ``left`` at round
    ``t``, ``seen`` being the ``Past`` of all arms. Before that, every arm is pulled
    ``first`` times, round-robin. Ties go to fewer pulls, then to the lower index.
    ``kept(reward, rng)`` is what is remembered of a reward.
    """
    rng = np.random.default_rng(seed)
    seen = [Past() for _ in rewards]
    arms = []
    for t in range(1, horizon + 1):
        left = [i for i, past in enumerate(seen) if len(past) < len(rewards[i])]
        if not left:
            break
        short = [i for i in left if len(seen[i]) < first]
        value = dict.fromkeys(short, 0.0) if short else values(t, seen, left, rng)
        arm = min(value, key=lambda i: (-value[i], len(seen[i]), i))
        seen[arm].rounds.append(t)
        seen[arm].append(kept(float(rewards[arm][len(seen[arm])]), rng))
        arms.append(arm)
    return arms


@pytest.fixture
def play():
    return play_table


@pytest.fixture
def play_direct():
    return play_directly


@pytest.fixture
def agree():
    """Check that a policy makes the run of ``play_direct``."""

    def check(policy, values, rewards, horizon, *, seed=0, **options):
        direct = play_directly(values, rewards, horizon, seed=seed, **options)
        assert play_table(policy, rewards, horizon, seed) == direct

    return check


@pytest.fixture
def by_index():
    """Return values for ``play_direct``: each arm's index of its own raw rewards."""

    def values_of(index, **parameters):
        return lambda t, seen, left, rng: {
            i: index(seen[i], t, **parameters) for i in left
        }

    return values_of


@pytest.fixture
def estimated_sigma():
    """Return the noise estimate from the rewards seen of all arms."""

    def estimate(seen, unknown=0.0):
        bends = np.concatenate([np.diff(x, n=2) for x in seen if len(x) > 2] or [[]])
        return math.sqrt(np.mean(bends**2) / 6) if len(bends) else unknown

    return estimate


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


@pytest.fixture
def rotting():
    """Return noisy falling rewards, (n_arms, max_pulls), each arm with one drop."""

    def curves(n_arms, max_pulls, seed, noise=0.1):
        rng = np.random.default_rng(seed)
        start = rng.uniform(0.4, 1.0, (n_arms, 1))
        fall = rng.uniform(0.0, 0.8, (n_arms, 1)) / max_pulls
        drop_at = rng.integers(0, max_pulls, (n_arms, 1))
        n = np.arange(max_pulls)
        means = start - fall * n - 0.2 * (n > drop_at)
        return means + rng.normal(0.0, noise, (n_arms, max_pulls))

    return curves


@pytest.fixture
def noisy():
    """Return rewards of arms that do not change, (n_arms, max_pulls)."""

    def rewards(n_arms, max_pulls, seed):
        rng = np.random.default_rng(seed)
        means = rng.uniform(0.3, 0.7, (n_arms, 1))
        sigma = rng.uniform(0.02, 0.2, (n_arms, 1))
        return rng.normal(means, sigma, (n_arms, max_pulls))

    return rewards


class DirectRace:
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


@pytest.fixture
def direct_race():
    return DirectRace
