"""What has to be the same when a search's directory is opened again."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from joblib import hash as digest

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.folds import Folds
from risingsearch.search.arguments import without_addresses


def identity_of(folds: Folds, random_state: Any) -> Mapping[str, Any]:
    """Return data, splits and estimator as JSON values, data as digests.

    A ``random_state`` that would not draw the same again is refused.
    """
    if isinstance(random_state, bool) or not isinstance(random_state, Integral):
        msg = (
            "with a run_dir random_state must be an int, so that calling fit again "
            f"draws the same candidates and goes on; got {random_state!r}"
        )
        raise InvalidParameterError(msg)
    resource = {} if folds.resource is None else {"resource": folds.resource.name}
    return resource | {
        "estimator": _shown(folds.estimator),
        "X": digest(folds.X),
        "y": digest(folds.y),
        "random_state": int(random_state),
        "metadata": digest((folds.fit_params, folds.score_params)),
        "scoring": _shown(folds.scorer),
        "refit": folds.metric,
        "steps_per_epoch": folds.steps_per_epoch,
        "return_train_score": folds.train_scores,
        "cv": digest(folds.splits),
    }


def _shown(owner: Any) -> str:
    """Return the name of an object with all its parameters, without addresses."""
    if not hasattr(owner, "get_params"):
        return without_addresses(repr(owner))
    params = sorted(owner.get_params(deep=True).items())
    shown = ", ".join(f"{name}={value!r}" for name, value in params)
    return without_addresses(f"{type(owner).__name__}({shown})")
