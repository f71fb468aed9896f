"""How the scores of an earlier search rose: what an early one was worth there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from risingsearch.policies import policy_info
from risingsearch.policies.shared.rewards import record_slope, screening_pulls
from risingsearch.policies.tuning.trusted_damped_slope import (
    TrustedDampedSlope,
    rung_of,
    rung_start,
)
from risingsearch.policies.tuning.vectorized import vectorized
from risingsearch.priors.earlier import EarlierSearch

SCALE = 2.0**-200
"""Of scores here, where only their ratios count: so that no sum of them overflows."""


def step_correlation(search: EarlierSearch) -> float:
    """Return the correlation that ``TrustedDampedSlope`` would have learnt, -1 to 1."""
    n_runs, longest = len(search.curves), int(search.epochs.max())
    policy = TrustedDampedSlope.create(n_runs, n_runs * longest, longest)
    policy = policy._replace(first_rung=screening_pulls(search.max_epochs))
    learning = vectorized(policy)
    worst = np.nanmin(search.scores)
    for run, curve in enumerate(search.curves):
        known = SCALE * np.where(np.isfinite(curve), curve, worst)
        policy.P[run, 1 : 1 + len(curve)] = np.cumsum(known)
        for rung in range(rung_of(len(curve), policy.first_rung) + 1):
            n = rung_start(rung, policy.first_rung)
            if n <= len(curve):
                record_slope(policy.P, policy.average, policy.slope, run, n, policy.eps)
                learning.enter_rung(run, rung)
    return float(learning.pooled_correlation())


def policy_params_after(searches: Sequence[EarlierSearch]) -> dict[str, float]:
    """Return the correlation to expect: half way from the usual to that of earlier."""
    if not searches:
        return {}
    found = [step_correlation(search) for search in searches]
    usual = policy_info("trusted-damped-slope").parameters["expected_correlation"]
    return {"expected_correlation": (usual + sum(found) / len(found)) / 2.0}
