"""Values that are listed are drawn as likely as the file says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from risingsearch.scripts.space import Choice, Fixed


def draws(parameter, n):
    rng = np.random.default_rng(0)
    return [parameter.draw(rng) for _ in range(n)]


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9).filter(any))
def test_what_has_no_probability_is_never_drawn(weights):
    shares = [weight / sum(weights) for weight in weights]
    values = list(range(len(shares)))
    parameter = Choice(type="choice", values=values, probabilities=shares)
    assert all(shares[value] > 0.0 for value in draws(parameter, 40))
    assert parameter.possible == [k for k in values if shares[k] > 0.0]


def test_values_are_drawn_by_their_probabilities():
    parameter = Choice(
        type="choice", values=["a", "b", "c"], probabilities=[0.7, 0.0, 0.3]
    )
    values = draws(parameter, 1000)
    assert 650 <= values.count("a") <= 750
    assert set(values) == {"a", "c"}


def test_values_are_whatever_json_has_but_mappings():
    values = [None, True, 1, 1.5, "x", [64, [32, None]]]
    parameter = Choice(type="choice", values=values)
    assert all(value in values for value in draws(parameter, 50))
    assert draws(Fixed(type="fixed", value=[1, 2]), 2) == [[1, 2], [1, 2]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"values": [1, 2], "probabilities": [1]}, "there are 1 probabilities for 2"),
        ({"values": [1, 2], "probabilities": [0.5, 0.6]}, "must sum to 1; got 1.1"),
        ({"values": [1, 1], "probabilities": [0.5, 0.5]}, "the value 1 stands twice"),
        ({"values": [1, 2], "probabilities": [-1, 2]}, "greater than or equal to 0"),
        ({"values": [{"a": 1}]}, "a value is a number, text, true, false, null or a"),
        ({"values": [float("nan")]}, "a number must be finite"),
        ({"values": [[float("inf")]]}, "a number must be finite"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(ValidationError) as raised:
        Choice(type="choice", **given)
    assert message in str(raised.value)
