"""Which scorer judges the epochs, and which of several metrics schedules."""

from __future__ import annotations

from inspect import signature
from typing import Any

from sklearn.metrics import check_scoring

from risingsearch.errors import InvalidParameterError


def checked_scorer(estimator: Any, scoring: Any, refit: Any) -> tuple[Any, str | None]:
    """Return the scorer, and the metric that schedules if there are several.

    Parameters
    ----------
    estimator : estimator
        Its own ``score`` serves where ``scoring`` is None.
    scoring : str, callable, list, tuple, dict or None
        As in ``GridSearchCV``.
    refit : bool, "best", str or callable
        With several metrics, the name of the one that schedules.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y) -> float`` or a dict of floats.
    metric : str or None
        None for a single metric. What a callable returns is known only after a call.

    Raises
    ------
    InvalidParameterError
        If ``refit`` does not fit the scoring.
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
    if name not in scorer._scorers:
        msg = (
            "with several metrics refit must name the one that schedules: one of "
            f"{sorted(scorer._scorers)}; got {refit!r}"
        )
        raise InvalidParameterError(msg)
    return scorer, name


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
