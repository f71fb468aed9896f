"""Parameters of two searches, matched by name."""

import numpy as np
import pytest

from risingsearch.priors.matching import Matching, category, relative_places

RATES = [10.0**-k for k in range(6)]
CANDIDATES = [
    {"rate": rate, "kind": kind, "depth": 3} for rate in RATES for kind in ("a", "b")
]


def test_only_what_both_have_and_what_varies_is_shared():
    runs = [{"rate": 0.1, "size": 1}, {"rate": 0.2, "size": 2}]
    assert Matching(CANDIDATES, [runs]).shared(runs) == ["rate"]
    assert Matching(CANDIDATES, []).shared([{"size": 1}, {"size": 2}]) == []


def test_numbers_are_placed_among_the_candidates_whatever_their_scale():
    runs = [{"rate": rate} for rate in RATES]
    [places] = Matching(CANDIDATES, [runs]).features(runs, ["rate"]).T
    assert places.round(6).tolist() == [1.0, 0.8, 0.6, 0.4, 0.2, 0.0]


def test_what_lies_outside_is_as_far_out_as_it_is():
    among = np.array(sorted(RATES))
    assert relative_places(np.array([100.0, 1e-6, -1.0]), among).round(2).tolist() == [
        1.4,
        -0.2,
        -1.0,
    ]


def test_categories_are_the_same_in_every_file():
    assert category((64, 32.0)) == category([64.0, 32])
    assert category(True) == category("True")
    assert category(np.float64(2.0)) == category(2)
    assert category(None) == category("None")


def test_a_category_that_only_one_search_knows_is_like_no_other():
    runs = [{"kind": "c"}, {"kind": "a"}]
    matching = Matching(CANDIDATES, [runs])
    here = matching.features([{"kind": "a"}, {"kind": "b"}], ["kind"])
    there = matching.features(runs, ["kind"])
    assert np.array_equal(here[0], there[1])
    distances = [np.linalg.norm(there[0] - row).round(6) for row in here]
    assert distances == [1.0, 1.0]


def test_a_parameter_that_some_candidates_lack_says_so():
    candidates = [{"depth": 1}, {"depth": 5}, {}]
    runs = [{"depth": 5}, {}]
    rows = Matching(candidates, [runs]).features(runs, ["depth"])
    assert rows.round(2).tolist() == [[1.0, 0.71], [0.5, 0.0]]


def test_names_that_nearly_all_differ_are_no_category():
    runs = [{"name": f"run {k}"} for k in range(9)]
    assert Matching(runs, [runs]).shared(runs) == []


@pytest.mark.parametrize("odd", ["auto", None, float("nan"), True])
def test_one_value_that_is_no_number_leaves_the_others_numbers(odd):
    runs = [{"rate": rate} for rate in RATES]
    with_odd = [*runs, {"rate": odd}]
    places = Matching(CANDIDATES, [runs]).features(runs, ["rate"])
    found = Matching(CANDIDATES, [with_odd]).features(with_odd, ["rate"])
    assert np.array_equal(found, [*places, [0.5]])
    names = Matching(with_odd * 2, [runs]).features(runs, ["rate"])
    assert np.array_equal(names[:, 0], places[:, 0])


def test_what_candidates_have_beside_numbers_is_a_category():
    candidates = [{"features": one} for one in (0.2, 0.4, 0.8, "sqrt", "log2", "sqrt")]
    runs = [{"features": one} for one in ("log2", 0.4, "auto")]
    rows = Matching(candidates, [runs]).features(runs, ["features"])
    assert rows.round(2).tolist() == [[0.5, 0, 0.71], [0.5, 0, 0], [0.5, 0, 0]]
