"""Runs of policies in an environment, in threads: for ``simulate`` and ``compare``."""

from __future__ import annotations

import os
import reprlib
import time
from collections.abc import (
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from risingsearch.checks import LARGEST_SEED, call_problem, checked_flag, checked_int
from risingsearch.curves import make_environment
from risingsearch.curves.base import Environment, fresh, pull_limits
from risingsearch.errors import InvalidParameterError, PolicyError, needed
from risingsearch.policies import make_policy, resolve_policy
from risingsearch.policies.arrays import Floats, Ints, Rng
from risingsearch.policies.base import Policy, check_contract
from risingsearch.simulation.engine import (
    Loop,
    Record,
    loop_for,
    new_record,
    play,
)

Kind = TypeVar("Kind")
PolicyLike: TypeAlias = str | Callable[..., Policy]
"""A registered name, a class with ``create``, or another factory."""

EnvironmentLike: TypeAlias = str | Environment | Callable[..., Environment]
"""A registered name, an environment, or a generator of environments."""

Parameters: TypeAlias = Mapping[str, object]
Pair: TypeAlias = tuple[Kind, Parameters | None]
Several: TypeAlias = Mapping[str, Kind | Pair[Kind]] | Sequence[Kind | Pair[Kind]]
Policies: TypeAlias = Several[PolicyLike]
Environments: TypeAlias = Several[EnvironmentLike]


# Runs given to the threads at a time, so that memory does not grow with their number.
AT_ONCE = 1000


class PlayedRun(NamedTuple):
    """One run of all policies in the same environment."""

    optimal: Floats
    records: list[Record]


class Player:
    """A policy to be played, given with its parameters as ``simulate`` takes them.

    ``longest`` is how many pulls of an arm it is told of: None for the most in its run,
    which a live search does not know of the candidates that it has drawn.
    """

    def __init__(
        self,
        policy: PolicyLike,
        params: Parameters | None = None,
        longest: int | None = None,
    ) -> None:
        if isinstance(policy, str):
            policy = partial(make_policy, resolve_policy(policy))
        elif isinstance(policy, type):
            policy = getattr(policy, "create", policy)
        self._make = _with_params(
            "policy", policy, "n_arms, horizon, max_pulls", params
        )
        self._longest = longest

    def policy(
        self,
        environment: Environment,
        horizon: int,
    ) -> Policy:
        """Return a policy for a run, told how many pulls every arm can give."""
        limits = pull_limits(environment, horizon)
        max_pulls = min(self._longest or int(limits.max()), horizon)
        policy: Policy = self._make(environment.n_arms, horizon, max_pulls)
        check_contract(policy, environment.n_arms)
        policy.available[:] = limits > 0
        policy.pulls_left[:] = limits
        ends = getattr(policy, "horizon", None)
        if isinstance(ends, np.ndarray):
            ends[:] = horizon
        return policy


class Plan:
    """Policies in an environment, given as ``simulate`` takes it; played once."""

    def __init__(
        self,
        players: Sequence[Player],
        environment: EnvironmentLike,
        environment_params: Parameters | None,
        compiled: bool | None,
        checkpoints: Ints,
        horizon: int,
        trace: bool = False,
    ) -> None:
        self._players = players
        self._compiled = compiled
        if compiled is not None:
            self._compiled = checked_flag("compiled", compiled)
        self._checkpoints = checkpoints
        self._horizon = horizon
        self._rounds_kept = horizon if trace else 0
        self._loops: dict[tuple[type, type], Loop] = {}
        self._optimal: Floats | None = None
        self._under_way: dict[int, Ints] = {}  # thread: pulls left
        self._ended = False
        params = environment_params or {}
        if hasattr(environment, "optimal"):
            if params:
                raise InvalidParameterError(
                    f"a ready-made environment takes no parameters; got {params}"
                )
            self._optimal = environment.optimal(checkpoints)
            self._sample: Callable[..., Any] = lambda rng, horizon: environment
        elif isinstance(environment, str):
            make = partial(make_environment, environment)
            named = _with_params(
                "environment",
                make,
                "horizon, rng",
                params,
            )
            self._sample = lambda rng, horizon: named(horizon, rng)
        else:
            self._sample = _with_params(
                "environment", environment, "rng, horizon", params
            )

    def play(
        self,
        n_runs: int,
        seed: int,
        jobs: int | None,
        on_run: Callable[[object], object] = lambda _: None,
    ) -> Iterator[PlayedRun]:
        """Yield the runs, in their order; ``on_run`` is called after each."""
        root = np.random.SeedSequence(checked_int("seed", seed, 0, LARGEST_SEED))
        n_runs = checked_int("n_runs", n_runs, 1)
        if jobs is not None:
            jobs = checked_int("jobs", jobs, 1)
        [first] = np.random.SeedSequence(seed).spawn(1)
        environment = self._sample(_generators(first)[0], self._horizon)
        loops = [
            self._loop(player.policy(environment, self._horizon), environment)
            for player in self._players
        ]
        if jobs in (None, 1) and all(loop is play for loop in loops):
            for _ in range(n_runs):
                yield self._run(*root.spawn(1))
                on_run(None)
            return
        # Compiled code ignores Ctrl-C: even a single job leaves this thread free.
        pool = ThreadPoolExecutor(jobs or _n_processors())
        try:
            for begin in range(0, n_runs, AT_ONCE):
                seeds = root.spawn(min(AT_ONCE, n_runs - begin))
                futures = [pool.submit(self._run, child) for child in seeds]
                for future in futures:
                    future.add_done_callback(on_run)
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                yield from [future.result() for future in futures if future in done]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            self._end()

    def _run(self, seed: np.random.SeedSequence) -> PlayedRun:
        environment = self._sample(_generators(seed)[0], self._horizon)
        optimal = self._optimal
        if optimal is None:
            optimal = environment.optimal(self._checkpoints)
        # Every policy gets the same draws.
        records = [
            self._record(player, environment, _generators(seed)[1])
            for player in self._players
        ]
        return PlayedRun(optimal, records)

    def _record(
        self,
        player: Player,
        environment: Environment,
        rng: Rng,
    ) -> Record:
        """Return a policy's run."""
        policy = player.policy(environment, self._horizon)
        loop = self._loop(policy, environment)
        record = new_record(self._checkpoints, environment.n_arms, self._rounds_kept)
        with self._listed(policy), np.errstate(over="ignore", invalid="ignore"):
            try:
                loop(
                    policy,
                    fresh(environment),
                    self._horizon,
                    rng,
                    record,
                )
            except PolicyError as error:
                n_pulls = record.pulls.sum()
                raise PolicyError(
                    f"{type(policy).__name__}, after {n_pulls} pulls: {error}"
                ) from error
        return record

    def _loop(
        self,
        policy: Policy,
        environment: Environment,
    ) -> Loop:
        classes = type(policy), type(environment)
        if classes not in self._loops:
            loop = loop_for(policy, fresh(environment), self._compiled)
            self._loops[classes] = loop
        return self._loops[classes]

    @contextmanager
    def _listed(self, policy: Policy) -> Iterator[None]:
        self._under_way[get_ident()] = policy.pulls_left
        try:
            if self._ended:
                raise CancelledError
            yield
        finally:
            del self._under_way[get_ident()]

    def _end(self) -> None:
        """Let every arm end with its next pull, so that the loops return at once."""
        self._ended = True
        while self._under_way:
            for left in list(self._under_way.values()):
                np.minimum(left, 1, out=left)
            time.sleep(0.01)


@contextmanager
def counted(n_runs: int, progress: bool) -> Iterator[Callable[[object], object]]:
    """Show a line on a terminal that counts runs; yield a function that counts one."""
    if not progress:
        yield lambda _: None
        return
    with needed("tqdm", "cli"):
        from tqdm.auto import tqdm
    with tqdm(
        total=n_runs,
        unit=" runs",
        disable=None,
        leave=False,
    ) as line:
        yield lambda _: line.update()


def _generators(seed: np.random.SeedSequence) -> list[Rng]:
    """Return new generators for the arms of a run and for its play."""
    again = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
    return [np.random.default_rng(child) for child in again.spawn(2)]


def _with_params(
    kind: str,
    make: object,
    takes: str,
    params: Parameters | None,
) -> Callable[..., Any]:
    """Return the factory with its parameters, or raise why it cannot be called so."""
    if not callable(make):
        also = ", or one ready-made" * (kind == "environment")
        raise InvalidParameterError(
            f"{kind} must be a registered name or a function of ({takes}) that makes "
            f"one{also}; got {reprlib.repr(make)}"
        )
    given = dict(params or {})
    if why := call_problem(make, takes, **given):
        raise InvalidParameterError(
            f"{name_of(make)} must take ({takes}) and {kind}_params {given}: {why}"
        )
    return partial(make, **given)


def _n_processors() -> int:
    # This process may have fewer processors than the machine.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def name_of(player: object) -> str:
    """Return the name of a policy or an environment in results."""
    if isinstance(player, str):
        return player
    player = getattr(player, "func", player)  # of a partial
    name = str(getattr(player, "__qualname__", type(player).__qualname__))
    return name.removesuffix(".create").rpartition(".")[2]


def named_pairs(
    kind: str, items: object, name_of: Callable[[Any], str] = name_of
) -> dict[str, tuple[Any, Parameters]]:
    """Return pairs of policies or environments and their parameters, by names."""
    if isinstance(items, str) or callable(items):
        items = [items]
    if not isinstance(items, Collection) or not len(items):
        raise InvalidParameterError(f"{kind} must be at least one; got {items!r}")
    if isinstance(items, Mapping):
        return {str(name): _pair(kind, item) for name, item in items.items()}
    named = {name_of(pair[0]): pair for pair in (_pair(kind, item) for item in items)}
    if len(named) < len(items):
        raise InvalidParameterError(
            f"two share a name in {list(named)}: give names of your own"
        )
    return named


def _pair(kind: str, item: object) -> tuple[Any, Parameters]:
    # A policy is a tuple too, but has names.
    if not isinstance(item, tuple) or hasattr(item, "_fields"):
        return item, {}
    if len(item) != 2 or not isinstance(item[1], Mapping | None):
        raise InvalidParameterError(
            f"{kind} must be names, functions, or pairs of one with a dict of its "
            f"parameters; got {reprlib.repr(item)}"
        )
    return item[0], dict(item[1] or {})
