"""The metric that schedules, by its name."""

from __future__ import annotations

from typing import Any

from risingsearch.errors import InvalidParameterError


def scheduling_metric(scorer: Any, scoring: Any, refit: Any) -> str | None:
    """Metric that schedules if a scorer has several, else None.

    It is the one that ``refit`` names, or the first if ``refit`` is False or a
    callable. Which metrics a callable returns is known only after a call.
    """
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
    if not isinstance(refit, str) or refit == "best":
        return None
    if callable(scoring):
        return refit
    msg = (
        f"refit={refit!r} names a metric, but there is one only: use True, 'best', "
        "False or a callable"
    )
    raise InvalidParameterError(msg)


def metric_name(scoring: Any) -> str:
    """Name of a single metric, or "score" if it has none."""
    if isinstance(scoring, str):
        return scoring
    name = getattr(getattr(scoring, "_score_func", scoring), "__name__", "")
    sign = "neg_" if getattr(scoring, "_sign", 1) < 0 else ""  # as in scikit-learn
    return sign + name if name.isidentifier() else "score"
