"""A trainable that takes no time, so that what is measured is the search around it."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

RAISING, NOT_FINITE, ENDING = 0.003, 0.003, 0.006
"""Shares of the epochs that raise, score NaN, or find nothing more to train."""


class Injected(Exception):  # noqa: N818, it is no error of anybody's
    """The failure of an epoch that was to fail."""


class Fleeting:
    """Curves that rise to their top; some epochs fail, the same ones in every process.

    What an epoch does follows from its arm and its number.
    """

    def start(self, params: Mapping[str, Any], seed: int) -> dict[str, Any]:
        """Return a state of a few numbers."""
        return {"epoch": 0, "seed": seed, "top": params["top"], "rate": params["rate"]}

    def train(self, state: dict[str, Any]) -> float:
        """Return the next score, or fail."""
        state["epoch"] += 1
        fate = random.Random(1_000_003 * state["seed"] + state["epoch"]).random()
        if fate < RAISING:
            raise Injected(f"epoch {state['epoch']}")
        if fate < RAISING + NOT_FINITE:
            return math.nan
        if fate < RAISING + NOT_FINITE + ENDING:
            raise StopIteration
        return float(state["top"] * (1.0 - math.exp(-state["rate"] * state["epoch"])))


def candidates(n_arms: int, seed: int) -> list[dict[str, Any]]:
    """Return the parameters of every arm: two that matter and three that do not."""
    rng = random.Random(seed)
    return [
        {
            "top": rng.uniform(0.3, 1.0),
            "rate": rng.uniform(0.05, 1.0),
            "depth": rng.randint(1, 20),
            "kind": rng.choice("abc"),
            "on": rng.random() < 0.5,
        }
        for _ in range(n_arms)
    ]
