"""CURE-UCB with another tie rule, and what ties decide on single reviews."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.papers.cure_ucb.imdb.settings import HORIZON, SETTINGS, with_error
from benchmarks.shared import report
from benchmarks.shared.results import at, paired_p_value
from risingsearch.policies import WAIT, CureUCB
from risingsearch.policies.base import least_pulled
from risingsearch.policies.rising.cure_ucb import SLOPE_PULLS, cure_index, cure_noise
from risingsearch.simulation import Comparison

LOWEST = "cure-ucb (lowest index)"
RULES = {"cure-ucb": "fewest pulls, then lowest index", LOWEST: "lowest index"}

REFERENCES = {"cure-ucb": (3646, 415), LOWEST: (1927, 216), "r-ed-ucb": (3718, 466)}
"""Mean and standard error of 60 runs of an independent implementation: 7 arms, single
reviews, T = 50,000, eps 1/32, sigma 0.1."""


class LowestIndexCureUCB(CureUCB):
    """CURE-UCB whose ties go to the lowest arm, not to the one with fewest pulls."""

    __slots__ = ()

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the first arm of highest index, after two pulls of each."""
        arm = least_pulled(self.available, self.pulls, SLOPE_PULLS)
        if arm != WAIT:
            return arm
        noise = cure_noise(self, t)
        best = -math.inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                recent, gain, bonus = cure_index(self, i, t, noise)
                index = recent + gain + bonus
                if arm == WAIT or index > best:
                    best = index
                    arm = i
        return arm


def policies() -> dict[str, Any]:
    """Return CURE-UCB under both tie rules."""
    settings = {"sigma": SETTINGS[1].sigma, "eps": SETTINGS[1].eps}
    return {"cure-ucb": ("cure-ucb", settings), LOWEST: (LowestIndexCureUCB, settings)}


def parts(ties: Comparison) -> Iterator[str]:
    """Yield what the tie rule decides."""
    yield (
        "A single review is right or wrong, so recent averages and slopes take a "
        "handful of values, and many indices are equal. Which of the equal arms comes "
        "first decides where the run locks in. The first of the seven is among the "
        "better ones, and ties to the lowest index lead to it; the rule of this "
        "project, fewest pulls first, favours no arm. CURE-UCB under both:"
    )
    regret = dict(zip(ties.policies, at(ties, HORIZON), strict=True))
    yield report.table(
        [
            {
                "ties go to": rule,
                "mean regret": with_error(regret[name]),
                "independent implementation": reference_text(name),
            }
            for name, rule in RULES.items()
        ]
    )
    p = paired_p_value(regret["cure-ucb"], regret[LOWEST])
    yield (
        f"The rows differ with p = {p:.2g}. R-ed-UCB has "
        f"{reference_text('r-ed-ucb')} there: whether CURE-UCB is ahead of it on "
        "single reviews is a question of the tie rule, not a finding about the "
        "policies."
    )


def reference_text(name: str) -> str:
    """Return the figure to compare with, in words."""
    mean, error = REFERENCES[name]
    return f"{mean:,} ± {error:,} (s.e.)"
