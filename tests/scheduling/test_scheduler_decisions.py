"""Decision by decision: CURE-UCB against its formula."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scheduler_runs import (
    finish,
    pulls,
)

from risingsearch.scheduling.scheduler import Scheduler

# --------------------------------------------------------------- CURE-UCB, pull by pull


def cure_pulls(
    table: NDArray[np.float64],
    horizons: Sequence[int],
    eps: float,
    sigma: float | None,
    max_epochs: int,
) -> list[int]:
    """CURE-UCB computed directly: every window summed afresh, at every round.

    ``horizons``: the budgets, each known once the one before is spent.
    """
    seen: list[list[float]] = [[] for _ in table]
    chosen: list[int] = []

    def noise() -> float:
        if sigma is not None:
            return sigma
        bends = [y[k] - 2 * y[k - 1] + y[k - 2] for y in seen for k in range(2, len(y))]
        return math.sqrt(math.fsum(d * d for d in bends) / (6 * max(1, len(bends))))

    def index(rewards: list[float], t: int, horizon: int) -> float:
        n = len(rewards)
        h = max(1, math.floor(eps * n))
        recent = math.fsum(rewards[n - h :])
        before = math.fsum(rewards[n - 2 * h : n - h])
        left = horizon - t
        projection = recent / h + left / 2 * (recent - before) / h**2
        spread = (3 * left**2 + 8 * h**2) / (4 * h**3)
        return projection + noise() * math.sqrt(6 * math.log(t) * spread)

    for horizon in horizons:
        while len(chosen) < horizon:
            t = len(chosen) + 1
            arms = [i for i, rewards in enumerate(seen) if len(rewards) < max_epochs]
            if not arms:
                return chosen
            fresh = [i for i in arms if len(seen[i]) < 2]
            if fresh:
                arm = min(fresh, key=lambda i: (len(seen[i]), i))
            else:
                indices = {i: index(seen[i], t, horizon) for i in arms}
                arm = max(arms, key=lambda i: (indices[i], -len(seen[i]), -i))
            seen[arm].append(float(table[arm, len(seen[arm])]))
            chosen.append(arm)
    return chosen


def recorded_curves(n_arms: int, n_epochs: int, seed: int) -> NDArray[np.float64]:
    """Noise-free concave rising curves; on a dyadic grid, so that sums are exact."""
    rng = np.random.default_rng(seed)
    top = rng.uniform(0.3, 1.0, size=(n_arms, 1))
    speed = rng.uniform(0.2, 1.5, size=(n_arms, 1))
    curves = top * (1 - (1 + np.arange(1, n_epochs + 1)) ** -speed)
    return np.round(curves * 2**24) / 2**24


def play(scheduler: Scheduler, table: NDArray[np.float64]) -> list[int]:
    return pulls(finish(scheduler, lambda arm, epoch: float(table[arm, epoch - 1])))


@pytest.mark.parametrize("eps", [1 / 32, 0.25, 0.5])
@pytest.mark.parametrize("sigma", [0.0, 0.003, 0.1, None])
@pytest.mark.parametrize("max_epochs", [None, 40])
def test_cure_ucb_equals_its_formula_pull_by_pull(
    eps: float, sigma: float | None, max_epochs: int | None
) -> None:
    table = recorded_curves(n_arms=6, n_epochs=220, seed=1)
    scheduler = Scheduler(
        "cure-ucb", 6, 220, max_epochs, policy_params={"eps": eps, "sigma": sigma}
    )
    expected = cure_pulls(table, [220], eps, sigma, max_epochs or 220)
    assert play(scheduler, table) == expected
    assert len(set(expected[12:])) > 1


@pytest.mark.parametrize("max_epochs", [None, 40])
def test_an_extended_cure_ucb_looks_to_the_new_horizon(max_epochs: int | None) -> None:
    table = recorded_curves(n_arms=5, n_epochs=150, seed=2)
    scheduler = Scheduler("cure-ucb", 5, 60, max_epochs, policy_params={"sigma": 0.01})
    actual = play(scheduler, table)
    scheduler.extend(90)
    actual += play(scheduler, table)
    horizons = [60, 150]
    assert actual == cure_pulls(table, horizons, 0.25, 0.01, max_epochs or 150)


@pytest.mark.parametrize("policy_params", [{"sigma": 0.0, "eps": 0.1}, {}])
def test_the_scheduler_plays_cure_ucb(policy_params: dict[str, float]) -> None:
    table = recorded_curves(n_arms=4, n_epochs=80, seed=3)
    scheduler = Scheduler("cure-ucb", n_arms=4, budget=80, policy_params=policy_params)
    eps, sigma = policy_params.get("eps", 0.25), policy_params.get("sigma")
    assert play(scheduler, table) == cure_pulls(table, [80], eps, sigma, 80)
