"""Options common to all interfaces of a search: one name, default and meaning."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from risingsearch import checks
from risingsearch.arms import Configuration
from risingsearch.budget import Budget, checked_timeout
from risingsearch.errors import InvalidParameterError
from risingsearch.identity.comparison import described
from risingsearch.json_values import Json
from risingsearch.policies import Policy
from risingsearch.proposers.base import Proposer
from risingsearch.proposers.learning_rate import checked_learning_rate
from risingsearch.scheduling.ledger import checked_epoch_costs
from risingsearch.scheduling.policy_choice import checked_params

_PERCENT = re.compile(r"(\d+\.?\d*|\.\d+) ?%", re.ASCII)
at_least_0 = partial(checks.checked_int, low=0)
at_least_1 = partial(checks.checked_int, low=1)


def checked_score(name: str, value: object) -> float:
    """Return a finite number that may be a score, or raise an error."""
    score = checks.checked_float(name, value, -math.inf)
    return checks.checked_magnitude(name, score)


def checked_error_score(name: str, value: object) -> float | str:
    """Return the score of a failed epoch, or "raise", or raise an error."""
    if value == "raise":
        return "raise"
    if isinstance(value, str):
        raise InvalidParameterError(
            f"{name} must be a number, None or 'raise'; got {value!r}"
        )
    return checked_score(name, value)


def checked_confirm(name: str, value: object) -> float:
    """Return the share of a budget, from a number or a text in percent."""
    share = value
    if isinstance(value, str) and (match := _PERCENT.fullmatch(value.strip())):
        share = float(match[1]) / 100
    if checks.is_number(share) and 0.0 < share < 1.0:
        return float(share)
    raise InvalidParameterError(
        f"{name} must be a share of the budget, such as '5 %' or 0.05, above 0 and "
        f"below 1; got {checks.shown(value)}"
    )


def checked_metric(name: str, value: object) -> str:
    """Return the name of the score, or raise an error."""
    if isinstance(value, str) and value:
        return value
    raise InvalidParameterError(
        f"{name} must be the name of the score, as text; got {value!r}"
    )


def checked_fingerprint(name: str, value: object) -> Configuration:
    """Return the values that tell data and code apart, or raise an error."""
    if isinstance(value, Mapping):
        return value
    got = checks.shown(value)
    raise InvalidParameterError(f"{name} must be a dict of JSON values; got {got}")


CHECKS: dict[str, Callable[[str, object], object]] = {
    "budget": lambda name, value: Budget.of(value),
    "max_epochs": at_least_1,
    "n_jobs": at_least_1,
    "deterministic": checks.checked_flag,
    "policy_params": lambda name, value: checked_params(value) or None,
    "epochs_per_job": at_least_1,
    "direction": partial(checks.checked_choice, choices=("maximize", "minimize")),
    "error_score": checked_error_score,
    "max_failures": at_least_0,
    "seed": lambda name, value: checks.checked_seed(value),
    "n_candidates": at_least_1,
    "shuffle": checks.checked_flag,
    "timeout": lambda name, value: checked_timeout(value, name),
    "epoch_timeout": lambda name, value: checked_timeout(value, name),
    "progress": checks.checked_flag,
    "max_checkpoint_bytes": at_least_1,
    "metric": checked_metric,
    "fingerprint": checked_fingerprint,
    "confirm": checked_confirm,
    "learning_rate": lambda name, value: checked_learning_rate(value),
    "min_epochs": at_least_1,
    "patience": at_least_1,
    "target_score": checked_score,
}
"""By option, its check and conversion; None needs none if it is the default."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """All options of a search, checked; an interface documents those it takes."""

    policy: str | Callable[..., Policy] = "auto"
    proposer: Proposer | str | None = "auto"
    budget: int | str | Budget | None = None
    max_epochs: int | None = None
    executor: object = None  # of concurrent.futures, or workers of a search
    n_jobs: int | None = None
    deterministic: bool = False
    callbacks: Sequence[object] = ()
    policy_params: Configuration | None = None
    epochs_per_job: int | None = None
    direction: str = "maximize"
    error_score: float | str | None = None
    max_failures: int = 0
    seed: int | None = None
    n_candidates: int | None = None
    shuffle: bool = True
    timeout: float | None = None
    epoch_timeout: float | None = None
    progress: bool = False
    run_dir: Any = None  # a path
    max_checkpoint_bytes: int | None = None
    checkpoints: str | None = None
    metric: str | None = None
    fingerprint: Configuration | None = None
    prior: Any = None
    learning_rate: str | Mapping[str, float] | bool | None = None
    epoch_costs: Iterable[float] | None = None
    min_epochs: int = 1
    patience: int | None = None
    target_score: float | None = None
    enqueue: Iterable[Any] = ()
    confirm: Any = None  # a share, once it is checked

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            value = getattr(self, name)
            if value is not None or DEFAULTS[name] is not None:
                self._set(name, check(name, value))
        self._set("epoch_costs", checked_epoch_costs(self.epoch_costs, self.max_epochs))
        if self.run_dir is None and self.checkpoints is not None:
            raise InvalidParameterError(
                "checkpoints need a run_dir, whose journal names them: "
                "give both, or none"
            )

    @property
    def raises_failures(self) -> bool:
        """Whether the first failure ends the search with its exception."""
        return isinstance(self.error_score, str)

    @property
    def failure_score(self) -> float | None:
        """The score of a failed epoch; None for the worst so far."""
        if isinstance(self.error_score, str):
            return None
        return self.error_score

    def _set(self, name: str, value: object) -> None:
        """Replace the value of an option by the checked and converted one."""
        object.__setattr__(self, name, value)

    def non_defaults(self) -> dict[str, Any]:
        """Return the options that are not at their defaults, to be handed on."""
        values = ((name, getattr(self, name)) for name in DEFAULTS)
        return {name: value for name, value in values if value != DEFAULTS[name]}


DEFAULTS = {field.name: field.default for field in fields(SearchOptions)}


@dataclass(frozen=True, kw_only=True)
class SchedulerOptions(SearchOptions):
    """Arguments of a ``Scheduler`` except its proposer, checked; see there."""

    budget: Any  # a Budget, once it is checked
    n_arms: int
    error_score: float | None = None
    opening_order: Any  # an array, once it is checked
    enqueue: Any  # a list, once it is checked
    epoch_costs: Any  # a tuple of floats, once they are checked
    trains_anew: bool = False  # in every epoch, which has more of a resource

    def __post_init__(self) -> None:
        n_arms = self.n_arms
        budget = self.budget
        if n_arms is None or budget is None:
            raise InvalidParameterError(
                f"give both n_arms and budget; got {n_arms=} and {budget=}"
            )
        n_arms = checks.checked_int("n_arms", n_arms, 1)
        super().__post_init__()
        if self.raises_failures:
            checks.checked_float("error_score", self.error_score, -math.inf)
        if self.n_jobs is None and self.deterministic:
            self._set("n_jobs", 1)
        order = self.opening_order
        if self.opening_order is None:
            order = range(n_arms)
        order = checks.checked_order("opening_order", order, n_arms)
        first = checks.checked_arms("enqueue", self.enqueue, n_arms)
        self._set("n_arms", n_arms)
        self._set("trains_anew", checks.checked_flag("trains_anew", self.trains_anew))
        self._set("enqueue", first)
        self._set("opening_order", np.array(list(dict.fromkeys([*first, *order]))))
        self._check_promised_epochs()

    def _check_promised_epochs(self) -> None:
        """Raise if ``min_epochs`` of the enqueued arms are more than there are."""
        least, total = self.min_epochs, self.budget.epochs
        n_first = max(1, len(self.enqueue))
        if self.max_epochs is not None and least > self.max_epochs:
            raise InvalidParameterError(
                f"min_epochs is at most max_epochs={self.max_epochs}; got {least}"
            )
        cost: float = least
        if self.epoch_costs:
            cost = round(math.fsum(self.epoch_costs[:least]), 9)  # 1 if it is 1.0...2
        if total is not None and n_first * cost > total:
            raise InvalidParameterError(
                f"a budget of {total} epochs is less than the {n_first * cost:g} that "
                f"min_epochs={least} of {n_first} configurations cost: raise the "
                "budget, or lower min_epochs or the number enqueued"
            )

    def identity(self) -> Json:
        """Return as JSON the arguments that must be the same to load a saved state."""
        params = self.policy_params or {}
        return {name: getattr(self, name) for name in _IDENTITY} | {
            "policy_params": {name: described(params[name]) for name in params},
            "epoch_costs": self.epoch_costs and list(self.epoch_costs),
            "opening_order": self.opening_order.tolist(),
        }


_IDENTITY = (
    "min_epochs",
    "enqueue",
    "n_arms",
    "max_epochs",
    "epochs_per_job",
    "direction",
    "deterministic",
    "n_jobs",
    "error_score",
    "max_failures",
)
