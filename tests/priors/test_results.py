import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier

from risingsearch.integrations.sklearn import RisingSearchCV
from risingsearch.priors import earlier_searches

X, Y = make_classification(200, n_features=5, random_state=0)
GRID = {"alpha": [1e-4, 1e-2, 1.0], "penalty": ["l1", "l2"]}


def rising(**options):
    return RisingSearchCV(
        SGDClassifier(), GRID, budget=20, max_epochs=6, cv=2, random_state=0, **options
    )


def test_result_has_the_curves_of_its_arms(make_search, curves_by_params):
    result = make_search().run()
    [earlier] = earlier_searches(result)
    found = curves_by_params(earlier)
    for arm, curve in result.curves.items():
        failed = arm == 3
        assert found[str(result.candidates[arm])] == ([] if failed else curve)
    assert np.nanmax(earlier.scores) == result.best_score


def test_fitted_rising_search_has_its_curves(curves_by_params):
    search = rising().fit(X, Y)
    [earlier] = earlier_searches(search)
    assert earlier.max_epochs == 6
    found = curves_by_params(earlier)
    for arm, curve in search.curves_.items():
        assert found[str(search.cv_results_["params"][arm])] == curve.tolist()


def test_one_of_several_metrics_can_be_the_score():
    search = rising(scoring=["accuracy", "roc_auc"], refit="accuracy").fit(X, Y)
    [earlier] = earlier_searches(search, score="roc_auc")
    column = search.cv_results_["mean_test_roc_auc"]
    assert np.nanmax(earlier.scores) >= np.nanmax(column) - 1e-12
