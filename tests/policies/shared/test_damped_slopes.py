"""Where curves that flatten will end, and when the budget is claimed."""

import numpy as np
import pytest

from risingsearch.policies.shared.rewards import damped_gain, highest_end, record_slope


def measured(scores):
    average, slope = np.zeros(1), np.zeros(1)
    sums = np.concatenate([[0.0], np.cumsum(scores)])[None]
    record_slope(sums, average, slope, 0, len(scores), 0.25)
    return average[0], slope[0]


def test_expected_gain_is_that_of_the_curve_a_minus_b_over_n():
    average, slope = measured([0.1 * n for n in range(1, 9)])
    # slope 0.1, N = 8, n2 = 20: the damped end lies below the straight line's.
    assert average == pytest.approx(0.75)
    assert damped_gain(slope, 8.0, 12.0) == pytest.approx(0.1 * 8 * (1 - 8 / 20))
    assert highest_end([0.1 * n for n in range(1, 9)], 20) == pytest.approx(0.75 + 1.2)


def test_a_falling_arm_is_not_projected_below_its_average():
    assert measured([1.0 - 0.1 * n for n in range(8)])[1] == 0.0
