"""A parameter is drawn on the scale on which its values are spread evenly."""

import numpy as np
import pytest

from risingsearch.plotting.scales import is_logarithmic

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (10 ** RNG.uniform(-5, 0, 50), True),
        ([16, 32, 64, 128, 256], True),
        (RNG.uniform(0, 1, 50), False),
        (RNG.integers(1, 100, 50), False),
        ([0.0, 0.001, 1.0], False),
        ([1, 2, 4, 8], False),
        ([3.0], False),
        ([], False),
    ],
)
def test_it_is_seen_in_the_values(values, expected):
    assert is_logarithmic(values) is expected
