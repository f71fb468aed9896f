"""Linear-then-flat arms."""

import re

import numpy as np
import pytest

from risingsearch.curves.analytic import LinearThenFlat
from risingsearch.curves.optimum import best_arm
from risingsearch.errors import InvalidParameterError


def test_the_best_sum_is_that_of_the_written_out_curves():
    rng = np.random.default_rng(0)
    plateaus = rng.uniform(0.1, 1.0, 20)
    slopes = plateaus / rng.integers(1, 60, 20)
    arms = LinearThenFlat.create([*slopes, 0.0, 2.0], [*plateaus, 1.0, 0.05])
    rounds = np.arange(1, 100)
    means = np.array([[arms.mean(i, n, 1) for n in rounds] for i in range(arms.n_arms)])
    np.testing.assert_allclose(arms.optimal(rounds), best_arm(means, rounds))
    assert arms.reference == "best-arm"


def test_slopes_too_small_for_a_quotient_rise_all_the_same():
    arms = LinearThenFlat.create([1e-320], [1.0])
    assert arms.optimal(np.array([3]))[0] == 6e-320


def test_an_arm_moves_with_its_own_pulls_only():
    arms = LinearThenFlat.create([0.1], [0.35])
    assert [arms.mean(0, n, 1) for n in (1, 3, 4, 9)] == pytest.approx(
        [0.1, 0.3, 0.35, 0.35]
    )
    assert arms.mean(0, 2, 1) == arms.mean(0, 2, 1_000)


def test_compiled_runs_are_the_same(same_either_way):
    arms = LinearThenFlat.create([0.001, 0.4], [0.9, 0.4], 0.1)
    _, rewards, total = same_either_way(arms)
    assert total == pytest.approx(
        1_000 * 0.4 + arms.optimal(np.array([1_000]))[0], 1e-3
    )
    assert rewards.mean() == pytest.approx(total / 2_000, abs=0.01)


@pytest.mark.parametrize(
    ("slopes", "plateaus"),
    [
        ([], []),
        ([0.1], [0.1, 0.2]),
        ([-0.1], [1.0]),
        ([0.1], [-1.0]),
        (0.1, 0.2),
        ([np.inf], [1.0]),
        ([0.1], [np.inf]),
        ([np.nan], [1.0]),
    ],
)
def test_slopes_and_plateaus_must_match(slopes, plateaus):
    message = (
        "slopes and plateaus must be two lists of one number of at least 0 per arm"
    )
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        LinearThenFlat.create(slopes, plateaus)


def test_bernoulli_noise_needs_plateaus_up_to_one():
    with pytest.raises(InvalidParameterError, match=r"reach from 0 to 1\.5"):
        LinearThenFlat.create([0.1], [1.5], "bernoulli")
