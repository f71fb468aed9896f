"""Rules that every policy must keep: one small check per rule."""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import random
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.policies import make_policy, policy_info, resolve_policy
from risingsearch.policies.base import (
    CALLER_ARRAYS,
    WAIT,
    explain,
    load_state_dict,
    slice_length,
    started,
    state_dict,
)
from risingsearch.testing.require import require

_HORIZON = 48
_MAX_PULLS = 14


_FLAWS: dict[str, Any] = {
    "divide": "warn",
    "invalid": "warn",
    "over": "ignore",
    "under": "ignore",
}
"""How numpy reports a flawed calculation while a policy is checked."""


def check_policy(
    factory: str | Callable[..., Any],
    *,
    n_arms: Sequence[int] = (1, 2, 5),
    adaptive: bool | None = None,
    **parameters: Any,
) -> None:
    """Check that a policy keeps the contract of ``risingsearch.policies.base``.

    Short runs on made-up curves: with one arm and with several, with arms that are
    busy, end early or fail, with several pulls in flight, with a budget smaller than
    the number of arms, with rewards that are constant, negative or huge, and with the
    state saved as JSON and loaded again before every decision. ``select`` may change no
    array. The source is checked too: whether ``select``, ``started`` and ``update`` can
    be compiled and give the same bits.

    Numpy warnings count as failures, but for overflow: infinity is the right answer
    to a sum of huge rewards, and the compiled policy gives it without a warning.

    Parameters
    ----------
    factory : str or callable
        A registered name, or ``(n_arms, horizon, max_pulls, **parameters) -> policy``,
        for example the ``create`` of your policy.
    n_arms : sequence of int, default (1, 2, 5)
        Numbers of arms to check it with; leave out those that it does not allow.
    adaptive : bool, optional
        Whether the policy spends the whole budget while an arm can still train. By
        default what is registered; True for a callable.
    **parameters
        The policy's own.

    Raises
    ------
    AssertionError
        If the policy breaks a rule; the message says which one, and where.

    Examples
    --------
    >>> check_policy("cure-ucb", sigma=0.1)
    >>> check_policy("be", n_arms=[2], known_reward=0.5)
    >>> check_policy(lambda n_arms, horizon, max_pulls: None)
    Traceback (most recent call last):
    ...
    AssertionError: <lambda> with n_arms=1 breaks the rule "a policy is a NamedTuple...
    """
    if isinstance(factory, str):
        name = resolve_policy(factory)
        info = policy_info(name)
        adaptive = info.adaptive if adaptive is None else adaptive

        def build(n_arms: int, horizon: int, max_pulls: int) -> Any:
            return make_policy(name, n_arms, horizon, max_pulls, **parameters)
    else:
        owner = getattr(factory, "__self__", factory)  # the class, for its create
        name = getattr(owner, "__name__", repr(factory))
        own = factory

        def build(n_arms: int, horizon: int, max_pulls: int) -> Any:
            return own(n_arms, horizon, max_pulls, **parameters)

    for size in n_arms:
        subject = _Subject(build, size, adaptive is not False)
        for rule, check in _RULES.items():
            try:
                with warnings.catch_warnings(), np.errstate(**_FLAWS):
                    warnings.simplefilter("error")
                    check(subject)
            except AssertionError as error:
                msg = f'{name} with n_arms={size} breaks the rule "{rule}": {error}'
                raise AssertionError(msg) from error


def _check_layout(subject: _Subject) -> None:
    policy = subject.new_policy()
    require(
        isinstance(policy, tuple) and hasattr(policy, "_fields"),
        f"the factory returned a {type(policy).__name__}",
    )
    for name in ("select", "update"):
        require(hasattr(policy, name), f"it has no method {name}")
    for name, dtype, start in (
        ("available", np.bool_, True),
        ("pulls_left", np.int64, _MAX_PULLS),
        ("horizon", np.float64, _HORIZON),
        ("pulls", np.int64, 0),
    ):
        array = getattr(policy, name, None)
        require(
            isinstance(array, np.ndarray)
            and array.shape == (subject.n_arms,)
            and array.dtype == dtype
            and bool((array == start).all()),
            f"{name} must be an array of shape ({subject.n_arms},), type "
            f"{dtype.__name__}, filled with {start} at first; it is {array!r}",
        )


def _check_kernel_source(subject: _Subject) -> None:
    # Interpreted and compiled, these differ in the last bits or do not compile at all.
    # ``explain`` is exempt: it is never compiled.
    policy_class = type(subject.new_policy())
    methods = {name for name in dir(policy_class) if name not in policy_class._fields}
    for function in _compiled_functions(policy_class):
        for line, finding in _banned(function, methods):
            where = f"{function.__qualname__}, line {line} of its source"
            raise AssertionError(f"{finding} in {where}")


def _check_global_random(subject: _Subject) -> None:
    before = _global_random()
    _Run(subject).play()
    require(
        _global_random() == before, "the state of random or of np.random has changed"
    )


def _check_pulls(subject: _Subject) -> None:
    run = _Run(subject).play()
    require(
        np.array_equal(run.policy.pulls, run.taken),
        f"pulls is {run.policy.pulls.tolist()} after {run.taken.tolist()} rewards",
    )


def _check_ties(subject: _Subject) -> None:
    rewards = np.full((subject.n_arms, _MAX_PULLS), 0.5)
    first, again, other = (
        _Run(subject, rewards, seed=seed).play() for seed in (1, 1, 2)
    )
    _require_same(first, again)
    # Without draws, only the tie rule is left to decide: no seed can matter.
    if first.rng.bit_generator.state == np.random.default_rng(1).bit_generator.state:
        _require_same(first, other)


def _check_seed(subject: _Subject) -> None:
    _require_same(_Run(subject, seed=3).play(), _Run(subject, seed=3).play())


def _check_in_flight(subject: _Subject) -> None:
    for seed in range(5):
        _Run(subject, seed=seed, n_workers=3).play()


def _check_endings(subject: _Subject) -> None:
    for seed in range(10):
        _Run(subject, seed=seed, n_workers=1 + seed % 3, mishaps=True).play()


def _check_short_horizon(subject: _Subject) -> None:
    for horizon in (1, max(1, subject.n_arms - 2)):
        _Run(subject, horizon=horizon).play()


def _check_extreme_rewards(subject: _Subject) -> None:
    usual = _curves(subject.n_arms, seed=5)
    for rewards in (0.0 * usual, -1.0 - usual, 1e300 * usual, 1e300 * (0.5 - usual)):
        _Run(subject, rewards).play()


def _check_saved_state(subject: _Subject) -> None:
    _require_same(
        _Run(subject, n_workers=2).play(), _SavedAndLoaded(subject, n_workers=2).play()
    )


def _check_constants(subject: _Subject) -> None:
    run = _Run(subject, n_workers=2)
    before = _constants(run.policy)
    now = _constants(run.play().policy)
    changed = [name for name in now if now[name] != before.get(name)]
    require(not changed, f"{changed} changed, which no state holds")


def _constants(policy: Any) -> dict[str, Any]:
    """Return the values of a policy that are not arrays, as their ``repr``."""
    held = getattr(policy, "__dict__", {}) | policy._asdict()
    return {
        name: repr(value)
        for name, value in held.items()
        if not isinstance(value, np.ndarray)
    }


class _Subject(NamedTuple):
    """The policy under test."""

    build: Callable[[int, int, int], Any]  # (n_arms, horizon, max_pulls) -> policy
    n_arms: int
    adaptive: bool

    def new_policy(self, horizon: int = _HORIZON) -> Any:
        """Return the policy before its first round."""
        return _called(self.build, self.n_arms, horizon, _MAX_PULLS)


class _Pulls(NamedTuple):
    """Some pulls of an arm, decided together and in flight."""

    t: int  # round of the first
    arm: int
    n: int


class _Run:
    """A policy at work: what a scheduler does with it, exactly by the contract.

    With ``mishaps``, idle arms are lost, and pulls in flight end early: some of their
    arms have ended, others are tried again later.
    """

    def __init__(
        self,
        subject: _Subject,
        rewards: NDArray[np.float64] | None = None,
        *,
        horizon: int = _HORIZON,
        seed: int = 0,
        n_workers: int = 1,
        mishaps: bool = False,
    ) -> None:
        self.subject = subject
        self.policy = subject.new_policy(horizon)
        self.rewards = _curves(subject.n_arms, seed) if rewards is None else rewards
        self.horizon = horizon
        self.n_workers = n_workers
        self.mishaps = mishaps
        self.rng = np.random.default_rng(seed)  # the policy's own
        self.fate = np.random.default_rng(seed + 1)  # decides what happens around it
        self.t = 1
        self.taken = np.zeros(subject.n_arms, dtype=np.int64)
        self.in_flight: list[_Pulls] = []
        self.chosen: list[_Pulls] = []

    def play(self) -> _Run:
        """Play until the budget is spent, nothing can train, or the policy stops."""
        while self.step():
            pass
        return self

    def step(self) -> bool:
        """Start some pulls or bring some back; False when there is neither."""
        if self.mishaps and self.fate.random() < 0.1:
            self.lose_an_arm()
        idle = self.n_workers - len(self.in_flight)
        if idle and self.t <= self.horizon and self.policy.available.any():
            arm = self.select()
            if arm != WAIT:
                self.start(arm)
                return True
            require(
                bool(self.in_flight) or not self.subject.adaptive,
                f"an adaptive policy said WAIT at round {self.t} with nothing in "
                f"flight, although it could choose from {self.choice()}",
            )
            require(
                bool(self.in_flight) or self.select() == WAIT,
                f"select said WAIT at round {self.t}, and an arm when asked again",
            )
        if not self.in_flight:
            return False
        next_back = int(self.fate.random() * len(self.in_flight))
        self.bring_back(self.in_flight.pop(next_back))
        return True

    def select(self) -> int:
        """Ask for an arm."""
        before = self.policy_arrays()
        arm = _called(self.policy.select, self.t, self.rng)
        self.require_same_arrays("select", before)
        require(
            isinstance(arm, Integral) and int(arm) in (WAIT, *self.choice()),
            f"select returned {arm!r} at round {self.t}; available are {self.choice()}",
        )
        return int(arm)

    def update(self, t: int, arm: int, reward: float) -> None:
        """Tell a reward."""
        _called(self.policy.update, t, arm, reward, self.rng)

    def choice(self) -> list[int]:
        """Return the arms that are available."""
        return [int(arm) for arm in np.flatnonzero(self.policy.available)]

    def start(self, arm: int) -> None:
        """Start the pulls that the policy wants, as far as arm and budget allow."""
        before = self.policy_arrays()
        wanted = _called(slice_length, self.policy, arm)
        self.require_same_arrays("slice_length", before)
        _called(started, self.policy, self.t, arm)
        left = min(int(self.policy.pulls_left[arm]), self.horizon - self.t + 1)
        pulls = _Pulls(self.t, arm, max(1, min(wanted, left)))
        self.policy.available[arm] = False
        self.t += pulls.n
        self.chosen.append(pulls)
        self.in_flight.append(pulls)

    def policy_arrays(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays of the policy."""
        named = self.policy._asdict().items()
        return {
            name: value.copy() for name, value in named if isinstance(value, np.ndarray)
        }

    def require_same_arrays(self, method: str, before: dict[str, NDArray[Any]]) -> None:
        """Raise where an array is not what it was before a method that only reads."""
        for name, array in before.items():
            require(
                np.array_equal(array, getattr(self.policy, name), equal_nan=True),
                f"{method} changed array {name} at round {self.t}",
            )

    def bring_back(self, pulls: _Pulls) -> None:
        """Tell the rewards of pulls in flight, or what is left of them."""
        t, arm, n = pulls
        cut_short = self.mishaps and self.fate.random() < 0.2
        if cut_short:
            n = int(self.fate.random() * n)
        ended = cut_short and self.fate.random() < 0.5
        if ended:
            self.policy.pulls_left[arm] = n
            self.t -= pulls.n - n  # the rest goes back to the budget
        for k in range(n):
            self.policy.pulls_left[arm] -= 1
            reward = float(self.rewards[arm, self.taken[arm]])
            self.update(t + k, arm, reward)
            self.taken[arm] += 1
        self.policy.available[arm] = self.policy.pulls_left[arm] > 0

    def lose_an_arm(self) -> None:
        """Let an idle arm end."""
        idle = self.choice()
        if len(idle) > 1:
            arm = idle[int(self.fate.random() * len(idle))]
            self.policy.available[arm] = False
            self.policy.pulls_left[arm] = 0


class _WatchedSlices(_Run):
    def start(self, arm: int) -> None:
        wanted = _called(slice_length, self.policy, arm)
        require(wanted >= 1, f"slice_length({arm}) is {wanted} at round {self.t}")
        super().start(arm)


class _WatchedArrays(_Run):
    def select(self) -> int:
        before = self.arrays()
        arm = super().select()
        self.require_unchanged("select", before)
        return arm

    def update(self, t: int, arm: int, reward: float) -> None:
        before = self.arrays()
        super().update(t, arm, reward)
        self.require_unchanged("update", before)

    def arrays(self) -> dict[str, list[Any]]:
        return {name: getattr(self.policy, name).tolist() for name in CALLER_ARRAYS}

    def require_unchanged(self, method: str, before: dict[str, list[Any]]) -> None:
        for name, array in self.arrays().items():
            require(
                array == before[name],
                f"{method} has changed {name} from {before[name]} to {array}",
            )


class _SavedAndLoaded(_Run):
    def select(self) -> int:
        state = _called(json.dumps, state_dict(self.policy), allow_nan=False)
        self.policy = self.subject.new_policy(self.horizon)
        _called(load_state_dict, self.policy, json.loads(state))
        return super().select()


class _Questioned(_Run):
    def select(self) -> int:
        arm = super().select()
        state = state_dict(self.policy)
        for i in range(self.subject.n_arms):
            parts = _called(explain, self.policy, i)
            require(
                all(isinstance(name, str) for name in parts),
                f"explain({i}) returned the names {list(parts)}",
            )
        require(
            state == state_dict(self.policy),
            f"explain has changed the state at round {self.t}",
        )
        return arm


def _played(kind: type[_Run]) -> Callable[[_Subject], None]:
    """Return the check that a run of this kind meets with nothing wrong."""

    def check(subject: _Subject) -> None:
        kind(subject).play()

    return check


_RULES: dict[str, Callable[[_Subject], None]] = {
    "a policy is a NamedTuple with the arrays of the caller, and pulls": _check_layout,
    "what is compiled has no powers, numpy functions, sums or own methods": (
        _check_kernel_source
    ),
    "select only reads, chooses available arms, and WAIT has a reason": _played(_Run),
    "a slice has at least one pull": _played(_WatchedSlices),
    "the arrays of the caller are never written": _played(_WatchedArrays),
    "randomness comes from the generator passed in": _check_global_random,
    "pulls counts the rewards recorded": _check_pulls,
    "with constant rewards every run is the same": _check_ties,
    "the same seed gives the same run": _check_seed,
    "several pulls may be in flight and come back in any order": _check_in_flight,
    "arms may end or fail at any time": _check_endings,
    "the horizon may be shorter than the first round": _check_short_horizon,
    "rewards may be constant, negative or huge": _check_extreme_rewards,
    "a run continues from its state, saved as JSON": _check_saved_state,
    "what changes is kept in arrays": _check_constants,
    "explain changes nothing": _played(_Questioned),
}


def _curves(n_arms: int, seed: int) -> NDArray[np.float64]:
    """Return noisy rising rewards, (n_arms, _MAX_PULLS)."""
    rng = np.random.default_rng(seed)
    ends = rng.uniform(0.3, 0.9, size=(n_arms, 1))
    n = np.arange(1, _MAX_PULLS + 1)
    return ends * (1.0 - 1.0 / (n + 1)) + rng.normal(0.0, 0.02, (n_arms, _MAX_PULLS))


def _called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except Exception as error:
        given = ", ".join(repr(arg) for arg in args if isinstance(arg, (int, float)))
        msg = f"{function.__name__}({given}) raised {error!r}"
        raise AssertionError(msg) from error


def _require_same(run: _Run, other: _Run) -> None:
    for i, (pulls, others) in enumerate(zip(run.chosen, other.chosen, strict=False)):
        require(
            pulls == others,
            f"decision {i + 1} was {pulls.n} of arm {pulls.arm} in one run and "
            f"{others.n} of arm {others.arm} in the other",
        )
    require(
        state_dict(run.policy) == state_dict(other.policy),
        "the two runs end in different states",
    )


def _global_random() -> tuple[Any, ...]:
    state = np.random.get_state(legacy=False)  # noqa: NPY002, it is what is checked
    return random.getstate(), state["state"]["key"].tobytes(), state["state"]["pos"]


def _compiled_functions(policy_class: type) -> Iterator[FunctionType]:
    """Yield what is compiled: the kernels, and all functions that they call."""
    kernels = ("select", "started", "update", "slice_length")
    waiting = [
        getattr(policy_class, name) for name in kernels if hasattr(policy_class, name)
    ]
    seen = set()
    while waiting:
        function = waiting.pop(0)
        if function not in seen:
            seen.add(function)
            yield function
            for node in ast.walk(_tree(function)):
                if isinstance(node, ast.Call):
                    callee = _global_value(function, node.func)
                    if isinstance(callee, FunctionType):
                        waiting.append(callee)


def _tree(function: FunctionType) -> ast.AST:
    return ast.parse(textwrap.dedent(_called(inspect.getsource, function)))


def _global_value(function: FunctionType, node: ast.AST) -> Any:
    """Return the global value of a name, plain or dotted, in a function; else None."""
    if isinstance(node, ast.Name):
        known = function.__globals__
        return known.get(node.id, getattr(builtins, node.id, None))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return getattr(_global_value(function, node.value), node.attr, None)
    return None


_POWER = "a power; write a product or math.pow"
_SUMS = ("sum", "mean", "prod", "cumsum", "dot", "std", "var")


def _banned(function: FunctionType, methods: set[str]) -> Iterator[tuple[int, str]]:
    """Yield line and description of all that compiles to other bits or not at all."""
    for node in ast.walk(_tree(function)):
        if isinstance(node, (ast.BinOp, ast.AugAssign)):
            finding = _POWER if isinstance(node.op, ast.Pow) else ""
        elif isinstance(node, ast.Call):
            finding = _banned_call(function, node.func, methods)
        else:
            continue
        if finding:
            yield node.lineno, finding


def _banned_call(function: FunctionType, callee: ast.expr, methods: set[str]) -> str:
    """Return why this must not be called, "" if it may be."""
    value = _global_value(function, callee)
    if value is pow:
        return _POWER
    if isinstance(value, np.ufunc):
        return f"np.{value.__name__}; use the math module"
    if isinstance(callee, ast.Attribute):
        if callee.attr in _SUMS:
            return f"a call of {callee.attr}(); write a loop"
        owner = ast.unparse(callee.value)
        if value is None and owner != "rng" and callee.attr in methods:
            return f"{owner}.{callee.attr}(); call a plain function"
    return ""
