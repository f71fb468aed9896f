"""What a fitted search leaves to its best estimator: ``predict`` and all its like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

Method = TypeVar("Method", bound=Callable[..., Any])


def _delegated(method: Method) -> Method:
    """Offer a method only where the best estimator, or the one given, has it."""
    name = method.__name__

    def has(search: Any) -> bool:
        search._check_refit(name)
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return cast(Method, available_if(has)(method))


class BestEstimatorMixin:
    """Hands over to ``best_estimator_`` what it, or the estimator given, can do."""

    refit: Any
    best_estimator_: Any

    def _check_refit(self, name: str) -> None:
        if self.refit is False:
            msg = (
                f"{name} needs a model trained with the best parameters, and this "
                "RisingSearchCV has refit=False: set refit=True"
            )
            raise AttributeError(msg)

    @_delegated
    def predict(self, X: Any) -> Any:
        """Predict with the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @_delegated
    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities with the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @_delegated
    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithm of class probabilities with the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict_log_proba(X)

    @_delegated
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    @_delegated
    def score_samples(self, X: Any) -> Any:
        """Return the best estimator's score of every row."""
        check_is_fitted(self)
        return self.best_estimator_.score_samples(X)

    @_delegated
    def transform(self, X: Any) -> Any:
        """Transform with the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.transform(X)

    @_delegated
    def inverse_transform(self, X: Any) -> Any:
        """Transform back with the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.inverse_transform(X)

    @property
    def n_features_in_(self) -> int:
        """Number of features seen by ``fit``."""
        return int(self._of_best("n_features_in_"))

    @property
    def feature_names_in_(self) -> Any:
        """Names of the features seen by ``fit``, where all are strings."""
        return self._of_best("feature_names_in_")

    @property
    def classes_(self) -> Any:
        """The class labels of a classifier."""
        return self._of_best("classes_")

    def _of_best(self, name: str) -> Any:
        self._check_refit(name)
        if not hasattr(self, "best_estimator_"):
            msg = f"{name} is known after fit; this RisingSearchCV is not fitted yet"
            raise AttributeError(msg)
        return getattr(self.best_estimator_, name)
