"""Several policies on the same runs: mean regret, ranks, wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from risingsearch.checks import checked_int
from risingsearch.curves.files import pandas
from risingsearch.errors import InvalidParameterError, unknown_name
from risingsearch.json_values import Json
from risingsearch.policies.arrays import Floats
from risingsearch.simulation.plan import (
    Environments,
    Plan,
    Player,
    Policies,
    counted,
    named_pairs,
)
from risingsearch.simulation.statistics import (
    average_ranks,
    half_width,
    table_rows,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Comparison:
    """Policies compared on the same arms with the same random draws, run by run.

    Parameters
    ----------
    policies, environments : list of str
        Their names.
    horizons : list of int
        Numbers of rounds; each is played separately, which the policies know.
    regret : ndarray of shape (n_environments, n_horizons, n_policies, n_runs)
        The regret at the end of every run.
    best_mean : ndarray of the same shape
        Mean of the pull with the highest reward: the quality of the model that a tuner
        would keep.

    Examples
    --------
    >>> result = compare(["ucb1", "random"], ["two-arm"], [100], compiled=False)
    >>> result.environments, result.regret.shape
    (['two-arm'], (1, 1, 2, 1))
    """

    policies: list[str]
    environments: list[str]
    horizons: list[int]
    regret: Floats
    best_mean: Floats

    def rows(self) -> list[Json]:
        """Return one row per environment, horizon and policy.

        Returns
        -------
        list of dict
            With environment, horizon, policy, mean_regret, low and high (the 95 %
            interval of the mean, Student's t over the runs; NaN for a single run),
            average_rank (1 is the lowest regret; ties share), best_mean, n_runs.

        Raises
        ------
        MissingDependencyError
            If scipy is not installed.

        Examples
        --------
        >>> names = ["ucb1", "random"]
        >>> result = compare(names, ["two-arm"], [100], n_runs=2, compiled=False)
        >>> [(row["policy"], row["average_rank"]) for row in result.rows()]
        [('ucb1', 1.0), ('random', 2.0)]
        """
        half = half_width(self.regret)
        mean = self.regret.mean(axis=-1)
        return table_rows(
            {
                "environment": self.environments,
                "horizon": self.horizons,
                "policy": self.policies,
            },
            {
                "mean_regret": mean,
                "low": mean - half,
                "high": mean + half,
                "average_rank": average_ranks(self.regret),
                "best_mean": self.best_mean.mean(axis=-1),
                "n_runs": np.full(mean.shape, self.regret.shape[-1]),
            },
        )

    def to_frame(self) -> pd.DataFrame:
        """Return ``rows`` as a table.

        Returns
        -------
        pandas.DataFrame
            One row per environment, horizon and policy.

        Raises
        ------
        MissingDependencyError
            If pandas or scipy is not installed.

        Examples
        --------
        >>> names = ["ucb1", "random"]
        >>> result = compare(names, ["two-arm"], [100], n_runs=2, compiled=False)
        >>> result.to_frame()[["policy", "average_rank"]]
             policy  average_rank
        0      ucb1           1.0
        1    random           2.0
        """
        return pandas().DataFrame(self.rows())

    def wins(
        self,
        environment: str,
        horizon: int,
    ) -> pd.DataFrame:
        """Return how often each policy beat each other one.

        Parameters
        ----------
        environment : str
            One of ``environments``.
        horizon : int
            One of ``horizons``.

        Returns
        -------
        pandas.DataFrame
            Share of the runs, from 0 to 1, in which the policy of the row had less
            regret than that of the column; a tie counts half, the diagonal is NaN.

        Raises
        ------
        InvalidParameterError
            If one of them was not played.

        Examples
        --------
        >>> names = ["ucb1", "random"]
        >>> result = compare(names, ["two-arm"], [100], n_runs=4, compiled=False)
        >>> result.wins("two-arm", 100)
                ucb1  random
        ucb1     NaN     1.0
        random   0.0     NaN
        """
        pd = pandas()
        regret = self._at(environment, horizon)
        less = regret[:, None] < regret[None, :]
        same = regret[:, None] == regret[None, :]
        shares = (less + 0.5 * same).mean(axis=-1)
        np.fill_diagonal(shares, np.nan)
        return pd.DataFrame(shares, self.policies, self.policies)

    def _at(
        self,
        environment: str,
        horizon: int,
    ) -> Floats:
        if environment not in self.environments:
            raise unknown_name("environment", environment, self.environments)
        if horizon not in self.horizons:
            raise InvalidParameterError(
                f"horizon must be one of {self.horizons}; got {horizon!r}"
            )
        e = self.environments.index(environment)
        h = self.horizons.index(horizon)
        return np.asarray(self.regret[e, h])


def compare(
    policies: Policies,
    environments: Environments,
    horizons: Sequence[int],
    n_runs: int = 1,
    seed: int = 0,
    jobs: int | None = None,
    *,
    compiled: bool | None = None,
    progress: bool = False,
) -> Comparison:
    """Play several policies on the same runs of several environments.

    Every policy meets the same arms and starts from the same generator in run ``k``, so
    that differences are paired. A run is the one that ``simulate`` plays.

    Parameters
    ----------
    policies : mapping or sequence
        Policies as ``simulate`` takes them, or pairs of one and a dict of its
        parameters; a mapping gives them names.
    environments : mapping or sequence
        The same for environments.
    horizons : sequence of int
        Numbers of rounds, each at least 1.
    n_runs : int, default 1
        Runs per environment and horizon, at least 1.
    seed, jobs, compiled
        As in ``simulate``.
    progress : bool, default False
        Count the runs in a line, on a terminal (needs tqdm).

    Returns
    -------
    Comparison
        The regret of every run; ``rows`` and ``to_frame`` make a table of it.

    Raises
    ------
    InvalidParameterError, MissingDependencyError, PolicyError
        As in ``simulate``.

    Examples
    --------
    >>> result = compare(["cure-ucb", "random"], ["ltf"], [1000], n_runs=20)
    >>> float(result.wins("ltf", 1000).loc["cure-ucb", "random"])
    0.95
    """
    named_policies = named_pairs("policies", policies)
    named_environments = named_pairs("environments", environments)
    horizons = [checked_int("every horizon", horizon, 1) for horizon in horizons]
    n_runs = checked_int("n_runs", n_runs, 1)
    players = [Player(*pair) for pair in named_policies.values()]
    regret = np.empty((len(named_environments), len(horizons), len(players), n_runs))
    best_mean = np.empty_like(regret)
    with counted(regret[:, :, 0].size, progress) as on_run:
        for (e, (environment, params)), (h, horizon) in product(
            enumerate(named_environments.values()), enumerate(horizons)
        ):
            last = np.array([horizon])
            plan = Plan(
                players,
                environment,
                params,
                compiled,
                last,
                horizon,
            )
            for k, run in enumerate(plan.play(n_runs, seed, jobs, on_run)):
                for p, record in enumerate(run.records):
                    regret[e, h, p, k] = run.optimal[-1] - record.reward[-1]
                    best_mean[e, h, p, k] = record.best_mean[-1]
    return Comparison(
        list(named_policies), list(named_environments), horizons, regret, best_mean
    )
