"""Numbers that are more likely here than there are spread as they should be."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

from risingsearch.scripts.spreads import Beta, LogNormal, Normal

STEPS = st.sampled_from([0.1, 0.25, 1.0, 8.0])


def draws(parameter, n=400, seed=0):
    rng = np.random.default_rng(seed)
    return [parameter.draw(rng) for _ in range(n)]


@pytest.mark.parametrize(
    ("parameter", "same"),
    [
        (Normal(type="normal", mu=3, sigma=2), stats.norm(3, 2)),
        (LogNormal(type="log-normal", mu=-3, sigma=1), stats.lognorm(1, 0, math.e**-3)),
        (Beta(type="beta", a=2, b=5), stats.beta(2, 5)),
    ],
)
def test_numbers_are_spread_as_scipy_says(parameter, same):
    assert stats.kstest(draws(parameter), same.cdf).pvalue > 0.01
    assert draws(parameter, 3) == draws(parameter, 3)
    assert draws(parameter, 3) != draws(parameter, 3, seed=1)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e3), STEPS)
def test_a_number_is_the_nearest_multiple_of_its_step(mu, sigma, step):
    plain = draws(Normal(type="normal", mu=mu, sigma=sigma), 20)
    stepped = draws(Normal(type="normal", mu=mu, sigma=sigma, step=step), 20)
    for number, value in zip(plain, stepped, strict=True):
        assert abs(number - value) <= step * 0.500001
        assert value == round(round(value / step) * step, 9)
        assert isinstance(value, int) == step.is_integer()


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0.01, 1.0))
def test_a_multiple_stays_between_0_and_1(a, b, step):
    values = draws(Beta(type="beta", a=a, b=b, step=step), 30)
    assert all(0.0 <= value <= 1.0 for value in values)


def test_multiples_of_a_number_whose_logarithm_is_normal():
    values = draws(LogNormal(type="log-normal", mu=3, sigma=1, step=4))
    assert all(value % 4 == 0 and value >= 0 for value in values)


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (Normal, {"mu": 0, "sigma": 0}, "greater than 0"),
        (Normal, {"mu": 0, "sigma": 1e308}, "are too large for numbers"),
        (Normal, {"mu": 0, "sigma": 1, "step": 1e-300}, "step 1e-300 is too fine for"),
        (LogNormal, {"mu": 1000, "sigma": 1}, "are of the logarithm, and |mu|"),
        (LogNormal, {"mu": 1, "sigma": -1}, "greater than 0"),
        (Beta, {"a": 0, "b": 1}, "greater than 0"),
        (Beta, {"a": 1, "b": 1, "step": 2}, "a step is at most 1, since all numbers"),
    ],
)
def test_what_is_refused(kind, given, message):
    name = {Normal: "normal", LogNormal: "log-normal", Beta: "beta"}[kind]
    with pytest.raises(ValidationError) as raised:
        kind(type=name, **given)
    assert message in str(raised.value)
