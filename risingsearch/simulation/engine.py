"""One loop plays a policy in an environment: interpreted, or compiled to machine code.

The only module that names numba. The policies and environments are plain Python; on
first use the loop is compiled for the two classes, whose methods are found through the
small functions at the end. Two things make it as fast as C and keep it honest:

* the loop runs without reference counting (numba's private ``_nrt=False``), inside an
  ordinary compiled function that holds the references;
* a digest of the sources is part of the cache key, so that an edited policy is
  compiled anew.

Compiled code does not check indices, so the answers of a policy or an environment are
checked here: an arm outside the arrays would overwrite other memory, and a slice of
no pulls would never end.
"""

import contextlib
import hashlib
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from risingsearch.curves.base import Environment
from risingsearch.errors import MissingDependencyError, PolicyError, missing
from risingsearch.policies.arrays import Floats, Ints, Rng, int_zeros
from risingsearch.policies.base import WAIT, Policy, slice_length, started

# Compiled code can raise nothing but constants.
UNAVAILABLE = "select must return an available arm or WAIT"
NO_SLICE = "slice_length must return at least 1"

Kernel: TypeAlias = Callable[..., object]
"""A function that is compiled as well as interpreted."""

NEVER = 2**62  # a round that never comes: the checkpoint after the last


class Record(NamedTuple):
    """One run of a policy, which the loop fills in."""

    checkpoints: Ints  # the last is NEVER
    reward: Floats  # by checkpoint: sum of the means so far
    best_mean: Floats  # by checkpoint: mean behind the highest reward
    pulls: Ints  # (n_arms,)
    n_played: Ints  # (1,), rounds in which an arm was pulled
    arms: Ints  # by round, or empty
    rewards: Floats  # by round, or empty


Loop: TypeAlias = Callable[[Policy, Environment, int, Rng, Record], None]
"""``play``, or a compiled form of it."""


def new_record(checkpoints: Ints, n_arms: int, rounds_kept: int = 0) -> Record:
    """Return the record of a run before its first round."""
    return Record(
        np.append(checkpoints, NEVER),
        np.zeros(len(checkpoints)),
        np.zeros(len(checkpoints)),
        int_zeros(n_arms),
        int_zeros(1),
        np.full(rounds_kept, -1, dtype=np.int64),
        np.full(rounds_kept, np.nan),
    )


def play(
    policy: Policy,
    environment: Environment,
    rounds: int,
    rng: Rng,
    record: Record,
) -> None:
    """Play one run.

    It ends early when the policy waits or all arms have ended, which another thread may
    bring about: it lowers ``policy.pulls_left`` to 1.

    The loop is one function although it is long: its running sums stay in registers,
    and numba copies a NamedTuple for every call that it does not inline.
    """
    available = policy.available
    pulls_left = policy.pulls_left
    checkpoints = record.checkpoints
    pulls = record.pulls
    arms = record.arms
    rewards = record.rewards
    traced = len(arms) > 0
    total = 0.0
    highest = -math.inf
    mean_of_highest = math.nan
    j = 0
    checkpoint = checkpoints[0]
    playable = available.any()
    t = 1
    while playable and t <= rounds:
        arm = select(policy, t, rng)
        if arm == WAIT:
            break
        if not (0 <= arm < len(available) and available[arm]):
            raise PolicyError(UNAVAILABLE)
        left = min(slice_length(policy, arm), rounds - t + 1)
        if left < 1:
            raise PolicyError(NO_SLICE)
        started(policy, t, arm)
        while left > 0:
            left -= 1
            n = pulls[arm] + 1
            pulls[arm] = n
            expected = mean(environment, arm, n, t)
            total += expected
            x = draw(environment, expected, arm, n, t, rng)
            if x > highest:
                highest = x
                mean_of_highest = expected
            pulls_left[arm] -= 1
            if pulls_left[arm] <= 0:
                available[arm] = False
                playable = available.any()
                left = 0
            update(policy, t, arm, x, rng)
            if traced:
                arms[t - 1] = arm
                rewards[t - 1] = x
            if t == checkpoint:
                j = noted(record, j, total, mean_of_highest)
                checkpoint = checkpoints[j]
            t += 1
    while checkpoint <= rounds:
        j = noted(record, j, total, mean_of_highest)
        checkpoint = checkpoints[j]
    record.n_played[0] = t - 1


def noted(
    record: Record,
    j: int,
    total: float,
    best_mean: float,
) -> int:
    """Fill in checkpoint ``j``; return the index of the next."""
    record.reward[j] = total
    record.best_mean[j] = best_mean
    return j + 1


# How the loop reaches a class's own methods: numba is taught to resolve these, and the
# contract's functions for the optional ones.


def select(policy: Policy, t: int, rng: Rng) -> int:
    """Return the arm to pull at round ``t``, or ``WAIT``."""
    return policy.select(t, rng)


def update(
    policy: Policy,
    t: int,
    arm: int,
    reward: float,
    rng: Rng,
) -> None:
    """Give the policy a reward."""
    policy.update(t, arm, reward, rng)


def mean(
    environment: Environment,
    arm: int,
    n: int,
    t: int,
) -> float:
    """Return the mean reward of an arm's ``n``-th pull, at round ``t``."""
    return environment.mean(arm, n, t)


def draw(
    environment: Environment,
    mean: float,
    arm: int,
    n: int,
    t: int,
    rng: Rng,
) -> float:
    """Return the reward of a pull whose mean is ``mean``."""
    return environment.draw(mean, arm, n, t, rng)


def _nothing_changes(policy: Policy, t: int, arm: int) -> None:
    return


def _one_pull(policy: Policy, arm: int) -> int:
    return 1


_STUBS: dict[Kernel, Any] = {
    select: None,
    started: _nothing_changes,
    update: None,
    slice_length: _one_pull,
    mean: None,
    draw: None,
}
"""Each with the function that is used where a class has no such method."""

_INNER: Any = {
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
}
"""Options of functions for compiled code alone: wrappers cost a tenth of the time."""


def loop_for(policy: Policy, environment: Environment, compiled: bool | None) -> Loop:
    """Return ``play``, compiled where ``compiled`` and the two classes allow it."""
    if compiled is False:
        return play
    try:
        return _ready(policy, environment)
    except (MissingDependencyError, PolicyError) as error:
        if compiled:
            raise
        _warn_once(str(error))
        return play


def _ready(policy: Policy, environment: Environment) -> Loop:
    """Return the compiled loop, once it has played no round with these two."""
    for owner in (policy, environment):
        if not (isinstance(owner, tuple) and hasattr(owner, "_fields")):
            raise PolicyError(f"{type(owner).__name__} is not a NamedTuple")
    loop = _compiled(type(policy), type(environment))
    record = new_record(int_zeros(0), n_arms=0)
    try:
        loop(policy, environment, 0, np.random.default_rng(0), record)
    except Exception as error:  # not all that numba raises has a class in common
        raise PolicyError(
            f"numba cannot compile {type(policy).__name__} in "
            f"{type(environment).__name__}; risingsearch.testing.check_policy looks "
            "for the usual reasons, compiled=True shows what numba says"
        ) from error
    return loop


@cache
def _warn_once(reason: str) -> None:
    msg = f"simulating without compiling, up to 90 times slower: {reason}"
    warnings.warn(msg, RuntimeWarning, stacklevel=2)


@cache
def _compiled(policy_class: type, environment_class: type) -> Loop:
    """Return ``play``, compiled for the two classes on first use."""
    numba = _taught_numba()

    # Named one by one: numba dispatches ``*arguments`` ten times more slowly.
    def run(
        policy: Policy,
        environment: Environment,
        rounds: int,
        rng: Rng,
        record: Record,
    ) -> None:
        _compiled_play(  # type: ignore[name-defined]  # noqa: F821
            policy, environment, rounds, rng, record
        )

    classes = (policy_class, environment_class)
    names = [f"{owner.__module__}.{owner.__qualname__}" for owner in classes]
    # A cache file per pair and source: numba would unpickle one that another release
    # wrote, even to find it outdated, and fail where a class has moved since.
    run.__qualname__ = "-".join([*names, _digest(*classes)[:16]])
    is_cacheable = not any("__main__" in name or "<locals>" in name for name in names)
    try:
        loop: Loop = numba.njit(run, nogil=True, cache=is_cacheable)
    except RuntimeError:  # numba may write to no folder
        loop = numba.njit(run, nogil=True)
    return loop


@cache
def _taught_numba() -> ModuleType:
    """Return numba, taught to resolve the methods of our classes."""
    try:
        numba = import_module("numba")
    except ModuleNotFoundError as error:
        raise missing("numba", "sim") from error
    except ImportError as error:
        raise MissingDependencyError(
            f"numba is installed, but cannot be imported: {error}"
        ) from error
    from numba.extending import overload, register_jitable

    seen: set[FunctionType] = set()

    def jitable(function: Kernel) -> Kernel:
        for called in _called(function):
            if called not in seen and called not in _STUBS:
                seen.add(called)
                register_jitable(**_INNER)(jitable(called))
        return function

    def resolve(stub: Kernel) -> None:
        def implementation(owner: Any, *_: object) -> Kernel:
            return jitable(getattr(owner.instance_class, stub.__name__, _STUBS[stub]))

        options = _INNER | {"forceinline": True}
        overload(stub, strict=False, jit_options=options)(implementation)

    for stub in _STUBS:
        resolve(stub)
    jitable(play)
    # A module's global, because a dispatcher in a closure cell defeats the disk cache.
    globals()["_compiled_play"] = numba.njit(
        play,
        nogil=True,
        _nrt=False,
        **_INNER,
    )
    return numba


def _called(function: Kernel) -> Iterator[FunctionType]:
    """Yield the plain functions that a function names."""
    for value in _named(function):
        if isinstance(value, FunctionType):
            yield value


def _named(function: Kernel) -> Iterator[object]:
    """Yield the values that a function finds by name outside itself."""
    for name in function.__code__.co_names:
        if name in function.__globals__:
            yield function.__globals__[name]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # empty still
            yield cell.cell_contents


def _digest(*classes: type) -> str:
    """Return a digest of the files and constants that the compiled loop depends on."""
    package = Path(__file__).parents[1]
    files = {__file__}
    for folder in ("policies", "curves"):
        files.update(str(path) for path in (package / folder).rglob("*.py"))
    constants = []
    for function in _reached(classes):
        files.add(function.__code__.co_filename)
        for value in _named(function):
            if isinstance(value, ModuleType):
                files.add(getattr(value, "__file__", None) or "")
            elif isinstance(value, (bool, int, float, complex, str, tuple)):
                constants.append(repr(value))
            elif isinstance(value, np.ndarray):
                constants.append(value.tobytes().hex())
    digest = hashlib.sha256(repr(sorted(constants)).encode())
    for path in sorted(files):
        if Path(path).is_file():
            digest.update(Path(path).read_bytes())
    return digest.hexdigest()


def _reached(classes: Iterable[type]) -> set[FunctionType]:
    """Return the methods of the classes, and every function called on the way."""
    reached: set[FunctionType] = set()
    ahead = [
        getattr(value, "fget", value)
        for owner in classes
        for base in owner.__mro__
        for value in vars(base).values()
    ]
    while ahead:
        function = ahead.pop()
        if isinstance(function, FunctionType) and function not in reached:
            reached.add(function)
            ahead.extend(_called(function))
    return reached
