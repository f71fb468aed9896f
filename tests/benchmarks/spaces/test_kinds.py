"""Kinds of problems: which choose, and which can be had."""

import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.spaces.kinds import CHOOSES, kind_of, makers, problems_of
from benchmarks.spaces.methods import search
from benchmarks.spaces.problems import Scores
from benchmarks.spaces.reference import reference
from risingsearch.errors import InvalidParameterError


@pytest.mark.skipif("RISINGSEARCH_DATA" not in os.environ, reason="needs real data")
def test_half_of_the_kinds_choose():
    known = makers(Path(os.environ["RISINGSEARCH_DATA"]))
    with_problems = {*known, *CHOOSES}  # the folder of problems may be missing
    assert len(with_problems) == 2 * len(CHOOSES)


def test_without_data_the_formulas_and_bundled_rows_are_left():
    known = makers(None)
    assert len(known) == 16 + 6
    assert {"slow", "training-convolutions"} <= set(known)


def test_problems_are_named_after_their_kind():
    names = [problem.name for problem in problems_of(["rates", "slow"], None)]
    assert names[:2] == ["rates-0", "rates-1"]
    assert kind_of("curves-lcbench_surrogate-1") == "curves-lcbench_surrogate"
    assert {kind_of(name) for name in names} == {"rates", "slow"}


def test_an_unknown_kind_is_named_with_those_that_there_are():
    with pytest.raises(InvalidParameterError, match="kinds=curves-rl is none of peaks"):
        list(problems_of(["curves-rl"], None))


@pytest.mark.slow
@pytest.mark.skipif("RISINGSEARCH_DATA" not in os.environ, reason="needs real data")
def test_random_search_is_neither_lost_nor_done_after_twenty_trainings():
    data = Path(os.environ["RISINGSEARCH_DATA"])
    kinds = [kind for kind in makers(data) if not kind.startswith("training-")]
    for problem in problems_of(kinds, data):
        if problem.is_real:
            continue
        known = reference(problem)
        n_epochs = 20 * problem.n_epochs
        found = [search("random", problem, n_epochs, seed, 1) for seed in range(8)]
        ends = [Scores(each.true[-1], each.test[-1]) for each in found]
        regrets = [known.regret(end).validation for end in ends]
        assert 0.05 < np.mean(regrets) < 0.75, problem.name
