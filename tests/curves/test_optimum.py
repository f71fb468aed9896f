"""Best sums, against trying everything out."""

import itertools

import numpy as np
import pytest

from risingsearch.curves.optimum import allocation, best_arm, greedy, upper_sums


def every_share(means, rounds):
    """Return the best sum over all numbers of pulls that add up to the rounds."""
    curves = [row[~np.isnan(row)] for row in means]
    shares = itertools.product(*(range(len(curve) + 1) for curve in curves))
    return max(
        sum(curve[:n].sum() for curve, n in zip(curves, share, strict=True))
        for share in shares
        if sum(share) == rounds
    )


def curves(seed, kind):
    rng = np.random.default_rng(seed)
    means = rng.uniform(-0.5, 1.0, (3, 5))
    if kind != "any":
        means = np.sort(means, axis=1)
    if kind == "falling":
        means = means[:, ::-1].copy()
    if kind != "rising":
        means[1, 3:] = np.nan
    return means


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["any", "falling", "rising"])
def test_the_best_allocation_is_found(kind, seed):
    means = curves(seed, kind)
    rounds = np.arange(1, 6)
    expected = [every_share(means, n) for n in rounds]
    np.testing.assert_allclose(allocation(means, rounds), expected)
    if kind == "falling":
        np.testing.assert_allclose(greedy(means, rounds), expected)
    if kind == "rising":
        np.testing.assert_allclose(best_arm(means, rounds), expected)


@pytest.mark.parametrize("seed", range(5))
def test_the_highest_line_is_followed_round_by_round(seed):
    rng = np.random.default_rng(seed)
    starts, slopes = rng.normal(0.0, 3.0, (6, 4)), rng.normal(0.0, 1.0, (6, 4))
    starts[0, 1] = -np.inf
    starts[1] = -np.inf
    slopes[2] = 0.0
    starts[3], slopes[3] = 1.0, [0.5, 0.5, -0.5, 0.5]
    starts[4], slopes[4] = np.round(starts[4]), np.round(slopes[4])
    lengths = np.array([1, 20, 30, 7, 25, 40])
    expected = [
        (start + slope * np.arange(length)[:, None]).max(axis=1).sum()
        for start, slope, length in zip(starts, slopes, lengths, strict=True)
    ]
    expected[1] = 0.0
    np.testing.assert_allclose(upper_sums(starts, slopes, lengths), expected)
