"""State that lives in one call of training, where every epoch is another call."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from lightgbm import (
    LGBMClassifier,
    LGBMRegressor,
    early_stopping,
    record_evaluation,
    reset_parameter,
)
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_regression
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier, XGBRegressor
from xgboost.callback import (
    EarlyStopping,
    LearningRateScheduler,
    TrainingCallback,
    TrainingCheckPoint,
)

from risingsearch import RisingSearchCV
from risingsearch.errors import InvalidParameterError, NotTrainableError
from risingsearch.integrations.sklearn.estimators import EpochTrainer

# estimators with another number of trees or passes than the epochs
pytestmark = pytest.mark.filterwarnings("ignore:.*, and the search trains . at most")

X, Y = make_regression(90, 6, noise=5.0, random_state=0)
CLASSES = (Y > 0).astype(int)


def light(**params):
    return LGBMRegressor(
        n_jobs=1,
        verbose=-1,
        random_state=0,
        n_estimators=8,
        min_child_samples=2,
        **params,
    )


def xgb(**params):
    return XGBRegressor(n_jobs=1, random_state=0, n_estimators=8, **params)


def stepped(estimator, epochs=8, steps=1, **arguments):
    trainer = EpochTrainer(clone(estimator), steps)
    for _ in range(epochs):
        trainer.train(X, Y, **arguments)
    return trainer.estimator.predict(X)


def searched(estimator, space=({},), X=X, y=CLASSES, **options):
    options = {"budget": 4, "max_epochs": 4, "cv": 0.25, "random_state": 0} | options
    return RisingSearchCV(estimator, list(space), **options).fit(X, y)


class Halving(TrainingCallback):
    """Halves the rate after each round, and reads the scores of all rounds."""

    def before_training(self, model):
        self.rounds = 0
        return model

    def after_iteration(self, model, epoch, evals_log):
        self.rounds += 1
        assert self.rounds == epoch + 1 == len(evals_log["validation_0"]["rmse"])
        model.set_param("learning_rate", 0.5 * 0.5**self.rounds)
        return False


class Stopping(TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        return epoch == 2


def halved(iteration):
    return 0.5 * 0.5**iteration


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize(
    ("estimator", "arguments"),
    [
        (light(), {"callbacks": [reset_parameter(learning_rate=halved)]}),
        (xgb(callbacks=[LearningRateScheduler(halved)]), {}),
        (xgb(callbacks=[LearningRateScheduler([0.5] * 4 + [0.1] * 4)]), {}),
        (xgb(learning_rate=0.2, callbacks=[Halving()]), {"eval_set": [(X, Y)]}),
        (xgb(booster="dart", rate_drop=1.0, one_drop=True), {}),
        (xgb(booster="gblinear"), {}),
        (light(linear_tree=True), {}),
    ],
)
def test_rounds_of_several_fits_are_those_of_one(estimator, arguments, steps):
    quiet = {"verbose": False} if "eval_set" in arguments else {}
    whole = clone(estimator).fit(X, Y, **arguments, **quiet).predict(X)
    in_steps = stepped(estimator, 8 // steps, steps, **arguments, **quiet)
    np.testing.assert_allclose(in_steps, whole, rtol=1e-4)


def test_a_bag_of_lightgbm_lasts_as_many_rounds_as_it_was_told():
    bagged = light(subsample=0.3, subsample_freq=4)
    np.testing.assert_array_equal(stepped(bagged), stepped(bagged, 2, 4))
    every_round = clone(bagged).set_params(subsample_freq=1)
    assert not np.array_equal(stepped(bagged), stepped(every_round))


@pytest.mark.parametrize(
    "drawn",
    [
        {"subsample": 0.2, "subsample_freq": 1, "bagging_seed": 3},
        {"subsample": 0.2, "subsample_freq": 2, "bagging_seed": 3},
        {"colsample_bytree": 0.2, "feature_fraction_seed": 3},
        {"extra_trees": True, "extra_seed": 3},
    ],
)
def test_a_seed_that_is_given_serves_many_draws(drawn):
    # Steps so small that the trees differ by what is drawn alone.
    stumps = light(num_leaves=2, learning_rate=1e-9, **drawn)
    trainer = EpochTrainer(clone(stumps))
    for _ in range(8):
        trainer.train(X, Y)
    assert trainer.estimator.get_params() == stumps.get_params()
    trees = trainer.estimator.booster_.dump_model()["tree_info"]
    roots = [tree["tree_structure"] for tree in trees]
    assert len({(r["split_feature"], r["threshold"]) for r in roots}) > 2


def stand_in(name, **attributes):
    """Instance of a class of a library that is not installed, known by its name."""
    return type(name, (), {"__deepcopy__": lambda self, _: self, **attributes})()


class Net(ClassifierMixin, BaseEstimator):
    """Makes ``max_epochs`` passes in each call, as skorch's nets do."""

    passes = 0

    def __init__(self, max_epochs=10, lr=0.1, callbacks=None):
        self.max_epochs, self.lr, self.callbacks = max_epochs, lr, callbacks

    def partial_fit(self, X, y, classes=None):
        self.classes_ = np.unique(y)
        type(self).passes += self.max_epochs
        return self

    def fit(self, X, y):
        return self.partial_fit(X, y)

    def predict(self, X):
        return np.zeros((len(X)), int)


REFUSED = [
    (light(boosting_type="dart"), "boosting_type='dart'"),
    (light(cegb_penalty_feature_lazy=[1.0] * 6), "cegb_penalty_split"),
    (light(early_stopping=3), "early_stopping=3"),
    (light(seed=3), "give random_state"),
    (xgb(callbacks=[EarlyStopping(rounds=2)]), "EarlyStopping: the search decides"),
    (xgb(callbacks=[TrainingCheckPoint("x")]), "same place, take it out"),
    (xgb(process_type="update"), "it adds no rounds"),
    (SGDRegressor(learning_rate="adaptive"), "falls only within one fit"),
    (Net(callbacks=[("stop", stand_in("EarlyStopping"))]), "EarlyStopping"),
    (Net(callbacks=[stand_in("ReduceLROnPlateau")]), "begins anew in every epoch"),
    (Net(callbacks={"keep": stand_in("ModelCheckpoint")}), "same place"),
]


@pytest.mark.parametrize(("estimator", "words"), REFUSED)
def test_what_forgets_between_calls_is_refused_by_name(estimator, words):
    with pytest.raises(NotTrainableError, match=words):
        EpochTrainer(make_pipeline(estimator))


@pytest.mark.parametrize(
    ("estimator", "argument", "given", "words"),
    [
        (light(), "callbacks", [early_stopping(3)], "the search decides"),
        (light(), "callbacks", [record_evaluation({})], "same place"),
        (light(), "callbacks", [reset_parameter(learning_rate=[0.1])], "a function"),
        (GradientBoostingRegressor(), "monitor", lambda *_: True, "monitor"),
    ],
)
def test_arguments_of_fit_that_forget_are_refused(estimator, argument, given, words):
    search = RisingSearchCV(estimator, [{}], budget=2, cv=0.25)
    with pytest.raises(NotTrainableError, match=words):
        search.fit(X, Y, **{argument: given})


def test_a_callback_that_stops_a_booster_ends_the_search():
    with pytest.raises(InvalidParameterError, match="callback Stopping stops a boos"):
        searched(xgb(callbacks=[Stopping()]), y=Y)


class Locking:
    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, env):
        pass


def test_callbacks_that_cannot_be_copied_for_each_model_are_refused():
    search = RisingSearchCV(light(), [{}], budget=2, cv=0.25)
    with pytest.raises(InvalidParameterError, match=r"these cannot be: .*lock"):
        search.fit(X, Y, callbacks=[Locking()])


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (Net(), CLASSES),
        (Net(max_epochs=None), CLASSES),
        (MultiOutputClassifier(Net()), np.column_stack([CLASSES] * 2)),
    ],
)
def test_an_epoch_is_one_pass_where_a_call_may_make_several(estimator, y):
    Net.passes = 0
    search = searched(estimator, y=y, scoring=lambda *_: 0.5, refit="best")
    assert Net.passes == search.n_epochs_ * np.ndim(y)
    assert repr(search.best_estimator_) == repr(estimator)


@pytest.mark.parametrize(
    "name", ["epochs", "n_epochs", "num_epochs", "n_iter", "max_iter", "nepochs"]
)
def test_such_parameters_are_known_by_their_names(name):
    class Passing(Net):
        def __init__(self, **counts):
            self.counts = counts

        def get_params(self, deep=True):
            return self.counts

        def set_params(self, **counts):
            self.counts = self.counts | counts
            return self

        def partial_fit(self, X, y, classes=None):
            Net.passes += self.counts[name]
            self.classes_ = classes

    Net.passes = 0
    trainer = EpochTrainer(Passing(**{name: 7}))
    trainer.train(X, CLASSES)
    assert (Net.passes, trainer.estimator.counts) == (1, {name: 7})


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (Net(), "max_epochs"),
        (make_pipeline(Net()), "net__max_epochs"),
        (SGDClassifier(), "max_iter"),
        (RandomForestClassifier(), "n_estimators"),
        (MultiOutputClassifier(Net()), "estimator__max_epochs"),
    ],
)
def test_counts_of_passes_are_refused_in_the_space(estimator, name):
    with pytest.raises(InvalidParameterError, match=f"{name} counts the epochs"):
        searched(estimator, [{name: 1}])


@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        (SGDClassifier(), "tol", 0.1),
        (make_pipeline(SGDClassifier()), "sgdclassifier__n_iter_no_change", 3),
        (HistGradientBoostingRegressor(), "scoring", "r2"),
        (GradientBoostingRegressor(), "warm_start", True),
        (MLPRegressor(), "validation_fraction", 0.3),
    ],
)
def test_parameters_without_effect_are_said(estimator, name, value):
    with pytest.warns(UserWarning, match=f"{name} in param_distributions has no eff"):
        searched(estimator, [{name: value}], refit=False, budget=1)


def test_those_by_which_an_mlp_lowers_its_rate_have_one():
    sgd = {"solver": "sgd", "learning_rate": "adaptive", "tol": 0.1}
    searched(
        MLPRegressor(hidden_layer_sizes=(2,), **sgd),
        [{"n_iter_no_change": 1}],
        budget=1,
        refit=False,
    )


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(random_state=0),
        GradientBoostingClassifier(random_state=0, warm_start=True),
        BaggingClassifier(random_state=0),
        HistGradientBoostingClassifier(random_state=0),
        LGBMClassifier(n_jobs=1, verbose=-1, random_state=0, min_child_samples=2),
        XGBClassifier(n_jobs=1, random_state=0),
        SGDClassifier(random_state=0),
        MLPClassifier((2,), random_state=0, max_iter=20, tol=1.0),
        GaussianNB(),
        make_pipeline(StandardScaler(), ExtraTreesClassifier(random_state=0)),
        make_pipeline(StandardScaler(), make_pipeline(GaussianNB())),
    ],
    ids=lambda estimator: str(estimator)[:30],
)
@pytest.mark.filterwarnings("ignore:a full training of GaussianNB is one pass")
@pytest.mark.parametrize("refit", [True, "best"])
def test_the_winner_can_be_fitted_as_after_other_searches(estimator, refit):
    best = searched(estimator, refit=refit).best_estimator_
    given, found = estimator.get_params(), best.get_params()
    simple = {n for n, value in given.items() if not hasattr(value, "get_params")}
    changed = {n for n in simple - {"steps"} if repr(given[n]) != repr(found[n])}
    assert {n.rpartition("__")[2] for n in changed} <= {"n_estimators", "max_iter"}
    other = (X[:, 0] > 0).astype(int)
    again = clone(best).fit(X, other)
    if not given.get("warm_start"):
        best.fit(X, other)
        np.testing.assert_array_equal(best.predict(X), again.predict(X))


@pytest.mark.parametrize("kind", [RandomForestClassifier, LGBMClassifier])
def test_a_clone_of_an_ensemble_trains_the_winner_again(kind):
    options = {"verbose": -1, "n_jobs": 1} if kind is LGBMClassifier else {}
    best = searched(kind(**options), steps_per_epoch=2).best_estimator_
    again = clone(best).fit(X, CLASSES)
    np.testing.assert_array_equal(best.predict_proba(X), again.predict_proba(X))


@pytest.mark.parametrize(("max_epochs", "trees"), [(None, 10), (3, 6)])
def test_a_refit_in_full_has_all_trees(max_epochs, trees):
    model = HistGradientBoostingClassifier(max_iter=11)
    options = {"steps_per_epoch": 2, "max_epochs": max_epochs, "budget": 2}
    search = searched(model, refit="full", **options)
    assert search.best_estimator_.n_iter_ == trees
    search.set_params(refit=True).continue_search(1)
    assert search.best_estimator_.n_iter_ == 2 * search.best_epoch_


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingClassifier(max_features=0.5, random_state=0),
        GradientBoostingClassifier(subsample=0.5, max_features=2, random_state=0),
        RandomForestClassifier(class_weight="balanced", random_state=0),
        BaggingClassifier(max_features=0.5, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_warm_start_is_refitted_in_one_fit(model, in_pipeline, monkeypatch):
    estimator = make_pipeline(StandardScaler(), model) if in_pipeline else model
    trainer = EpochTrainer(clone(estimator), 2)
    rows, fit = [], type(model).fit

    def counted(self, X, y):
        rows.append(len(X))
        return fit(self, X, y)

    monkeypatch.setattr(type(model), "fit", counted)
    search = searched(estimator, [{}, {}], policy="round-robin", steps_per_epoch=2)
    assert rows.count(len(X)) == 1
    for _ in range(search.best_epoch_):
        trainer.train(X, CLASSES)
    expected = trainer.estimator.predict_proba(X)
    np.testing.assert_array_equal(search.predict_proba(X), expected)
