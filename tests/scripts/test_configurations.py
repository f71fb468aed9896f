"""All configurations of a sweep are found, each once."""

import json

import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.configurations import n_configurations
from risingsearch.scripts.sweep import checked_sweep

PARAMETERS = {
    "optimizer": {"type": "choice", "values": ["sgd", "adam", "sgd"]},
    "sgd": {
        "when": {"optimizer": "sgd"},
        "parameters": {
            "momentum": {"type": "uniform", "low": 0.0, "high": 0.9, "step": 0.3},
            "nesterov": {"type": "choice", "values": [False, True]},
            "dampening": {"type": "fixed", "value": 0, "when": {"sgd.nesterov": True}},
        },
    },
    "depth": {"type": "int", "low": 2, "high": 6, "step": 2},
}


def sweep_of(parameters, **changes):
    given = {"command": ["x"], "parameters": parameters, "budget": 9, "max_epochs": 3}
    return checked_sweep(given | {"candidates": "all"} | changes, "a.yaml")


def test_all_are_drawn():
    sweep = sweep_of(PARAMETERS)
    found = sweep.draw()
    assert len(found) == len({json.dumps(one) for one in found}) == 4 * 2 * 3 + 3
    assert sweep.n_candidates == n_configurations(sweep.parameters) == len(found)
    for one in found:
        assert ("sgd.momentum" in one) == (one["optimizer"] == "sgd")
        assert ("sgd.dampening" in one) == one.get("sgd.nesterov", False)


def test_all_are_those_that_draws_find():
    listed = [json.dumps(one) for one in sweep_of(PARAMETERS).draw()]
    drawn = [json.dumps(one) for one in sweep_of(PARAMETERS, candidates=500).draw()]
    assert sorted(drawn) == sorted(listed)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"a": {"type": "uniform", "low": 0, "high": 1}}, "parameters.a has no end of"),
        ({"a": {"type": "normal", "mu": 0, "sigma": 1}}, "parameters.a has no end of"),
        (
            {name: {"type": "int", "low": 1, "high": 2000} for name in "ab"},
            "candidates: all configurations are 4,000,000; say how many are drawn",
        ),
    ],
)
def test_there_are_too_many_to_draw_all(parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        sweep_of(parameters).draw()
