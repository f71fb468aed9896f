"""Which scorer judges the epochs, and which metadata it and the training receive."""

from __future__ import annotations

import warnings
from collections import defaultdict
from inspect import signature
from typing import Any

from sklearn import get_config
from sklearn.metrics import check_scoring
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import process_routing

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.callbacks import N_FRAMES


def checked_scorer(estimator: Any, scoring: Any, refit: Any) -> tuple[Any, str | None]:
    """Return the scorer, and the metric that schedules if there are several.

    The estimator's own ``score`` serves where ``scoring`` is None. The metric is the
    one that ``refit`` names, or the first where ``refit`` is False or a callable; None
    for a single one. What a callable returns is known only after a call. Raises where
    ``refit`` does not fit the scoring.
    """
    if not isinstance(refit, (bool, str)) and not callable(refit):
        msg = (
            "refit must be True, False, 'best', the name of a metric or a callable; "
            f"got {refit!r}"
        )
        raise InvalidParameterError(msg)
    name = refit if isinstance(refit, str) else None
    if callable(scoring):
        return scoring, None if name == "best" else name
    if scoring is None or isinstance(scoring, str):
        if name not in (None, "best"):
            msg = (
                f"refit={refit!r} names a metric, but there is one only: use True, "
                "'best', False or a callable"
            )
            raise InvalidParameterError(msg)
        return check_scoring(estimator, scoring), None
    scorer = check_scoring(estimator, scoring)
    if refit is False or callable(refit):
        return scorer, next(iter(scorer._scorers))
    if name not in scorer._scorers:
        msg = (
            "with several metrics refit must name the one that schedules, one of "
            f"{sorted(scorer._scorers)}, or be a callable or False; got {refit!r}"
        )
        raise InvalidParameterError(msg)
    return scorer, name


def metric_name(scoring: Any, refit: Any) -> str:
    """Return what the score that schedules is called, as far as it has a name.

    >>> metric_name("neg_log_loss", True), metric_name(None, True)
    ('neg_log_loss', 'score')
    >>> metric_name(["accuracy", "f1"], "f1")
    'f1'
    """
    if isinstance(scoring, str):
        return scoring
    if scoring is not None and isinstance(refit, str) and refit != "best":
        return refit
    called = getattr(getattr(scoring, "_score_func", scoring), "__name__", "")
    negated = "neg_" if getattr(scoring, "_sign", 1) < 0 else ""  # as scikit-learn does
    return negated + called if called.isidentifier() else "score"


def accepts_sample_weight(scorer: Any) -> bool:
    """Return whether a scorer can be given the weights of the rows."""
    if hasattr(scorer, "_accept_sample_weight"):
        return bool(scorer._accept_sample_weight())
    # scikit-learn < 1.9: look inside; several metrics are all given the same
    if hasattr(scorer, "_scorers"):
        return all(accepts_sample_weight(one) for one in scorer._scorers.values())
    own = getattr(scorer, "_estimator", None)
    function = own.score if own is not None else getattr(scorer, "_score_func", scorer)
    return "sample_weight" in signature(function).parameters


def routing_enabled() -> bool:
    """Return whether scikit-learn routes metadata."""
    return bool(get_config()["enable_metadata_routing"])


def routed_metadata(search: Any, params: dict[str, Any], scorer: Any) -> Any:
    """Return what estimator, scorer and splitter of a search receive of ``params``."""
    if routing_enabled():
        return process_routing(search, "fit", **params)
    groups = params.pop("groups", None)
    weighted = params.get("sample_weight") is not None
    if weighted and not accepts_sample_weight(scorer):
        warnings.warn(
            f"scoring {scorer} does not take sample_weight: the models are trained "
            "with the weights and scored without",
            UserWarning,
            stacklevel=5 + N_FRAMES,
        )
        weighted = False
    weights = {"sample_weight": params["sample_weight"]} if weighted else {}
    return Bunch(
        estimator=defaultdict(lambda: params),
        splitter={"split": {"groups": groups}},
        scorer={"score": weights},
    )
