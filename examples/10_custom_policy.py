"""
A policy of your own
====================

A policy is a ``NamedTuple`` with ``select`` and ``update``. This one tosses a coin
between the arm with the best score and the one with the fewest epochs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch import Functions, RisingSearch
from risingsearch.policies.base import arm_arrays, best_available, least_pulled
from risingsearch.testing import check_policy


class CoinToss(NamedTuple):
    available: NDArray[np.bool_]
    pulls_left: NDArray[np.int64]
    horizon: NDArray[np.float64]
    pulls: NDArray[np.int64]
    best: NDArray[np.float64]

    @classmethod
    def create(cls, n_arms, horizon, max_pulls=None):
        return cls(*arm_arrays(n_arms, horizon, max_pulls), np.full(n_arms, -np.inf))

    def select(self, t, rng):
        if rng.random() < 0.5:
            return least_pulled(self.available, self.pulls, int(self.horizon[0]) + 1)
        return best_available(self.available, self.best, self.pulls)

    def update(self, t, arm, reward, rng):
        self.pulls[arm] += 1
        self.best[arm] = max(self.best[arm], reward)


check_policy(CoinToss.create)

# %%
# It has passed the checks, so any search takes it.


def start(params, seed):
    return {"epochs": 0, **params}


def train(state):
    state["epochs"] += 1
    return state["top"] * (1 - np.exp(-state["epochs"] / state["pace"]))


rng = np.random.default_rng(0)
candidates = [
    {"top": rng.uniform(0.5, 1.0), "pace": rng.uniform(1.0, 15.0)} for _ in range(12)
]
for policy in (CoinToss.create, "auto"):
    search = RisingSearch(
        Functions(start, train),
        candidates,
        policy=policy,
        budget=80,
        max_epochs=30,
        seed=0,
    )
    result = search.run()
    print(f"best score {result.best_score:.3f}")
    result.plot_allocation()
