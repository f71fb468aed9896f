"""A race: the arms that have not been dropped and can still train.

The functions take arrays and not the policy: a ``NamedTuple`` is copied where the
compiler does not inline a call.
"""

from math import inf

from risingsearch.policies.arrays import Bools, Floats, Ints
from risingsearch.policies.base import WAIT, best_available, leader


def in_race(alive: Bools, pulls_left: Ints, arm: int) -> bool:
    """Return whether the arm is neither dropped nor at its end."""
    return bool(alive[arm] and pulls_left[arm] > 0)


def next_in_turn(
    available: Bools,
    pulls_left: Ints,
    alive: Bools,
    turns: Ints,
    value: Floats,
) -> int:
    """Return the arm in the race with fewest turns; the best where all have ended."""
    arm = WAIT
    busy = False
    for i in range(len(turns)):
        if in_race(alive, pulls_left, i):
            if not available[i]:
                busy = True
            elif arm == WAIT or turns[i] < turns[arm]:
                arm = i
    if arm != WAIT or busy:
        return arm
    return best_available(available, value, turns)


def lacks_pulls(
    pulls_left: Ints,
    alive: Bools,
    arm: int,
    n_pulls: int,
    target: int,
) -> bool:
    """Return whether an arm, after so many pulls, is to give more in this round."""
    return bool(pulls_left[arm] > 0 and alive[arm] and n_pulls < target)


def next_below(
    available: Bools,
    pulls_left: Ints,
    alive: Bools,
    pulls: Ints,
    target: int,
) -> tuple[int, bool]:
    """Return the first free arm that lacks pulls, or ``WAIT``; and if any is left.

    Parameters
    ----------
    available, alive : ndarray of bool, shape (n_arms,)
        The arms that are free, and those in the race.
    pulls_left, pulls : ndarray of shape (n_arms,)
        Rewards that each can still give, and has given.
    target : int
        Pulls in all by the end of the round.

    Returns
    -------
    tuple of int and bool
        The arm, or ``WAIT``; and whether an arm that lacks pulls is left, free or busy.
    """
    busy = False
    for i in range(len(pulls)):
        if lacks_pulls(pulls_left, alive, i, pulls[i], target):
            if available[i]:
                return i, True
            busy = True
    return WAIT, busy


def round_is_over(
    pulls_left: Ints,
    alive: Bools,
    pulls: Ints,
    target: int,
) -> bool:
    """Return whether every arm in the race has given its pulls of the round."""
    # A round ends with its last arm, which is looked at first.
    for i in range(len(pulls) - 1, -1, -1):
        if lacks_pulls(pulls_left, alive, i, pulls[i], target):
            return False
    return True


def next_in_round(
    available: Bools,
    pulls_left: Ints,
    alive: Bools,
    pulls: Ints,
    target: int,
    value: Floats,
) -> int:
    """Return the next arm of a round, or its best, where the last is not free."""
    arm, busy = next_below(available, pulls_left, alive, pulls, target)
    if arm != WAIT or busy:
        return arm
    arm = WAIT
    best = -inf
    for i in range(len(pulls)):
        if available[i] and in_race(alive, pulls_left, i):
            arm, best = leader(arm, best, i, value[i], pulls)
    return arm


def drop_behind(
    pulls_left: Ints,
    alive: Bools,
    value: Floats,
    radius: Floats,
) -> None:
    """Drop the arms in the race that are worse than its best one for certain."""
    floor = -inf
    for i in range(len(value)):
        if in_race(alive, pulls_left, i):
            floor = max(floor, value[i] - radius[i])
    for i in range(len(value)):
        if in_race(alive, pulls_left, i) and value[i] + radius[i] < floor:
            alive[i] = False


def all_have(
    pulls_left: Ints,
    alive: Bools,
    pulls: Ints,
    n_pulls: int,
) -> bool:
    """Return whether the race has arms to compare, each with its pulls."""
    n_arms = 0
    # A sweep ends with its last arm, which is looked at first.
    for i in range(len(pulls) - 1, -1, -1):
        if in_race(alive, pulls_left, i):
            if pulls[i] < n_pulls:
                return False
            n_arms += 1
    return n_arms > 1
