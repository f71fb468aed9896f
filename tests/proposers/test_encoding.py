import math

import numpy as np
import pytest

from risingsearch.proposers.encoding import MOST_CATEGORIES, encode

ROOT = np.sqrt(0.5)


def test_numbers_become_ranks():
    found = encode([{"rate": 10.0**-k} for k in (1, 2, 5)])
    assert found.tolist() == [[1.0], [0.5], [0.0]]


def test_categories_are_as_far_apart_as_the_ends_of_a_number():
    kinds = [{"kind": kind} for kind in ("a", "b", None, "a", "b", None)]
    found = encode(kinds)
    assert found.shape == (6, 3)
    distances = np.linalg.norm(found[:, None] - found[None], axis=-1)
    assert distances[0].tolist() == pytest.approx([0, 1, 1, 0, 1, 1])


def test_a_conditional_parameter_says_where_it_is():
    found = encode([{"momentum": 0.1}, {"momentum": 0.9}, {}])
    np.testing.assert_allclose(found, [[0.0, ROOT], [1.0, ROOT], [0.5, 0.0]])


def test_what_does_not_vary_or_is_never_the_same_is_left_out():
    assert encode([{"depth": 3}, {"depth": 3}]) is None
    assert encode([{"model": object()} for _ in range(5)]) is None
    assert encode([{}, {}]) is None
    assert encode([{"name": f"run {k}", "rate": k} for k in range(4)]).shape == (4, 1)


def test_categories_may_be_of_any_kind_and_absent():
    kinds = [[1], math.nan, None, "a", True]
    candidates = [{"kind": kind} for kind in kinds * 2] + [{}] * 2
    found = encode(candidates)
    assert found.shape == (12, 6)  # and where it is absent
    assert (found[:5] == found[5:10]).all()
    assert np.count_nonzero(found, axis=1).tolist() == [2] * 10 + [0] * 2


def test_a_category_of_too_many_values_is_left_out():
    kinds = [{"kind": str(k // 2), "rate": k} for k in range(2 * MOST_CATEGORIES)]
    assert encode(kinds).shape == (2 * MOST_CATEGORIES, MOST_CATEGORIES + 1)
    kinds += [{"kind": "another", "rate": k} for k in range(2)]
    assert encode(kinds).shape == (2 * MOST_CATEGORIES + 2, 1)


def test_long_arrays_that_differ_are_different_kinds():
    one, other = np.zeros((2, 2000))
    other[1000] = 1.0
    found = encode([{"init": init} for init in (one, other, one.copy(), other, one)])
    assert (
        found.tolist() == (ROOT * np.array([[1, 0], [0, 1]])[[0, 1, 0, 1, 0]]).tolist()
    )
