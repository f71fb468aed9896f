"""check_policy lets a good policy pass, and names the rule that a bad one breaks."""

import itertools
import math
import random
from typing import NamedTuple

import numpy as np
import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.policies import WAIT
from risingsearch.policies.base import arm_arrays, least_pulled
from risingsearch.policies.stationary.baselines import RoundRobin
from risingsearch.policies.stationary.epsilon_greedy import EpsilonGreedy
from risingsearch.testing import check_policy


class PullsAreFloats(RoundRobin):
    @classmethod
    def create(cls, n_arms, horizon, max_pulls=None):
        policy = super().create(n_arms, horizon, max_pulls)
        return policy._replace(pulls=np.zeros(n_arms))


class NumpyFunction(EpsilonGreedy):
    def update(self, t, arm, reward, rng):
        self.pulls[arm] += 1
        self.mean[arm] = np.exp(reward)


class AnyArm(RoundRobin):
    def select(self, t, rng):
        return 0


class WaitsForNothing(RoundRobin):
    def select(self, t, rng):
        return WAIT if t > 5 else least_pulled(self.available, self.pulls, 1000)


COUNTER = itertools.count()


class ChangesItsMind(RoundRobin):
    def select(self, t, rng):
        if next(COUNTER) % 7 == 6:
            return WAIT
        return least_pulled(self.available, self.pulls, 1000)


class WritesMask(RoundRobin):
    def update(self, t, arm, reward, rng):
        self.pulls[arm] += 1
        self.available[arm] = True


class GlobalRandom(RoundRobin):
    def select(self, t, rng):
        random.random()
        return least_pulled(self.available, self.pulls, 1000)


class ForgetsToCount(EpsilonGreedy):
    def update(self, t, arm, reward, rng):
        self.mean[arm] = reward


HIDDEN = random.Random(0)


class HiddenTieBreak(RoundRobin):
    def select(self, t, rng):
        return HIDDEN.choice([i for i in range(len(self.pulls)) if self.available[i]])


SEEN = {0.5}


class HiddenMemory(RoundRobin):
    def select(self, t, rng):
        choice = [i for i in range(len(self.pulls)) if self.available[i]]
        return choice[len(SEEN) % len(choice)]

    def update(self, t, arm, reward, rng):
        self.pulls[arm] += 1
        SEEN.add(reward)


class OneAfterTheOther(EpsilonGreedy):
    def update(self, t, arm, reward, rng):
        if t < self.mean[0]:
            raise ValueError("too late")
        self.mean[0] = t
        self.pulls[arm] += 1

    def explain(self, arm):
        return {}


class WaitsForEveryArm(RoundRobin):
    def select(self, t, rng):
        for i in range(len(self.pulls)):
            if self.pulls[i] == 0 and not self.available[i]:
                return WAIT
        return least_pulled(self.available, self.pulls, 1000)


class MovesWhenAsked(EpsilonGreedy):
    def select(self, t, rng):
        self.mean[0] += 1
        return least_pulled(self.available, self.pulls, 1000)


class NeedsARoundOverAllArms(RoundRobin):
    @classmethod
    def create(cls, n_arms, horizon, max_pulls=None):
        if horizon < n_arms:
            raise ValueError("horizon too short")
        return super().create(n_arms, horizon, max_pulls)


class NotANumber(EpsilonGreedy):
    def update(self, t, arm, reward, rng):
        self.pulls[arm] += 1
        self.mean[arm] = np.float64(reward) * 1e300 - np.float64(reward) * 1e300


class StateOutsideArrays(RoundRobin):
    @classmethod
    def create(cls, n_arms, horizon, max_pulls=None):
        policy = super().create(n_arms, horizon, max_pulls)
        policy.order = []
        return policy

    def select(self, t, rng):
        choice = [i for i in range(len(self.pulls)) if self.available[i]]
        return choice[len(self.order) % len(choice)]

    def update(self, t, arm, reward, rng):
        self.pulls[arm] += 1
        self.order.append(arm)


class ExplainCounts(EpsilonGreedy):
    def explain(self, arm):
        self.mean[arm] += 1
        return {"mean": self.mean[arm]}


@pytest.mark.parametrize(
    ("policy", "rule", "detail"),
    [
        (PullsAreFloats, "a policy is a NamedTuple", "pulls must be an array"),
        (NumpyFunction, "what is compiled", r"np\.exp; use the math module"),
        (AnyArm, "select only reads, chooses av", "select returned 0 at round"),
        (WaitsForNothing, "select only reads", "WAIT at round 6 with nothing in fl"),
        (WritesMask, "select only reads", "update changed array available"),
        (GlobalRandom, "randomness comes from", "state of random or of np.random"),
        (ForgetsToCount, "pulls counts", r"pulls is \[0\] after \[14\] rewards"),
        (HiddenTieBreak, "with constant rewards", "in one run and"),
        (HiddenMemory, "the same seed", "in one run and"),
        (OneAfterTheOther, "several pulls may be in flight", "'too late'"),
        (WaitsForEveryArm, "arms may end or fail", "with nothing in flight"),
        (MovesWhenAsked, "select only reads", "select changed array mean at round 1"),
        (NeedsARoundOverAllArms, "the horizon may be shorter", "too short"),
        (NotANumber, "rewards may be", "invalid value"),
        (
            StateOutsideArrays,
            "what changes is kept in arrays",
            "holds order, a list, which no saved state has",
        ),
        (ExplainCounts, "explain changes nothing", "explain changed array mean at r"),
    ],
)
def test_a_broken_policy_is_caught_by_its_rule(policy, rule, detail):
    broken = rf'^{policy.__name__} with n_arms=.* breaks the rule "{rule}.*{detail}'
    with pytest.raises(AssertionError, match=broken):
        check_policy(policy.create)


def test_what_numpy_is_told_to_overlook_elsewhere_is_seen():
    with (
        np.errstate(all="ignore"),
        pytest.raises(AssertionError, match=r"rewards may be.*invalid value"),
    ):
        check_policy(NotANumber.create)


class BestSoFar(NamedTuple):
    """A policy as a user may write it: the arm with the best reward so far."""

    available: np.ndarray
    pulls_left: np.ndarray
    horizon: np.ndarray
    pulls: np.ndarray
    best: np.ndarray

    def select(self, t, rng):
        arm = WAIT
        for i in range(len(self.pulls)):
            if self.available[i] and (arm == WAIT or self.best[i] > self.best[arm]):
                arm = i
        return arm

    def update(self, t, arm, reward, rng):
        self.pulls[arm] += 1
        if self.pulls[arm] == 1 or reward > self.best[arm]:
            self.best[arm] = reward


def best_so_far(n_arms, horizon, max_pulls, optimism=math.inf):
    return BestSoFar(
        *arm_arrays(n_arms, horizon, max_pulls), best=np.full(n_arms, optimism)
    )


def test_the_own_policy_of_a_user_passes():
    check_policy(best_so_far)
    check_policy(best_so_far, optimism=0.5)


def test_a_policy_that_stops_by_its_own_rule_is_not_adaptive():
    check_policy(WaitsForNothing.create, adaptive=False)


def test_a_policy_that_stops_stays_stopped():
    with pytest.raises(AssertionError, match="an arm when asked again"):
        check_policy(ChangesItsMind.create, adaptive=False)


def test_parameters_reach_the_policy():
    with pytest.raises(AssertionError, match="epsilon must be a finite number"):
        check_policy("epsilon-greedy", epsilon=2.0)


def test_numbers_of_arms_are_the_users_choice():
    check_policy(NeedsARoundOverAllArms.create, n_arms=[1, 2, 3][:1])
    with pytest.raises(AssertionError, match="n_arms=5"):
        check_policy(NeedsARoundOverAllArms.create, n_arms=[5])


def test_an_unknown_name_is_reported_as_such():
    with pytest.raises(InvalidParameterError, match="did you mean 'cure-ucb'"):
        check_policy("cure")
