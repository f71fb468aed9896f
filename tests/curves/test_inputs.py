"""What is no array, path or seed, wherever it is given."""

import numpy as np
import pytest

from risingsearch.curves import (
    CurveTable,
    DriftingMeans,
    LinearThenFlat,
    click_log,
    load_curves,
    make_click_log,
    make_environment,
)
from risingsearch.curves.inputs import checked_array, checked_generator
from risingsearch.errors import InvalidParameterError

RAGGED = [[0.1, 0.2], [0.3]]


def test_arrays_are_copies_laid_out_by_rows():
    given = np.ones((2, 3)).T
    array = checked_array("means", given, ndmin=2)
    array[:] = 7.0
    assert given.max() == 1.0
    assert array.flags.c_contiguous
    assert checked_array("rounds", [1, 2], dtype=None).dtype == int


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CurveTable.create(RAGGED), r"means must be numbers in a regular tab"),
        (lambda: CurveTable.create("high"), "means must be numbers .* got 'high'"),
        (lambda: LinearThenFlat.create([{}], [1]), "slopes must be numbers"),
        (lambda: DriftingMeans.create([[1, 2]], RAGGED), "rounds must be numbers"),
        (
            lambda: make_environment("rotting-av", 9, exponents=0.5),
            "exponents must be at least one number of at least 0; got 0.5",
        ),
        (lambda: make_environment("imdb", 9, data_dir=None), "data_dir must be a path"),
        (lambda: load_curves(7), "path must be a path; got 7"),
        (lambda: make_click_log("a"), "seed must be a whole number of at least 0"),
        (lambda: click_log(None), "must be a path, or the three lists .* got None"),
        (lambda: click_log((["a"], ["a"], [1])), "timestamps must be numbers"),
        (lambda: click_log(([1, 2], ["a", None], [1, 0])), "items must be of one kind"),
    ],
)
def test_what_is_none_is_named(make, message):
    with pytest.raises(InvalidParameterError, match=message):
        make()


def test_seeds_generators_and_none():
    rng = np.random.default_rng(3)
    assert checked_generator(rng) is rng
    assert checked_generator(3).random() == rng.random()
    assert checked_generator(None).random() != checked_generator(None).random()
