"""Parameters as plain data are those of a sweep, wherever a space is given."""

import pytest
from scipy.stats import loguniform

from risingsearch import Functions, RisingSearch
from risingsearch.errors import InvalidParameterError
from risingsearch.space import Space

SPACE = {
    "kernel": {"type": "choice", "values": ["linear", "rbf", "poly"]},
    "C": loguniform(1e-3, 1e3),
    "degree": {"type": "int", "low": 2, "high": 5, "when": {"kernel": "poly"}},
    "gamma": {
        "type": "log-uniform",
        "low": 0.01,
        "high": 1.0,
        "when": {"kernel": ["rbf", "poly"]},
    },
}


def test_a_parameter_applies_where_earlier_ones_have_the_values():
    search = RisingSearch(
        Functions(lambda params, seed: params, lambda params: params["C"]),
        SPACE,
        budget=40,
        seed=0,
    )
    opened = search.run().candidates
    assert {each["kernel"] for each in opened} == {"linear", "rbf", "poly"}
    for params in opened:
        assert ("degree" in params) == (params["kernel"] == "poly")
        assert ("gamma" in params) == (params["kernel"] != "linear")


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"type": "loguniform", "low": 1, "high": 2}, "'loguniform'; did you mean 'lo"),
        ({"type": "log-uniform", "low": 0, "high": 2}, "low must be greater than 0; g"),
        ({"type": "log-uniform", "low": 1}, r"log-uniform \(with low, high\): missing"),
        ({"type": "int", "low": 1, "high": 9, "values": 3}, "unexpected keyword"),
        ({"type": "uniform", "low": "a", "high": 9}, "'a' must be a finite number"),
        ({"type": "choice", "values": "abc"}, "values must be a list; got 'abc'"),
        (SPACE["degree"], r"parameters.x.when names \['kernel'\]: it may name param"),
        (SPACE["degree"] | {"when": "kernel"}, "x.when must be a mapping; got 'kernel"),
    ],
)
def test_what_is_wrong_is_named(form, message):
    with pytest.raises(InvalidParameterError, match=message):
        Space.of({"x": form})
