"""The scheduler's side of the policy contract.

Keeps a policy's arrays up to date, speaks of arms where the policy speaks of places in
the opening order, and refuses a breach of the contract.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from risingsearch.arms import COLUMNS, Params
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
from risingsearch.scheduling.arm_table import EVERY_ARM, ArmTable
from risingsearch.scheduling.ledger import Ledger
from risingsearch.scheduling.options import SchedulerOptions

SIZES = "n_arms, horizon, max_pulls"


class PolicyAdapter:
    """Builds a policy, and translates between it and the scheduler."""

    def __init__(
        self,
        policy: str | Callable[..., Policy],
        params: Params,
        options: SchedulerOptions,
        arms: ArmTable,
        ledger: Ledger,
    ) -> None:
        self._params = params
        self._max_pulls = options.max_epochs
        self._arm_at = options.opening_order.copy()  # by the policy's numbers
        self._place_of = np.argsort(self._arm_at)
        self._arms = arms
        self._ledger = ledger
        if not isinstance(policy, str | type) and hasattr(policy, "select"):
            raise InvalidParameterError(
                "policy must be a registered name or a factory, which can plan anew "
                f"for a larger budget; got a {type(policy).__name__} made already"
            )
        self._create: Any = getattr(policy, "create", policy)
        self._registered = registered_name(policy)
        if self._registered is not None:
            self._check_named(policy_info(self._registered))
        elif not callable(self._create):
            msg = f"policy must be a registered name or a factory; got {shown(policy)}"
            raise InvalidParameterError(msg)
        elif why := call_problem(self._create, SIZES, **params):
            name = getattr(self._create, "__qualname__", shown(policy))
            msg = f"{name} must take ({SIZES}) and policy_params {params}: {why}"
            raise InvalidParameterError(msg)
        self.policy: Any = None
        self._error: PolicyError | None = None  # after which it is asked nothing
        self.build()

    def build(self) -> None:
        """Make the policy anew, before its first round."""
        ledger = self._ledger
        arms = self._arms
        n_arms = len(self._arm_at)
        in_epochs = ledger.unit == "epochs"
        horizon = int(ledger.total) if in_epochs else n_arms * arms.max_epochs
        sizes = n_arms, horizon, self._max_pulls
        if self._registered is None:
            policy = self._create(*sizes, **self._params)
        else:
            policy = make_policy(self._registered, *sizes, **self._params)
        base.check_contract(policy, n_arms, "_asdict")
        self.policy = policy
        self._error = None

    def resize(self, n: int) -> None:
        """Have so many arms, those that are added last in the opening order."""
        before = base.arrays(self.policy)
        n_before = len(self._arm_at)
        self._arm_at = np.append(self._arm_at[:n], np.arange(n_before, n))
        self._place_of = np.argsort(self._arm_at)
        self.build()
        for name, array in base.arrays(self.policy).items():
            both = tuple(map(slice, np.minimum(array.shape, before[name].shape)))
            array[both] = before[name][both]

    @property
    def name(self) -> str:
        """Registered name of the policy, or the name of its class."""
        return self._registered or type(self.policy).__name__

    @property
    def plans_rounds(self) -> bool:
        """Whether the policy plans the whole horizon ahead."""
        return self._registered is None or policy_info(self._registered).plans_rounds

    def refresh(self) -> None:
        """Bring the scheduler's arrays up to date."""
        policy = self.policy
        self.affordable = self._ledger.affordable(self._arms.finalist)
        if hasattr(policy, "horizon"):
            horizon = self._ledger.horizon(self._arms.rounds)
            policy.horizon[:] = horizon[self._arm_at]
        available, pulls_left = self._open_to(EVERY_ARM)
        policy.available[:] = available[self._arm_at]
        policy.pulls_left[:] = pulls_left[self._arm_at]

    def refresh_arm(self, arm: int) -> None:
        """Bring the values of an arm up to date, after an epoch of it."""
        place = self._place_of[arm]
        available, pulls_left = self._open_to(arm)
        self.policy.available[place] = available
        self.policy.pulls_left[place] = pulls_left

    def _open_to(self, at: Any) -> tuple[Any, Any]:
        """Return which arms are available, and how many pulls each has left."""
        arms = self._arms
        can_train = arms.can_train(at)
        busy = arms.busy[at]
        if arms.min_epochs > 1:
            can_train &= busy | ~arms.too_late(self.affordable)[at]
        affordable = self.affordable[at]
        left = (arms.max_epochs - arms.charged[at]) * can_train
        available = can_train & ~busy & (affordable > 0)
        return available, self._ledger.pulls_left(left, busy, affordable)

    def select(self, t: int, rng: np.random.Generator) -> int:
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
        place = int(self._place_of[arm])
        available = self.policy.available
        is_available = available[place]
        available[place] = True
        try:
            self._record(
                base.started,
                self.policy,
                t,
                place,
            )
        finally:
            available[place] = is_available

    def open_instead(self, arm: int, proposed: int) -> None:
        """Let an unopened arm change places with the one that was to be opened."""
        first, second = self._place_of[[arm, proposed]]
        self._arm_at[[first, second]] = proposed, arm
        self._place_of[[proposed, arm]] = first, second

    def proposing(self) -> bool:
        """Return whether an arm that is opened now may be proposed."""
        return bool(self._call(base.proposing, self.policy))

    def slice_length(self, arm: int) -> int:
        """Return the epochs the policy wants for an arm before it decides again."""
        return int(self._call(base.slice_length, self.policy, int(self._place_of[arm])))

    def projection(self, arm: int) -> float:
        """Return where the policy expects an arm to end; NaN if it does not say."""
        return float(self._call(base.projection, self.policy, int(self._place_of[arm])))

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: np.random.Generator,
    ) -> None:
        """Tell the reward of a pull decided at round ``t``."""
        self._record(
            self.policy.update,
            t,
            int(self._place_of[arm]),
            reward,
            rng,
        )

    def explain(self, arms: Iterable[int]) -> list[dict[str, float]]:
        """Return the named parts of the index of each of these arms."""
        places = self._place_of[list(arms)].tolist()
        indices = [self._call(base.explain, self.policy, place) for place in places]
        for parts in indices:
            for name in parts.keys() & COLUMNS:
                raise PolicyError(
                    f"{self.name} explains a part of its index called {name!r}, "
                    "which is a column of the history: give it another name"
                )
        return indices

    def state_dict(self) -> Json:
        """Return the policy's arrays and the order of its arms as JSON values."""
        return {
            "arrays": base.state_dict(self.policy),
            "arm_at": self._arm_at.tolist(),
        }

    def load_state_dict(self, state: Json) -> None:
        """Put saved arrays and the order of the arms back in place."""
        base.load_state_dict(self.policy, state["arrays"])
        self._arm_at = np.array(state["arm_at"], int).reshape(self._arm_at.shape)
        self._place_of = np.argsort(self._arm_at)

    def _record(self, method: Callable[..., object], *arguments: object) -> None:
        """Call a method that changes the policy; after an error, ask it nothing."""
        try:
            self._call(method, *arguments)
        except PolicyError as error:
            self._error = error
            raise

    def _call(self, method: Callable[..., object], *arguments: object) -> Any:
        """Call a method of the policy; raise its exceptions as ``PolicyError``."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return method(*arguments)
        except Exception as error:
            raise PolicyError(
                f"{method.__name__} of the policy {self.name} raised "
                f"{type(error).__name__}: {error}"
            ) from error

    def _check_named(self, info: PolicyInfo) -> None:
        """Raise if a registered policy needs another budget, or a parameter more."""
        ledger = self._ledger
        if info.plans_rounds and not ledger.is_plain:
            got = f"a budget in {in_words(ledger.unit)}"
            if ledger.unit == "epochs":
                got = "epochs that do not all cost the same"
            raise InvalidParameterError(
                f"{info.name} plans all its rounds ahead, so its budget must "
                f"be in epochs; got {got}"
            )
        for name in info.needs:
            if name not in self._params:
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
