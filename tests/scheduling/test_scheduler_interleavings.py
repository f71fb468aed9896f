"""A state is a function of what happened: looks, vain asks and errors leave no trace.

Over 5,000 searches, each drawn from a policy and a seed. A failure names both: run
``Case("asha", 17).check(params)`` again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from interleavings import POLICIES, Case, Moody

from risingsearch.errors import PolicyError
from risingsearch.scheduling import policy_adapter
from risingsearch.scheduling.scheduler import Scheduler

SEEDS = 110  # of each of more than 45 policies
BATCH = 55


def test_there_are_more_than_5000_cases() -> None:
    assert len(POLICIES) * SEEDS >= 5_000


@pytest.mark.slow
@pytest.mark.parametrize("first_seed", range(0, SEEDS, BATCH))
@pytest.mark.parametrize("policy", POLICIES)
def test_the_state_is_a_function_of_the_events(
    policy: str, first_seed: int, live_params: Callable[[str], dict[str, Any]]
) -> None:
    for seed in range(first_seed, first_seed + BATCH):
        Case(policy, seed).check(live_params(policy))


def test_the_rows_of_large_arrays_are_put_back_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy_adapter, "LARGE", 0)
    for seed in range(SEEDS):
        Case("Moody", seed).check({})


def test_select_cannot_write_a_table() -> None:
    class Forgetful(Moody):
        def select(self, t: int, rng: np.random.Generator) -> int:
            self.last[:] = 0.0
            return super().select(t, rng)

    search = Scheduler(Forgetful.create, n_arms=3, budget=9)
    with pytest.raises(
        PolicyError, match=r"select of the policy Forgetful .* read-only"
    ):
        search.ask()
