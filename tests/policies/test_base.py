import json
import math
from typing import NamedTuple

import numpy as np
import pytest

from risingsearch.errors import RunDirError
from risingsearch.policies import WAIT, explain, make_policy, slice_length
from risingsearch.policies.base import (
    best_available,
    better,
    least_pulled,
    load_state_dict,
    state_dict,
)


class Arrays(NamedTuple):
    rate: float
    counts: np.ndarray
    table: np.ndarray
    flags: np.ndarray


def arrays(order="C"):
    return Arrays(
        rate=0.5,
        counts=np.zeros(4, dtype=np.int64),
        table=np.zeros((2, 3), order=order),
        flags=np.ones(2, dtype=np.bool_),
    )


@pytest.mark.parametrize(
    ("value", "pulls", "expected"),
    [(0.6, 9, True), (0.5, 2, True), (0.5, 3, False), (0.5, 4, False), (0.4, 0, False)],
)
def test_the_higher_value_wins_then_fewer_pulls(value, pulls, expected):
    assert better(value, pulls, 0.5, 3) is expected


def test_least_pulled_is_round_robin_over_the_available_arms():
    available = np.array([True, True, False, True])
    pulls = np.array([2, 1, 0, 1])
    assert least_pulled(available, pulls, 3) == 1
    assert least_pulled(available, pulls, 1) == WAIT
    assert least_pulled(~available, pulls, 3) == 2


def test_best_available_has_the_highest_value_then_fewest_pulls():
    available = np.array([True, False, True, True, True])
    values = np.array([0.5, 0.9, 0.7, 0.7, 0.7])
    pulls = np.array([1, 1, 3, 2, 2])
    assert best_available(available, values, pulls) == 3
    assert best_available(~available, values, pulls) == 1
    assert best_available(available, pulls, pulls) == 2
    assert best_available(np.zeros(5, dtype=np.bool_), values, pulls) == WAIT


@pytest.mark.parametrize("worst", [-math.inf, math.nan])
def test_an_available_arm_is_found_whatever_its_value(worst):
    values, pulls = np.full(3, worst), np.array([0, 4, 4])
    available = np.array([False, True, True])
    assert best_available(available, values, pulls) == 1


def test_optional_methods_have_defaults():
    policy = make_policy("round-robin", n_arms=2, horizon=5)
    assert slice_length(policy, 0) == 1
    assert explain(policy, 0) == {}


def test_explain_gives_plain_floats():
    policy = make_policy("epsilon-greedy", n_arms=2, horizon=5)
    assert [type(part) for part in explain(policy, 0).values()] == [float]


def test_state_survives_json_whatever_it_holds():
    saved = arrays()
    saved.counts[:] = [0, 2**60 + 1, -3, 0]
    saved.table[:] = [[math.inf, 0.1, -math.inf], [math.nan, -0.0, 1e-300]]
    saved.flags[1] = False
    text = json.dumps(state_dict(saved), allow_nan=False)
    loaded = arrays()
    loaded.counts[:] = 7  # what was there before is gone
    load_state_dict(loaded, json.loads(text))
    assert loaded.counts.tolist() == saved.counts.tolist()
    assert repr(loaded.table) == repr(saved.table)
    assert loaded.flags.tolist() == [True, False]
    assert state_dict(loaded) == state_dict(saved)


def test_state_is_as_small_as_what_has_happened():
    policy = make_policy("cure-ucb", n_arms=50, horizon=10_000)
    policy.update(1, 3, 0.5, None)
    assert len(json.dumps(state_dict(policy)["P"])) < 100


def test_state_may_lie_in_any_order_in_memory():
    saved = arrays()
    saved.table[:] = np.arange(6).reshape(2, 3)
    loaded = arrays(order="F")
    load_state_dict(loaded, state_dict(saved))
    np.testing.assert_array_equal(loaded.table, saved.table)


def test_state_of_another_policy_is_refused():
    state = state_dict(make_policy("cure-ucb", n_arms=2, horizon=5))
    with pytest.raises(RunDirError, match="this RoundRobin has"):
        load_state_dict(make_policy("round-robin", n_arms=2, horizon=5), state)


def test_state_of_another_size_is_refused_and_changes_nothing():
    state = state_dict(make_policy("cure-ucb", n_arms=2, horizon=9))
    policy = make_policy("cure-ucb", n_arms=2, horizon=5)
    before = state_dict(policy)
    with pytest.raises(RunDirError, match=r"'P': \[2, 10\].*'P': \[2, 6\]"):
        load_state_dict(policy, state)
    assert state_dict(policy) == before
