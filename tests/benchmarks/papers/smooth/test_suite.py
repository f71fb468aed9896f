import pytest

from benchmarks.papers.smooth.sinusoid import instance


class TestSinusoid:
    def test_an_instance_is_the_same_at_every_horizon(self):
        short, long = (instance(horizon, 1.0, 3) for horizon in (10**4, 10**6))
        assert short.amplitude == long.amplitude
        assert short.mean(1, 1, 1234) == pytest.approx(long.mean(1, 1, 123_400))
