"""Smoothly drifting arms: the sinusoid."""

import math

import numpy as np
import pytest

from risingsearch.curves.smooth import sinusoid
from risingsearch.errors import InvalidParameterError

RNG = np.random.default_rng(0)


class TestSinusoid:
    def test_arms_are_drawn_from_the_papers_ranges(self):
        n = 10**6
        drawn = [sinusoid(np.random.default_rng(seed), n) for seed in range(300)]
        nu = np.array([arms.frequency for arms in drawn]) * n / (2.0 * math.pi)
        assert 2.5 <= nu.min() < 2.6 < 4.9 < nu.max() <= 5.0
        excess = np.array([arms.amplitude for arms in drawn]) - 0.25 / nu**2
        assert excess.std() == pytest.approx(0.001, rel=0.15)
        phases = [arms.phase for arms in drawn]
        assert 0.0 <= min(phases) < 0.1 < 6.2 < max(phases) <= 2.0 * math.pi

    def test_the_horizon_only_stretches_the_cycles(self):
        short, long = (sinusoid(np.random.default_rng(1), n) for n in (10**6, 10**8))
        assert short.amplitude == long.amplitude
        assert short.phase == long.phase
        assert short.frequency == pytest.approx(100 * long.frequency)

    def test_it_needs_two_rounds_per_cycle(self):
        with pytest.raises(InvalidParameterError, match="horizon must be a whole num"):
            sinusoid(RNG, 8)
