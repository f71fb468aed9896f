"""What a search in another environment is told."""

import io
import json

import numpy as np

from benchmarks.spaces.runners.asking import Arms


def arms_of(*scores):
    asks = io.StringIO()
    return asks, Arms(asks, io.StringIO("\n".join(scores)))


def asked(asks):
    return [json.loads(line) for line in asks.getvalue().splitlines()]


def test_an_equal_configuration_goes_on_where_it_was():
    asks, arms = arms_of("0.1", "0.2", "0.5", "0.3")
    assert arms.scores({"a": np.float64(1.0), "b": "x"}, 2) == [0.1, 0.2]
    assert arms.scores({"a": 2.0, "b": "x"}, 1) == [0.5]
    assert arms.scores({"b": "x", "a": 1.0}, 3) == [0.1, 0.2, 0.3]
    assert [line["arm"] for line in asked(asks)] == [0, 0, 1, 0]
    assert ["params" in line for line in asked(asks)] == [True, False, True, False]


def test_what_has_failed_scores_as_the_worst_and_is_not_trained_on():
    asks, arms = arms_of("0.4", "-0.2", "0.7", "NaN")
    arms.scores({"a": 1}, 2)
    assert arms.scores({"a": 2}, 3) == [0.7, -0.2, -0.2]
    assert arms.scores({"a": 2}, 4) == [0.7, -0.2, -0.2, -0.2]
    assert len(asked(asks)) == 4
