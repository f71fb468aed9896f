import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import loguniform, randint

from risingsearch.scheduling.candidates import encode, encoded

ROOT = np.sqrt(0.5)


def test_numbers_become_ranks_where_no_distribution_is_given():
    found = encode([{"rate": 10.0**-k} for k in (1, 2, 5)])
    assert found.tolist() == [[1.0], [0.5], [0.0]]


def test_a_distribution_places_a_number():
    candidates = [{"rate": 1e-4}, {"rate": 1e-3}, {"rate": 1.0}]
    by_scipy = encode(candidates, {"rate": loguniform(1e-4, 1.0)})
    assert by_scipy[:, 0] == pytest.approx([0.0, 0.25, 1.0])
    optuna = SimpleNamespace(low=1e-4, high=1.0, log=True)
    assert encode(candidates, {"rate": optuna})[:, 0] == pytest.approx([0, 0.25, 1])
    optuna = SimpleNamespace(low=0.0, high=2.0, log=False)
    found = encode(candidates, {"rate": optuna})
    assert found[:, 0] == pytest.approx([5e-5, 5e-4, 0.5])
    found = encode([{"n": 1}, {"n": 4}], {"n": randint(1, 5)})
    assert found[:, 0] == pytest.approx([0.25, 1.0])


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


ABSENT = object()
POOLS = [
    [1, 2, 3.5, 7],
    [5],
    [np.float64(1), np.int64(3), 2],
    [math.inf, 2],
    ["a", "b", "c"],
    [True, False],
    [1, True, 1.0, "z"],
    [1, "a", math.nan],
    [math.nan],
    [(1, 2), (2, 1), None],
    [[1], [2], ([],)],
    [f"run {k}" for k in range(30)],
]


def straightforward(candidates):
    """Return the features, a column after the other, a value after the other."""
    columns = []
    for name in dict.fromkeys(name for params in candidates for name in params):
        values = [params.get(name, ABSENT) for params in candidates]
        known = [value for value in values if value is not ABSENT]
        if all(is_number(value) for value in known):
            ranks = sorted(set(known))
            last = max(1, len(ranks) - 1)
            columns.append(
                [0.5 if v is ABSENT else ranks.index(v) / last for v in values]
            )
        else:
            values = [repr(v) if "[" in repr(v) else v for v in values]
            kinds = dict.fromkeys(value for value in values if value is not ABSENT)
            if 2 * len(kinds) <= len(known):
                columns += [[ROOT * (v == kind) for v in values] for kind in kinds]
        columns.append([ROOT * (value is not ABSENT) for value in values])
    varying = [column for column in columns if min(column) < max(column)]
    return np.array(varying).T if varying else None


def is_number(value):
    number = isinstance(value, (int, float, np.integer)) and not isinstance(value, bool)
    return number and math.isfinite(value)


@pytest.mark.parametrize("seed", range(100))
def test_features_are_those_of_a_straightforward_encoding(seed):
    rng = random.Random(seed)
    pools = rng.sample(POOLS, 4)
    candidates = [
        {
            name: rng.choice(pool)
            for name, pool in zip("abcd", pools, strict=True)
            if rng.random() < 0.9
        }
        for _ in range(rng.randrange(1, 40))
    ]
    expected, found = straightforward(candidates), encoded(candidates)
    if expected is None:
        assert found is None
        assert encode(candidates) is None
        return
    np.testing.assert_array_equal(encode(candidates), expected)
    assert found.shape == expected.shape
    rows = np.array([rng.randrange(len(candidates)) for _ in range(5)])
    np.testing.assert_array_equal(found[rows], expected[rows])


def test_a_value_is_looked_at_as_often_however_many_categories_there_are():
    looks = 0

    class Kind(str):
        def __eq__(self, other):
            nonlocal looks
            looks += 1
            return str.__eq__(self, other)

        def __hash__(self):
            nonlocal looks
            looks += 1
            return str.__hash__(self)

    def per_value(n_kinds):
        nonlocal looks
        looks = 0
        encoded([{"kind": Kind(k % n_kinds)} for k in range(2000)])
        return looks / 2000

    assert per_value(1000) <= per_value(10) + 2


def test_no_room_is_taken_for_each_category():
    n_kinds = 50_000
    features = encoded([{"kind": str(k % n_kinds)} for k in range(2 * n_kinds)])
    assert features.shape == (2 * n_kinds, n_kinds)  # 40 GB
    found = features[np.array([3, n_kinds + 3, 4])]
    assert (found[0] == found[1]).all()
    assert np.linalg.norm(found[0] - found[2]) == pytest.approx(1.0)
