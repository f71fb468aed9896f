"""The Kullback-Leibler divergence of two coins, and the upper bound it gives a mean."""

from math import exp, inf, log, sqrt

CLIP = 1e-9


def bernoulli_kl(p: float, q: float) -> float:
    """Return ``p ln(p / q) + (1 - p) ln((1 - p) / (1 - q))``, with ``0 ln 0 = 0``.

    Examples
    --------
    >>> round(bernoulli_kl(0.5, 0.75), 4)
    0.1438
    """
    if (q <= 0.0 < p) or (p < 1.0 <= q):
        return inf
    total = 0.0
    if p > 0.0:
        total += p * log(p / q)
    if p < 1.0:
        total += (1.0 - p) * log((1.0 - p) / (1.0 - q))
    return max(0.0, total)


def kl_upper(mean: float, level: float) -> float:
    """Return the largest ``q`` in [mean, 1] with ``bernoulli_kl(mean, q) <= level``.

    Parameters
    ----------
    mean : float
        From 0 to 1.
    level : float
        The divergence allowed; the mean itself is the bound where it is not above 0.

    Returns
    -------
    float
        From the mean to 1, within 1e-9.

    Examples
    --------
    >>> round(kl_upper(0.5, 0.1438), 3), kl_upper(0.5, 0.0)
    (0.75, 0.5)
    """
    # Two steps of Halley's method from above leave an error below 1e-9. They start from
    # Bernstein's bound, which is tight for small levels, or the one without the term
    # ``ln q``, which is tight where ``q`` comes close to 1. A bound of 1 stands for all
    # above 1 - 1e-10.
    if level <= 0.0:
        return mean
    p = min(max(mean, CLIP), 1.0 - CLIP)
    rest = 1.0 - p
    c = 2.0 / 3.0 * (rest - p) * level
    d = c + sqrt(c * c + 2.0 * p * rest * level)  # q - p
    if level > 1e-10:  # below, the bound is exact
        g = p * log(p) + rest * log(rest) - level
        if level > 1.0 or d > 0.4 * rest:
            tail = exp(g / rest)
            if tail < 1e-10:
                return 1.0
            d = min(d, rest - tail)
        for _ in range(2):
            q = p + d
            tail = rest - d
            f = g - p * log(q) - rest * log(tail)
            w = q * tail
            d -= f * w * d / (d * d - 0.5 * f * (w - d * (tail - q)))
    return min(1.0, max(mean, p + d))


def surely_below(mean: float, level: float, value: float) -> bool:
    """Return True only if ``kl_upper(mean, level)`` is below ``value`` by 1e-9.

    Examples
    --------
    >>> surely_below(0.5, 0.1, 0.8), surely_below(0.5, 0.1, 0.7)
    (True, False)
    """
    # It costs a fraction: a search for the highest bound asks this of all arms and
    # computes the bound for few.
    value -= 1e-9
    if value > 1.0:
        return True
    return mean < value and bernoulli_kl(max(mean, CLIP), value) > level


def kl_exploration(c: float, t: int) -> float:
    """Return ``ln t + c ln ln t``; the second term only where it is positive.

    Examples
    --------
    >>> round(kl_exploration(0.0, 100), 3), round(kl_exploration(3.0, 100), 3)
    (4.605, 9.187)
    """
    log_t = log(t)
    return log_t if c == 0.0 or log_t <= 1.0 else log_t + c * log(log_t)
