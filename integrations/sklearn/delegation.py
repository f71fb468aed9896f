"""What a fitted search leaves to its best estimator: ``predict`` and all its like."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from risingsearch.integrations.sklearn.scoring import routing_enabled


def _delegated(name: str, doc: str) -> Any:
    """Return a method of the best estimator, offered only where it has one.

    Before ``fit`` the estimator that was given decides.
    """

    def method(self: Any, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(X)

    def has(search: Any) -> bool:
        search._check_refit(name)
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    method.__name__, method.__doc__ = name, doc
    method.__qualname__ = f"BestEstimatorMixin.{name}"
    return available_if(has)(method)


def _attribute(name: str, doc: str) -> Any:
    """Return a property that is read from the best estimator."""

    def read(self: Any) -> Any:
        self._check_refit(name)
        if not hasattr(self, "best_estimator_"):
            msg = f"{name} is known after fit; this RisingSearchCV is not fitted yet"
            raise AttributeError(msg)
        return getattr(self.best_estimator_, name)

    return property(read, doc=doc)


class BestEstimatorMixin:
    """Hands over to ``best_estimator_`` what it, or the estimator given, can do."""

    estimator: Any
    refit: Any
    scorer_: Any
    best_estimator_: Any

    predict = _delegated("predict", "Predict with the best estimator.")
    predict_proba = _delegated(
        "predict_proba", "Predict class probabilities with the best estimator."
    )
    predict_log_proba = _delegated(
        "predict_log_proba",
        "Predict the logarithm of class probabilities with the best estimator.",
    )
    decision_function = _delegated(
        "decision_function", "Return the decision function of the best estimator."
    )
    score_samples = _delegated(
        "score_samples", "Return the best estimator's score of every row."
    )
    transform = _delegated("transform", "Transform with the best estimator.")
    inverse_transform = _delegated(
        "inverse_transform", "Transform back with the best estimator."
    )
    n_features_in_ = _attribute("n_features_in_", "Number of features seen by ``fit``.")
    feature_names_in_ = _attribute(
        "feature_names_in_",
        "Names of the features seen by ``fit``, where all are strings.",
    )
    classes_ = _attribute("classes_", "The class labels of a classifier.")

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the score of the best estimator, by ``scoring``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Their targets.
        **params : dict
            Metadata for the scorer, with metadata routing.

        Returns
        -------
        float
        """
        self._check_refit("score")
        check_is_fitted(self)
        if params and not routing_enabled():
            msg = (
                f"score got {sorted(params)}: metadata need "
                "sklearn.set_config(enable_metadata_routing=True)"
            )
            raise ValueError(msg)
        if routing_enabled():
            params = process_routing(self, "score", **params).scorer["score"]
        scorer = self.scorer_
        if isinstance(scorer, dict):
            scorer = scorer[self.refit]
        score = scorer(self.best_estimator_, X, y, **params)
        return float(score[self.refit] if isinstance(score, dict) else score)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        tags.regressor_tags = deepcopy(inner.regressor_tags)
        tags.transformer_tags = deepcopy(inner.transformer_tags)
        tags.target_tags = deepcopy(inner.target_tags)
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags

    def _check_refit(self, name: str) -> None:
        if self.refit is False:
            msg = (
                f"{name} needs a model trained with the best parameters, and this "
                "RisingSearchCV has refit=False: set refit=True"
            )
            raise AttributeError(msg)
