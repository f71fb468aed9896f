"""Options common to all interfaces of a search: one name, default and meaning."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from risingsearch import checks
from risingsearch.budget import Budget, checked_timeout
from risingsearch.comparison import described
from risingsearch.errors import InvalidParameterError
from risingsearch.proposers.learning_rate import checked_learning_rate
from risingsearch.scheduling.ledger import checked_epoch_costs
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
    """Common options of a search, checked; an interface documents those it takes."""

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
    learning_rate: str | Mapping[str, float] | bool | None = None
    timeout: float | None = None
    epoch_timeout: float | None = None
    patience: int | None = None
    target_score: float | None = None
    epochs_per_job: int | None = None
    callbacks: Sequence[Callable[..., object]] = ()
    run_dir: Any = None  # a path

    def __post_init__(self) -> None:
        if self.budget is not None:
            self._set(budget=Budget.of(self.budget))
        self._set(
            deterministic=checks.checked_flag("deterministic", self.deterministic)
        )
        for name, least in COUNTS.items():
            value = getattr(self, name)
            if value is not None or DEFAULTS[name] is not None:
                self._set(**{name: checks.checked_int(name, value, least)})
        for name in ("error_score", "target_score"):
            if (value := getattr(self, name)) is not None:
                score = checks.checked_float(name, value, -math.inf, open_low=False)
                self._set(**{name: checks.checked_magnitude(name, score)})
        self._set(policy_params=checked_params(self.policy_params) or None)
        for name in ("timeout", "epoch_timeout"):
            if (value := getattr(self, name)) is not None:
                self._set(**{name: checked_timeout(value, name)})
        self._set(seed=checks.checked_seed(self.seed))
        self._set(learning_rate=checked_learning_rate(self.learning_rate))

    def _set(self, **values: Any) -> None:
        """Replace the given values by checked and converted ones."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def among(cls, arguments: Mapping[str, Any], **others: Any) -> Self:
        """Return the options among an interface's arguments and ``others``."""
        taken = arguments.keys() & {field.name for field in fields(cls)}
        return cls(**{name: arguments[name] for name in taken} | others)

    def non_defaults(self) -> dict[str, Any]:
        """Return the options that are not at their defaults, to be handed on."""
        values = {name: getattr(self, name) for name in DEFAULTS}
        return {
            name: value
            for name, value in values.items()
            if value is not (default := DEFAULTS[name])
            and not (type(value) is type(default) and value == default)
        }


DEFAULTS = {field.name: field.default for field in fields(SearchOptions)}


@dataclass(frozen=True, kw_only=True)
class SchedulerOptions(SearchOptions):
    """Arguments of a ``Scheduler`` except its proposer, checked; see there."""

    budget: Any  # a Budget, once it is checked
    n_arms: int
    direction: str
    opening_order: Any  # an array, once it is checked
    enqueue: Any  # a list, once it is checked
    epoch_costs: Any = None  # a tuple of floats, once they are checked
    trains_anew: bool = False  # in every epoch, which has more of a resource

    def __post_init__(self) -> None:
        n_arms, budget = self.n_arms, self.budget
        if n_arms is None or budget is None:
            msg = f"give both n_arms and budget; got {n_arms=} and {budget=}"
            raise InvalidParameterError(msg)
        n_arms = checks.checked_int("n_arms", n_arms, 1)
        super().__post_init__()
        direction = checks.checked_choice(
            "direction", self.direction, ("maximize", "minimize")
        )
        if self.n_jobs is None and self.deterministic:
            self._set(n_jobs=1)
        order = range(n_arms) if self.opening_order is None else self.opening_order
        order = checks.checked_order("opening_order", order, n_arms)
        first = checks.checked_arms("enqueue", self.enqueue, n_arms)
        self._set(
            n_arms=n_arms,
            direction=direction,
            epoch_costs=checked_epoch_costs(self.epoch_costs, self.max_epochs),
            trains_anew=checks.checked_flag("trains_anew", self.trains_anew),
            enqueue=first,
            opening_order=np.array(list(dict.fromkeys([*first, *order]))),
        )
        self._check_promised_epochs()

    def _check_promised_epochs(self) -> None:
        """Raise if ``min_epochs`` of the enqueued arms are more than there are."""
        least, total = self.min_epochs, self.budget.epochs
        n_first = max(1, len(self.enqueue))
        if self.max_epochs is not None and least > self.max_epochs:
            msg = f"min_epochs is at most max_epochs={self.max_epochs}; got {least}"
            raise InvalidParameterError(msg)
        cost: float = least
        if self.epoch_costs:
            cost = round(math.fsum(self.epoch_costs[:least]), 9)  # 1 if it is 1.0...2
        if total is not None and n_first * cost > total:
            raise InvalidParameterError(
                f"a budget of {total} epochs is less than the {n_first * cost:g} that "
                f"min_epochs={least} of {n_first} configurations cost: raise the "
                "budget, or lower min_epochs or the number enqueued"
            )

    def identity(self) -> dict[str, Any]:
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
