"""A space: configurations as points of a cube, whoever declared it."""

import itertools
import math
import pickle

import ConfigSpace
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from scipy import stats
from sklearn.linear_model import SGDClassifier

from risingsearch.errors import InvalidParameterError
from risingsearch.search.arguments import with_enqueued
from risingsearch.space import Space

ROOT = np.sqrt(0.5)
CONTINUOUS = {
    "uniform": (stats.uniform(2, 3), 2, 5),
    "loguniform": (stats.loguniform(1e-4, 1), 1e-4, 1),
    "normal": (stats.norm(1, 2), -np.inf, np.inf),
    "optuna": (FloatDistribution(-1, 3), -1, 3),
    "optuna's log": (FloatDistribution(1e-5, 10, log=True), 1e-5, 10),
    "ConfigSpace": (ConfigSpace.Float("rate", (1e-3, 1), log=True), 1e-3, 1),
    "its log": (
        ConfigSpace.NormalFloatHyperparameter("a", 1, 2, 0.1, 9, log=True),
        *(0.1, 9),
    ),
    "its beta": (ConfigSpace.BetaFloatHyperparameter("a", 2, 3, 1, 4), 1, 4),
}
DISCRETE = {
    "randint": (stats.randint(1, 5), [1, 2, 3, 4]),
    "list": ([10, 1, 100], [1, 10, 100]),
    "texts": (["a", "b", None, True, 1], ["a", "b", None, True, 1]),
    "unhashable": ([[1, 2], {"a": 3}], [[1, 2], {"a": 3}]),
    "array": (np.linspace(0, 1, 3), [0.0, 0.5, 1.0]),
    "whole": (IntDistribution(0, 3), [0, 1, 2, 3]),
    "whole at steps": (IntDistribution(1, 9, step=4), [1, 5, 9]),
    "whole in the log": (IntDistribution(1, 4, log=True), [1, 2, 3, 4]),
    "at steps": (FloatDistribution(0, 0.3, step=0.1), [0.0, 0.1, 0.2, 0.3]),
    "categories": (CategoricalDistribution(["x", "y"]), ["x", "y"]),
    "ordinal": (ConfigSpace.OrdinalHyperparameter("o", ["lo", "hi"]), ["lo", "hi"]),
    "constant": (ConfigSpace.Constant("c", "only"), ["only"]),
    "integer": (ConfigSpace.Integer("i", (2, 4)), [2, 3, 4]),
    "its integers": (
        ConfigSpace.NormalIntegerHyperparameter("i", 3, 1, 2, 4),
        [2, 3, 4],
    ),
    "its log integers": (
        ConfigSpace.BetaIntegerHyperparameter("i", 2, 2, 1, 3, log=True),
        [1, 2, 3],
    ),
}


def points(space, n=200, seed=0):
    return np.random.default_rng(seed).random((n, len(space.names)))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_a_number_and_its_place_say_the_same(name):
    distribution, low, high = CONTINUOUS[name]
    space = Space.of({"rate": distribution})
    found = [space.from_unit(unit) for unit in points(space)]
    assert all(low <= one["rate"] <= high for one in found)
    assert {type(one["rate"]) for one in found} == {float}
    assert not any(map(space.problem_of, found))
    back = [space.to_unit(one) for one in found]
    np.testing.assert_allclose(back, points(space), atol=1e-9)
    assert space.is_open
    assert space.features(points(space)).tolist() == points(space).tolist()


@pytest.mark.parametrize("name", DISCRETE)
def test_each_of_some_values_has_its_part_of_the_coordinate(name):
    distribution, values = DISCRETE[name]
    space = Space.of({"rate": distribution})
    found = [space.from_unit(unit)["rate"] for unit in points(space)]
    for value in values:
        assert any(type(one) is type(value) and one == value for one in found)
        unit = space.to_unit({"rate": value})
        assert space.from_unit(unit) == {"rate": value}
        assert space.problem_of({"rate": value}) is None
    assert all(one in values for one in found)
    features = space.features(points(space))
    assert len(np.unique(features, axis=0)) == len(values)
    snapped = [space.to_unit({"rate": one}) for one in found]
    np.testing.assert_allclose(features, space.features(snapped))


@given(st.integers(-50, 50), st.integers(0, 300), st.sampled_from([0.125, 0.5, 3]))
def test_numbers_are_at_their_steps(low, n, step):
    given = FloatDistribution(low, low + n * step, step=step)
    space = Space.of({"a": given})
    assert all(given._contains(space.from_unit(x)["a"]) for x in points(space, 20))


@given(st.integers(1, 2**40), st.integers(0, 2**40), st.sampled_from([0, 1, 7]))
def test_whole_numbers_are_in_their_range(low, n, step):
    log, step = step == 0, max(1, step)
    given = IntDistribution(low, low + n * step, log=log, step=step)
    space = Space.of({"a": given})
    assert all(given._contains(space.from_unit(x)["a"]) for x in points(space, 20))


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("low", [10**17, 10**18, 10**30, 2**1000])
def test_whole_numbers_beyond_those_that_floats_tell_apart_are_exact(low, log):
    space = Space.of({"a": IntDistribution(low, low + 100, log=log)})
    assert len({one["a"] for one in space.from_units(points(space))}) > 80
    assert all(space.problem_of({"a": low + k}) is None for k in range(101))
    assert all(space.problem_of({"a": wrong}) for wrong in (low - 1, low + 101))
    assert space.to_unit({"a": low + 50}) == space.features([0.5])[0]


@pytest.mark.parametrize("name", ["randint", "whole in the log", "at steps", "list"])
def test_values_are_as_likely_as_their_distribution_says(name):
    space = Space.of({"rate": DISCRETE[name][0]})
    rng = np.random.default_rng(1)
    found = [space.sample(rng)["rate"] for _ in range(600)]
    shares = np.array([found.count(value) for value in DISCRETE[name][1]]) / 600
    logs = np.diff(np.log([0.5, 1.5, 2.5, 3.5, 4.5])) / np.log(9)
    expected = logs if "log" in name else np.full(len(shares), 1 / len(shares))
    np.testing.assert_allclose(shares, expected, atol=0.06)


@pytest.mark.parametrize("name", ["its log", "its beta", "its integers"])
def test_numbers_are_as_likely_as_configspace_draws_them(name):
    given = (CONTINUOUS | DISCRETE)[name][0]
    own = ConfigSpace.ConfigurationSpace({"a": given}, seed=0)
    expected = [one[given.name] for one in own.sample_configuration(2_000)]
    drawn = Space.of({"a": given}).from_units(points(Space.of({"a": given}), 2_000))
    found = [one["a"] for one in drawn]
    assert np.mean(found) == pytest.approx(np.mean(expected), rel=0.05)
    assert np.std(found) == pytest.approx(np.std(expected), rel=0.1)


NAN = math.nan
CATEGORIES = [[NAN, 1, 2], [None, NAN], [np.float32(NAN), "a"], [(1, NAN), (2, 3)]]
CATEGORIES += [[((NAN,), "a"), "b"], [{"a": NAN}, {"a": 1}], [frozenset([NAN]), 1j]]
CATEGORIES += [[SGDClassifier(), SGDClassifier(alpha=0.5)]]


@pytest.mark.parametrize("values", CATEGORIES)
def test_a_pickled_space_has_the_same_values(values):
    space = Space.of({"a": values})
    again = pickle.loads(pickle.dumps(space))
    for unit in ([0.1], [0.9]):
        for one, other in itertools.product([space, again], repeat=2):
            params = one.from_unit(unit)
            assert other.problem_of(params) is None
            assert other.to_unit(params) == space.to_unit(space.from_unit(unit))


@pytest.mark.parametrize("name", [*CONTINUOUS, "at steps", "list", "array"])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_a_number_of_fewer_bits_is_within_the_ends(name, kind):
    space = Space.of({"a": (CONTINUOUS | DISCRETE)[name][0]})
    for unit in ([1e-3], [0.0], [1.0], [0.3]):
        value = kind(space.from_unit(unit)["a"])
        assert space.problem_of({"a": value}) is None
        if kind is not np.float16:  # as a tensor's item()
            assert space.problem_of({"a": float(value)}) is None


def test_numbers_of_two_types_are_two_values():
    space = Space.of({"features": [1, 1.0, True], "depth": range(10)})
    assert len(space.draw(29, np.random.default_rng(0))) == 29
    listed = [{"features": value} for value in (True, 1.0, 1, 2.0)]
    for value, arm in [(1, 2), (1.0, 1), (True, 0), (2, 3), (3, 4)]:
        assert with_enqueued(listed, [{"features": value}])[1] == [arm]


def test_a_value_that_is_listed_twice_is_twice_as_likely():
    space = Space.of({"a": ["x", "y", "x"]})
    assert space.features([[0.6], [0.7]]).tolist() == [[ROOT, 0], [0, ROOT]]


def test_numbers_beyond_the_ends_and_unknown_categories_have_places():
    space = Space.of(
        {"a": FloatDistribution(0, 1), "n": [1, 2, 3], "c": ["x", "y"], "d": ["x", "y"]}
    )
    unit = space.to_unit({"a": 7, "n": 2.2, "c": "z"})
    np.testing.assert_allclose(unit, [1, 0.5, np.nan, 0.5])
    assert space.features(unit).tolist() == [[1, 0.5, 0, 0, 0, ROOT]]
    assert not np.isnan(space.perturbed(unit, np.random.default_rng(0))).any()
    assert space.to_unit({"a": "text", "n": None})[:2].tolist() == [0.5, 0.5]


def of_configspace():
    momentum = ConfigSpace.BetaFloatHyperparameter("momentum", 1, 1, 0.0, 1.0)
    space = ConfigSpace.ConfigurationSpace(
        {"solver": ["sgd", "adam", "lbfgs"], "momentum": momentum, "batch": (1, 8)}
    )
    known = space["solver"], space["batch"]
    space.add(ConfigSpace.EqualsCondition(space["momentum"], known[0], "sgd"))
    space.add(ConfigSpace.InCondition(known[1], known[0], ["sgd", "adam"]))
    space.add(
        ConfigSpace.ForbiddenAndConjunction(
            ConfigSpace.ForbiddenEqualsClause(known[0], "adam"),
            ConfigSpace.ForbiddenEqualsClause(known[1], 8),
        )
    )
    return space


def of_parts():
    return [
        {"solver": ["sgd"], "momentum": stats.uniform(), "batch": stats.randint(1, 9)},
        {"solver": ["adam"], "batch": stats.randint(1, 8)},
        {"solver": ["lbfgs"]},
    ]


@pytest.mark.parametrize("given", [of_configspace, of_parts])
def test_a_parameter_that_does_not_apply_is_left_out(given):
    space = Space.of(given())
    names = {
        "sgd": {"solver", "momentum", "batch"},
        "adam": {"solver", "batch"},
        "lbfgs": {"solver"},
    }
    rng = np.random.default_rng(0)
    drawn = [space.sample(rng) for _ in range(60)]
    assert {one["solver"] for one in drawn} == names.keys()
    for params in drawn:
        assert params.keys() == names[params["solver"]]
        assert params["solver"] != "adam" or params["batch"] < 8
        back = space.from_unit(space.to_unit(params))
        assert back == {k: pytest.approx(v) for k, v in params.items()}
        assert space.problem_of(params) is None


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"solver": "sgd", "batch": 2}, "'momentum' is missing"),
        ({"solver": "lbfgs", "batch": 2}, "'batch' does not apply"),
        ({"solver": "adam", "batch": 8}, "the space forbids it"),
        ({"solver": "sgd", "momentum": 1.5, "batch": 2}, "momentum=1.5 is not a value"),
        ({"solver": "adam", "batch": 2.0}, "batch=2.0 is not a value of the space"),
        ({"solver": "adam", "batch": True}, "batch=True is not a value of the space"),
        ({"solver": "adan", "batch": 2}, "solver='adan' is not a value of the space"),
    ],
)
def test_an_invalid_configuration_is_named_by_a_parameter(params, problem):
    assert Space.of(of_configspace()).problem_of(params).startswith(problem)
    others = {"at": stats.uniform(0.1, 0.7), "k": FloatDistribution(0, 1, step=0.1)}
    known = {"at": 0.8, "k": 3 * 0.1, "n": 2.0, "free": -1e9}
    space = Space.of(others | {"n": [1, 2], "free": stats.norm()})
    assert space.problem_of(known) is None
    for name, value in {"at": 0.81, "k": 0.15, "n": True, "free": "x"}.items():
        assert space.problem_of(known | {name: value}).startswith(f"{name}={value!r}")


def test_a_value_that_another_part_has_is_one_of_the_space():
    parts = [{"rate": stats.uniform()}, {"rate": stats.uniform(1)}, {"rate": [7, 8]}]
    space = Space.of(parts)
    for unit in points(space):
        assert space.problem_of(space.from_unit(unit)) is None
    assert space.problem_of({"rate": 9.0}).startswith("rate=9.0 is not a value")


def test_features_say_whether_a_parameter_applies():
    space = Space.of(of_configspace())
    assert space.names == ["solver", "batch", "momentum"]
    units = [space.to_unit({"solver": "sgd", "batch": 1, "momentum": 0.25})]
    units += [space.to_unit({"solver": "lbfgs"})]
    np.testing.assert_allclose(
        space.features(units),
        [[ROOT, 0, 0, 1 / 16, ROOT, 0.25, ROOT], [0, 0, ROOT, 0.5, 0, 0.5, 0]],
    )
    forbidden = {"solver": "adam", "batch": 8}
    assert not space.permits(forbidden)
    assert space.from_unit(space.to_unit(forbidden)) == forbidden


def test_conditions_chain_and_join():
    space = ConfigSpace.ConfigurationSpace(
        {"a": (0, 9), "b": ["x", "y"], "c": (0, 1.0)}
    )
    space.add(ConfigSpace.Float("d", (0, 1.0)))
    space.add(ConfigSpace.GreaterThanCondition(space["b"], space["a"], 4))
    equals = ConfigSpace.EqualsCondition(space["c"], space["b"], "x")
    less = ConfigSpace.LessThanCondition(space["c"], space["a"], 7)
    space.add(ConfigSpace.AndConjunction(equals, less))
    equals = ConfigSpace.EqualsCondition(space["d"], space["b"], "y")
    less = ConfigSpace.LessThanCondition(space["d"], space["a"], 2)
    space.add(ConfigSpace.OrConjunction(equals, less))
    found = Space.of(space)
    for unit, features in zip(
        points(found), found.features(points(found)), strict=True
    ):
        params = found.from_unit(unit)
        ConfigSpace.Configuration(space, values=params)  # or an error
        assert np.count_nonzero(features[1:] == ROOT) == (
            (2 if "b" in params else 0) + ("c" in params) + ("d" in params)
        )


def test_perturbed_points_stay_near_and_inside():
    space = Space.of({"a": stats.uniform(), "b": stats.uniform(), "c": list("xyz")})
    units = np.tile([0.01, 0.5, 0.5], (2_000, 1))
    found = space.perturbed(units, np.random.default_rng(0))
    assert found.shape == units.shape
    assert found.min() >= 0
    assert found.max() <= 1
    moved = np.abs(found - units)
    assert np.mean(moved[:, :2] > 0) == pytest.approx(0.4, abs=0.04)
    assert np.median(moved[moved[:, 1] > 0, 1]) < 0.1
    assert np.mean(moved[:, 2] > 0) == pytest.approx(0.1, abs=0.03)


def test_a_list_or_mere_draws_are_not_open():
    class Dice:
        def rvs(self, random_state):
            return int(random_state.randint(1, 7))

    assert not Space.of({"a": [1, 2], "b": range(3)}).is_open
    assert Space.of({"a": [1, 2], "b": IntDistribution(1, 2)}).is_open
    drawn = Space.of({"a": stats.uniform(), "b": Dice()})
    assert not drawn.is_open
    rng = np.random.default_rng(0)
    assert {drawn.sample(rng)["b"] for _ in range(60)} == {1, 2, 3, 4, 5, 6}


def test_the_description_tells_spaces_apart_and_nothing_else():
    def description(**change):
        own = {"a": stats.uniform(0, 1), "b": ["x", object], "n": IntDistribution(1, 5)}
        return Space.of(own | change).description

    assert description() == description(a=stats.uniform(0, 1))
    assert description() != description(a=stats.uniform(0, 2))
    assert description() != description(b=["x"])
    assert description() != description(n=IntDistribution(1, 5, log=True))
    assert Space.of(of_parts()).description == Space.of(of_parts()).description
    conditional = Space.of(of_configspace())
    assert len(conditional.description["forbidden clauses"]) == 1
    assert list(Space.of(of_parts()).description) == ["one of"] + [
        f"space {k}" for k in range(3)
    ]
    again = pickle.loads(pickle.dumps(conditional))
    assert again.description == conditional.description
    assert again.from_unit([0.4, 0.1, 0.2]) == conditional.from_unit([0.4, 0.1, 0.2])


@pytest.mark.parametrize(
    ("pair", "such_as"),
    [
        ((1e-5, 0.1), r"\[1e-05, 0.1\] for a choice, .*loguniform\(1e-05, 0.1\) for"),
        ((64, 8), r"randint\(8, 65\)"),
        ((-1.5, 2), r"uniform\(-1.5, 3.5\)"),
    ],
)
def test_a_tuple_that_may_be_a_range_is_refused(pair, such_as):
    with pytest.raises(InvalidParameterError, match=such_as):
        Space.of({"a": pair})
    assert Space.of({"a": (*pair, 0)}).coordinates[0].kind.listed == sorted((*pair, 0))


CALL = r"'a' has scipy.stats.loguniform .*write scipy.stats.loguniform\(a, b\)"
WIDE = [FloatDistribution(-1e308, 1e308), IntDistribution(-(10**308), 10**308)]
WIDE += [FloatDistribution(-1e308, 1e308, step=1e307)]


@pytest.mark.parametrize(
    ("space", "message"),
    [
        *(({name: [1]}, "have names, as text; got") for name in ("", 1)),
        *(({"a": one}, "give 'a' a list of values") for one in ("b", [], 3, None)),
        ({"a": np.array(3)}, r"give 'a' a list of values, .*; got array\(3\)"),
        ({"a": stats.loguniform}, CALL),
        *(({"a": one}, r"to 1e\+308.* nearer together") for one in WIDE),
    ],
)
def test_what_is_no_space_is_refused_by_a_sentence(space, message):
    with pytest.raises(InvalidParameterError, match=message):
        Space.of(space)


def test_a_space_that_forbids_everything_says_so():
    space = ConfigSpace.ConfigurationSpace({"a": ["x", "y"], "b": (0, 1.0)})
    found = Space.of(space)
    nothing = ConfigSpace.ForbiddenInClause(space["a"], ["x", "y"])
    found = Space(found.coordinates, [nothing])
    with pytest.raises(InvalidParameterError, match="the space forbids 1,000 draws"):
        found.sample(np.random.default_rng(0))


def test_a_distribution_without_width_is_a_constant():
    for one in (stats.uniform(3, 0), stats.norm(3, 0)):
        space = Space.of({"a": one, "b": [1, 2]})
        assert [row["a"] for row in space.draw(2, np.random.default_rng(0))] == [3, 3]
        assert space.to_unit({"a": 3.0, "b": 1})[0] == 0.5
