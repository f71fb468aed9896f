"""The arguments of a scheduler, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from risingsearch.checks import checked_arms, checked_choice, checked_int, checked_order
from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.arm_records import Openings
from risingsearch.scheduling.ledger import checked_epoch_costs
from risingsearch.scheduling.options import SearchOptions
from risingsearch.scheduling.policy_choice import budgeted_epochs


@dataclass(frozen=True, kw_only=True)
class Arguments(SearchOptions):
    """Arguments of a ``Scheduler`` except its proposer; see there.

    Raises
    ------
    InvalidParameterError
        If one is outside its range.
    """

    budget: Any  # a Budget, once it is checked
    n_arms: int
    direction: str
    opening_order: Any  # an array, once it is checked
    enqueue: Any  # a list, once it is checked
    epoch_costs: Any = None  # a tuple of floats, once they are checked

    def __post_init__(self) -> None:
        n_arms, budget = self.n_arms, self.budget
        if n_arms is None or budget is None:
            msg = f"give both n_arms and budget; got {n_arms=} and {budget=}"
            raise InvalidParameterError(msg)
        n_arms = checked_int("n_arms", n_arms, 1)
        super().__post_init__()
        checked_choice("direction", self.direction, ("maximize", "minimize"))
        if self.n_jobs is None and self.deterministic:
            self._set(n_jobs=1)
        given = self.opening_order
        order = checked_order(
            "opening_order", range(n_arms) if given is None else given, n_arms
        )
        first = checked_arms("enqueue", self.enqueue, n_arms)
        self._set(
            n_arms=n_arms,
            epoch_costs=checked_epoch_costs(self.epoch_costs, self.max_epochs),
            enqueue=first,
            opening_order=np.array(
                [*first, *(arm for arm in order if arm not in set(first))]
            ),
        )
        self._check_openings()

    def _check_openings(self) -> None:
        """Raise where what arms are promised is more than they can get."""
        least, n_first = self.min_epochs, len(self.enqueue)
        if self.max_epochs is not None and least > self.max_epochs:
            msg = (
                f"min_epochs is at most max_epochs, which is {self.max_epochs}; got "
                f"{least}"
            )
            raise InvalidParameterError(msg)
        epochs = budgeted_epochs(self.budget)
        if epochs is None:
            return
        each = self._cost_of_first(least)
        if each > epochs:
            msg = f"min_epochs is at most the budget of {epochs} epochs; got {least}"
            if each > least:
                msg = (
                    f"a budget of {epochs} epochs is less than the {each:g} that "
                    f"min_epochs={least} of an arm cost: raise the budget"
                )
            raise InvalidParameterError(msg)
        if n_first * each > epochs:
            msg = (
                f"a budget of {epochs} epochs is less than the {n_first * each:g} that "
                f"{n_first} enqueued configurations get, with min_epochs={least} each: "
                "raise the budget, or enqueue fewer"
            )
            raise InvalidParameterError(msg)

    def _cost_of_first(self, n_epochs: int) -> float:
        """Return the charge of the first epochs of an arm, in epochs."""
        if not self.epoch_costs:
            return n_epochs
        return round(math.fsum(self.epoch_costs[:n_epochs]), 9)  # 1 where it is 1.0...2

    @property
    def openings(self) -> Openings:
        """Arms that train first, and the epochs of an arm when it is opened."""
        return Openings(self.min_epochs, tuple(self.enqueue))

    def identity(self) -> dict[str, Any]:
        """Return as JSON the arguments that must be the same to load a saved state."""
        params = self.policy_params or {}
        given = {"min_epochs": self.min_epochs, "enqueue": self.enqueue}
        if self.epoch_costs:
            given["epoch_costs"] = list(self.epoch_costs)
        return given | {
            "policy_params": {name: repr(value) for name, value in params.items()},
            "n_arms": self.n_arms,
            "max_epochs": self.max_epochs,
            "epochs_per_job": self.epochs_per_job,
            "direction": self.direction,
            "deterministic": self.deterministic,
            "n_jobs": self.n_jobs,
            "error_score": self.error_score,
            "max_failures": self.max_failures,
            "opening_order": self.opening_order.tolist(),
        }
