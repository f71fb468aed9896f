import math
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from risingsearch.checks import (
    LARGEST_INT,
    checked_choice,
    checked_float,
    checked_int,
    checked_magnitude,
    checked_order,
    checked_path,
    checked_reward_range,
    checked_seed,
    shown,
)
from risingsearch.errors import InvalidParameterError


@pytest.mark.parametrize("value", [3, np.int64(3)])
def test_whole_numbers_pass(value):
    checked = checked_int("n", value, 3)
    assert checked == 3
    assert type(checked) is int


@pytest.mark.parametrize("value", [2, 3.0, True, "3", None])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(InvalidParameterError, match="n must be a whole number of at l"):
        checked_int("n", value, 3)


def test_whole_numbers_have_a_limit():
    assert checked_int("n", LARGEST_INT, 3) == LARGEST_INT
    limit = "n must be a whole number of at least 3 and at most 9007199254740992; got"
    for value, text in [(LARGEST_INT + 1, "9007199254740993"), (10**5000, "an int")]:
        with pytest.raises(InvalidParameterError, match=f"^{limit} {text}"):
            checked_int("n", value, 3)


@pytest.mark.parametrize("value", ["runs", Path("runs"), PurePosixPath("runs")])
def test_paths_pass(value):
    assert checked_path("run_dir", value) == Path("runs")


@pytest.mark.parametrize("value", [3, None, True, "", b"runs", ["runs"], "a\0b"])
def test_what_is_no_path_is_refused(value):
    with pytest.raises(InvalidParameterError, match="run_dir must be a path, as text"):
        checked_path("run_dir", value)


def test_seeds_may_be_left_out_and_have_more_bits():
    assert checked_seed(None) is None
    assert checked_seed(2**100) == 2**100
    with pytest.raises(InvalidParameterError, match="seed must be a whole number"):
        checked_seed(10**5000)


def test_what_is_long_is_cut_in_a_message():
    endless = []
    for _ in range(100_000):
        endless = [endless]
    assert shown([10**5000]) == "a list that is too large to be shown"
    assert shown(endless) == "a list that is too large to be shown"
    assert shown("x" * 1000) == f"'{'x' * 199}..."
    assert shown(0.5) == "0.5"
    while endless:  # one level after the other, for the interpreter's sake
        [endless] = endless


@pytest.mark.parametrize("value", [0.0, 1, -1e150, 10**149, math.inf, -math.inf])
def test_magnitudes_that_can_be_squared_pass(value):
    assert checked_magnitude("score", value) == float(value)


def test_magnitudes_that_cannot_be_squared_are_refused():
    assert math.isnan(checked_magnitude("score", math.nan))
    for value in [1.1e150, -1e308, 10**400, -(10**5000)]:
        with pytest.raises(InvalidParameterError, match="score must be at most 1e"):
            checked_magnitude("score", value)


@pytest.mark.parametrize("value", [0.0, 1, 0.5, np.float32(0.5)])
def test_numbers_in_range_pass(value):
    checked = checked_float("p", value, 0.0, 1.0, open_low=False)
    assert checked == value
    assert type(checked) is float


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, True, "0.5", None])
def test_what_is_no_number_in_range_is_refused(value):
    with pytest.raises(
        InvalidParameterError,
        match="p must be a finite number of at least 0 and at most 1; got",
    ):
        checked_float("p", value, 0.0, 1.0, open_low=False)


def test_the_message_names_the_bounds_there_are():
    with pytest.raises(
        InvalidParameterError, match="p must be a finite number above 0;"
    ):
        checked_float("p", 0.0, 0.0, open_low=True)
    with pytest.raises(
        InvalidParameterError, match="p must be a finite number; got inf"
    ):
        checked_float("p", math.inf, -math.inf, open_low=False)


def test_choices_are_listed():
    assert checked_choice("rate", "slow", ("slow", "fast")) == "slow"
    with pytest.raises(InvalidParameterError, match="one of 'slow', 'fast'; got 'x'"):
        checked_choice("rate", "x", ("slow", "fast"))


def test_ranges_go_up_and_are_finite():
    assert checked_reward_range((0, 1)) == (0.0, 1.0)
    for wrong in [(1, 0), (1, 1), (0, math.nan), (0, math.inf), (0,), 3, "ab"]:
        with pytest.raises(InvalidParameterError, match=r"\(lowest, highest\), both"):
            checked_reward_range(wrong)


def test_orders_name_each_arm_once():
    assert checked_order("opening_order", [2, 0, 1], 3).tolist() == [2, 0, 1]
    for wrong in [[0, 1], [0, 0, 1], [0, 1, 2.0], "012", 3]:
        with pytest.raises(InvalidParameterError, match="each of the 3 arms once"):
            checked_order("opening_order", wrong, 3)
