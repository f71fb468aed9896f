"""Arguments go to disk and come back, or can at least be told apart."""

import json
from fractions import Fraction

import numpy as np
import pytest

from risingsearch.arms import Budget
from risingsearch.errors import InvalidParameterError
from risingsearch.policies.stationary.baselines import RoundRobin
from risingsearch.search.arguments import arguments_of, pickled_candidates, settings_of

PLAIN = [{"rate": 0.1, "sizes": (64, 32), "n": np.int64(3), "name": None}]


class Plain:
    pass


def on_disk(candidates, given=None, **arguments):
    """Return the arguments after a trip through JSON."""
    settings = settings_of(candidates, arguments)
    header = {
        "settings": settings,
        "candidates": pickled_candidates(settings, candidates),
    }
    header = json.loads(json.dumps(header, allow_nan=False))
    return arguments_of(header, given or {})


@pytest.mark.parametrize(
    "arguments",
    [
        {"budget": 30, "seed": None, "order": "ask", "shuffle": True},
        {"budget": Budget(seconds=3.5)},
        {"budget": Budget(epochs=3)},
        {"policy": "asha", "policy_params": {"eta": 3, "bound": float("inf")}},
        {"score_range": (0.0, 1.0), "proposer": None, "error_score": "raise"},
        {"identity": {"data": "ab12", "folds": [1, 2], "rate": np.float32(0.1)}},
        {"policy": "auto", "proposer": "auto"},
    ],
)
def test_arguments_come_back_as_they_were(arguments):
    back = on_disk(PLAIN, **arguments)
    assert back == {"candidates": PLAIN, **arguments}
    assert repr(back) == repr({"candidates": PLAIN, **arguments})


def test_candidates_of_plain_values_are_not_pickled():
    assert pickled_candidates(settings_of(PLAIN, {}), PLAIN) is None


def test_candidates_that_hold_objects_come_back():
    candidates = [{"rate": Fraction(1, 3)}, {"rate": 0.5}, {"rates": {1: 2}}]
    assert on_disk(candidates)["candidates"] == candidates


def test_objects_are_compared_by_what_they_show_without_their_address():
    one, other = ([{"layer": Plain(), "n": 1}] for _ in range(2))
    assert settings_of(one, {}) == settings_of(other, {})
    assert settings_of(one, {}) != settings_of([{"layer": Plain(), "n": 2}], {})
    thirds, halves = ([{"rate": Fraction(1, n)}] for n in (3, 2))
    assert settings_of(thirds, {}) != settings_of(halves, {})


def test_candidates_that_cannot_be_pickled_are_refused():
    candidates = [{"rate": 0.1}, {"activation": lambda x: x}]
    settings = settings_of(candidates, {})
    with pytest.raises(InvalidParameterError, match=r"run_dir.*candidates.*pickled"):
        pickled_candidates(settings, candidates)


@pytest.mark.parametrize("policy", [RoundRobin.create, RoundRobin.create(2, 9, 3)])
def test_a_policy_that_is_an_object_has_to_be_given_again(policy):
    with pytest.raises(InvalidParameterError, match=r"RoundRobin.*give policy"):
        on_disk(PLAIN, policy=policy)
    assert on_disk(PLAIN, {"policy": policy}, policy=policy)["policy"] is policy


@pytest.mark.parametrize(
    "arguments",
    [
        {"identity": {"data": object()}},
        {"identity": {1: "a key that is no text"}},
        {"policy_params": {"models": np.zeros(3)}},
    ],
)
def test_another_argument_that_json_cannot_hold_is_named(arguments):
    [name] = arguments
    with pytest.raises(InvalidParameterError, match=f"run_dir {name} is saved as JSON"):
        settings_of(PLAIN, arguments)
