"""Arms that rest on rungs until they are chosen again, and those below their goals.

A bound for each rung and block of arms spares a decision most of the arms. A ``policy``
here is a ``LooksThenSlope``, which imports this module.
"""

import math
from typing import Any

from risingsearch.policies.base import WAIT, leader
from risingsearch.policies.shared.rewards import damped_gain, epochs_left

LOOKS, PULLED, NEW, BLOCKS, LAST = range(5)
"""Counts: pulls of all looks as planned, rewards, arms before the first that was never
started, blocks in use; and the arm of the last reward."""
BLOCK = 64  # arms


def rest(policy: Any, arm: int, at: int) -> None:
    """Let an arm rest on a rung, from 1, or train to a goal, 0."""
    rung, bound, behind = policy.rung, policy.bound, policy.behind
    block, row, highest = arm // BLOCK, max(rung[arm], at), -math.inf
    rung[arm] = at
    bound[arm] = policy.average[arm] + policy.slope[arm] * policy.pulls[arm]
    for i in range(block * BLOCK, min(block * BLOCK + BLOCK, len(rung))):
        if rung[i] == row and bound[i] > highest:
            highest = bound[i]
    policy.block_bound[row, block] = highest
    policy.counts[BLOCKS] = max(policy.counts[BLOCKS], block + 1)
    if at == 0:
        behind[0] += 1
        behind[behind[0]] = arm
        return
    for k in range(1, behind[0] + 1):
        if behind[k] == arm:
            behind[k] = behind[behind[0]]
            behind[0] -= 1
            break


def arm_behind(policy: Any) -> tuple[int, float]:
    """Return the first available arm below its goal; and pulls left to the others."""
    arm, claimed, behind = WAIT, 0, policy.behind
    for k in range(1, behind[0] + 1):
        if not policy.available[behind[k]]:
            claimed += policy.pulls_left[behind[k]]
        elif arm == WAIT or behind[k] < arm:
            arm = int(behind[k])
    return arm, float(claimed)


def rounds_left(policy: Any) -> float:
    """Return the rounds of the horizon that have no reward yet."""
    latest = policy.horizon[policy.horizon.argmax()]  # max() does not compile
    return float(latest - policy.counts[PULLED])


def highest_end(policy: Any, t: int, first: int, below: int) -> int:
    """Return the arm that ends highest among those on these rungs, or ``WAIT``."""
    arm, best, pulls, available = WAIT, -math.inf, policy.pulls, policy.available
    rung, bound = policy.rung, policy.bound
    for row in range(first, below):
        block_bound = policy.block_bound[row]
        for block in range(policy.counts[BLOCKS]):
            if -math.inf < block_bound[block] >= best:
                for i in range(block * BLOCK, min(block * BLOCK + BLOCK, len(pulls))):
                    if bound[i] >= best and rung[i] == row and available[i]:
                        end = end_of(policy, i, t)
                        arm, best = leader(arm, best, i, end, pulls)
    return arm


def end_of(policy: Any, arm: int, t: int) -> float:
    """Return where the arm's damped slope ends with all it can get from round ``t``."""
    left = epochs_left(policy.pulls_left, policy.horizon, arm, t)
    gain = damped_gain(policy.slope[arm], float(policy.pulls[arm]), left)
    return float(policy.average[arm] + gain)
