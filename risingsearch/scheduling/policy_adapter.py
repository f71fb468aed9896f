"""The scheduler's side of the policy contract.

Keeps a policy's arrays up to date, speaks of arms where the policy speaks of places in
the opening order, and refuses what breaks the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import COLUMNS
from risingsearch.errors import InvalidParameterError, PolicyError
from risingsearch.policies import (
    WAIT,
    Policy,
    PolicyInfo,
    explain,
    make_policy,
    policy_info,
    slice_length,
)
from risingsearch.policies import base as policy_base
from risingsearch.policies.tuning.live import live
from risingsearch.scheduling.arm_records import ArmRecords, Openings
from risingsearch.scheduling.ledger import Ledger
from risingsearch.scheduling.policy_choice import registered_name


class PolicyAdapter:
    """Builds a policy, and translates between it and the scheduler."""

    def __init__(
        self,
        given: str | Callable[..., Policy] | Policy,
        params: dict[str, Any],
        max_pulls: int | None,
        opening_order: NDArray[np.int64],
        records: ArmRecords,
        budget: Ledger,
        openings: Openings,
    ) -> None:
        self._params = params
        self._max_pulls = max_pulls
        self._arm_at = opening_order.copy()  # by the policy's numbers
        self._place_of = np.argsort(opening_order)
        self._records = records
        self._budget = budget
        self._openings = openings
        self.ready_made = not isinstance(given, (str, type)) and hasattr(
            given, "select"
        )
        self._given: Any = given
        if not self.ready_made and not isinstance(given, str):
            self._given = _name_or_factory(given)
        self.name = ""
        self.plans_rounds = True
        if isinstance(self._given, str):
            self.name = self._given
            info = policy_info(self.name)
            self.plans_rounds = info.plans_rounds
            _check_needs(info, self._params)
            _check_unit(info, budget)
        self.policy: Any = None
        self._live: Any = None  # chooses as the policy does
        self._error: PolicyError | None = None  # after which it is asked nothing

    def build(self, horizon: int) -> None:
        """Make the policy anew, before its first round."""
        try:
            policy = self._made(horizon)
        except MemoryError as error:
            msg = (
                f"the policy needs more memory than there is ({error}): give fewer "
                "arms, or fewer max_epochs"
            )
            raise InvalidParameterError(msg) from error
        self.policy, self._live = self._checked(policy), live(policy)
        self.name = self.name or type(policy).__name__
        self._error = None

    def _made(self, horizon: int) -> Any:
        n_arms = len(self._arm_at)
        if self.ready_made:
            limit = horizon if self._max_pulls is None else self._max_pulls
            return self._checked_ready_made(limit)
        sizes, params = (n_arms, horizon, self._max_pulls), self._params
        if not isinstance(self._given, str):
            return self._given(*sizes, **params)
        return make_policy(self.name, *sizes, **params)

    def refresh(self, rounds: int) -> None:
        """Bring the scheduler's arrays up to date after so many rounds."""
        records, policy, order = self._records, self.policy, self._arm_at
        affordable = self._budget.affordable()
        live = records.live()
        if self._openings.min_epochs > 1:
            live &= records.busy | ~self._openings.too_late(records, affordable)
        left = np.where(live, records.max_epochs - records.charged, 0)
        left = self._budget.pulls_left(left, records.busy)
        policy.available[:] = (live & ~records.busy & (affordable > 0))[order]
        policy.pulls_left[:] = left[order]
        if hasattr(policy, "horizon"):
            policy.horizon[:] = self._budget.horizon(rounds)[order]

    def can_choose(self) -> bool:
        """Return whether any arm is available."""
        return bool(self.policy.available.any())

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the arm to pull at round ``t``, or ``WAIT``."""
        if self._error is not None:
            raise self._error
        available = self.policy.available
        place = self._call("select", self._live.select, t, rng)
        if place == WAIT:
            return WAIT
        is_arm = isinstance(place, (int, np.integer))
        if not (is_arm and 0 <= place < len(available) and available[place]):
            msg = (
                f"{self.name} chose arm {place!r}, which is not available; "
                "select must return an available arm or WAIT"
            )
            raise PolicyError(msg)
        return int(self._arm_at[place])

    def started(self, t: int, arm: int) -> None:
        """Tell that an arm is pulled next, as was decided at round ``t``."""
        place = int(self._place_of[arm])
        self._call("started", policy_base.started, self._live, t, place)

    def open_instead(self, arm: int, proposed: int) -> None:
        """Let an unopened arm change places with the one that was to be opened."""
        first, second = self._place_of[[arm, proposed]]
        self._arm_at[[first, second]] = proposed, arm
        self._place_of[[proposed, arm]] = first, second

    def proposing(self) -> bool:
        """Return whether an arm that is opened now may be proposed."""
        return bool(self._call("proposing", policy_base.proposing, self.policy))

    def trusts_first_looks(self) -> bool:
        """Return whether the first slice of an arm tells enough to propose by."""
        trusts = policy_base.trusts_first_looks
        return bool(self._call("trusts_first_looks", trusts, self.policy))

    def projection(self, arm: int) -> float:
        """Return where the policy expects the arm to end."""
        place = int(self._place_of[arm])
        projection = policy_base.projection
        return float(self._call("projection", projection, self.policy, place))

    def slice_length(self, arm: int) -> int:
        """Return the pulls the arm gets before the next decision."""
        place = int(self._place_of[arm])
        return int(self._call("slice_length", slice_length, self._live, place))

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Tell the reward of a pull decided at round ``t``."""
        place = int(self._place_of[arm])
        try:
            self._call("update", self._live.update, t, place, reward, rng)
        except PolicyError as error:
            self._error = error
            raise

    def explain(self, arms: Iterable[int]) -> list[dict[str, float]]:
        """Return the named parts of the index of each of these arms."""
        places = self._place_of[list(arms)].tolist()
        indices: list[dict[str, float]] = self._call(
            "explain", lambda: [explain(self.policy, place) for place in places]
        )
        for parts in indices:
            for name in parts.keys() & COLUMNS:
                msg = (
                    f"{self.name} explains a part of its index called {name!r}, "
                    "which is a column of the history: give it another name"
                )
                raise PolicyError(msg)
        return indices

    def state_dict(self) -> dict[str, Any]:
        """Return the policy's arrays and the order of its arms as JSON values."""
        arrays = policy_base.state_dict(self.policy)
        return {"arrays": arrays, "arm_at": self._arm_at.tolist()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put saved arrays and the order of the arms back in place."""
        policy_base.load_state_dict(self.policy, state["arrays"])
        self._arm_at[:] = state["arm_at"]
        self._place_of[:] = np.argsort(self._arm_at)

    def _call(self, name: str, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method; raise its exceptions as ``PolicyError``."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return method(*arguments)
        except PolicyError:
            raise
        except Exception as error:
            msg = (
                f"{name} of the policy {self.name} raised "
                f"{type(error).__name__}: {error}"
            )
            raise PolicyError(msg) from error

    def _checked(self, policy: Any) -> Any:
        n_arms = len(self._arm_at)
        for name in ("available", "pulls_left"):
            array: Sequence[Any] | None = getattr(policy, name, None)
            if array is None or len(array) != n_arms:
                size = "none" if array is None else f"one of length {len(array)}"
                msg = (
                    f"{type(policy).__name__} needs an array {name} of length "
                    f"n_arms={n_arms}, which the scheduler keeps up to date; it has "
                    f"{size}"
                )
                raise PolicyError(msg)
        return policy

    def _checked_ready_made(self, limit: int) -> Any:
        if self._params:
            msg = f"a ready-made policy takes no policy_params; got {self._params}"
            raise InvalidParameterError(msg)
        policy = deepcopy(self._checked(self._given))  # the given one stays as it is
        most = int(policy.pulls_left.max())
        if most < limit:
            msg = (
                f"this {type(policy).__name__} was made for {most} pulls of an arm, "
                f"the scheduler allows {limit}: make it with max_pulls={limit}"
            )
            raise PolicyError(msg)
        return policy


def _check_unit(info: PolicyInfo, budget: Ledger) -> None:
    if not info.plans_rounds:
        return
    if not budget.is_plain:
        got = f"a budget in {budget.unit}"
        if budget.unit == "epochs":
            got = "epochs that do not all cost the same"
        msg = (
            f"{info.name} plans all its rounds ahead, so its budget must "
            f"be in epochs; got {got}"
        )
        raise InvalidParameterError(msg)


def _check_needs(info: PolicyInfo, params: dict[str, Any]) -> None:
    for name in info.needs:
        if name not in params:
            msg = (
                f"the default {name} of {info.name} fits simulated rewards only: give "
                f"policy_params={{{name!r}: ...}}"
            )
            if name == "reward_range":
                msg += (
                    ", the lowest and the highest score (both negated under "
                    "direction='minimize')"
                )
            raise InvalidParameterError(msg)


def _name_or_factory(given: Any) -> Any:
    """Return a factory, or the name under which it is registered."""
    build = getattr(given, "create", given)
    if not callable(build):
        msg = f"policy must be a registered name, a factory or a policy; got {given!r}"
        raise InvalidParameterError(msg)
    return registered_name(build) or build
