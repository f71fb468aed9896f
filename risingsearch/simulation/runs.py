"""Many runs of policies in an environment, in threads: ``simulate``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from risingsearch.checks import checked_array, checked_flag, checked_int
from risingsearch.curves.files import pandas
from risingsearch.errors import InvalidParameterError
from risingsearch.policies.arrays import Floats, Ints
from risingsearch.simulation.plan import (
    EnvironmentLike,
    Parameters,
    Plan,
    Player,
    PolicyLike,
    name_of,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """Result of ``simulate``: one row per run.

    Parameters
    ----------
    policy, environment : str
        Their names.
    horizon : int
        Number of rounds.
    checkpoints : ndarray of shape (n_checkpoints,)
        The rounds after which the next four were taken.
    regret : ndarray of shape (n_runs, n_checkpoints)
        The sum of the best policy up to there, less ``reward``.
    reward : ndarray of shape (n_runs, n_checkpoints)
        Sum of the means of the arms pulled (not of the noisy rewards).
    optimal : ndarray of shape (n_runs, n_checkpoints)
        The same sum for the best policy, by the reference of the environment.
    best_mean : ndarray of shape (n_runs, n_checkpoints)
        Mean of the pull whose reward was the highest so far: the quality of the model
        that a tuner would keep. NaN before the first pull.
    pulls : ndarray of shape (n_runs, n_arms)
        Pulls of each arm; 0 for arms that the environment of a run does not have.
    n_played : ndarray of shape (n_runs,)
        Rounds in which an arm was pulled: fewer than the horizon where the policy
        stops by its own rule or all arms have ended. A round not played pays nothing.
    arms, rewards : ndarray of shape (n_runs, horizon) or None
        With ``trace=True``, per round the arm, -1 if none, and the reward, NaN if it
        was not drawn.

    Examples
    --------
    >>> simulate("round-robin", "two-arm", 100, compiled=False)
    SimulationResult(round-robin in two-arm, 100 rounds, 1 runs, mean regret 19.94)
    """

    policy: str
    environment: str
    horizon: int
    checkpoints: Ints
    regret: Floats
    reward: Floats
    optimal: Floats
    best_mean: Floats
    pulls: Ints
    n_played: Ints
    arms: Ints | None = None
    rewards: Floats | None = None

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

        Examples
        --------
        >>> result = simulate("ucb1", "two-arm", 100, checkpoints=2, compiled=False)
        >>> result.to_frame()[["run", "round", "reward"]].round(3)
           run  round  reward
        0    0     50  15.603
        1    0    100  32.809
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
    policy: PolicyLike,
    environment: EnvironmentLike,
    horizon: int,
    n_runs: int = 1,
    seed: int = 0,
    checkpoints: int | Sequence[int] | None = None,
    jobs: int | None = None,
    *,
    policy_params: Parameters | None = None,
    environment_params: Parameters | None = None,
    trace: bool = False,
    compiled: bool | None = None,
) -> SimulationResult:
    """Play a policy in an environment, many times, at the speed of C.

    Good for comparing policies on paper before spending an epoch. The same source that
    serves a live search is compiled; a run is the same bit for bit either way.

    Parameters
    ----------
    policy : str or callable
        A registered name; a class with ``create`` or any ``(n_arms, horizon, max_pulls,
        **params) -> policy``.
    environment : str, callable or environment
        A registered name; a generator ``(rng, horizon, **params) -> environment``,
        called for every run; or an environment, the same for all runs.
    horizon : int
        Number of rounds, at least 1, which the policy knows.
    n_runs : int, default 1
        Independent runs, at least 1.
    seed : int, default 0
        Seed of everything random, at least 0. Run ``k`` is the same for any ``n_runs``
        and ``jobs``; its arms are the same for every policy and, where the generator
        allows it, every horizon.
    checkpoints : int or sequence of int, optional
        Rounds at which to note the regret, increasing, from 1 to ``horizon``; or how
        many, evenly spaced. By default the last round alone.
    jobs : int, optional
        Threads. By default one per processor, and one where the loop is interpreted.
        Ctrl-C ends them all, within a run too.
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
        Regret, reward and pulls of every run; ``to_frame`` makes a table of them.

    Raises
    ------
    InvalidParameterError
        If an argument is outside its range, or a name unknown.
    MissingDependencyError
        If ``compiled`` is True and numba is not installed.
    PolicyError
        If the policy lacks a part of the contract, does not fit the environment or
        chooses an arm that is not available, or ``compiled`` is True and it cannot be.

    Examples
    --------
    >>> result = simulate("cure-ucb", "two-arm", 20_000, n_runs=3)
    >>> result.regret.shape, result.pulls.sum(axis=1)
    ((3, 1), array([20000, 20000, 20000]))
    """
    horizon = checked_int("horizon", horizon, 1)
    marks = checked_checkpoints(checkpoints, horizon)
    trace = checked_flag("trace", trace)
    plan = Plan(
        [Player(policy, policy_params)],
        environment,
        environment_params,
        compiled,
        marks,
        horizon,
        trace,
    )
    runs = list(plan.play(n_runs, seed, jobs))
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
        n_played=np.concatenate([record.n_played for record in records]),
        arms=np.array([record.arms for record in records]) if trace else None,
        rewards=np.array([record.rewards for record in records]) if trace else None,
    )


def checked_checkpoints(checkpoints: int | Sequence[int] | None, horizon: int) -> Ints:
    """Return the rounds to note, or raise an error.

    Examples
    --------
    >>> checked_checkpoints(4, 100), checked_checkpoints(None, 100)
    (array([ 25,  50,  75, 100]), array([100]))
    """
    if checkpoints is None:
        return np.array([horizon], dtype=np.int64)
    if isinstance(checkpoints, Integral):
        number = min(checked_int("checkpoints", checkpoints, 1), horizon)
        return np.linspace(horizon / number, horizon, number).round().astype(np.int64)
    rounds = checked_array("checkpoints", checkpoints, dtype=None)
    if (
        rounds.ndim != 1
        or len(rounds) == 0
        or rounds.dtype.kind not in "iu"
        or rounds[0] < 1
        or rounds[-1] > horizon
        or np.any(np.diff(rounds) <= 0)
    ):
        raise InvalidParameterError(
            f"checkpoints must be increasing rounds from 1 to the horizon {horizon}, "
            f"or a number of them; got {checkpoints!r}"
        )
    return rounds.astype(np.int64)
