"""Problems that are cast: always the same, and all can be searched."""

import itertools
import math

import numpy as np
import pytest

from benchmarks.spaces.foundry import KINDS, PER_KIND, cast, failing
from benchmarks.spaces.methods import OPEN, search
from benchmarks.spaces.problems import EPOCHS
from benchmarks.spaces.reference import climbed
from risingsearch.space import Space


def curve(problem, params):
    epochs = problem.epochs(params, 0)
    return [scores.validation for scores in itertools.islice(epochs, EPOCHS)]


@pytest.mark.parametrize("kind", KINDS)
def test_problems_are_the_same_each_time_and_have_scores(kind):
    problems = list(cast(kind))
    assert len(problems) == PER_KIND
    for problem, again in zip(problems, cast(kind), strict=True):
        space = Space.of(problem.parts)
        rng = np.random.default_rng(0)
        drawn = [space.sample(rng) for _ in range(40)]
        curves = [curve(problem, params) for params in drawn]
        for scores, params in zip(curves, drawn, strict=True):
            np.testing.assert_array_equal(scores, curve(again, params))
        ends = [max(filter(math.isfinite, scores), default=0.0) for scores in curves]
        assert 0.0 <= min(ends) < max(ends) <= 1.1


def test_a_search_of_failures_spends_its_whole_budget():
    [problem, *_] = cast(failing)
    assert len(search(OPEN, problem, 5 * EPOCHS, 0, 1).true) == 5 * EPOCHS
    assert len(search("TPE", problem, 5 * EPOCHS, 0, 1).true) == 5 * EPOCHS


def test_typical_is_what_survives_where_most_configurations_fail():
    for problem in cast(failing):
        known = climbed(problem, 40, 0)
        assert 0.0 < known.typical.validation < known.best.validation < 1.0
        assert known.regret(known.typical) == (1.0, 1.0)
        assert known.regret(known.best) == (0.0, 0.0)
