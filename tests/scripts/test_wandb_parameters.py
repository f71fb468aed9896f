"""Every distribution of W&B is drawn from as W&B draws from it, or refused."""

import math

import numpy as np
import pytest
from pydantic import TypeAdapter
from scipy import stats

from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.space import Parameter
from risingsearch.scripts.wandb_parameters import KEYS, translated

LOG_UNIFORM = {"min": -6, "max": -1}
VALUES = {"min": 1e-4, "max": 1.0}
NUMBERS = {
    "uniform": ({"min": 0.1, "max": 0.6}, stats.uniform(0.1, 0.5)),
    "log_uniform": (LOG_UNIFORM, stats.loguniform(math.e**-6, math.e**-1)),
    "inv_log_uniform": ({"min": 1, "max": 6}, stats.loguniform(math.e**-6, 1 / math.e)),
    "log_uniform_values": (VALUES, stats.loguniform(1e-4, 1.0)),
    "inv_log_uniform_values": (VALUES, stats.loguniform(1e-4, 1.0)),
    "normal": ({"mu": 2, "sigma": 3}, stats.norm(2, 3)),
    "log_normal": ({"mu": 2.0, "sigma": 0.5}, stats.lognorm(0.5, 0, math.e**2)),
    "beta": ({"a": 2, "b": 3}, stats.beta(2, 3)),
}
STEPS = {
    "q_uniform": {"min": 3, "max": 31, "q": 4},
    "q_log_uniform_values": {"min": 3, "max": 31, "q": 4},
    "q_log_uniform": {"min": 0.5, "max": 3.0, "q": 0.5},
    "q_normal": {"mu": 10, "sigma": 4, "q": 2},
    "q_log_normal": {"mu": 2, "sigma": 0.5, "q": 0.5},
    "q_beta": {"a": 2, "b": 2, "q": 0.25},
}
LISTS = {
    "constant": ({"value": [1, 2]}, [[1, 2]]),
    "categorical": ({"values": [1, None, "x"]}, [1, None, "x"]),
    "categorical_w_probabilities": (
        {"values": ["a", "b"], "probabilities": [1.0, 0.0]},
        ["a"],
    ),
    "int_uniform": ({"min": 1, "max": 3}, [1, 2, 3]),
}


def draws(given, n=500):
    notes = []
    [parameter] = translated({"a": given}, notes.append).values()
    parameter = TypeAdapter(Parameter).validate_python(parameter)
    rng = np.random.default_rng(0)
    return [parameter.draw(rng) for _ in range(n)], notes


def test_every_distribution_is_tested():
    assert {*NUMBERS, *STEPS, *LISTS} == set(KEYS)


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_are_spread_as_by_wandb(kind):
    given, same = NUMBERS[kind]
    values, notes = draws(given | {"distribution": kind})
    assert stats.kstest(values, same.cdf).pvalue > 0.01
    assert any("exponents of e" in one for one in notes) == (
        kind in ("log_uniform", "inv_log_uniform")
    )


@pytest.mark.parametrize("kind", STEPS)
def test_quantised_numbers_are_multiples_within_the_range(kind):
    given = STEPS[kind]
    values, notes = draws(given | {"distribution": kind})
    q = given["q"]
    assert all(math.isclose(value / q, round(value / q)) for value in values)
    assert all(isinstance(value, type(q)) for value in values)
    if "min" in given:
        ends = given["min"], given["max"]
        if kind == "q_log_uniform":
            ends = math.exp(ends[0]), math.exp(ends[1])
        assert all(ends[0] <= value <= ends[1] for value in values)
        assert "W&B rounds to the nearest" in notes[-1]
    assert len(set(values)) > 4


@pytest.mark.parametrize("kind", LISTS)
def test_lists(kind):
    given, wanted = LISTS[kind]
    for named in (given, given | {"distribution": kind}):
        values, notes = draws(named)
        assert all(value in wanted for value in values)
        assert all(value in values for value in wanted)
        assert notes == []


@pytest.mark.parametrize("end", [6, 6.0])
def test_whole_ends_are_of_whole_numbers(end):
    values, _ = draws({"min": 1, "max": end})
    assert all(isinstance(value, type(end)) for value in values)


@pytest.mark.parametrize("kind", [kind for kind in KEYS if "mu" in KEYS[kind]])
def test_the_defaults_are_those_of_wandb(kind):
    values, _ = draws({"distribution": kind})
    assert draws({"distribution": kind, "mu": 0, "sigma": 1})[0] == values


def test_nested_parameters_stay_nested():
    given = {"a": {"parameters": {"b": {"parameters": {"c": {"value": 1}}}}}}
    c = {"type": "fixed", "value": 1}
    assert translated(given, print) == {
        "a": {"parameters": {"b": {"parameters": {"c": c}}}}
    }


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"distribution": "q_uniform", "min": 5, "max": 11, "q": 8}, 8),
        ({"distribution": "normal", "mu": 3, "sigma": 0}, 3),
        ({"distribution": "log_normal", "mu": 0, "sigma": 0}, 1.0),
    ],
)
def test_what_can_have_one_value_only_is_said(given, value):
    values, notes = draws(given, 3)
    assert values == [value] * 3
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "parameters must be a mapping, and not empty; got 3"),
        ({}, "parameters must be a mapping, and not empty; got {}"),
        ({"a": 3}, "parameters.a must be a mapping, such as {value: 3}"),
        ({"a": {}}, "parameters.a has no distribution, value, values, or min and max"),
        ({"a": {"min": 3}}, "parameters.a has no distribution"),
        ({"a": {"distribution": "gamma"}}, "parameters.a has the distribution 'gamma'"),
        (
            {"a": {"value": 1, "q": 1}},
            "parameters.a.q is no key of constant, which has",
        ),
        (
            {"a": {"distribution": "uniform", "min": 1}},
            "parameters.a.max is missing, which uniform needs",
        ),
        ({"a": {"min": "1", "max": 2}}, "parameters.a.min must be a number; got '1'"),
        (
            {"a": {"min": 2, "max": 2}},
            "parameters.a: min must be below max; got 2 and 2",
        ),
        (
            {"a": {"distribution": "q_uniform", "min": 1, "max": 2, "q": 0}},
            "parameters.a.q must be greater than 0; got 0",
        ),
        (
            {"a": {"distribution": "q_uniform", "min": 1, "max": 2, "q": 5}},
            "parameters.a: no multiple of q 5 lies between min and max",
        ),
        (
            {"a": {"distribution": "log_uniform", "min": 1, "max": 1000}},
            "values are those of log_uniform_values",
        ),
        (
            {"a": {"parameters": {"b": {"parameters": {}}}}},
            "parameters.a.b.parameters must be a mapping, and not empty",
        ),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(InvalidParameterError) as raised:
        translated(given, print)
    assert message in str(raised.value)
