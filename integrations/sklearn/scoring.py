"""The metric that schedules: its name, and its lowest and highest score."""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.epoch_methods import last_step
from risingsearch.integrations.sklearn.splits import Rows, given

Scorer: TypeAlias = Any
"""One of scikit-learn's, which have private attributes, or a callable of the user."""
Range = tuple[float, float]
_ACCURACY = get_scorer("accuracy")
RANGE = "reward_range"  # the parameter of a policy with the ends of the rewards
FIRST = "*"  # the metric that schedules is the first of those that a callable returns
SHARES = (
    "accuracy_score",
    "average_precision_score",
    "balanced_accuracy_score",
    "completeness_score",
    "f1_score",
    "fowlkes_mallows_score",
    "homogeneity_score",
    "jaccard_score",
    "normalized_mutual_info_score",
    "precision_score",
    "rand_score",
    "recall_score",
    "roc_auc_score",
    "top_k_accuracy_score",
    "v_measure_score",
)
RANGES: dict[str, Range] = {
    **dict.fromkeys(SHARES, (0.0, 1.0)),
    "adjusted_rand_score": (-0.5, 1.0),
    "matthews_corrcoef": (-1.0, 1.0),
}
"""By the name of the function in ``sklearn.metrics``: those with two ends."""


def range_of(
    scorer: Scorer,
    metric: str | None,
    estimator: BaseEstimator,
) -> Range | None:
    """Return between which ends the score that schedules lies; None if unknown."""
    if metric not in (None, FIRST):
        scorer = getattr(scorer, "_scorers", {}).get(metric)
    if _asks_score(scorer):
        is_accuracy = _scores_accuracy(last_step(estimator))
        return RANGES["accuracy_score"] if is_accuracy else None
    function: Any = getattr(scorer, "_score_func", None)
    if not getattr(function, "__module__", "").startswith("sklearn.metrics"):
        return None
    if scorer._sign < 0 or "normalize" in scorer._kwargs:
        return None
    return RANGES.get(function.__name__)


def is_of_sklearn(scorer: Scorer) -> bool:
    """Whether a scorer is one of scikit-learn's, which asks for predictions alone."""
    return type(scorer).__module__.startswith("sklearn.metrics.")


def _asks_score(scorer: Scorer) -> bool:
    """Whether a scorer is the one that ``check_scoring`` makes of ``scoring=None``."""
    return is_of_sklearn(scorer) and hasattr(scorer, "_estimator")


def _scores_accuracy(estimator: BaseEstimator) -> bool:
    """Whether an estimator has the ``score`` that classifiers inherit."""
    return getattr(type(estimator), "score", None) is ClassifierMixin.score


def scored(scorer: Scorer, estimator: BaseEstimator, rows: Rows) -> Any:
    """Return the scores by a scorer, accuracy without its checks in each epoch."""
    X, y, _, params = rows
    if _asks_score(scorer):
        is_asked = _scores_accuracy(estimator)
    else:
        is_asked = type(scorer) is type(_ACCURACY) and vars(scorer) == vars(_ACCURACY)
    if is_asked and not params and type(y) is np.ndarray and y.dtype.kind in "biuU":
        labels = estimator.predict(X)
        is_plain = type(labels) is np.ndarray and labels.dtype.kind == y.dtype.kind
        if is_plain and labels.shape == y.shape == (len(y),):
            return float(np.mean(labels == y))
    return scorer(estimator, *given(X, y), **params)


def scheduling_metric(scorer: Scorer, scoring: object, refit: object) -> str | None:
    """Metric that schedules if a scorer has several, else None."""
    if hasattr(scorer, "_scorers"):
        if refit is False or callable(refit):
            return str(next(iter(scorer._scorers)))
        if refit in scorer._scorers:
            return str(refit)
        raise InvalidParameterError(
            "with several metrics refit must name the one that schedules, one of "
            f"{sorted(scorer._scorers)}, or be a callable or False; got {refit!r}"
        )
    if callable(scoring) and (refit is False or callable(refit)):
        return FIRST
    if not isinstance(refit, str) or refit in ("best", "full"):
        return None
    if callable(scoring):
        return refit
    raise InvalidParameterError(refit_of_one(refit))


def refit_of_one(refit: object) -> str:
    """Message on a ``refit`` that names a metric where there is only one."""
    allowed = "True, False, 'full', 'best' or a callable"
    return f"with a single metric refit must be {allowed}; got {refit!r}"


def metric_name(scoring: object) -> str:
    """Name of a single metric, or "score" if it has none."""
    if isinstance(scoring, str):
        return scoring
    name = getattr(getattr(scoring, "_score_func", scoring), "__name__", "")
    sign = "neg_" if getattr(scoring, "_sign", 1) < 0 else ""  # as in scikit-learn
    if name.isidentifier():
        return sign + name
    return "score"


def tested_metrics(columns: Iterable[str]) -> list[str]:
    """Names of the metrics that the first split was scored by."""
    first = "split0_test_"
    return [name.removeprefix(first) for name in columns if name.startswith(first)]
