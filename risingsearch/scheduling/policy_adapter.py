"""The scheduler's side of the policy contract.

Keeps a policy's arrays up to date, speaks of arms where the policy speaks of places in
the opening order, and refuses a breach of the contract.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from risingsearch.arms import COLUMNS, Configuration
from risingsearch.budget import in_words
from risingsearch.checks import call_problem, shown
from risingsearch.errors import InvalidParameterError, PolicyError
from risingsearch.json_values import Json
from risingsearch.policies import (
    WAIT,
    Policy,
    PolicyInfo,
    base,
    make_policy,
    policy_info,
    registered_name,
)
from risingsearch.policies.arrays import Rng
from risingsearch.scheduling.arm_table import EVERY_ARM, ArmTable
from risingsearch.scheduling.ledger import Ledger
from risingsearch.scheduling.options import SchedulerOptions

SIZES = "n_arms, horizon, max_pulls"
Answer = TypeVar("Answer")


class PolicyAdapter:
    """Builds a policy, and translates between it and the scheduler."""

    def __init__(
        self,
        policy: str | Callable[..., Policy],
        params: Configuration,
        options: SchedulerOptions,
        arms: ArmTable,
        ledger: Ledger,
    ) -> None:
        self._options = options
        self._arms = arms
        self._ledger = ledger
        self._put_in_order(options.opening_order)
        if not isinstance(policy, str | type) and hasattr(policy, "select"):
            raise InvalidParameterError(
                "policy must be a registered name or a factory, which can plan anew "
                f"for a larger budget; got a {type(policy).__name__} made already"
            )
        self._info: PolicyInfo | None = None
        name = registered_name(policy)
        if name is None:
            create = _checked_factory(policy, params)
        else:
            create = partial(make_policy, name)
            self._info = policy_info(name)
            _check_named(self._info, params, ledger)
        self.create = partial(create, **params)
        self.build()

    def _put_in_order(self, arms: Any) -> None:
        """Set which arm is at each place, as the policy numbers them."""
        self._arm_at = np.array(arms, int)
        self._place_of = np.argsort(self._arm_at)

    def build(self) -> None:
        """Make the policy anew, before its first round."""
        ledger = self._ledger
        n_arms = len(self._arm_at)
        horizon = n_arms * self._arms.max_epochs
        if ledger.unit == "epochs":
            horizon = int(ledger.total)
        policy = self.create(n_arms, horizon, self._options.max_epochs)
        base.check_contract(policy, n_arms, "_asdict")
        self.policy: Any = policy
        self._error: PolicyError | None = None  # after which it is asked nothing

    def resize(self, n: int) -> None:
        """Have so many arms, those that are added last in the opening order."""
        before = base.arrays(self.policy)
        n_before = len(self._arm_at)
        self._put_in_order([*self._arm_at[:n], *range(n_before, n)])
        self.build()
        for name, array in base.arrays(self.policy).items():
            both = tuple(map(slice, np.minimum(array.shape, before[name].shape)))
            array[both] = before[name][both]

    @property
    def name(self) -> str:
        """Registered name of the policy, or the name of its class."""
        if self._info:
            return self._info.name
        return type(self.policy).__name__

    @property
    def plans_rounds(self) -> bool:
        """Whether the policy plans the whole horizon ahead."""
        return self._info is None or self._info.plans_rounds

    def refresh(self) -> None:
        """Bring the scheduler's arrays up to date."""
        self.affordable = self._ledger.affordable(self._arms.finalist)
        if hasattr(self.policy, "horizon"):
            horizon = self._ledger.horizon(self._arms.rounds)
            self.policy.horizon[self._place_of] = horizon
        self._refresh_arms(EVERY_ARM)

    def refresh_arm(self, arm: int) -> None:
        """Bring the values of an arm up to date, after an epoch of it."""
        self._refresh_arms(slice(arm, arm + 1))

    def _refresh_arms(self, at: slice) -> None:
        """Say which arms are available, and how many pulls each has left."""
        arms = self._arms
        can_train = arms.can_train(at)
        busy = arms.busy[at]
        affordable = self.affordable[at]
        if self._options.min_epochs > 1:
            can_train &= busy | ~arms.too_late(affordable, at)
        left = (arms.max_epochs - arms.charged[at]) * can_train
        places = self._place_of[at]
        self.policy.available[places] = can_train & ~busy & (affordable > 0)
        self.policy.pulls_left[places] = self._ledger.pulls_left(left, busy, affordable)

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm to pull at round ``t``, or ``WAIT``."""
        if self._error is not None:
            raise self._error
        available = self.policy.available
        place = self._call(self.policy.select, t, rng)
        if place == WAIT:
            return WAIT
        is_arm = isinstance(place, (int, np.integer))
        if not (is_arm and 0 <= place < len(available) and available[place]):
            raise PolicyError(
                f"{self.name} chose arm {place!r}, which is not available; "
                "select must return an available arm or WAIT"
            )
        return int(self._arm_at[place])

    def started(self, t: int, arm: int) -> None:
        """Tell that an arm is pulled next, as was decided at round ``t``."""
        place = self._place(arm)
        available = self.policy.available
        is_available = available[place]
        available[place] = True
        try:
            self._record(base.started, self.policy, t, place)
        finally:
            available[place] = is_available

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Tell the reward of a pull decided at round ``t``."""
        self._record(
            self.policy.update,
            t,
            self._place(arm),
            reward,
            rng,
        )

    def swap(self, arm: int, other: int) -> None:
        """Let two arms change places, neither of which is opened."""
        order = self._arm_at.copy()
        order[[self._place(arm), self._place(other)]] = other, arm
        self._put_in_order(order)

    def _place(self, arm: int) -> int:
        return int(self._place_of[arm])

    def proposing(self) -> bool:
        """Return whether an arm that is opened now may be proposed."""
        return self._call(base.proposing, self.policy)

    def slice_length(self, arm: int) -> int:
        """Return the epochs the policy wants for an arm before it decides again."""
        return self._call(base.slice_length, self.policy, self._place(arm))

    def projection(self, arm: int) -> float:
        """Return where the policy expects an arm to end; NaN if it does not say."""
        return self._call(base.projection, self.policy, self._place(arm))

    def explain(self, arm: int) -> dict[str, float]:
        """Return the named parts of the index of an arm."""
        parts = self._call(base.explain, self.policy, self._place(arm))
        for name in parts.keys() & COLUMNS:
            raise PolicyError(
                f"{self.name} explains a part of its index called {name!r}, "
                "which is a column of the history: give it another name"
            )
        return parts

    def state_dict(self) -> Json:
        """Return the policy's arrays and the order of its arms as JSON values."""
        return {
            "arrays": base.state_dict(self.policy),
            "arm_at": self._arm_at.tolist(),
        }

    def load_state_dict(self, state: Json) -> None:
        """Put saved arrays and the order of the arms back in place."""
        base.load_state_dict(self.policy, state["arrays"])
        self._put_in_order(np.reshape(state["arm_at"], self._arm_at.shape))

    def _record(self, method: Callable[..., None], *arguments: object) -> None:
        """Call a method that changes the policy; after an error, ask it nothing."""
        try:
            self._call(method, *arguments)
        except PolicyError as error:
            self._error = error
            raise

    def _call(self, method: Callable[..., Answer], *arguments: object) -> Answer:
        """Call a method of the policy; raise its exceptions as ``PolicyError``."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return method(*arguments)
        except Exception as error:
            raise PolicyError(
                f"{method.__name__} of the policy {self.name} raised "
                f"{type(error).__name__}: {error}"
            ) from error


def _checked_factory(policy: object, params: Configuration) -> Callable[..., Policy]:
    """Return the factory of a policy that is not registered, or raise an error."""
    create = getattr(policy, "create", policy)
    if not callable(create):
        raise InvalidParameterError(
            f"policy must be a registered name or a factory; got {shown(policy)}"
        )
    if why := call_problem(create, SIZES, **params):
        name = getattr(create, "__qualname__", shown(policy))
        raise InvalidParameterError(
            f"{name} must take ({SIZES}) and policy_params {params}: {why}"
        )
    factory: Callable[..., Policy] = create
    return factory


def _check_named(info: PolicyInfo, params: Configuration, ledger: Ledger) -> None:
    """Raise if a registered policy needs another budget, or a parameter more."""
    if info.plans_rounds and not ledger.is_plain:
        got = f"a budget in {in_words(ledger.unit)}"
        if ledger.unit == "epochs":
            got = "epochs that do not all cost the same"
        raise InvalidParameterError(
            f"{info.name} plans all its rounds ahead, so its budget must "
            f"be in epochs; got {got}"
        )
    for name in info.needs:
        if name in params:
            continue
        msg = (
            f"the default {name} of {info.name} fits simulated rewards only: "
            f"give policy_params={{{name!r}: ...}}"
        )
        if name == "reward_range":
            msg += (
                ", the lowest and the highest score (both negated under "
                "direction='minimize')"
            )
        raise InvalidParameterError(msg)
