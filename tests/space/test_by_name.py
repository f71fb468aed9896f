"""Curated spaces fit the estimators that they are for, in whatever holds these."""

import ast
import json

import numpy as np
import pytest
from lightgbm import LGBMClassifier, LGBMRanker, LGBMRegressor
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.utils import all_estimators
from xgboost import XGBClassifier, XGBRanker, XGBRegressor

from risingsearch import space_of
from risingsearch.cli.main import main
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.folds import configured
from risingsearch.scripts.yaml_files import load_yaml
from risingsearch.space import Space
from risingsearch.space.by_name import (
    configuration_of,
    known_estimators,
    learnt_starts,
    own_values,
    starts_of,
)

BOOSTERS = [
    *(LGBMClassifier, LGBMRegressor, LGBMRanker),
    *(XGBClassifier, XGBRegressor, XGBRanker),
]
CLASSES = dict(all_estimators()) | {kind.__name__: kind for kind in BOOSTERS}
INSTALLED = [name for name in known_estimators() if name in CLASSES]


class CatBoostClassifier(BaseEstimator):
    """An estimator that tells only what it was given, as CatBoost's."""

    def __init__(self, depth=None, l2_leaf_reg=None, learning_rate=None):
        self.given = {"depth": depth} if depth else {}

    def get_params(self, deep=True):
        return dict(self.given)


def own(estimator):
    space = Space.of(space_of(estimator))
    return configuration_of(own_values(estimator), space)


def test_many_are_known():
    assert len(INSTALLED) > 50
    names = ("SGD", "MLP", "HistGradientBoosting", "LGBM", "XGB", "CatBoost")
    assert {f"{name}Classifier" for name in names} <= known_estimators().keys()


@pytest.mark.parametrize("name", INSTALLED)
def test_a_space_has_parameters_of_the_estimator_and_its_default(name):
    estimator = CLASSES[name]()
    space, default, _ = known_estimators()[name]
    assert space_of(name) == space
    assert json.loads(json.dumps(space_of(estimator))) == space  # tuples are lists
    for params in Space.of(space).draw(20, np.random.default_rng(0)):
        estimator = configured(estimator, params)
    values = CLASSES[name]().get_params()
    for parameter, value in default.items():
        given = values[parameter]
        if isinstance(given, tuple):
            given = list(given)
        assert given in (value, None)
    assert Space.of(space).problem_of(own(CLASSES[name]()), beyond=True) is None


@pytest.mark.parametrize("name", learnt_starts())
def test_starts_are_configurations_of_the_space(name):
    space = Space.of(space_of(name))
    assert len(starts_of(name)) == 8
    for start in starts_of(name):
        assert space.problem_of(start) is None


@pytest.mark.parametrize("name", known_estimators())
def test_what_is_printed_is_python_and_yaml(name, capsys):
    assert main(["space", name]) == 0
    text = capsys.readouterr().out
    assert ast.literal_eval(text) == load_yaml(text) == space_of(name)
    assert main(["space", name, "--json"]) == 0
    assert load_yaml(capsys.readouterr().out) == space_of(name)


def test_a_pipeline_has_the_parameters_of_its_known_steps():
    columns = ColumnTransformer(
        [("numbers", SimpleImputer(), [0]), ("words", OneHotEncoder(), [1])]
    )
    pipeline = make_pipeline(columns, PCA(), SGDClassifier())
    space = space_of(pipeline)
    assert space["columntransformer__numbers__strategy"]["values"] == ["mean", "median"]
    assert {"columntransformer__words__min_frequency", "pca__whiten"} <= space.keys()
    assert space["sgdclassifier__l1_ratio"]["when"] == {
        "sgdclassifier__penalty": "elasticnet"
    }
    assert own(pipeline)["sgdclassifier__alpha"] == 1e-4
    assert space_of(TransformedTargetRegressor(Ridge())).keys() == {
        "regressor__alpha",
        "regressor__fit_intercept",
    }


def test_a_subclass_is_known_by_its_base():
    class Mine(SVC):
        def __init__(self, C=2.0):
            super().__init__(C=C)

    assert space_of(Mine()) == {"C": space_of("SVC")["C"]}
    assert own(Mine()) == {"C": 2.0}


def test_a_word_that_is_none_of_the_choices_stays():
    space = space_of(SGDClassifier(penalty=None))
    assert not {"penalty", "l1_ratio"} & space.keys()
    assert "strategy" not in space_of(
        make_pipeline(SimpleImputer(strategy="most_frequent"), SVC())
    )
    assert own(SVC(kernel="precomputed")) == {"C": 1.0, "gamma": "scale"}


def test_what_the_library_decides_is_what_it_takes():
    assert own(XGBClassifier(max_depth=3)) | {"max_depth": 6} == (
        known_estimators()["XGBClassifier"].default
    )
    space = space_of(CatBoostClassifier(depth=4))
    assert space.keys() == {"learning_rate", "depth", "l2_leaf_reg"}
    assert own(CatBoostClassifier(depth=4)) == {"depth": 4, "l2_leaf_reg": 3.0}


@pytest.mark.parametrize(
    ("unknown", "message"),
    [
        ("LGBMClasifier", "'LGBMClasifier'; did you mean 'LGBMClassifier'. Known: Ada"),
        (LinearRegression(), "'LinearRegression'; .* in a space of yours, a dict of"),
        (make_pipeline(TfidfVectorizer(), LinearRegression()), "'LinearRegression'"),
        ([SVC(), SVC()], "'SVC' is there already or has it: give pairs"),
        ([("a__b", SVC())], "different names without '__', and 'a__b'"),
        ([], "no estimators: give at least one"),
    ],
)
def test_an_unknown_estimator_is_refused(unknown, message):
    with pytest.raises(InvalidParameterError, match=message):
        space_of(unknown)
