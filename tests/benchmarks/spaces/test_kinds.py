"""Kinds of problems: which choose, and which can be had."""

import os
from pathlib import Path

import pytest

from benchmarks.spaces.kinds import CHOOSES, kind_of, makers, problems_of
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
