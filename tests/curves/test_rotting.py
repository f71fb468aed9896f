"""Rotting arms."""

import re

import numpy as np
import pytest

from risingsearch.curves.rotting import SIGMA, rotting_anv, rotting_av, rotting_np
from risingsearch.errors import InvalidParameterError


def greedy_play(means, rounds):
    """Pull the arm of the best next mean, round by round."""
    pulls, total = np.zeros(len(means), dtype=int), 0.0
    for _ in range(rounds):
        following = means[np.arange(len(means)), pulls]
        arm = following.argmax()
        total += following[arm]
        pulls[arm] += 1
    return total


def test_the_good_arm_drops_after_7500_pulls():
    arms = rotting_np(np.random.default_rng(0), 30_000)
    assert [arms.mean(1, n, 1) for n in (1, 7_500, 7_501, 30_000)] == [1, 1, 0.4, 0.4]
    assert {arms.mean(0, n, 1) for n in (1, 30_000)} == {0.5}
    assert arms.noise.sigma == SIGMA == pytest.approx(0.2**0.5)
    best = arms.optimal(np.array([7_500, 30_000]))
    np.testing.assert_allclose(best, [7_500.0, 7_500.0 + 0.5 * 22_500])


def test_plateaus_are_a_hundred_pulls_long_but_for_the_first():
    arms = rotting_av(np.random.default_rng(0), 1_000)
    drops = np.flatnonzero(np.diff(arms.means[0])) + 2  # first pull of each plateau
    assert drops.tolist() == list(range(100, 1_001, 100))


def test_exponents_are_drawn_with_replacement():
    drawn = [rotting_av(np.random.default_rng(seed), 100) for seed in range(50)]
    exponents = np.array([-np.log2(arms.means[:, 99]) for arms in drawn]).round(6)
    assert exponents.shape == (50, 10)
    values = [0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4]
    np.testing.assert_allclose(np.unique(exponents), values, atol=1e-6)


def test_anv_arms_stand_on_constants_of_their_own():
    arms = rotting_anv(np.random.default_rng(0), 1_000)
    offsets = arms.means[:, 0] - 1.0
    assert 0.0 <= offsets.min() < offsets.max() <= 0.5
    assert len(np.unique(offsets)) == 10
    bare = rotting_av(np.random.default_rng(0), 1_000)
    np.testing.assert_allclose(arms.means - offsets[:, None], bare.means)


@pytest.mark.parametrize("make", [rotting_av, rotting_anv])
def test_the_best_sum_is_that_of_the_best_next_means(make):
    arms = make(np.random.default_rng(1), 500)
    assert arms.reference == "greedy"
    best = arms.optimal(np.array([1, 77, 500]))
    np.testing.assert_allclose(best, [greedy_play(arms.means, n) for n in (1, 77, 500)])


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (rotting_av, {"n_arms": 0}, "n_arms must be a whole number of at least 1"),
        (
            rotting_anv,
            {"noise": "bernoulli"},
            "Bernoulli noise needs means from 0 to 1",
        ),
    ],
)
def test_it_says_what_is_wrong(make, options, message):
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        make(np.random.default_rng(0), 100, **options)
