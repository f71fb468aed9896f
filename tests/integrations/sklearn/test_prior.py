"""A fitted search that learns from earlier ones: what it opens, shows and keeps."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn import RisingSearchCV
from risingsearch.priors import EarlierSearch

X, y = make_classification(300, n_informative=5, random_state=0)
ALPHAS = np.logspace(-6, 3, 60).tolist()  # above 1 nothing is learnt


def searching(**changes):
    arguments = {"budget": 40, "max_epochs": 8, "cv": 0.3, "random_state": 0}
    return RisingSearchCV(SGDClassifier(), {"alpha": ALPHAS}, **arguments | changes)


def earlier(best=-4.0, name="May"):
    params = [{"alpha": alpha} for alpha in ALPHAS[::3]]
    ends = [-abs(np.log10(one["alpha"]) - best) for one in params]
    return EarlierSearch(name, params, [np.array([end]) for end in ends])


def test_what_did_well_earlier_is_opened_first():
    plain = searching().fit(X, y)
    search = searching(prior=[earlier(), earlier(name="June")]).fit(X, y)
    assert search.n_candidates_ == plain.n_candidates_
    assert search.cv_results_["params"] == plain.cv_results_["params"]
    assert search.opened_by_prior_
    for row in search.opened_by_prior_:
        assert abs(np.log10(search.cv_results_["params"][row]["alpha"]) + 4) < 2
    assert set(search.trust_in_prior_) == {"May", "June"}
    assert plain.opened_by_prior_ == []
    assert plain.trust_in_prior_ == {}


def test_a_prior_chooses_among_more_candidates_than_there_are_epochs():
    search = searching(budget=20, n_candidates=60, prior=earlier()).fit(X, y)
    assert search.n_candidates_ == 60
    assert search.history_[-1]["round"] == 20
    assert search.opened_by_prior_
    with pytest.raises(InvalidParameterError, match="say with prior= which are worth"):
        searching(budget=20, n_candidates=60).fit(X, y)


def test_fitted_searches_are_earlier_ones():
    ours = searching().fit(X, y)
    others = searching(random_state=1).fit(X, y)
    search = searching(prior=[ours, others, ours]).fit(X, y)  # ours counts once
    assert list(search.trust_in_prior_) == ["RisingSearchCV 1", "RisingSearchCV 2"]


def test_clones_and_pickles_learn_from_the_same():
    ours = searching().fit(X, y)
    search = searching(prior=ours)
    twin = clone(search)
    assert twin.get_params(deep=False)["prior"] is ours
    twin.fit(X, y)
    copied = pickle.loads(pickle.dumps(search)).fit(X, y)
    assert copied.history_["arm"] == twin.history_["arm"]
    assert twin.trust_in_prior_


def test_an_earlier_search_is_no_part_of_this_one():
    ours = searching().fit(X, y)
    search = searching(prior=ours)
    assert search.get_params().keys() == ours.get_params().keys()
    assert "estimator__alpha" in search.get_params()
    tried = GridSearchCV(search, {"max_epochs": [4, 8]}, cv=2).fit(X, y)
    assert list(tried.best_estimator_.trust_in_prior_) == ["RisingSearchCV"]


def test_a_fit_that_is_refused_leaves_no_results_of_an_earlier_one():
    search = searching().fit(X, y).set_params(prior=searching())
    with pytest.raises(
        InvalidParameterError, match="this RisingSearchCV is not fitted"
    ):
        search.fit(X, y)
    assert not hasattr(search, "cv_results_")


def test_a_run_directory_goes_on_with_the_prior_it_was_begun_with(tmp_path):
    whole = searching(prior=earlier()).fit(X, y)
    searching(prior=earlier(), run_dir=tmp_path).fit(X, y)
    again = searching(run_dir=tmp_path).fit(X, y)  # whatever the prior is now
    assert again.history_["arm"] == whole.history_["arm"]
    assert again.trust_in_prior_ == whole.trust_in_prior_
    assert again.continue_search(5).opened_by_prior_
    learnt = searching(prior=tmp_path, random_state=1).fit(X, y)
    assert list(learnt.trust_in_prior_) == [tmp_path.name]


def test_a_prior_that_cannot_be_used_is_an_error_before_anything_is_trained():
    foreign = EarlierSearch("foreign", [{"C": 1.0}] * 4, [np.array([0.5])] * 4)
    with pytest.raises(
        InvalidParameterError, match="foreign: nothing of it can be used here"
    ):
        searching(prior=foreign).fit(X, y)
