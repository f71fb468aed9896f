"""Rewards brought to the unit interval, for the policies whose formulas live there."""

from __future__ import annotations

import numpy as np


def unit_reward(reward: float, low: float, high: float) -> float:
    """Return the reward mapped from [low, high] to [0, 1], and clipped there."""
    return min(1.0, max(0.0, (reward - low) / (high - low)))


def coin_flip(probability: float, rng: np.random.Generator) -> float:
    """Return 1.0 with this probability, else 0.0; no draw where it is 0 or 1.

    How a reward between 0 and 1 becomes the success or failure that a Beta posterior
    counts (Agrawal and Goyal 2012); successes and failures stay as they are.
    """
    if probability <= 0.0:
        return 0.0
    if probability >= 1.0:
        return 1.0
    return 1.0 if rng.random() < probability else 0.0
