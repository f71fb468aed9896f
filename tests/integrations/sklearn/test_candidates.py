from __future__ import annotations

import pytest
from scipy.stats import loguniform

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.candidates import draw_candidates

GRID = {"a": [1, 2, 3], "b": ["x", "y"]}


def drawn(space, n_candidates="auto", recommended=500, n_epochs=None, seed=0):
    return draw_candidates(space, n_candidates, seed, recommended, n_epochs)


class TestSpace:
    def test_grid_without_repetition(self):
        candidates = drawn(GRID, n_candidates=6)
        assert len({tuple(sorted(c.items())) for c in candidates}) == 6

    def test_distributions(self):
        candidates = drawn({"a": loguniform(1e-3, 1), "b": range(3)}, n_candidates=20)
        assert all(1e-3 <= c["a"] <= 1 and c["b"] in range(3) for c in candidates)

    def test_a_tuple_is_a_choice_as_for_scikit_learn(self):
        assert [one["a"] for one in drawn({"a": (1e-5, 0.1)})] == [1e-5, 0.1]

    def test_only_a_space_alone_is_open(self):
        space = {"a": loguniform(1e-3, 1)}
        assert drawn(space, 5).space.names == ["a"]
        assert drawn([{"a": 1}, space], 5).space is None
        assert drawn(GRID, 5).space is None

    def test_more_than_the_grid_holds_is_warned_of(self):
        with pytest.warns(UserWarning, match="is 9, and the space has 6 comb"):
            assert len(drawn(GRID, n_candidates=9)) == 6

    @pytest.mark.parametrize(
        ("space", "message"),
        [
            *((one, "and not empty; got") for one in ({}, [], None, "alpha", 3)),
            ([{"a": [1]}, 3], "holds 3; its parts must be"),
            ({"a": []}, "'a' a list of values, not empty"),
            ([{"a": [1]}, {"b": []}], "'b' a list of values, not empty"),
            *(
                ({"a": loguniform(1, 2)} | {"b": one}, "'b' a list of")
                for one in ((), 0.1, "l2", None)
            ),
        ],
    )
    def test_what_is_no_space(self, space, message):
        with pytest.raises(InvalidParameterError, match=message):
            drawn(space, n_candidates=2)


class TestList:
    def test_is_kept_as_given(self):
        configurations = [{"a": 3}, {"a": 1, "b": "x"}, {}, {"a": 1, "b": (1, 2)}]
        assert drawn(configurations, n_candidates=2) == configurations

    @pytest.mark.parametrize("space", [{"a": [5, 6, 7]}, {"a": loguniform(1, 2)}])
    def test_configurations_stand_beside_a_space(self, space):
        known = [{"a": 1e-3, "b": (8,)}, {}]
        candidates = drawn([known[0], space, known[1]], n_candidates=3)
        assert candidates[:2] == known
        assert len(candidates) == 5
        assert all(one["a"] >= 1 for one in candidates[2:])

    @pytest.mark.parametrize(
        ("recommended", "n_epochs", "n"),
        [(9, 9, 9), (9, 2, 2), (1, 9, 2), (40, 40, 31)],
    )
    def test_configurations_count_among_the_recommended(self, recommended, n_epochs, n):
        space = [{"a": 1e-3}, {"a": list(range(30))}]
        assert len(drawn(space, "auto", recommended, n_epochs)) == n

    @pytest.mark.parametrize(
        ("part", "name"),
        [
            ({"hidden_layer_sizes": [(8,), (16,)], "solver": "adam"}, "solver"),
            ({"solver": "adam", "alpha": loguniform(1, 2)}, "solver"),
            ({"a": range(3), "hidden": (8,)}, "hidden"),
        ],
    )
    @pytest.mark.parametrize("others", [[], [{"a": 1}], [{"a": [1]}]])
    def test_a_single_value_among_several_is_named(self, part, name, others):
        with pytest.raises(InvalidParameterError) as caught:
            drawn([*others, part])
        value = part[name]
        assert f"write {name!r}: [{value!r}] for a space" in str(caught.value)

    def test_a_space_of_one_empty_configuration(self):
        assert drawn([{}]) == [{}]


class TestNumber:
    @pytest.mark.parametrize(
        ("n_candidates", "recommended", "n_epochs", "n"),
        [("auto", 4, None, 4), ("auto", 9, None, 6), ("auto", 4, 3, 3), (2, 4, 9, 2)],
    )
    def test_of_a_grid(self, n_candidates, recommended, n_epochs, n):
        assert len(drawn(GRID, n_candidates, recommended, n_epochs)) == n

    def test_auto_of_a_distribution_follows_the_rule_if_there_is_one(self):
        assert len(drawn({"a": loguniform(1, 2)}, recommended=7)) == 7
        assert len(drawn({"a": loguniform(1, 2)})) == 500

    @pytest.mark.parametrize("n_candidates", [0, -1, 2.0, "all", None])
    def test_is_a_whole_number(self, n_candidates):
        with pytest.raises(InvalidParameterError, match="n_candidates must be"):
            drawn(GRID, n_candidates)

    @pytest.mark.parametrize("space", [GRID, [{"a": 1}] * 6])
    def test_is_no_more_than_the_epochs(self, space):
        assert len(drawn(space, 6, n_epochs=6)) == 6
        with pytest.raises(
            InvalidParameterError,
            match="a budget of 5 epochs is less than one for each of the 6 candidates",
        ):
            drawn(space, 6, n_epochs=5)
