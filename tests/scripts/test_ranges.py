"""Every draw from a range lies in it, and at its steps."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from risingsearch.scripts.ranges import Integer, LogUniform, Uniform

LOWS = st.floats(-1e9, 1e9).map(lambda number: round(number, 3))
POSITIVE = st.floats(1e-9, 1e9)
STEPS = st.sampled_from([0.1, 0.25, 1.0, 3.0])
COUNTS = st.integers(1, 10**6)
SEEDS = st.integers(0, 2**32)


def draws(parameter, seed=0, n=20):
    rng = np.random.default_rng(seed)
    return [parameter.draw(rng) for _ in range(n)]


@given(LOWS, POSITIVE, SEEDS)
def test_a_number_is_in_its_range(low, width, seed):
    parameter = Uniform(type="uniform", low=low, high=low + 1e-3 + width)
    values = draws(parameter, seed)
    assert all(parameter.low <= value <= parameter.high for value in values)
    assert values == draws(parameter, seed)


@given(LOWS, COUNTS, STEPS, st.floats(0.0, 0.9), SEEDS)
def test_a_number_is_at_its_steps(low, n, step, more, seed):
    highest = Decimal(repr(low)) + n * Decimal(repr(step))
    high = float(highest + Decimal(repr(more * step)))
    parameter = Uniform(type="uniform", low=low, high=high, step=step)
    for value in draws(parameter, seed):
        assert low <= value <= high
        k = (Decimal(repr(value)) - Decimal(repr(low))) / Decimal(repr(step))
        assert k == k.to_integral_value()


@given(POSITIVE, st.floats(1.01, 1e6), SEEDS)
def test_a_number_on_a_logarithmic_scale_is_in_its_range(low, ratio, seed):
    parameter = LogUniform(type="log-uniform", low=low, high=low * ratio)
    for value in draws(parameter, seed):
        assert low * (1 - 1e-12) <= value <= low * ratio * (1 + 1e-12)


@given(st.integers(1, 1000), COUNTS, STEPS, SEEDS)
def test_a_number_on_a_logarithmic_scale_is_at_its_steps(low, n, step, seed):
    high = low + n * step
    parameter = LogUniform(type="log-uniform", low=low, high=high, step=step)
    for value in draws(parameter, seed):
        assert low <= value <= high
        k = (Decimal(repr(value)) - low) / Decimal(repr(step))
        assert k == k.to_integral_value()


@given(st.integers(1, 2**60), st.integers(0, 2**60), COUNTS, st.booleans(), SEEDS)
def test_a_whole_number_is_at_its_steps(low, more, step, log, seed):
    high = low + step + more
    parameter = Integer(type="int", low=low, high=high, step=step, log=log)
    for value in draws(parameter, seed):
        assert type(value) is int
        assert value in range(low, high + 1, step)


@pytest.mark.parametrize("log", [False, True])
def test_all_steps_are_drawn(log):
    parameter = Integer(type="int", low=8, high=64, step=8, log=log)
    assert set(draws(parameter, n=300)) == {8, 16, 24, 32, 40, 48, 56, 64}
    assert list(parameter.possible) == sorted(set(draws(parameter, n=300)))
    kind = LogUniform if log else Uniform
    stepped = kind(type=kind.model_fields["type"].annotation.__args__[0],
                   low=0.1, high=0.55, step=0.1)  # fmt: skip
    assert sorted(set(draws(stepped, n=300))) == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert list(stepped.possible) == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert stepped.n_values == 5


def test_a_step_on_a_logarithmic_scale_is_as_likely_as_what_is_above_it():
    parameter = LogUniform(type="log-uniform", low=1, high=63, step=1)
    values = draws(parameter, n=2000)
    assert 900 <= sum(value < 8 for value in values) <= 1100  # the root of 64


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (Uniform, {"low": 0, "high": 1, "step": 2}, "step 2 is wider than from low to"),
        (Uniform, {"low": 0, "high": 1, "step": 0}, "greater than 0"),
        (Uniform, {"low": 0, "high": 1, "step": 1e-300}, "step 1e-300 is too fine for"),
        (LogUniform, {"low": 1, "high": 2, "step": 3}, "step 3 is wider than"),
        (Integer, {"low": 1, "high": 3, "step": 5}, "step 5 is wider than"),
        (Integer, {"low": 1, "high": 3, "step": 1.5}, "valid integer"),
    ],
)
def test_steps_that_are_refused(kind, given, message):
    name = {Uniform: "uniform", LogUniform: "log-uniform", Integer: "int"}[kind]
    with pytest.raises(ValidationError, match=message):
        kind(type=name, **given)
