"""Options common to all interfaces of a search: one name, default and meaning."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from risingsearch import checks
from risingsearch.arms import Configuration
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
    "max_checkpoint_bytes": 1,
}
"""Options that are whole numbers, or None if that is the default, with the least."""

FLAGS = ("deterministic", "shuffle", "progress")
DIRECTIONS = ("maximize", "minimize")


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """All options of a search, checked; an interface documents those it takes."""

    policy: Any = "auto"
    proposer: Any = "auto"
    budget: int | str | Budget | None = None
    max_epochs: int | None = None
    executor: Any = None
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
    fingerprint: Mapping[str, Any] | None = None
    prior: Any = None
    learning_rate: str | Mapping[str, float] | bool | None = None
    epoch_costs: Iterable[float] | None = None
    min_epochs: int = 1
    patience: int | None = None
    target_score: float | None = None
    enqueue: Iterable[Any] = ()

    def __post_init__(self) -> None:
        if self.budget is not None:
            self._set(budget=Budget.of(self.budget))
        for name in FLAGS:
            self._set(**{name: checks.checked_flag(name, getattr(self, name))})
        for name, least in COUNTS.items():
            value = getattr(self, name)
            if value is not None or DEFAULTS[name] is not None:
                self._set(**{name: checks.checked_int(name, value, least)})
        for name in ("timeout", "epoch_timeout"):
            if (value := getattr(self, name)) is not None:
                self._set(**{name: checked_timeout(value, name)})
        self._check_scores()
        self._check_journal()
        self._set(
            direction=checks.checked_choice("direction", self.direction, DIRECTIONS),
            policy_params=checked_params(self.policy_params) or None,
            seed=checks.checked_seed(self.seed),
            learning_rate=checked_learning_rate(self.learning_rate),
            epoch_costs=checked_epoch_costs(self.epoch_costs, self.max_epochs),
        )

    def _check_scores(self) -> None:
        if self.raises_failures and self.error_score != "raise":
            raise InvalidParameterError(
                "error_score must be a number, None or 'raise'; "
                f"got {self.error_score!r}"
            )
        scores = {"error_score": self.failure_score, "target_score": self.target_score}
        for name, value in scores.items():
            if value is not None:
                score = checks.checked_float(name, value, -math.inf, open_low=False)
                self._set(**{name: checks.checked_magnitude(name, score)})

    def _check_journal(self) -> None:
        """Check the metric, the fingerprint and the place of checkpoints."""
        metric = self.metric
        if metric is not None and (not isinstance(metric, str) or not metric):
            msg = f"metric must be the name of the score, as text; got {metric!r}"
            raise InvalidParameterError(msg)
        if not isinstance(self.fingerprint, Mapping | None):
            got = checks.shown(self.fingerprint)
            msg = f"fingerprint must be a dict of JSON values; got {got}"
            raise InvalidParameterError(msg)
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
        return None if isinstance(self.error_score, str) else self.error_score

    def _set(self, **values: Any) -> None:
        """Replace the given values by checked and converted ones."""
        for name, value in values.items():
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
        n_arms, budget = self.n_arms, self.budget
        if n_arms is None or budget is None:
            msg = f"give both n_arms and budget; got {n_arms=} and {budget=}"
            raise InvalidParameterError(msg)
        n_arms = checks.checked_int("n_arms", n_arms, 1)
        super().__post_init__()
        if self.raises_failures:
            checks.checked_float("error_score", self.error_score, -math.inf)
        if self.n_jobs is None and self.deterministic:
            self._set(n_jobs=1)
        order = range(n_arms) if self.opening_order is None else self.opening_order
        order = checks.checked_order("opening_order", order, n_arms)
        first = checks.checked_arms("enqueue", self.enqueue, n_arms)
        self._set(
            n_arms=n_arms,
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
