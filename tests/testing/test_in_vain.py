"""Asks in vain that leave a trace are found, and the calls that lead there named."""

import pytest

from risingsearch.policies import WAIT
from risingsearch.policies.base import least_pulled
from risingsearch.policies.stationary.baselines import RoundRobin
from risingsearch.policies.stationary.epsilon_greedy import EpsilonGreedy
from risingsearch.testing.in_vain import check_vain_asks

ASKS = []


class WaitsByAGlobal(RoundRobin):
    """Counts in a global how often it is asked while arms are busy, and waits then."""

    def select(self, t, rng):
        for i in range(len(self.pulls)):
            if self.pulls_left[i] > 0 and not self.available[i]:
                ASKS.append(t)
                if len(ASKS) % 2 == 1:
                    return WAIT
        return least_pulled(self.available, self.pulls, 1000)


class HoldsAnObject(EpsilonGreedy):
    """Remembers in an attribute, which no array is."""

    @classmethod
    def create(cls, n_arms, horizon, max_pulls=None):
        policy = super().create(n_arms, horizon, max_pulls)
        policy.memory = {}
        return policy

    def update(self, t, arm, reward, rng):
        self.memory[arm] = reward
        self.pulls[arm] += 1


class CountsAsks(EpsilonGreedy):
    """Scribbles in its arrays wherever it is asked, which a scheduler undoes."""

    def select(self, t, rng):
        self.mean[0] += rng.random()
        for i in range(len(self.pulls)):
            if (
                self.pulls_left[i] > 0
                and not self.available[i]
                and self.mean[0] % 1 < 0.5
            ):
                return WAIT
        return least_pulled(self.available, self.pulls, 1000)


class ChoosesTheBusyOne(RoundRobin):
    def select(self, t, rng):
        return 0


def check(policy):
    check_vain_asks(policy.create, n_arms=3, max_epochs=9)


def test_a_global_is_found_by_what_it_leads_to():
    with pytest.raises(AssertionError, match=r"cannot be replayed.*ask\(\) -> None"):
        check(WaitsByAGlobal)


def test_an_attribute_that_changes_is_named():
    with pytest.raises(
        AssertionError, match=r"\['memory'\] of the policy changed.*tell"
    ):
        check(HoldsAnObject)


def test_what_is_in_arrays_leaves_no_trace():
    check(CountsAsks)


def test_a_policy_that_breaks_its_contract_is_an_assertion_too():
    with pytest.raises(AssertionError, match=r"not available.* after ask\(\) -> arm 0"):
        check(ChoosesTheBusyOne)
