"""The metric that schedules: its name, and its lowest and highest score."""

import math
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.epoch_methods import last_step
from risingsearch.policies import policy_info
from risingsearch.scheduling.policy_choice import registered_name

Range = tuple[float, float]
RANGE = "reward_range"  # the parameter of a policy with the ends of the rewards
FIRST = "*"  # the metric that schedules is the first of those that a callable returns
SHARES = (
    *("accuracy_score", "average_precision_score", "balanced_accuracy_score"),
    *("completeness_score", "f1_score", "fowlkes_mallows_score", "homogeneity_score"),
    *("jaccard_score", "normalized_mutual_info_score", "precision_score"),
    *("rand_score", "recall_score", "roc_auc_score", "top_k_accuracy_score"),
    "v_measure_score",
)
AT_MOST_ONE = (
    *("adjusted_mutual_info_score", "d2_absolute_error_score", "d2_brier_score"),
    *("d2_log_loss_score", "explained_variance_score", "r2_score"),
)
RANGES: dict[str, Range] = {
    **dict.fromkeys(SHARES, (0.0, 1.0)),
    **dict.fromkeys(AT_MOST_ONE, (-math.inf, 1.0)),
    "adjusted_rand_score": (-0.5, 1.0),
    "matthews_corrcoef": (-1.0, 1.0),
}
"""By the name of the function in ``sklearn.metrics``; an error is never below 0."""


def range_of(scorer: Any, metric: str | None, estimator: Any) -> Range | None:
    """Return between which ends the score that schedules lies; None if unknown."""
    if metric not in (None, FIRST):
        scorer = getattr(scorer, "_scorers", {}).get(metric)
    if hasattr(scorer, "_estimator"):  # what check_scoring makes of scoring=None
        score = getattr(type(last_step(estimator)), "score", None)
        if score is ClassifierMixin.score:
            return RANGES["accuracy_score"]
        return RANGES["r2_score"] if score is RegressorMixin.score else None
    function: Any = getattr(scorer, "_score_func", None)
    if not getattr(function, "__module__", "").startswith("sklearn.metrics"):
        return None
    known = RANGES.get(function.__name__)
    if scorer._sign < 0:  # an error
        return None if known else (-math.inf, 0.0)
    return None if "normalize" in scorer._kwargs else known


def suits(policy: Any, score_range: Range) -> bool:
    """Return whether a policy takes a range: many take none without both ends."""
    name = registered_name(policy)
    if name is None or RANGE not in (known := policy_info(name).parameters):
        return False
    return bool(np.isfinite(score_range).all() or not np.isfinite(known[RANGE]).all())


def scheduling_metric(scorer: Any, scoring: Any, refit: Any) -> str | None:
    """Metric that schedules if a scorer has several, else None."""
    if hasattr(scorer, "_scorers"):
        if refit is False or callable(refit):
            return str(next(iter(scorer._scorers)))
        if refit in scorer._scorers:
            return str(refit)
        msg = (
            "with several metrics refit must name the one that schedules, one of "
            f"{sorted(scorer._scorers)}, or be a callable or False; got {refit!r}"
        )
        raise InvalidParameterError(msg)
    if callable(scoring) and (refit is False or callable(refit)):
        return FIRST
    if not isinstance(refit, str) or refit == "best":
        return None
    if callable(scoring):
        return refit
    msg = f"refit={refit!r} names a metric, but there is only one: use True, say"
    raise InvalidParameterError(msg)


def metric_name(scoring: Any) -> str:
    """Name of a single metric, or "score" if it has none."""
    if isinstance(scoring, str):
        return scoring
    name = getattr(getattr(scoring, "_score_func", scoring), "__name__", "")
    sign = "neg_" if getattr(scoring, "_sign", 1) < 0 else ""  # as in scikit-learn
    return sign + name if name.isidentifier() else "score"
