"""From ``param_distributions`` to the list of configurations that are the arms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, ParameterSampler

from risingsearch.checks import checked_int
from risingsearch.errors import InvalidParameterError, NotTrainableError
from risingsearch.integrations.sklearn.epoch_methods import epoch_method
from risingsearch.integrations.sklearn.folds import configured

IN_TIME = 500
"""Configurations drawn where the budget or the policy does not say how many.

The policy opens as many as there is time for; those that it never opens cost nothing.
"""

Space = Mapping[str, Any] | Sequence[Mapping[str, Any]]


def draw_candidates(
    space: Space,
    n_candidates: int | str,
    random_state: Any,
    recommended: int | None,
    n_epochs: int | None = None,
) -> list[dict[str, Any]]:
    """Return the configurations: the given ones, or a sample of the space.

    A space is a dict of lists and of distributions with ``rvs``, as
    ``RandomizedSearchCV`` takes it, or a list of such dicts. A list of configurations
    is recognised by holding no distribution and at least one value that is no list (a
    number, a word, a tuple), and taken whole. ``recommended`` is what ``"auto"`` stands
    for, and ``n_epochs`` the budget, where these are known: there are never more
    candidates than epochs.
    """
    if isinstance(space, Iterable) and not isinstance(space, (Mapping, str)):
        space = list(space)  # such as a ParameterGrid
    if not isinstance(space, (Mapping, list)) or len(space) == 0:
        msg = (
            "param_distributions must be a dict, a list of dicts or a list of "
            f"configurations, and not empty; got {space!r}"
        )
        raise InvalidParameterError(msg)
    spaces = [space] if isinstance(space, Mapping) else list(space)
    for one in spaces:
        if not isinstance(one, Mapping):
            msg = f"param_distributions holds {one!r}; its parts must be dicts"
            raise InvalidParameterError(msg)
    if isinstance(space, Mapping) or _are_spaces(spaces):
        _check_choices(spaces)
        n = _how_many(spaces, n_candidates, recommended, n_epochs)
        candidates = list(ParameterSampler(spaces, n, random_state=random_state))
    else:
        candidates = [dict(one) for one in spaces]
    if n_epochs is not None and len(candidates) > n_epochs:
        msg = (
            f"a budget of {n_epochs} epochs is less than one for each of the "
            f"{len(candidates)} candidates: raise the budget to {len(candidates)} or "
            "more, or search fewer (n_candidates='auto' fits a space to the budget)"
        )
        raise InvalidParameterError(msg)
    return candidates


def _are_spaces(spaces: Sequence[Mapping[str, Any]]) -> bool:
    values = [value for one in spaces for value in one.values()]
    return any(hasattr(value, "rvs") for value in values) or all(
        isinstance(value, (list, np.ndarray, range)) for value in values
    )


def _check_choices(spaces: Sequence[Mapping[str, Any]]) -> None:
    for one in spaces:
        for name, value in one.items():
            if hasattr(value, "rvs"):
                continue
            if not isinstance(value, (list, tuple, np.ndarray, range)):
                msg = (
                    f"param_distributions must give {name!r} a list of values or a "
                    f"distribution with rvs; got {value!r}"
                )
                raise InvalidParameterError(msg)
            if len(value) == 0:
                msg = f"param_distributions gives {name!r} no value; give at least one"
                raise InvalidParameterError(msg)


def _how_many(
    spaces: Sequence[Mapping[str, Any]],
    n_candidates: int | str,
    recommended: int | None,
    n_epochs: int | None,
) -> int:
    if n_candidates != "auto":
        return checked_int("n_candidates", n_candidates, 1)
    finite = all(not hasattr(v, "rvs") for one in spaces for v in one.values())
    size = len(ParameterGrid(spaces)) if finite else None
    limits = [recommended or IN_TIME, n_epochs, size]
    return min(limit for limit in limits if limit is not None)


def check_trainable(estimator: Any, candidates: Iterable[Mapping[str, Any]]) -> None:
    """Raise if a configuration cannot be trained by epochs, or sets their number."""
    for params in candidates:
        try:
            counter = epoch_method(configured(estimator, params)).parameter
        except (NotTrainableError, ValueError) as error:
            error.add_note(f"in the configuration {params}")
            raise
        if counter in params:
            msg = (
                f"{counter} counts the epochs, which the search decides: take it out "
                "of param_distributions and set max_epochs"
            )
            raise InvalidParameterError(msg)
