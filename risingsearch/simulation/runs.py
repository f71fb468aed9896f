"""Many runs of policies in an environment, in threads: ``simulate``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import checked_int
from risingsearch.curves import make_environment
from risingsearch.curves.base import NEVER, fresh, pull_limits
from risingsearch.errors import InvalidParameterError, PolicyError
from risingsearch.policies import make_policy, resolve_policy
from risingsearch.simulation.engine import loop_for, play
from risingsearch.simulation.statistics import pandas

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """What ``simulate`` found: one row per run.

    Parameters
    ----------
    policy, environment : str
        Their names.
    horizon : int
        Number of rounds.
    checkpoints : ndarray of shape (n_checkpoints,)
        The rounds after which the next four were taken.
    regret : ndarray of shape (n_runs, n_checkpoints)
        What the best policy would have collected up to there, less ``reward``.
    reward : ndarray of shape (n_runs, n_checkpoints)
        Sum of the means of the arms pulled (not of the noisy rewards).
    optimal : ndarray of shape (n_runs, n_checkpoints)
        The same sum for the best policy, by the reference of the environment.
    best_mean : ndarray of shape (n_runs, n_checkpoints)
        Mean of the pull whose reward was the highest so far: how good the model is
        that a tuner would keep. NaN where nothing has been seen.
    pulls : ndarray of shape (n_runs, n_arms)
        Pulls of each arm; 0 for arms that the environment of a run does not have.
    n_played : ndarray of shape (n_runs,)
        Rounds in which an arm was pulled: fewer than the horizon where the policy
        stops by its own rule or all arms have ended. A round not played pays nothing.
    arms, rewards : ndarray of shape (n_runs, horizon) or None
        With ``trace=True``, per round the arm, -1 if none, and the reward, NaN if it
        was not drawn.
    """

    policy: str
    environment: str
    horizon: int
    checkpoints: NDArray[np.int64]
    regret: NDArray[np.float64]
    reward: NDArray[np.float64]
    optimal: NDArray[np.float64]
    best_mean: NDArray[np.float64]
    pulls: NDArray[np.int64]
    n_played: NDArray[np.int64]
    arms: NDArray[np.int64] | None = None
    rewards: NDArray[np.float64] | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return one row per run and checkpoint.

        Returns
        -------
        pandas.DataFrame
            Columns policy, environment, run, round, regret, reward, optimal, best_mean.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        """
        n_runs, n_checkpoints = self.regret.shape
        return pandas().DataFrame(
            {
                "policy": self.policy,
                "environment": self.environment,
                "run": np.repeat(np.arange(n_runs), n_checkpoints),
                "round": np.tile(self.checkpoints, n_runs),
                "regret": self.regret.ravel(),
                "reward": self.reward.ravel(),
                "optimal": self.optimal.ravel(),
                "best_mean": self.best_mean.ravel(),
            }
        )

    def __repr__(self) -> str:
        n_runs = len(self.regret)
        return (
            f"SimulationResult({self.policy} in {self.environment}, {self.horizon} "
            f"rounds, {n_runs} runs, mean regret {self.regret[:, -1].mean():.4g})"
        )


def simulate(
    policy: Any,
    environment: Any,
    horizon: int,
    n_runs: int = 1,
    seed: int = 0,
    checkpoints: int | Sequence[int] | None = None,
    jobs: int | None = None,
    *,
    policy_params: Mapping[str, Any] | None = None,
    environment_params: Mapping[str, Any] | None = None,
    trace: bool = False,
    compiled: bool | None = None,
) -> SimulationResult:
    """Play a policy in an environment, many times, at the speed of C.

    Good for comparing policies on paper before spending an epoch. The same source that
    serves a live search is compiled; a run is the same bit for bit either way.

    Parameters
    ----------
    policy : str, callable or policy
        A registered name; a class with ``create`` or any ``(n_arms, horizon, max_pulls,
        **params) -> policy``; or a policy ready for its first round, which is copied
        for every run.
    environment : str, callable or environment
        A registered name; a generator ``(rng, horizon, **params) -> environment``,
        called for every run; or an environment, the same for all runs.
    horizon : int
        Number of rounds, at least 1. The policy is told.
    n_runs : int, default 1
        Independent runs, at least 1.
    seed : int, default 0
        Of everything random, at least 0. Run ``k`` is the same whatever ``n_runs`` and
        ``jobs``; its arms are the same for every policy and, where the generator allows
        it, every horizon.
    checkpoints : int or sequence of int, optional
        Rounds at which to note the regret, increasing, from 1 to ``horizon``; or how
        many, evenly spaced. By default the last round alone.
    jobs : int, optional
        Threads. By default one per processor, and one where the loop is interpreted.
    policy_params, environment_params : mapping, optional
        Passed to the factory of the policy and to the generator.
    trace : bool, default False
        Keep every arm and reward: 16 bytes per round and run.
    compiled : bool, optional
        False: interpret. True: compile, or fail. By default compile where that is
        possible, and warn once where it is not.

    Returns
    -------
    SimulationResult

    Raises
    ------
    InvalidParameterError
        If an argument is outside its range, or a name unknown.
    MissingDependencyError
        If ``compiled`` is True and numba is not installed.
    PolicyError
        If the policy lacks the arrays of the contract or does not fit the environment,
        or ``compiled`` is True and it cannot be.

    Examples
    --------
    >>> result = simulate("cure-ucb", "two-arm", 20_000, n_runs=3)
    >>> result.regret.shape, result.pulls.sum(axis=1)
    ((3, 1), array([20000, 20000, 20000]))
    """
    player = Player(policy, policy_params)
    plan = Plan([player], environment, environment_params, compiled)
    marks = checked_checkpoints(checkpoints, horizon)
    runs = plan.play(marks, horizon, n_runs, seed, jobs, trace)
    records = [run.records[0] for run in runs]
    optimal = np.array([run.optimal for run in runs])
    reward = np.array([record.reward for record in records])
    n_arms = max(len(record.pulls) for record in records)
    return SimulationResult(
        policy=name_of(policy),
        environment=name_of(environment),
        horizon=horizon,
        checkpoints=marks,
        regret=optimal - reward,
        reward=reward,
        optimal=optimal,
        best_mean=np.array([record.best_mean for record in records]),
        pulls=np.array([np.pad(r.pulls, (0, n_arms - len(r.pulls))) for r in records]),
        n_played=np.array([record.n_played for record in records]),
        arms=np.array([record.arms for record in records]) if trace else None,
        rewards=np.array([record.rewards for record in records]) if trace else None,
    )


class Player:
    """A policy to be played, and its parameters."""

    def __init__(self, given: Any, params: Mapping[str, Any] | None = None) -> None:
        self._given: Any = resolve_policy(given) if isinstance(given, str) else given
        self._params = dict(params or {})
        self._ready_made = hasattr(given, "select") and not isinstance(given, type)
        if self._ready_made and self._params:
            msg = f"a ready-made policy takes no parameters; got {self._params}"
            raise InvalidParameterError(msg)

    def policy(self, environment: Any, horizon: int) -> Any:
        """Return a policy for a run, told how many pulls every arm can give."""
        n_arms, limits = environment.n_arms, pull_limits(environment, horizon)
        most = int(limits.max())
        if self._ready_made:
            policy: Any = deepcopy(self._given)
        elif isinstance(self._given, str):
            policy = make_policy(self._given, n_arms, horizon, most, **self._params)
        else:
            create = getattr(self._given, "create", self._given)
            policy = create(n_arms, horizon, most, **self._params)
        for name in ("available", "pulls_left"):
            size = len(getattr(policy, name, ()))
            if size != n_arms:
                msg = (
                    f"{type(policy).__name__} needs an array {name} with an entry for "
                    f"each of the {n_arms} arms; it has {size}"
                )
                raise PolicyError(msg)
        if self._ready_made and most > int(policy.pulls_left.max()):
            msg = (
                f"this {type(policy).__name__} was made for "
                f"{int(policy.pulls_left.max())} pulls of an arm, the environment "
                f"allows {most}: make it with max_pulls={most}"
            )
            raise PolicyError(msg)
        policy.pulls_left[:] = limits
        return policy


class Record(NamedTuple):
    """One policy's run."""

    reward: NDArray[np.float64]
    best_mean: NDArray[np.float64]
    pulls: NDArray[np.int64]
    n_played: int
    arms: NDArray[np.int64]
    rewards: NDArray[np.float64]


class Run(NamedTuple):
    """One run of all policies in the same environment."""

    optimal: NDArray[np.float64]
    records: list[Record]


class Plan:
    """Which policies play in which environment.

    Parameters
    ----------
    players : list of Player
        The policies.
    environment, environment_params, compiled
        As in ``simulate``.
    """

    def __init__(
        self,
        players: Sequence[Player],
        environment: Any,
        environment_params: Mapping[str, Any] | None,
        compiled: bool | None,
    ) -> None:
        self._players = players
        self._environment = environment
        self._params = dict(environment_params or {})
        self._compiled = compiled
        if hasattr(environment, "optimal") and self._params:
            msg = f"a ready-made environment takes no parameters; got {self._params}"
            raise InvalidParameterError(msg)

    def play(
        self,
        checkpoints: NDArray[np.int64],
        horizon: int,
        n_runs: int,
        seed: int,
        jobs: int | None,
        trace: bool = False,
    ) -> list[Run]:
        """Return the runs, in their order."""
        seed = checked_int("seed", seed, 0)
        seeds = np.random.SeedSequence(seed).spawn(checked_int("n_runs", n_runs, 1))
        first = self._sampled(_children(seeds[0])[0], horizon)
        loops = [
            loop_for(player.policy(first, horizon), fresh(first), self._compiled)
            for player in self._players
        ]
        if jobs is None:
            interpreted = all(loop is play for loop in loops)
            jobs = 1 if interpreted else _n_processors()

        def run(own: np.random.SeedSequence) -> Run:
            return self._run(loops, own, checkpoints, horizon, trace)

        if checked_int("jobs", jobs, 1) == 1:
            return [run(own) for own in seeds]
        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(run, seeds))

    def _run(
        self,
        loops: Sequence[Callable[..., int]],
        seed: np.random.SeedSequence,
        checkpoints: NDArray[np.int64],
        horizon: int,
        trace: bool,
    ) -> Run:
        environment = self._sampled(_children(seed)[0], horizon)
        records = []
        for player, loop in zip(self._players, loops, strict=True):
            policy = player.policy(environment, horizon)
            rng = _children(seed)[1]  # the same luck for every policy
            records.append(
                _record(loop, policy, environment, horizon, rng, checkpoints, trace)
            )
        return Run(environment.optimal(checkpoints), records)

    def _sampled(self, rng: np.random.Generator, horizon: int) -> Any:
        if isinstance(self._environment, str):
            return make_environment(self._environment, horizon, rng, **self._params)
        if hasattr(self._environment, "optimal"):
            return self._environment
        return self._environment(rng, horizon, **self._params)


def _children(seed: np.random.SeedSequence) -> list[np.random.Generator]:
    """Return new generators for the arms of a run and for its play."""
    again = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
    return [np.random.default_rng(child) for child in again.spawn(2)]


def _n_processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _record(
    loop: Callable[..., int],
    policy: Any,
    environment: Any,
    horizon: int,
    rng: np.random.Generator,
    checkpoints: NDArray[np.int64],
    trace: bool,
) -> Record:
    rounds = horizon if trace else 0
    reward, best_mean = np.zeros(len(checkpoints)), np.zeros(len(checkpoints))
    pulls = np.zeros(environment.n_arms, dtype=np.int64)
    arms, rewards = np.full(rounds, -1, dtype=np.int64), np.full(rounds, np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        n_played = loop(
            policy,
            fresh(environment),
            horizon,
            rng,
            np.append(checkpoints, NEVER),
            pulls,
            reward,
            best_mean,
            arms,
            rewards,
        )
    return Record(reward, best_mean, pulls, n_played, arms, rewards)


def checked_checkpoints(
    checkpoints: int | Sequence[int] | None, horizon: int
) -> NDArray[np.int64]:
    """Return the rounds to look at, or raise what is wrong with them."""
    horizon = checked_int("horizon", horizon, 1)
    if checkpoints is None:
        return np.array([horizon], dtype=np.int64)
    if isinstance(checkpoints, Integral):
        number = min(checked_int("checkpoints", checkpoints, 1), horizon)
        return np.linspace(horizon / number, horizon, number).round().astype(np.int64)
    rounds = np.asarray(checkpoints)
    if (
        rounds.ndim != 1
        or len(rounds) == 0
        or rounds.dtype.kind not in "iu"
        or rounds[0] < 1
        or rounds[-1] > horizon
        or np.any(np.diff(rounds) <= 0)
    ):
        msg = (
            f"checkpoints must be increasing rounds from 1 to the horizon {horizon}, "
            f"or a number of them; got {checkpoints!r}"
        )
        raise InvalidParameterError(msg)
    return rounds.astype(np.int64)


def name_of(given: Any) -> str:
    """Return what a policy or an environment is called in results."""
    if isinstance(given, str):
        return given
    given = getattr(given, "func", given)  # of a partial
    name = str(getattr(given, "__qualname__", type(given).__qualname__))
    return name.removesuffix(".create").rpartition(".")[2]
