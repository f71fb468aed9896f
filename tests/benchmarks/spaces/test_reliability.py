"""Measures of many searches, on figures worked out by hand."""

import numpy as np
import pytest

from benchmarks.spaces import reliability
from benchmarks.spaces.methods import OPEN, Found
from benchmarks.spaces.reliability import measures, run, worst_quarter
from risingsearch.errors import InvalidParameterError

METHODS = [OPEN, "TPE", "random"]
REGRETS = np.array(  # two problems, three methods, budgets 5 and 20, two seeds
    [
        [[[0.1, 0.5], [0.0, 0.7]], [[0.4, 0.4], [0.2, 0.2]], [[0.4, 0.4], [0.4, 0.4]]],
        [[[0.2, 0.2], [0.1, 0.1]], [[0.3, 0.3], [0.2, 0.2]], [[0.1, 0.1], [0.1, 0.1]]],
    ]
)


def test_measures():
    own, tpe, drawn = measures(REGRETS, METHODS, [5, 20], 5)
    assert own["mean"].startswith("0.250 ± ")
    assert own["worst quarter"].startswith("0.350 ± ")
    assert own["> .05 above the best other"].startswith("0.500 ± ")
    assert own["> .05 above random"].startswith("0.500 ± ")
    assert own["> .1 worse with four times"].startswith("0.250 ± ")
    assert tpe["> .1 worse with four times"].startswith("0.000 ± ")
    assert drawn["> .05 above random"].startswith("0.000 ± ")


def test_no_budget_is_four_times_the_largest():
    [own, *_] = measures(REGRETS, METHODS, [5, 20], 20)
    assert own["mean"].startswith("0.225 ± ")
    assert "> .1 worse with four times" not in own


def test_the_worst_quarter_has_at_least_a_seed():
    assert worst_quarter(np.array([0.1, 0.3, 0.2])) == 0.3
    assert worst_quarter(np.linspace(0.0, 0.7, 8)) == pytest.approx(0.65)


def test_a_second_call_searches_what_is_missing_alone(tmp_path, monkeypatch, capsys):
    asked = []

    def search(method, problem, n_epochs, seed, n_jobs):
        asked.append((problem.name, method, n_epochs // problem.n_epochs, seed))
        return Found([0.5] * n_epochs, [0.5] * n_epochs, [0.0] * n_epochs)

    monkeypatch.setattr(reliability, "search", search)
    given = {"scale": "default", "seed": 0, "seeds": 1, "methods": ["TPE"]}
    run(tmp_path, kinds=["rates"], budgets=[5, 20], **given)
    assert asked == [(f"rates-{k}", "TPE", 20, 0) for k in range(4)]
    asked.clear()
    given["methods"] = ["TPE", OPEN]
    run(tmp_path, kinds=["rates"], budgets=[5], **given)
    assert asked == [(f"rates-{k}", OPEN, 5, 0) for k in range(4)]
    assert "The half that reports: 4 problems" in capsys.readouterr().out


def test_an_unknown_method_is_named_with_those_that_there_are(tmp_path):
    with pytest.raises(InvalidParameterError, match="methods=Tree: there are "):
        run(tmp_path, scale="default", seed=0, kinds=["rates"], methods=["Tree"])
