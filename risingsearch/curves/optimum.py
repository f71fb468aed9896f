"""Exact sums of rewards that the best policy would have collected.

For rested arms every function takes the curves as a table of means, NaN after the last
pull of an arm, and returns the best sum of means per number of rounds; ``upper_sums``
is for restless ones.
"""

import numpy as np

from risingsearch.policies.arrays import Floats, Ints, int_zeros


def best_arm(means: Floats, rounds: Ints) -> Floats:
    """Return the largest sum of a single arm: optimal where means never fall.

    Examples
    --------
    >>> best_arm(np.array([[0.5, 0.5, 0.5], [0.1, 0.6, 0.9]]), np.array([1, 2, 3]))
    array([0.5, 1. , 1.6])
    """
    sums = np.cumsum(np.nan_to_num(means), axis=1)
    last = np.minimum(rounds, sums.shape[1]) - 1
    return np.asarray(sums[:, last].max(axis=0))


def greedy(means: Floats, rounds: Ints) -> Floats:
    """Return the sum of the largest means: optimal where means never rise.

    Then the largest means that are left are always the next of some arms (Levine,
    Crammer, Mannor 2017, section 2).

    Examples
    --------
    >>> greedy(np.array([[0.5, 0.5, 0.5], [1.0, 0.4, 0.2]]), np.array([1, 2, 4]))
    array([1. , 1.5, 2.5])
    """
    rising = np.sort(means[np.isfinite(means)])
    sums = np.cumsum(rising[::-1])
    return np.asarray(sums[np.minimum(rounds, len(sums)) - 1])


def allocation(means: Floats, rounds: Ints) -> Floats:
    """Return the best sum over all ways to share the rounds among the arms.

    A dynamic programme over arms and rounds, for curves of any shape; the order of the
    pulls does not matter to rested arms. Its time grows with the number of means times
    the number of rounds.

    Examples
    --------
    >>> allocation(np.array([[0.5, 0.1], [0.1, 0.9]]), np.array([1, 2, 3, 4]))
    array([0.5, 1. , 1.5, 1.6])
    """
    last = int(rounds.max())
    best = np.full(last + 1, -np.inf)
    best[0] = 0.0
    for curve in means:
        sums = np.cumsum(curve[np.isfinite(curve)])
        with_arm = best.copy()
        for n, gained in enumerate(sums[:last], start=1):
            np.maximum(with_arm[n:], best[:-n] + gained, out=with_arm[n:])
        best = with_arm
    return np.asarray(best[np.minimum(rounds, np.isfinite(means).sum())])


def upper_sums(starts: Floats, slopes: Floats, lengths: Ints) -> Floats:
    """Return, per row, the sum of the highest of several lines over whole rounds.

    The line that leads keeps the lead until a steeper one is above it, so that a row
    takes as many steps as lines lead in turn, however long it is.

    Parameters
    ----------
    starts, slopes : ndarray of shape (n_rows, n_lines)
        The lines of each row, at its first round and per round.
    lengths : ndarray of shape (n_rows,)
        Rounds of each row.

    Returns
    -------
    ndarray of shape (n_rows,)
        Exact but for rounding.

    Examples
    --------
    >>> starts = np.array([[3.0, 0.0]])
    >>> slopes = np.array([[0.0, 1.0]])
    >>> upper_sums(starts, slopes, np.array([6]))  # 3, 3, 3, 3, 4, 5
    array([21.])
    """
    sums = np.zeros(len(lengths))
    done = int_zeros(len(lengths))
    rows = np.flatnonzero(np.isfinite(starts).any(axis=1))
    while len(rows):
        slope = slopes[rows]
        values = starts[rows] + slope * done[rows, None]
        top = values.max(axis=1)
        behind = top[:, None] - values
        lead = np.where(behind == 0.0, slope, -np.inf).max(axis=1)
        steeper = slope - lead[:, None]
        rounds = np.full_like(behind, np.inf)
        np.divide(behind, steeper, out=rounds, where=steeper > 0.0)
        overtaken = np.floor(rounds.min(axis=1)) + 1.0
        steps = np.minimum(overtaken, lengths[rows] - done[rows])
        sums[rows] += steps * (top + 0.5 * lead * (steps - 1.0))
        done[rows] += steps.astype(np.int64)
        rows = rows[done[rows] < lengths[rows]]
    return sums
