"""Normal scores of ranks, and their correlation among arms that were selected."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np

CELLS = 1024
_QUANTILE = NormalDist().inv_cdf
NORMAL_SCORES = np.array(
    [round(2**16 * _QUANTILE((i + 0.5) / CELLS)) for i in range(CELLS)]
)
"""Quantiles of the normal distribution, as whole numbers: their sums are exact."""


def normal_score(rank: Any, n: int) -> Any:
    """Return the normal score of a rank: arms below less arms above, of ``n``."""
    return NORMAL_SCORES[(rank + n) * CELLS // (2 * n)]


def corrected(
    n_all: int,
    x_all: int,
    xx_all: int,
    n: int,
    x_sum: int,
    y_sum: int,
    xx: int,
    xy: int,
    yy: int,
) -> float:
    """Return the correlation of ``n`` pairs, were their ``x`` not selected from more.

    ``x_all`` and ``xx_all`` are the sums of all ``n_all`` values of ``x`` and of their
    squares, the others those of the pairs. 0 where all values of one kind are equal.
    """
    of_all = xx_all / n_all - (x_all / n_all) * (x_all / n_all)
    of_x = xx / n - (x_sum / n) * (x_sum / n)
    of_y = yy / n - (y_sum / n) * (y_sum / n)
    if of_x <= 0.0 or of_y <= 0.0:
        return 0.0
    r = (xy / n - (x_sum / n) * (y_sum / n)) / math.sqrt(of_x * of_y)
    spread = of_all / of_x
    return r * math.sqrt(spread) / math.sqrt(1.0 + r * r * (spread - 1.0))
