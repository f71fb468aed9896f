"""From ``param_distributions`` to the list of configurations that are the arms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, ParameterSampler

from risingsearch.arms import Budget
from risingsearch.errors import InvalidParameterError
from risingsearch.policies import POLICIES, recommended_arms, resolve_policy
from risingsearch.policies.base import checked_int

Space = Mapping[str, Any] | Sequence[Mapping[str, Any]]


def draw_candidates(
    space: Space,
    n_candidates: int | str,
    random_state: Any,
    recommended: int | None,
) -> list[dict[str, Any]]:
    """Return the configurations: the given ones, or a sample of the space.

    Parameters
    ----------
    space : dict, list of dict
        A space, as ``RandomizedSearchCV`` takes it: values are lists or distributions
        with ``rvs``; a list of such spaces; or a list of configurations, recognised by
        at least one value that is neither.
    n_candidates : int or "auto"
        How many to draw; a list of configurations is taken whole.
    random_state : int, RandomState or None
        Seed of the sample.
    recommended : int or None
        What ``"auto"`` stands for, where that is known.

    Returns
    -------
    list of dict
        At least one.
    """
    if not isinstance(space, (Mapping, list, tuple)) or len(space) == 0:
        msg = (
            "param_distributions must be a dict, a list of dicts or a list of "
            f"configurations, and not empty; got {space!r}"
        )
        raise InvalidParameterError(msg)
    if not isinstance(space, Mapping):
        for part in space:
            if not isinstance(part, Mapping):
                msg = f"param_distributions holds {part!r}; its parts must be dicts"
                raise InvalidParameterError(msg)
        if any(not _is_choice(value) for part in space for value in part.values()):
            return [dict(part) for part in space]
    n = _how_many(space, n_candidates, recommended)
    return list(ParameterSampler(space, n, random_state=random_state))


def _how_many(space: Space, n_candidates: int | str, recommended: int | None) -> int:
    spaces = [space] if isinstance(space, Mapping) else list(space)
    finite = all(not hasattr(v, "rvs") for part in spaces for v in part.values())
    limit = len(ParameterGrid(space)) if finite else math.inf
    if limit == 0:
        msg = "param_distributions has a parameter without values; give at least one"
        raise InvalidParameterError(msg)
    if n_candidates == "auto":
        if recommended is None and math.isinf(limit):
            msg = (
                "n_candidates='auto' needs a policy by name and a budget in epochs: "
                "give the number of configurations to draw"
            )
            raise InvalidParameterError(msg)
        return int(limit if recommended is None else min(recommended, limit))
    if not isinstance(n_candidates, Integral):
        msg = f"n_candidates must be 'auto' or a whole number; got {n_candidates!r}"
        raise InvalidParameterError(msg)
    return int(min(checked_int("n_candidates", n_candidates, 1), limit))


def _is_choice(value: Any) -> bool:
    return hasattr(value, "rvs") or isinstance(value, (list, tuple, np.ndarray, range))


def recommended_candidates(
    policy: Any,
    objective: str,
    budget: int | Budget,
    max_epochs: int | None,
    policy_params: Mapping[str, Any] | None,
) -> int | None:
    """Return how many configurations the policy's own rule asks for.

    None where it cannot be known: a policy without a name, a budget not in epochs.
    """
    epochs = budget.epochs if isinstance(budget, Budget) else budget
    if epochs is None or not isinstance(policy, str):
        return None
    name = resolve_policy(policy, objective)
    epochs = checked_int("budget", epochs, 1)
    if name not in POLICIES:
        return None
    return recommended_arms(name, epochs, max_epochs or epochs, **(policy_params or {}))
