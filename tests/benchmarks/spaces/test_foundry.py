"""Problems that are cast: always the same, and all can be searched."""

import itertools
import math

import numpy as np
import pytest

from benchmarks.spaces.foundry import CHOOSES, KINDS, PER_KIND, cast
from benchmarks.spaces.methods import OPEN, search
from benchmarks.spaces.problems import EPOCHS
from benchmarks.spaces.reliability import broken_share, kind_of, measures
from risingsearch.space import Space


def curve(problem, params):
    return list(itertools.islice(problem.epochs(params), EPOCHS))


def test_half_of_the_kinds_choose():
    assert len(CHOOSES) * 2 == len(KINDS) == 16
    assert set(KINDS) > CHOOSES
    names = [problem.name for problem in cast(set(KINDS))]
    assert len(set(names)) == len(names) == 16 * PER_KIND


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_problems_are_the_same_each_time_and_have_scores(kind):
    for problem, again in zip(cast({kind}), cast({kind}), strict=True):
        assert kind_of(problem) == kind
        space = Space.of(problem.parts)
        rng = np.random.default_rng(0)
        drawn = [space.sample(rng) for _ in range(40)]
        curves = [curve(problem, params) for params in drawn]
        for scores, params in zip(curves, drawn, strict=True):
            np.testing.assert_array_equal(scores, curve(again, params))
        ends = [max(filter(math.isfinite, scores), default=0.0) for scores in curves]
        assert 0.0 <= min(ends) < max(ends) <= 1.1, problem.name


def test_a_search_of_failures_spends_its_whole_budget():
    [problem, *_] = cast({"failing"})
    assert len(search(OPEN, problem, 5 * EPOCHS, 0, 1).true) == 5 * EPOCHS
    assert len(search("TPE", problem, 5 * EPOCHS, 0, 1).true) == 5 * EPOCHS


def test_measures():
    regrets = {
        (OPEN, "a-0", 5): [0.1, 0.5],
        (OPEN, "a-0", 20): [0.0, 0.7],
        ("TPE", "a-0", 5): [0.4, 0.4],
        ("TPE", "a-0", 20): [0.2, 0.2],
    }
    [own, other] = measures(regrets, [OPEN, "TPE"], ["a-0"])
    assert own["mean, 5 R"].startswith("0.300")
    assert own["worst quarter, 20 R"] == 0.7
    assert own["above the best other, 5 R"] == "0 %"
    assert own["above the best other, 20 R"] == "100 %"
    assert own["more budget is worse"] == "50.0 %"
    assert other["more budget is worse"] == "0.0 %"
    assert broken_share(regrets, "TPE", ["a-0"]) == 0.0
