"""Lowest and highest scores of scikit-learn's own scorers."""

from __future__ import annotations

import math
from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.pipeline import Pipeline

from risingsearch.policies import policy_info
from risingsearch.scheduling.policy_choice import registered_name

Range = tuple[float, float]
RANGE = "reward_range"
"""The parameter of a policy that says between which ends the rewards lie."""

AVERAGES = ("", "_macro", "_micro", "_samples", "_weighted")
SHARES = [
    *("accuracy", "average_precision", "balanced_accuracy", "completeness_score"),
    *("fowlkes_mallows_score", "homogeneity_score", "normalized_mutual_info_score"),
    *("rand_score", "roc_auc", "roc_auc_ovo", "roc_auc_ovo_weighted", "roc_auc_ovr"),
    *("roc_auc_ovr_weighted", "top_k_accuracy", "v_measure_score"),
    *(f"{m}{a}" for m in ("f1", "jaccard", "precision", "recall") for a in AVERAGES),
]
AT_MOST_ONE = [
    *("adjusted_mutual_info_score", "d2_absolute_error_score", "d2_brier_score"),
    *("d2_log_loss_score", "explained_variance", "r2"),
]
LOSSES = [
    *("log_loss", "max_error", "mean_absolute_error", "mean_absolute_percentage_error"),
    *("mean_gamma_deviance", "mean_poisson_deviance", "mean_squared_error"),
    *("mean_squared_log_error", "median_absolute_error", "negative_likelihood_ratio"),
    *("root_mean_squared_error", "root_mean_squared_log_error"),
]
RANGES: dict[str, Range] = {
    **dict.fromkeys(SHARES, (0.0, 1.0)),
    **dict.fromkeys(AT_MOST_ONE, (-math.inf, 1.0)),
    **{f"neg_{loss}": (-math.inf, 0.0) for loss in LOSSES},
    "adjusted_rand_score": (-0.5, 1.0),
    "matthews_corrcoef": (-1.0, 1.0),
    "neg_brier_score": (-2.0, 0.0),  # of two classes no lower than -1
    "mutual_info_score": (0.0, math.inf),
    "positive_likelihood_ratio": (0.0, math.inf),
}
"""Of every scorer that has a name in ``sklearn.metrics.get_scorer_names``."""


def range_of(scorer: Any, metric: str | None, estimator: Any) -> Range | None:
    """Return between which ends the score that schedules lies; None if unknown.

    Known are scikit-learn's named scorers, and the own ``score`` of classifiers and
    regressors that take it from scikit-learn. That of a user's own score is unknown.

    Examples
    --------
    >>> from sklearn.metrics import accuracy_score, make_scorer
    >>> range_of(make_scorer(accuracy_score), None, None)
    (0.0, 1.0)
    >>> range_of(make_scorer(accuracy_score, normalize=False), None, None) is None
    True
    """
    if metric is not None:
        scorer = getattr(scorer, "_scorers", {}).get(metric)
    if hasattr(scorer, "_estimator"):  # what check_scoring makes of scoring=None
        return RANGES.get(_own_metric(estimator))
    names = (name for name in RANGES if _is_named(scorer, name))
    return RANGES.get(next(names, ""))


def suits(policy: Any, score_range: Range) -> bool:
    """Return whether a policy takes a range: many take none without both ends."""
    name = registered_name(policy)
    if name is None or RANGE not in (known := policy_info(name).parameters):
        return False
    default = known[RANGE]
    return math.isfinite(score_range[1] - score_range[0]) or not math.isfinite(
        default[1] - default[0]
    )


def _own_metric(estimator: Any) -> str:
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    score = getattr(type(estimator), "score", None)
    if score is ClassifierMixin.score:
        return "accuracy"
    return "r2" if score is RegressorMixin.score else ""


def _is_named(scorer: Any, name: str) -> bool:
    if name not in get_scorer_names():  # in this version of scikit-learn
        return False
    named = get_scorer(name)
    return type(scorer) is type(named) and all(
        getattr(scorer, part) == getattr(named, part)
        for part in ("_score_func", "_sign", "_kwargs", "_response_method")
    )
