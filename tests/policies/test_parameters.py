"""Values of parameters that every policy refuses."""

import math
from contextlib import suppress

import numpy as np
import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.policies import list_policies, make_policy

WRONG = {
    "asha": {"eta": [1.5], "min_pulls": [0]},
    "be": {
        "rate": ["rough"],
        "lipschitz": [0.0],
        "epoch_factor": [-1.0],
        "budget_factor": [0.0],
        "known_reward": [math.nan, -math.inf],
    },
    "ccb": {"reward_range": [(0.5, 0.5)]},
    "cto-sim": {"models": [[[0.5, math.nan]], [[0.5] * 9]]},
    "cure-ucb": {"eps": [0.6], "sigma": [-0.1]},
    "d-ucb": {"discount": [0.0, 1.1], "xi": [-0.5], "reward_range": [(0.0, math.inf)]},
    "d-cto-ucb": {"sigma": [-0.1], "delta": [0.0], "explore_pulls": [1]},
    "epsilon-greedy": {"epsilon": [1.1]},
    "et-swgts": {"forced_pulls": [-1], "precision": [0.0, math.nan]},
    "f-dsw-ts": {
        "discount": [-0.1],
        "window": [0],
        "combine": ["median"],
        "reward_range": [(1.0, 1.0)],
    },
    "fewa": {"alpha": [0.0], "sigma": [math.nan], "growth": [0.9]},
    "hyperband": {"eta": [True]},
    "kl-ucb": {"c": [-0.1], "reward_range": [(-math.inf, 1.0)]},
    "max-ucb": {"alpha": [-0.1]},
    "median-stopping": {"min_arms": [0]},
    "r-ed-ae": {"sigma": [-0.1, math.nan], "delta": [0.0, 2.0]},
    "r-ed-ucb": {"eps": [0.6], "sigma": [-0.1], "delta": [0.0, 2.0], "alpha": [0]},
    "r-ucbe": {"eps": [0.6], "sigma": [-1], "exploration": [-1.0]},
    "r-sr": {"eps": [0.0]},
    "raw-ucb": {"growth": [2.1]},
    "raven-ucb": {
        "alpha0": [-0.5],
        "beta0": ["much"],
        "eps": [-1e-06],
        "variance": ["biased"],
    },
    "rexp3": {
        "variation": [0.0, "none"],
        "batch_rule": ["longest"],
        "reward_range": [(0.0, math.inf)],
    },
    "rising-bandits-cash": {"window": [0, 1.5], "reward_range": [(1.0, 1.0)]},
    "ser4": {
        "delta": [0.0, 1.5],
        "eps": [-1.0],
        "switches": [-1],
        "reward_range": [(0.0, math.inf)],
    },
    "successive-halving": {"eta": [1]},
    "sw-kl-ucb": {"c": [-1.0], "reward_range": [(0.0, math.inf)]},
    "sw-ts": {"reward_range": [3], "window": [0]},
    "sw-ucb": {"xi": [-0.1], "window": [1.5], "reward_range": [(1.0, 0.0)]},
    "swa": {"alpha": [0.0], "sigma": ["small"]},
    "thompson-beta": {"reward_range": [(1.0, 0.0), (-math.inf, 1.0), 1.0]},
    "thompson-gaussian": {"sigma": [-0.1, math.inf, None]},
    "ti-ucb": {
        "delta": [0.0, 1.5],
        "omega": [1, 2.5],
        "gamma": [0.0],
        "reward_range": [(1.0, 0.0), 1.0],
    },
    "ucb-improved": {"order": ["sorted"], "reward_range": [(1.0, 0.0)]},
    "ucb-v": {
        "zeta": [-0.1],
        "c": [math.nan],
        "variance": ["eq5"],
        "denominator": [1],
        "reward_range": [1.0],
    },
    "ucb1": {
        "c": [-1.0],
        "denominator": ["n-1"],
        "reward_range": [(0.0, math.inf), (1.0, 0.0)],
    },
    "wls-ots": {
        "decay": [0.0, 1.1],
        "window": [1, 50.0],
        "reward_range": [(0.0, math.inf), (1.0, 0.0)],
    },
}


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        (name, parameter, value)
        for name, wrong in WRONG.items()
        for parameter, values in wrong.items()
        for value in values
    ],
)
def test_values_outside_their_range_are_refused(name, parameter, value):
    with pytest.raises(InvalidParameterError, match=parameter):
        make_policy(name, 2, 10, **{parameter: value})


EXTREMES = [
    *(5e-324, 1e-12, 0, 0.0, 0.5, 1, 2, 3, -1, -1.0, 1e300, 1.7e308, 2**20, math.inf),
    *((0.0, 5e-324), (-1e308, 1e308), (-math.inf, 1.0), (-math.inf, math.inf)),
]


@pytest.mark.parametrize("info", list_policies(), ids=lambda info: info.name)
def test_what_is_not_refused_plays(info):
    for parameter in info.parameters:
        for value in EXTREMES:
            with suppress(InvalidParameterError), np.errstate(all="ignore"):
                policy = make_policy(info.name, 4, 30, 10, **{parameter: value})
                play(policy, np.random.default_rng(0))


def play(policy, rng):
    for t in range(1, 31):
        policy.available[:] = policy.pulls_left > 0
        arm = policy.select(t, rng)
        if arm < 0:
            return
        if hasattr(policy, "started"):
            policy.started(t, arm)
        policy.pulls_left[arm] -= 1
        policy.update(t, arm, min(0.5, rng.random()), rng)
