"""What a fitted search shows: ``cv_results_``, the best row, and what has failed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.ma import MaskedArray
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning

from risingsearch.arms import Arm
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.callbacks import N_FRAMES
from risingsearch.search.results import SearchResult


def format_results(
    candidates: Sequence[dict[str, Any]],
    arms: Sequence[Arm],
    history: Sequence[dict[str, Any]],
    n_splits: int,
    error_score: float = np.nan,
) -> dict[str, Any]:
    """Return ``cv_results_``: a row per candidate, its scores at its best epoch.

    A candidate that was never opened has NaN and the worst rank; one that was opened
    and never had a finite score has ``error_score``. ``epochs``, ``best_epoch`` and
    ``status`` are ours; times are totals over the epochs of a split. With a resource
    ``n_resources`` is what the best epoch had of it, on average over the splits, and
    ``n_resources_fitted`` what all epochs had in all splits together.
    """
    n = len(candidates)
    at_best: dict[int, dict[str, Any]] = {}
    fitted = np.zeros(n, dtype=int)  # of a resource
    fit_time = np.zeros((n, n_splits))
    score_time = np.zeros((n, n_splits))
    for row in history:
        arm = row["arm"]
        if row["epoch"] == arms[arm].best_epoch:
            at_best[arm] = row
        fitted[arm] += row.get("n_resources", 0)
        for i in range(n_splits):
            fit_time[arm, i] += row.get(f"split{i}_fit_time", 0.0)
            score_time[arm, i] += row.get(f"split{i}_score_time", 0.0)

    results: dict[str, Any] = {}
    for name, times in (("fit_time", fit_time), ("score_time", score_time)):
        results[f"mean_{name}"] = times.mean(axis=1)
        results[f"std_{name}"] = times.std(axis=1)
    results.update(_param_columns(candidates))
    results["params"] = list(candidates)
    for name in _score_names(at_best.values()):
        scores = np.full((n, n_splits), np.nan)
        scores[[arm.arm for arm in arms if arm.charged]] = error_score
        for arm, row in at_best.items():
            scores[arm] = [row[f"split{i}_{name}"] for i in range(n_splits)]
        for i in range(n_splits):
            results[f"split{i}_{name}"] = scores[:, i]
        results[f"mean_{name}"] = scores.mean(axis=1)
        results[f"std_{name}"] = scores.std(axis=1)
        if name.startswith("test_"):
            results[f"rank_{name}"] = _ranks(results[f"mean_{name}"])
    results["epochs"] = np.array([arm.epochs for arm in arms])
    results["best_epoch"] = np.array([arm.best_epoch for arm in arms])
    results["status"] = np.array([arm.status for arm in arms])
    if fitted.any():
        results["n_resources"] = np.full(n, np.nan)
        for arm, row in at_best.items():
            results["n_resources"][arm] = row["n_resources"] / n_splits
        results["n_resources_fitted"] = fitted
    return results


def _score_names(rows: Any) -> list[str]:
    """Return ``test_score``, ``train_score``, or those of several metrics."""
    return [
        key.removeprefix("split0_")
        for row in list(rows)[:1]
        for key in row
        if key.startswith(("split0_test_", "split0_train_"))
    ]


def _ranks(means: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if np.isnan(means).all():
        return np.ones(len(means), dtype=np.int32)
    worst = np.nanmin(means) - 1.0
    ranks = rankdata(-np.nan_to_num(means, nan=worst), method="min")
    return np.asarray(ranks, dtype=np.int32)


def _param_columns(candidates: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a masked column per parameter, as scikit-learn types it."""
    given: dict[str, dict[int, Any]] = {}
    for i, params in enumerate(candidates):
        for name, value in params.items():
            given.setdefault(f"param_{name}", {})[i] = value
    return {name: _masked(values, len(candidates)) for name, values in given.items()}


def _masked(values: dict[int, Any], n: int) -> MaskedArray[Any, Any]:
    try:
        as_array = np.array(list(values.values()))
    except ValueError:  # sequences of different lengths
        dtype: Any = object
    else:
        plain = as_array.ndim == 1 and as_array.dtype.kind != "U"
        dtype = as_array.dtype if plain else object
    column: MaskedArray[Any, Any] = MaskedArray(np.empty(n, dtype=dtype), mask=True)
    for i, value in values.items():
        column[i] = value
    return column


def chosen_index(
    choose: Callable[[dict[str, Any]], Any],
    cv_results: dict[str, Any],
    arms: Sequence[Arm],
) -> int:
    """Return the row that a ``refit`` callable chooses, or raise what is wrong."""
    index, n = choose(cv_results), len(arms)
    if not isinstance(index, Integral) or not 0 <= int(index) < n:
        msg = f"the refit callable must return an index below {n}; got {index!r}"
        raise InvalidParameterError(msg)
    if not arms[int(index)].best_epoch:
        msg = f"the refit callable chose candidate {index}, which has no score"
        raise InvalidParameterError(msg)
    return int(index)


def warn_of_failures(result: SearchResult) -> None:
    """Warn of configurations that failed or had scores that are not finite."""
    level = 6 + N_FRAMES  # the line that called fit
    if result.failures:
        first = result.failures[0]
        failed = {report.job.arm for report in result.failures}
        warnings.warn(
            f"{len(failed)} of {len(result.candidates)} configurations failed and "
            f"{_were_retired(failed, result)}; the first, "
            f"{result.candidates[first.job.arm]}: {first.failure!r}",
            FitFailedWarning,
            stacklevel=level,
        )
    not_finite = sorted(
        {
            row["arm"]
            for row in result.history
            if not math.isfinite(row["score"]) and "failure" not in row
        }
    )
    if not_finite:
        warnings.warn(
            f"one or more of the test scores are not finite, for candidates "
            f"{not_finite}; they {_were_retired(not_finite, result)}",
            UserWarning,
            stacklevel=level,
        )


def _were_retired(arms: Collection[int], result: SearchResult) -> str:
    n_retired = sum(result.arms[arm].status == "failed" for arm in arms)
    if n_retired == len(arms):
        return "were retired"
    return f"were tried again, {len(arms) - n_retired} of {len(arms)} with success"
