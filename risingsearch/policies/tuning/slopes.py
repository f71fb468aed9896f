r"""The damped slope: where a learning curve that flattens will end.

With :math:`N` pulls behind an arm, the mean :math:`m` and the slope :math:`s \ge 0` of
its last windows of :math:`h = \max(1, \lfloor \epsilon N \rfloor)` scores, the curve
:math:`y = a - b / n` through them reaches

.. math:: m + s N (1 - N / n_2), \qquad n_2 = N + \min(R - N,\; T - t + 1)

at the last pull that the arm can still get: of ``R`` in all, in ``T`` rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from risingsearch.policies.arrays import Bools, Floats, Ints
from risingsearch.policies.shared.rewards import SLOPE_PULLS, refresh_slope


def screening_pulls(max_pulls: int) -> int:
    """Return ``r1 = max(1, R // 50)``, the length of the first rung."""
    return max(1, max_pulls // 50)


def is_claimed(
    available: Bools, pulls_left: Ints, pulls: Ints, horizon: Floats
) -> bool:
    """Return whether the arms in flight could use up all that is left of the horizon.

    Training another would take from them, and they were the better choices.
    """
    claimed = 0
    for i in range(len(pulls)):
        if not available[i]:
            claimed += pulls_left[i]
    if claimed == 0:
        return False
    latest = 0.0
    pulled = 0
    for i in range(len(pulls)):
        latest = max(latest, horizon[i])
        pulled += pulls[i]
    return claimed >= latest - pulled


def record_slope(
    sums: Floats, average: Floats, slope: Floats, arm: int, n: int, eps: float
) -> None:
    """Record the mean of the arm's last window, and its slope, 0 where it falls."""
    if n < SLOPE_PULLS:
        average[arm] = sums[arm, n]
        return
    refresh_slope(sums, average, slope, arm, n, eps)
    slope[arm] = max(0.0, slope[arm])


def epochs_left(pulls_left: Ints, horizon: Floats, arm: int, t: int) -> float:
    """Return how many epochs the arm can still get from round ``t`` on."""
    return min(float(pulls_left[arm]), float(horizon[arm]) - t + 1.0)


def damped_gain(slope: float, n: float, left: float) -> float:
    """Return ``s N (1 - N / n2)``, with ``n2 = N + left`` and at least ``N``."""
    if n == 0.0:
        return 0.0
    return float(slope * n * (1.0 - n / (n + max(0.0, left))))


def highest_end(scores: Sequence[float], max_pulls: int, eps: float = 0.25) -> float:
    """Return where the last slope of an arm's scores leads in a straight line.

    A curve that flattens ends below that, so what cannot win by it cannot win.

    Parameters
    ----------
    scores : sequence of float
        What the arm has paid so far, at least one; higher is better.
    max_pulls : int
        Pulls the arm can give in all.
    eps : float, default 0.25
        Share of the arm's pulls in its window, above 0 and at most 1/2.

    Examples
    --------
    >>> highest_end([0.5, 0.6, 0.7, 0.75], max_pulls=8)
    0.95
    """
    n = len(scores)
    sums = np.concatenate([[0.0], np.cumsum(scores)])[None]
    average, slope = np.zeros(1), np.zeros(1)
    record_slope(sums, average, slope, 0, n, eps)
    return float(average[0] + slope[0] * max(0, max_pulls - n))
