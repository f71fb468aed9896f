"""Spaces of Optuna and ConfigSpace give the candidates that they describe."""

from itertools import product

import ConfigSpace
import pytest
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier

from risingsearch import RisingSearchCV
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.candidates import draw_candidates


def drawn(space, n_candidates=200, seed=0, **options):
    return draw_candidates(space, n_candidates, seed, 500, **options)


def conditional():
    """Return a space with a condition and a forbidden combination."""
    space = ConfigSpace.ConfigurationSpace()
    penalty = ConfigSpace.Categorical("penalty", ["l2", "elasticnet"])
    ratio = ConfigSpace.Float("l1_ratio", (0.0, 1.0))
    alpha = ConfigSpace.Float("alpha", (1e-6, 1e-1), log=True)
    average = ConfigSpace.Categorical("average", [False, True])
    space.add(penalty, ratio, alpha, average)
    space.add(ConfigSpace.EqualsCondition(ratio, penalty, "elasticnet"))
    space.add(
        ConfigSpace.ForbiddenAndConjunction(
            ConfigSpace.ForbiddenEqualsClause(penalty, "elasticnet"),
            ConfigSpace.ForbiddenEqualsClause(average, True),
        )
    )
    return space


class TestOptuna:
    def test_a_finite_space_has_each_combination_once(self):
        space = {
            "depth": IntDistribution(2, 6, step=2),
            "kind": CategoricalDistribution(["a", None]),
            "flag": [True, False],
        }
        candidates = drawn(space, "auto")
        found = [(one["depth"], one["kind"], one["flag"]) for one in candidates]
        assert len(found) == 12
        assert set(found) == set(product([2, 4, 6], ["a", None], [True, False]))

    def test_stand_beside_other_distributions_in_one_dict(self):
        space = {
            "a": FloatDistribution(0.1, 0.5, step=0.1),
            "b": loguniform(1e-3, 1.0),
            "c": ["x", "y"],
            "d": ConfigSpace.Integer("d", (1, 8), log=True),
        }
        candidates = drawn(space)
        assert {round(one["a"], 9) for one in candidates} == {0.1, 0.2, 0.3, 0.4, 0.5}
        assert all(1e-3 <= one["b"] <= 1.0 for one in candidates)
        assert {one["c"] for one in candidates} == {"x", "y"}
        assert {one["d"] for one in candidates} == set(range(1, 9))
        assert drawn(space) == candidates
        assert drawn(space, seed=1) != candidates


class TestConfigSpace:
    def test_the_seed_decides_and_the_space_is_left_alone(self):
        space, twin = conditional(), conditional()
        space.seed(3)
        twin.seed(3)
        assert drawn(space, seed=1) == drawn(twin, seed=1)
        assert drawn(space, seed=1) != drawn(space, seed=2)
        assert space.sample_configuration() == twin.sample_configuration()

    def test_a_finite_space_has_each_configuration_once(self):
        space = ConfigSpace.ConfigurationSpace({"a": ["x", "y"], "b": ["u", "v", "w"]})
        found = [tuple(one.values()) for one in drawn(space, "auto")]
        assert sorted(found) == sorted(product("xy", "uvw"))

    def test_an_empty_space_is_refused(self):
        with pytest.raises(InvalidParameterError, match="and not empty"):
            drawn(ConfigSpace.ConfigurationSpace())


@pytest.mark.parametrize(
    "space",
    [
        conditional(),
        {
            "alpha": FloatDistribution(1e-6, 1e-1, log=True),
            "penalty": CategoricalDistribution(["l2", "l1"]),
            "l1_ratio": [0.1, 0.5],
        },
    ],
)
def test_a_search_over_such_a_space(space, tmp_path):
    X, y = load_iris(return_X_y=True)
    search = RisingSearchCV(
        SGDClassifier(), space, budget=40, max_epochs=8, cv=0.3, random_state=0
    )
    search.fit(X, y)
    assert search.n_candidates_ == 40
    again = clone(search).set_params(run_dir=tmp_path / "run").fit(X, y)
    assert again.best_params_ == search.best_params_
    assert clone(again).fit(X, y).best_params_ == search.best_params_  # from the run
    learnt = clone(search).set_params(prior=search, random_state=13).fit(X, y)
    assert max(learnt.trust_in_prior_.values()) > 0.0
