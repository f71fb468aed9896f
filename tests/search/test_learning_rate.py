"""The learning rate of a space, as a search is told of it."""

import math

import pytest
from example_search import start
from kept_search import CrashError, crashing
from scipy.stats import loguniform, uniform
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier

from risingsearch import Functions, RisingSearch, RisingSearchCV
from risingsearch.errors import InvalidParameterError

SPACE = {"kind": ["a", "b"], "lr": loguniform(1e-6, 1.0), "drop": uniform(0, 1)}


def train(state):
    state["epochs"] += 1
    return 1 - abs(math.log10(state["lr"]) + 4) / 9 - 1 / (state["epochs"] + 1)


def search(space=SPACE, **options):
    options = {"budget": 60, "max_epochs": 20, "seed": 0} | options
    return RisingSearch(Functions(start, train), space, **options)


def first_rate(**options):
    """Return the logarithm of the learning rate of the arm that is opened first."""
    made = search(**options)
    result = made.run()
    proposed = result.history[0]["arm"] in made.scheduler.proposals
    return math.log10(result.candidates[result.history[0]["arm"]]["lr"]), proposed


@pytest.mark.parametrize(
    ("options", "centre"),
    [({}, -3), ({"learning_rate": "lr"}, -3), ({"learning_rate": {"lr": 0.01}}, -2)],
)
def test_the_first_arm_is_at_the_best_that_is_known(options, centre):
    rate, proposed = first_rate(**options)
    assert proposed
    assert rate == pytest.approx(centre, abs=0.5)


def test_none_or_other_names_leave_the_arms_as_they_are_drawn():
    assert not first_rate(learning_rate=False)[1]
    assert first_rate(budget=100)[1]
    assert not first_rate(budget=101)[1]  # of more than five full trainings
    assert not first_rate(policy="asha")[1]
    assert not first_rate(proposer=None)[1]
    space = SPACE | {"pace": SPACE["lr"]}
    del space["kind"]
    assert first_rate(space=space, learning_rate="pace")[1]


def test_an_enqueued_one_is_the_centre():
    known = {"kind": "a", "lr": 0.1, "drop": 0.5}
    result = search(enqueue=[known]).run()
    second = next(row["arm"] for row in result.history if row["arm"] != 0)
    assert abs(math.log10(result.candidates[second]["lr"]) + 1) < 1.0


WRONG = [True, "", 3, {}, {"lr": "high"}, {"a": 1, "b": 2}]
UNUSED = [{}, {"policy": "asha"}, {"proposer": None}]


@pytest.mark.parametrize(
    ("wrong", "options", "message"),
    [
        *((one, {}, "^learning_rate must be the name") for one in WRONG),
        *(({"lr": one}, {}, rf"1e-06 to 1; got {one}") for one in (-5.0, 2)),
        *(("momentum", one, "number of the space .*, lr, drop; got") for one in UNUSED),
        ({"momentum": 0.1}, {"space": [{"lr": 0.1}]}, "of the candidates, lr; got 'mo"),
    ],
)
def test_what_is_no_learning_rate_is_refused(wrong, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        search(learning_rate=wrong, **options)


def test_a_good_value_may_be_an_end_of_the_range():
    assert first_rate(learning_rate={"lr": 1e-6})[0] == pytest.approx(-6, abs=0.5)


@pytest.mark.parametrize("at", [2, 9, 25])
def test_a_killed_search_ends_as_an_unbroken_one(tmp_path, at):
    whole = search(run_dir=tmp_path / "whole").run()
    with pytest.raises(CrashError):
        search(run_dir=tmp_path / "run", callbacks=crashing(at)).run()
    resumed = RisingSearch.resume(tmp_path / "run", Functions(start, train))
    again = resumed.run()
    assert again.history["arm"] == whole.history["arm"]
    assert repr(again.candidates) == repr(whole.candidates)
    assert len(resumed.scheduler.proposals) > 5


def test_the_value_of_an_estimator_is_its_centre():
    estimator = SGDClassifier(learning_rate="constant", eta0=0.1)
    space = {"eta0": loguniform(1e-7, 1e1), "alpha": loguniform(1e-6, 1e-1)}
    options = {"budget": 40, "max_epochs": 10, "random_state": 0, "cv": 2}
    options |= {"steps_per_epoch": 1}
    fitted = RisingSearchCV(estimator, space, **options)
    fitted.fit(*load_iris(return_X_y=True))
    first = fitted.cv_results_["params"][fitted.history_[0]["arm"]]
    assert math.log10(first["eta0"]) == pytest.approx(-1, abs=0.5)
