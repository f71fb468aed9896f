"""Options that all faces of a search have in common: one name, default and meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from risingsearch.budget import Budget
from risingsearch.checks import (
    checked_flag,
    checked_float,
    checked_int,
    checked_magnitude,
    checked_seed,
)
from risingsearch.scheduling.policy_choice import checked_params

COUNTS = {
    "max_epochs": 1,
    "min_epochs": 1,
    "n_candidates": 1,
    "n_jobs": 1,
    "epochs_per_job": 1,
    "max_failures": 0,
    "patience": 1,
}
"""Options that are whole numbers, or None if that is the default, with the least."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Common options of a search, checked; each face documents those that it takes.

    ``tests/test_faces.py`` compares the faces with it, and says why one differs.

    Raises
    ------
    InvalidParameterError
        If an option is outside its range.

    Examples
    --------
    >>> SearchOptions.among({"budget": 9, "seed": 3, "mode": "min"}).given()
    {'budget': Budget(epochs=9), 'seed': 3}
    """

    budget: int | str | Budget | None = None
    max_epochs: int | None = None
    min_epochs: int = 1
    policy: Any = "auto"
    policy_params: Mapping[str, Any] | None = None
    n_candidates: int | None = None
    n_jobs: int | None = None
    deterministic: bool = False
    seed: int | None = None
    error_score: float | None = None
    max_failures: int = 0
    enqueue: Sequence[Any] = ()
    prior: Any = None
    timeout: float | None = None
    patience: int | None = None
    target_score: float | None = None
    epochs_per_job: int | None = None
    callbacks: Sequence[Callable[..., object]] = ()
    run_dir: Any = None  # a path

    def __post_init__(self) -> None:
        if self.budget is not None:
            self._set(budget=Budget.of(self.budget))
        self._set(deterministic=checked_flag("deterministic", self.deterministic))
        for name, least in COUNTS.items():
            value = getattr(self, name)
            if value is not None or DEFAULTS[name] is not None:
                self._set(**{name: checked_int(name, value, least)})
        for name in ("error_score", "target_score"):
            if (value := getattr(self, name)) is not None:
                score = checked_float(name, value, -math.inf, open_low=False)
                self._set(**{name: checked_magnitude(name, score)})
        self._set(policy_params=checked_params(self.policy_params) or None)
        self._set(seed=checked_seed(self.seed))

    def _set(self, **values: Any) -> None:
        """Replace the given values by checked and converted ones."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def among(cls, arguments: Mapping[str, Any], **others: Any) -> Self:
        """Return the options among the arguments of a face.

        Parameters
        ----------
        arguments : mapping
            All arguments by their names, those of the face alone too.
        **others
            Options that are not taken as they were given.

        Returns
        -------
        SearchOptions
        """
        names = {field.name for field in fields(cls)}
        taken = {name: arguments[name] for name in arguments if name in names}
        return cls(**taken | others)

    def given(self) -> dict[str, Any]:
        """Return the options that are not at their defaults, to be handed on."""
        values = {name: getattr(self, name) for name in DEFAULTS}
        return {
            name: value
            for name, value in values.items()
            if value is not (default := DEFAULTS[name])
            and not (type(value) is type(default) and value == default)
        }


DEFAULTS = {field.name: field.default for field in fields(SearchOptions)}
