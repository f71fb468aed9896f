"""Trials of the logistics experiment of the RAVEN-UCB paper, and their sums."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.raven.study import announce
from risingsearch.curves import DriftingMeans, make_environment
from risingsearch.simulation import Comparison, SimulationResult, simulate

HORIZON = 50_000
CONSTANT = 0.8
"""The best mean at the start: what static regret is against."""
N_CHECKPOINTS = 50
MEASURES = STATIC, DYNAMIC, REWARD, SUBOPTIMAL = (
    "static regret",
    "dynamic regret",
    "reward",
    "suboptimal pulls",
)


class Trials(NamedTuple):
    """What came out of all trials; the arms of a trial are the same for all policies.

    The rewards are those drawn, the regrets are of means.
    """

    policies: list[str]
    checkpoints: NDArray[np.int64]
    sums: NDArray[np.float64]  # (n_trials, n_policies, n_measures, n_checkpoints)

    def paths(self, measure: str, policy: str) -> NDArray[np.float64]:
        """Return the sums of a measure, of shape (n_trials, n_checkpoints)."""
        place = self.policies.index(policy), MEASURES.index(measure)
        paths: NDArray[np.float64] = self.sums[:, *place]
        return paths

    def ends(self, measure: str, policy: str) -> NDArray[np.float64]:
        """Return the sums of a measure at the end of every trial."""
        return self.paths(measure, policy)[:, -1]

    def comparison(self, names: list[str]) -> Comparison:
        """Return the static regrets at the end as a comparison."""
        regret = np.array([self.ends(STATIC, name) for name in names])[None, None]
        return Comparison(names, ["logistics"], [HORIZON], regret, 0 * regret)


def play(
    named: Mapping[str, Any],
    n_trials: int,
    seed: int,
    jobs: int | None = None,
    horizon: int = HORIZON,
) -> Trials:
    """Play policies in the same environments, one per trial."""
    announce(f"{len(named)} policies, {n_trials} trials of logistics")
    checkpoints = np.linspace(0, horizon, N_CHECKPOINTS + 1).astype(np.int64)[1:]

    def trial(k: int) -> list[NDArray[np.float64]]:
        arms = make_environment("logistics", horizon, seed + k)
        return [
            sums(arms, one_run(player, arms, horizon, seed + k), checkpoints)
            for player in named.values()
        ]

    for player in named.values():  # compiled once, before the threads
        one_run(player, "logistics", 1, seed)
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        found = np.array(list(pool.map(trial, range(n_trials))))
    return Trials(list(named), checkpoints, found)


def one_run(
    player: tuple[str, dict[str, Any]], environment: Any, horizon: int, seed: int
) -> SimulationResult:
    """Play a policy once, and keep every arm and reward."""
    policy, params = player
    return simulate(
        policy,
        environment,
        horizon,
        seed=seed,
        jobs=1,
        policy_params=params,
        trace=True,
    )


def sums(
    arms: DriftingMeans, found: SimulationResult, checkpoints: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the sums of every measure up to each checkpoint."""
    pulled, rewards = found.arms[0], found.rewards[0]
    rounds = np.arange(1, len(pulled) + 1)
    phase = np.searchsorted(arms.rounds, rounds, side="right") - 1
    mean = arms.means[phase, pulled]
    best = arms.means.argmax(axis=1)
    each = [
        CONSTANT - mean,
        arms.means[phase, best[phase]] - mean,
        rewards,
        pulled != best[phase],
    ]
    return np.cumsum(each, axis=1)[:, checkpoints - 1]
