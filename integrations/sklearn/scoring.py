"""The metric that schedules: its name, and its lowest and highest score."""

from collections.abc import Iterable
from copy import copy
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer

from risingsearch.arms import Params
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.epoch_methods import last_step
from risingsearch.integrations.sklearn.splits import Rows, given
from risingsearch.policies.arrays import Ints

Scorer: TypeAlias = Any
"""One of scikit-learn's, which have private attributes, or a callable of the user."""
RowValues: TypeAlias = NDArray[Any]
"""The score of each row; with two axes, the predictions for it."""
Range = tuple[float, float]
MOST_PREDICTIONS = 20_000  # numbers that are kept of an epoch and fold
_ACCURACY = get_scorer("accuracy")
R2 = get_scorer("r2")  # the score of regressors
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
    if asks_score(scorer):
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


def asks_score(scorer: Scorer) -> bool:
    """Whether a scorer is the one that ``check_scoring`` makes of ``scoring=None``."""
    return is_of_sklearn(scorer) and hasattr(scorer, "_estimator")


def _scores_accuracy(estimator: BaseEstimator) -> bool:
    """Whether an estimator has the ``score`` that classifiers inherit."""
    return getattr(type(estimator), "score", None) is ClassifierMixin.score


def scored(
    scorer: Scorer, estimator: BaseEstimator, rows: Rows, metric: str | None = None
) -> tuple[Any, RowValues | None]:
    """Return the scores by a scorer, and the values of each row by the metric.

    Accuracy is scored without its checks in each epoch.
    """
    X, y, _, params = rows
    if asks_score(scorer):
        is_asked = _scores_accuracy(estimator)
    else:
        is_asked = type(scorer) is type(_ACCURACY) and vars(scorer) == vars(_ACCURACY)
    if is_asked and not params and type(y) is np.ndarray and y.dtype.kind in "biuU":
        labels = estimator.predict(X)
        is_plain = type(labels) is np.ndarray and labels.dtype.kind == y.dtype.kind
        if is_plain and labels.shape == y.shape == (len(y),):
            hits = labels == y
            return float(np.mean(hits)), hits
    heard: list[object] = []
    if asks_score(scorer) and _scores_accuracy(estimator):
        scorer = _ACCURACY
    if asks_score(scorer) and type(estimator).score is RegressorMixin.score:
        scorer = R2
    recomputed = of_metric(scorer, metric)
    if recomputed is not None and params.keys() <= {"sample_weight"}:
        scorer = _heard_by(heard, scorer, recomputed)
    scores = scorer(estimator, *given(X, y), **params)
    if not heard:
        return scores, None
    score = scores[metric] if isinstance(scores, dict) else scores
    return scores, _values(recomputed, estimator, rows, heard[-1], score)


def of_metric(scorer: Scorer, metric: str | None) -> Scorer | None:
    """Return the scorer of a metric that predictions determine; None for any other."""
    alone = getattr(scorer, "_scorers", {}).get(metric, scorer)
    return alone if isinstance(alone, type(R2)) else None


def _heard_by(heard: list[object], scorer: Scorer, alone: Scorer) -> Scorer:
    """Return a scorer that leaves the predictions for one of its metrics in a list."""

    def score(caller: BaseEstimator, *args: object, **kwargs: object) -> float:
        def heard_call(*asked: object, **how: object) -> object:
            heard.append(caller(*asked, **how))
            return heard[-1]

        return float(alone._score(heard_call, *args, **kwargs))

    listening = copy(alone)
    listening._score = score
    if scorer is alone:
        return listening
    several = copy(scorer)
    several._scorers = {
        name: listening if each is alone else each
        for name, each in scorer._scorers.items()
    }
    return several


def _values(
    scorer: Scorer,
    estimator: BaseEstimator,
    rows: Rows,
    predictions: Any,
    score: float,
) -> RowValues | None:
    """Return each row's score if the metric is their mean, else the predictions."""
    y = np.asarray(rows.y)
    predicted = np.asarray(predictions)
    if y.ndim != 1 or predicted.ndim > 2 or len(predicted) != len(y):
        return None
    of_row = _OF_ROW.get(scorer._score_func)
    if of_row is not None:
        classes = getattr(estimator, "classes_", None)
        values: RowValues = scorer._sign * np.asarray(
            of_row(y, predicted, classes), dtype=float
        )
        weights = rows.score_params.get("sample_weight")
        if np.isclose(np.average(values, weights=weights), score, rtol=1e-6):
            return values
    if predicted.dtype.kind not in "biuf":
        predicted = np.searchsorted(estimator.classes_, predicted)
    table = predicted.reshape(len(y), -1).astype(np.float32)
    return table[sampled(len(y), table.shape[1])]


def sampled(n_rows: int, n_columns: int) -> Ints:
    """Return the rows of a fold whose predictions are kept, the same in each epoch."""
    most = max(MOST_PREDICTIONS // n_columns, 1)
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))


def recomputed(
    scorer: Scorer, all_y: Any, rows: Ints, predictions: RowValues, params: Params
) -> float:
    """Return the score of rows by the predictions for them."""
    predicted = predictions[:, 0] if predictions.shape[1] == 1 else predictions
    if scorer._response_method == "predict" and all_y.dtype.kind != "f":
        predicted = predicted.astype(int)
        if all_y.dtype.kind not in "biu":
            predicted = np.unique(all_y)[predicted]
    score = scorer._score_func(all_y[rows], predicted, **scorer._kwargs, **params)
    return float(scorer._sign * score)


def _log_loss(y: Any, predicted: Any, classes: Any) -> Any:
    if predicted.ndim == 1:
        predicted = np.stack([1 - predicted, predicted], axis=1)
    place = np.searchsorted(classes, y)
    of_class = predicted[np.arange(len(y)), place]
    return -np.log(np.maximum(of_class, np.finfo(predicted.dtype).eps))


_OF_ROW: dict[Any, Any] = {
    metrics.accuracy_score: lambda y, predicted, classes: y == predicted,
    metrics.zero_one_loss: lambda y, predicted, classes: y != predicted,
    metrics.log_loss: _log_loss,
    metrics.mean_squared_error: lambda y, predicted, classes: (y - predicted) ** 2,
    metrics.mean_absolute_error: lambda y, predicted, classes: abs(y - predicted),
}
"""By metric, the function whose mean over the rows it is."""


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
