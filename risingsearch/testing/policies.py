"""Rules that every policy must keep: one small check per rule."""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import random
import textwrap
import warnings
from collections.abc import (
    Callable,
    Sequence,
)
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from types import FunctionType
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from risingsearch.policies import make_policy, policy_info, resolve_policy
from risingsearch.policies.base import (
    CALLER_ARRAYS,
    WAIT,
    Policy,
    arm_arrays,
    arrays,
    explain,
    load_state_dict,
    slice_length,
    started,
    state_dict,
)

Result = TypeVar("Result")

_HORIZON = 48
_MAX_PULLS = 14
_READING = ("select", "slice_length", "explain")
_SUMS = ("sum", "mean", "prod", "cumsum", "dot", "std", "var")


def check_policy(
    factory: str | Callable[..., Policy],
    *,
    n_arms: Sequence[int] = (1, 2, 5),
    adaptive: bool | None = None,
    **parameters: object,
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
        default as registered; True for a callable.
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
        if adaptive is None:
            adaptive = policy_info(name).adaptive
        make: Callable[..., Policy] = partial(make_policy, name)
    else:
        # Of a class method it is the class.
        owner = getattr(factory, "__self__", factory)
        name = getattr(owner, "__name__", repr(factory))
        make = factory

    for size in n_arms:
        build = partial(make, **parameters)
        subject = _Subject(build, size, adaptive is not False)
        for rule, check in _RULES.items():
            try:
                with (
                    warnings.catch_warnings(action="error"),
                    np.errstate(all="warn", over="ignore", under="ignore"),
                ):
                    check(subject)
            except AssertionError as error:
                raise AssertionError(
                    f'{name} with n_arms={size} breaks the rule "{rule}": {error}'
                ) from error


def require(condition: object, message: str) -> None:
    """Raise an AssertionError with the message, unless the condition holds."""
    if not condition:
        raise AssertionError(message)


class _Subject(NamedTuple):
    """The policy under test."""

    build: Callable[[int, int, int], Policy]  # (n_arms, horizon, max_pulls) -> policy
    n_arms: int
    adaptive: bool

    def new_policy(self, horizon: int = _HORIZON) -> Policy:
        """Return the policy before its first round."""
        return _called(
            self.build,
            self.n_arms,
            horizon,
            _MAX_PULLS,
        )


class _Pulls(NamedTuple):
    """Some pulls of an arm, decided together and in flight."""

    t: int  # round of the first
    arm: int
    n: int


@dataclass
class _Run:
    """A policy at work by the contract; with ``mishaps``, arms end early or fail."""

    subject: _Subject
    rewards: NDArray[np.float64] | None = None
    horizon: int = _HORIZON
    seed: int = 0
    n_workers: int = 1
    mishaps: bool = False

    def __post_init__(self) -> None:
        n_arms = self.subject.n_arms
        self.policy = self.subject.new_policy(self.horizon)
        rewards = self.rewards
        self.curves = _curves(n_arms, self.seed) if rewards is None else rewards
        self.rng = np.random.default_rng(self.seed)  # the policy's own
        self.fate = np.random.default_rng(self.seed + 1)  # what happens around it
        self.t = 1
        self.taken = np.zeros(n_arms, dtype=np.int64)
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
                self.in_flight or not self.subject.adaptive,
                f"an adaptive policy said WAIT at round {self.t} with nothing in "
                f"flight, although it could choose from {self.choice()}",
            )
            require(
                self.in_flight or self.select() == WAIT,
                f"select said WAIT at round {self.t}, and an arm when asked again",
            )
        if not self.in_flight:
            return False
        next_back = int(self.fate.random() * len(self.in_flight))
        self.bring_back(self.in_flight.pop(next_back))
        return True

    def select(self) -> int:
        """Ask for an arm."""
        arm = self.called(self.policy.select, self.t, self.rng)
        available = self.choice()
        require(
            isinstance(arm, Integral) and int(arm) in (WAIT, *available),
            f"select returned {arm!r} at round {self.t}; available are {available}",
        )
        return int(arm)

    def choice(self) -> list[int]:
        """Return the arms that are available."""
        return np.flatnonzero(self.policy.available).tolist()

    def start(self, arm: int) -> None:
        """Start the pulls that the policy wants, as far as arm and budget allow."""
        wanted = self.called(slice_length, self.policy, arm)
        require(wanted >= 1, f"slice_length({arm}) is {wanted} at round {self.t}")
        self.called(
            started,
            self.policy,
            self.t,
            arm,
        )
        left = min(int(self.policy.pulls_left[arm]), self.horizon - self.t + 1)
        pulls = _Pulls(
            t=self.t,
            arm=arm,
            n=min(wanted, left),
        )
        self.policy.available[arm] = False
        self.t += pulls.n
        self.chosen.append(pulls)
        self.in_flight.append(pulls)

    def called(
        self,
        function: Callable[..., Result],
        *args: object,
    ) -> Result:
        """Call a method; raise if it changes an array that it may only read."""
        method = function.__name__
        before = {
            name: array.tobytes()
            for name, array in arrays(self.policy).items()
            if method in _READING or name in CALLER_ARRAYS
        }
        returned = _called(function, *args)
        now = arrays(self.policy)
        for name, content in before.items():
            changed = now[name].tobytes() != content
            require(not changed, f"{method} changed array {name} at round {self.t}")
        return returned

    def bring_back(self, pulls: _Pulls) -> None:
        """Tell the rewards of pulls in flight, or of the rest of them."""
        t, arm, n = pulls
        cut_short = self.mishaps and self.fate.random() < 0.2
        if cut_short:
            n = int(self.fate.random() * n)
        if cut_short and self.fate.random() < 0.5:
            self.policy.pulls_left[arm] = n
            # The rest of the pulls goes back to the budget.
            self.t -= pulls.n - n
        for k in range(n):
            self.policy.pulls_left[arm] -= 1
            reward = float(self.curves[arm, self.taken[arm]])
            self.called(
                self.policy.update,
                t + k,
                arm,
                reward,
                self.rng,
            )
            self.taken[arm] += 1
        self.policy.available[arm] = self.policy.pulls_left[arm] > 0

    def lose_an_arm(self) -> None:
        """Let an idle arm end."""
        idle = self.choice()
        if len(idle) > 1:
            arm = idle[int(self.fate.random() * len(idle))]
            self.policy.available[arm] = False
            self.policy.pulls_left[arm] = 0


def _check_layout(subject: _Subject) -> None:
    policy = subject.new_policy()
    require(
        isinstance(policy, tuple) and hasattr(policy, "_fields"),
        f"the factory returned a {type(policy).__name__}",
    )
    for name in ("select", "update"):
        require(hasattr(policy, name), f"it has no method {name}")
    first = arm_arrays(subject.n_arms, _HORIZON, _MAX_PULLS)
    for name, expected in zip((*CALLER_ARRAYS, "pulls"), first, strict=True):
        array = getattr(policy, name, None)
        require(
            isinstance(array, np.ndarray)
            and array.dtype == expected.dtype
            and np.array_equal(array, expected),
            f"{name} must be an array of shape {expected.shape}, type "
            f"{expected.dtype}, filled with {expected[0]} at first; it is {array!r}",
        )


def _check_kernel_source(subject: _Subject) -> None:
    # Interpreted and compiled, these differ in the last bits or do not compile at all.
    # ``explain`` is exempt: it is never compiled.
    policy_class = type(subject.new_policy())
    fields: tuple[str, ...] = getattr(policy_class, "_fields", ())
    methods = {*dir(policy_class)} - {*fields}
    kernels = ("select", "started", "update", "slice_length")
    waiting = [getattr(policy_class, name) for name in kernels if name in methods]
    seen = set(waiting)
    # The list grows by the functions that these call.
    for function in waiting:
        source = textwrap.dedent(_called(inspect.getsource, function))
        for node in ast.walk(ast.parse(source)):
            callee = _global_value(function, getattr(node, "func", None))
            if isinstance(callee, FunctionType) and callee not in seen:
                seen.add(callee)
                waiting.append(callee)
            if finding := _banned(node, callee, methods):
                at = f"line {getattr(node, 'lineno', 0)} of its source"
                raise AssertionError(f"{finding} in {function.__qualname__}, {at}")


def _global_value(function: FunctionType, node: ast.AST | None) -> object:
    """Return the global value of a name, plain or dotted, in a function; else None."""
    if isinstance(node, ast.Name):
        return function.__globals__.get(node.id, getattr(builtins, node.id, None))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return getattr(_global_value(function, node.value), node.attr, None)
    return None


def _banned(
    node: ast.AST,
    callee: object,
    methods: set[str],
) -> str:
    """Return why this compiles to other bits or not at all; "" if it does not."""
    if callee is pow or isinstance(getattr(node, "op", None), ast.Pow):
        return "a power; write a product or math.pow"
    if isinstance(callee, np.ufunc):
        return f"np.{callee.__name__}; use the math module"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        owner = ast.unparse(node.func.value)
        if name in _SUMS:
            return f"a call of {name}(); write a loop"
        if callee is None and owner != "rng" and name in methods:
            return f"{owner}.{name}(); call a plain function"
    return ""


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
    first = _Run(subject, rewards, seed=1).play()
    again = _Run(subject, rewards, seed=1).play()
    other = _Run(subject, rewards, seed=2).play()
    _require_same(first, again)
    # Without draws, only the tie rule is left to decide: no seed can matter.
    if first.rng.bit_generator.state == np.random.default_rng(1).bit_generator.state:
        _require_same(first, other)


def _check_saved_state(subject: _Subject) -> None:
    run = _Run(subject, n_workers=2)
    while run.step():
        state = _called(json.dumps, state_dict(run.policy), allow_nan=False)
        run.policy = subject.new_policy()
        _called(load_state_dict, run.policy, json.loads(state))
    _require_same(_Run(subject, n_workers=2).play(), run)


def _check_explain(subject: _Subject) -> None:
    run = _Run(subject)
    while run.step():
        for arm in range(subject.n_arms):
            parts = run.called(explain, run.policy, arm)
            names = list(parts)
            are_texts = all(isinstance(name, str) for name in names)
            require(are_texts, f"explain({arm}) returned the names {names}")


def _check_in_flight(subject: _Subject) -> None:
    for seed in range(5):
        _Run(subject, n_workers=3, seed=seed).play()


def _check_mishaps(subject: _Subject) -> None:
    for seed in range(10):
        _Run(subject, n_workers=1 + seed % 3, seed=seed, mishaps=True).play()


def _check_short_horizons(subject: _Subject) -> None:
    for horizon in (1, max(1, subject.n_arms - 2)):
        _Run(subject, horizon=horizon).play()


def _check_extremes(subject: _Subject) -> None:
    usual = _curves(subject.n_arms, seed=5)
    for rewards in (0.0 * usual, -1.0 - usual, 1e300 * usual, 1e300 * (0.5 - usual)):
        _Run(subject, rewards).play()


_RULES: dict[str, Callable[[_Subject], object]] = {
    "a policy is a NamedTuple with the arrays of the caller, and pulls": _check_layout,
    "what is compiled has no powers, numpy functions, sums or own methods": (
        _check_kernel_source
    ),
    "select only reads, chooses available arms and has a reason to WAIT, a slice has "
    "at least one pull, and the arrays of the caller are never written": (
        lambda subject: _Run(subject).play()
    ),
    "what changes is kept in arrays": (
        lambda subject: _called(state_dict, _Run(subject).play().policy)
    ),
    "randomness comes from the generator passed in": _check_global_random,
    "pulls counts the rewards recorded": _check_pulls,
    "with constant rewards every run is the same": _check_ties,
    "the same seed gives the same run": (
        lambda subject: _require_same(_Run(subject).play(), _Run(subject).play())
    ),
    "several pulls may be in flight and come back in any order": _check_in_flight,
    "arms may end or fail at any time": _check_mishaps,
    "the horizon may be shorter than the first round": _check_short_horizons,
    "rewards may be constant, negative or huge": _check_extremes,
    "a run continues from its state, saved as JSON": _check_saved_state,
    "explain changes nothing": _check_explain,
}


def _curves(n_arms: int, seed: int) -> NDArray[np.float64]:
    """Return noisy rising rewards, (n_arms, _MAX_PULLS)."""
    rng = np.random.default_rng(seed)
    ends = rng.uniform(0.3, 0.9, size=(n_arms, 1))
    n = np.arange(1, _MAX_PULLS + 1)
    noise = rng.normal(0.0, 0.02, (n_arms, _MAX_PULLS))
    return ends * (1.0 - 1.0 / (n + 1)) + noise


def _called(
    function: Callable[..., Result],
    *args: object,
    **kwargs: object,
) -> Result:
    try:
        return function(*args, **kwargs)
    except Exception as error:
        name = getattr(function, "__name__", "create")
        listed = ", ".join(repr(arg) for arg in args if isinstance(arg, (int, float)))
        raise AssertionError(f"{name}({listed}) raised {error!r}") from error


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


def _global_random() -> tuple[object, ...]:
    state = np.random.get_state(legacy=False)  # noqa: NPY002, it is what is checked
    return random.getstate(), state["state"]["key"].tobytes(), state["state"]["pos"]
