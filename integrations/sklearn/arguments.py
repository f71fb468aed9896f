"""Arguments of ``RisingSearchCV`` that are easily mistaken: what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from numbers import Number
from typing import Any, Concatenate, ParamSpec, TypeVar

from sklearn.utils.validation import _num_samples

from risingsearch.budget import Budget
from risingsearch.checks import checked_int
from risingsearch.errors import InvalidParameterError, UnknownArgumentError

INSTEAD = {
    "param_grid": "param_distributions, which takes the same dict, or a list",
    "search_spaces": "param_distributions",
    "n_iter": "n_candidates, and budget or timeout for how much is trained",
    "n_trials": "n_candidates, and budget or timeout for how much is trained",
    "max_resources": "max_epochs",
    "seed": "random_state",
}
"""What other searches call it, and what it is called here."""

P = ParamSpec("P")
Search = TypeVar("Search")


def explaining_names(
    init: Callable[Concatenate[Search, P], None],
) -> Callable[Concatenate[Search, P], None]:
    """Return an ``__init__`` that says what an argument of another search is here."""

    @wraps(init)
    def explaining(self: Search, /, *args: P.args, **kwargs: P.kwargs) -> None:
        for name in kwargs:
            if name in INSTEAD:
                msg = (
                    f"{type(self).__name__} has no argument {name!r}: write "
                    f"{INSTEAD[name]}"
                )
                raise UnknownArgumentError(msg)
        init(self, *args, **kwargs)

    return explaining


def check_measured(budget: Budget) -> None:
    """Raise if a budget is in a unit that an estimator does not measure."""
    if budget.unit in ("cost", "gpu_hours"):
        msg = (
            f"an estimator measures no {budget.unit}; got {budget}: give a number of "
            "epochs, or a time such as '8h'"
        )
        raise InvalidParameterError(msg)


def check_steps(value: Any, resource: Any) -> None:
    """Raise where the passes, trees or rounds of an epoch are no such number."""
    if checked_int("steps_per_epoch", value, 1) > 1 and resource is not None:
        msg = (
            f"steps_per_epoch={value} says how much longer an epoch trains, but with "
            f"resource={resource!r} every epoch trains anew, on a share of it that "
            "max_epochs decides: leave steps_per_epoch at 1"
        )
        raise InvalidParameterError(msg)


def check_rows(X: Any, params: dict[str, Any]) -> None:
    """Refuse weights and groups that do not have one entry per row.

    A single number, which weighs all rows alike, has none.
    """
    for name, given in params.items():
        per_row = name.rpartition("__")[2] in ("sample_weight", "groups")
        if not per_row or given is None or isinstance(given, Number):
            continue
        if _num_samples(given) != _num_samples(X):
            msg = (
                f"{name} must have one entry per row of X, which has "
                f"{_num_samples(X)} rows; got {_num_samples(given)} entries"
            )
            raise InvalidParameterError(msg)
