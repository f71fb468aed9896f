"""Searches replayed on recorded curves: which policy and budget would have been right.

>>> curves = 1 - np.outer(np.linspace(0.1, 0.5, 40), [1.0, 0.6, 0.4, 0.3, 0.25])
>>> names = ["auto", "random-search"]
>>> result = search_recorded(curves, names, [10, 50], n_runs=20, compiled=False)
>>> result.policies
['looks-then-slope', 'random-search']
>>> result.score.mean(axis=-1).round(3)
array([[0.952, 0.942],
       [0.974, 0.967]])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from risingsearch.checks import checked_float, checked_int
from risingsearch.curves.noise import Noise
from risingsearch.curves.rested import CurveTable
from risingsearch.errors import InvalidParameterError
from risingsearch.json_values import Json
from risingsearch.policies import (
    policy_info,
    recommended_arms,
    registered_name,
    resolve_policy,
)
from risingsearch.policies.arrays import Bools, Floats, Ints, Rng
from risingsearch.simulation.plan import (
    Parameters,
    Plan,
    Player,
    Policies,
    PolicyLike,
    counted,
    name_of,
    named_pairs,
)
from risingsearch.simulation.statistics import half_width, table_rows

EPOCH_SCHEDULERS = (
    "auto",
    "successive-halving",
    "asha",
    "hyperband",
    "median-stopping",
    "epsilon-greedy",
    "cure-ucb",
    "random-search",
)
MULTIPLES = (1, 2, 5, 10, 20)


@dataclass(frozen=True, eq=False)
class RecordedSearch:
    """Scores that searches with several policies and budgets would have found.

    Parameters
    ----------
    policies : list of str
        Their names.
    budgets : list of int
        Epochs, over all configurations.
    score : ndarray of shape (n_budgets, n_policies, n_runs)
        The recorded score of the best epoch that a search saw: the quality of the model
        that it ends with.
    epochs : ndarray of the same shape
        Epochs used: fewer than the budget where a policy stops by its own rule.
    best : float
        The best recorded score.
    typical : float
        The median of the configurations' best scores.

    Examples
    --------
    >>> curves = 1 - np.outer(np.linspace(0.1, 0.5, 40), [1.0, 0.6, 0.4, 0.3, 0.25])
    >>> names = ["asha", "random-search"]
    >>> result = search_recorded(curves, names, [20, 100], n_runs=5, compiled=False)
    >>> result.best, result.score.shape
    (0.975, (2, 2, 5))
    """

    policies: list[str]
    budgets: list[int]
    score: Floats
    epochs: Ints
    best: float
    typical: float

    @property
    def distance(self) -> Floats:
        """How far the scores are from the best recorded one, at least 0."""
        return np.abs(self.score - self.best)

    @property
    def mean_distance(self) -> Floats:
        """The mean of ``distance`` over the runs, of shape (n_budgets, n_policies)."""
        means: Floats = self.distance.mean(axis=-1)
        return means

    def rows(self) -> list[Json]:
        """Return one row per budget and policy, the best policy of a budget first.

        Returns
        -------
        list of dict
            With budget, policy, mean_score, low and high (its 95 % interval over the
            runs; NaN for a single run), distance (mean, from the best recorded score),
            epochs (mean), best (of its budget), as_good (as the best, as far as these
            runs can tell). As ``pandas.DataFrame`` takes them.

        Examples
        --------
        >>> curves = 1 - np.outer(np.linspace(0.1, 0.5, 40), [1.0, 0.6, 0.4, 0.3, 0.25])
        >>> names = ["asha", "random-search"]
        >>> result = search_recorded(curves, names, [20, 100], n_runs=5, compiled=False)
        >>> [(row["budget"], row["policy"]) for row in result.rows()]
        [(20, 'asha'), (20, 'random-search'), (100, 'asha'), (100, 'random-search')]
        """
        mean = self.score.mean(axis=-1)
        half = half_width(self.score)
        distance = self.mean_distance
        rows = table_rows(
            {
                "budget": self.budgets,
                "policy": self.policies,
            },
            {
                "mean_score": mean,
                "low": mean - half,
                "high": mean + half,
                "distance": distance,
                "epochs": self.epochs.mean(axis=-1),
                "best": np.arange(len(self.policies)) == distance.argmin(1)[:, None],
                "as_good": self.as_good(),
            },
        )
        return sorted(rows, key=lambda row: (row["budget"], row["distance"]))

    def winners(self) -> list[str]:
        """Return the policy of the best mean score, per budget.

        Returns
        -------
        list of str
            One for each of ``budgets``.
        """
        return [self.policies[p] for p in self.mean_distance.argmin(axis=-1)]

    def as_good(self) -> Bools:
        """Return which policies cannot be told from the winner of their budget.

        Returns
        -------
        ndarray of shape (n_budgets, n_policies)
            True where the 95 % interval of the mean difference, run by run, holds 0;
            so for the winner itself. With a single run, nothing can be told.

        Examples
        --------
        >>> curves = 1 - np.outer(np.linspace(0.1, 0.5, 40), [1.0, 0.6, 0.4, 0.3, 0.25])
        >>> names = ["asha", "random-search"]
        >>> result = search_recorded(curves, names, [20, 100], n_runs=5, compiled=False)
        >>> result.as_good()
        array([[ True,  True],
               [ True,  True]])
        """
        winner = self.mean_distance.argmin(axis=-1)
        of_winner = self.distance[np.arange(len(winner)), winner]
        behind = self.distance - of_winner[:, None]
        worse: Bools = behind.mean(axis=-1) > half_width(behind)
        return ~worse

    def enough(self, within: float | None = None) -> tuple[int, str] | None:
        """Return the smallest budget that finds nearly the best, and its policy.

        Parameters
        ----------
        within : float, optional
            How near, in units of the score, at least 0. By default a twentieth of the
            distance from ``typical`` to ``best``.

        Returns
        -------
        tuple of int and str, or None
            None if no mean score is that near.

        Raises
        ------
        InvalidParameterError
            If ``within`` is outside its range.

        Examples
        --------
        >>> curves = 1 - np.outer(np.linspace(0.1, 0.5, 40), [1.0, 0.6, 0.4, 0.3, 0.25])
        >>> names = ["asha", "random-search"]
        >>> result = search_recorded(curves, names, [20, 100], n_runs=5, compiled=False)
        >>> result.enough(within=0.05)
        (20, 'asha')
        """
        near = np.flatnonzero(self.mean_distance.min(axis=-1) <= self.near(within))
        if len(near) == 0:
            return None
        return self.budgets[near[0]], self.winners()[near[0]]

    def near(self, within: float | None = None) -> float:
        """Return the distance that counts as near; see ``enough``.

        Parameters
        ----------
        within : float, optional
            As of ``enough``.

        Returns
        -------
        float
            In units of the score.
        """
        if within is None:
            return 0.05 * abs(self.best - self.typical)
        return checked_float("within", within, 0.0)


def search_recorded(
    curves: ArrayLike,
    policies: Policies = EPOCH_SCHEDULERS,
    budgets: Sequence[int] | None = None,
    n_runs: int = 100,
    seed: int = 0,
    jobs: int | None = None,
    *,
    noise: Noise | str | float = 0.0,
    minimize: bool = False,
    compiled: bool | None = None,
    progress: bool = False,
) -> RecordedSearch:
    """Replay searches with several policies and budgets on recorded curves.

    Every run meets the configurations in another random order, the same for all
    policies and budgets. A policy gets the first of them: as many as its own rule
    recommends for the budget, and at least enough to use it up. One that needs scores
    from 0 to 1 takes the range of the recorded scores for that, where they lie outside.

    Parameters
    ----------
    curves : array-like of shape (n_configurations, n_epochs)
        The recorded scores; NaN after a configuration's last epoch.
    policies : mapping or sequence, optional
        As ``compare`` takes them. One that is not registered gets as many
        configurations as one without a rule of ``recommended_arms``.
    budgets : sequence of int, optional
        Epochs, each at least 1 and at most those of all curves. By default 1,
        2, 5, 10 and 20 times the longest curve, as far as they hold that many.
    n_runs : int, default 100
        Random orders, at least 1.
    seed, jobs, compiled
        As in ``simulate``.
    noise : Noise, str or float, default 0.0
        Noise on top of the scores that a policy sees, or its standard deviation.
    minimize : bool, default False
        Whether a lower score is better.
    progress : bool, default False
        As in ``compare``.

    Returns
    -------
    RecordedSearch
        The scores that every policy would have found with every budget.

    Raises
    ------
    InvalidParameterError, MissingDependencyError, PolicyError
        As in ``simulate``.

    Examples
    --------
    >>> curves = 1 - np.outer(np.linspace(0.1, 0.5, 40), [1.0, 0.6, 0.4, 0.3, 0.25])
    >>> names = ["asha", "random-search"]
    >>> result = search_recorded(curves, names, [20, 100], n_runs=5, compiled=False)
    >>> result.winners()
    ['asha', 'asha']
    """
    sign = -1.0 if minimize else 1.0
    table = CurveTable.create(sign * np.asarray(curves, dtype=float), noise, "best-arm")
    budgets = _checked_budgets(budgets, table)
    named = named_pairs("policies", policies, _name_of)
    shape = len(budgets), len(named), checked_int("n_runs", n_runs, 1)
    score = np.empty(shape)
    epochs = np.empty(shape, dtype=np.int64)
    longest = int(table.pulls.max())
    plans = {}
    for p, (policy, params) in enumerate(named.values()):
        declared = {
            **_declared_range(policy, table),
            **params,
        }
        player = Player(policy, declared, longest)
        name = registered_name(policy)
        if name is None:
            # It has no rule, as random has none.
            name = "random"
            params = {}
        for b, budget in enumerate(budgets):
            n_arms = recommended_arms(
                name,
                budget,
                longest,
                **params,
            )
            drawn = partial(_candidates, table=table, n_arms=n_arms)
            last = np.array([budget])
            plans[b, p] = Plan(
                [player],
                drawn,
                None,
                compiled,
                last,
                budget,
            )
    with counted(score.size, progress) as on_run:
        for place, plan in plans.items():
            for k, run in enumerate(plan.play(n_runs, seed, jobs, on_run)):
                score[place][k] = sign * run.records[0].best_mean[-1]
                epochs[place][k] = run.records[0].n_played[0]
    highest = np.nanmax(table.means, axis=1)
    return RecordedSearch(
        list(named),
        budgets,
        score,
        epochs,
        best=sign * float(highest.max()),
        typical=sign * float(np.median(highest)),
    )


def _checked_budgets(budgets: Sequence[int] | None, table: CurveTable) -> list[int]:
    longest = int(table.pulls.max())
    total = int(table.pulls.sum())
    if budgets is None:
        return sorted({min(multiple * longest, total) for multiple in MULTIPLES})
    checked = sorted({checked_int("a budget", budget, 1) for budget in budgets})
    if over := [budget for budget in checked if budget > total]:
        raise InvalidParameterError(
            f"a budget can be at most the {total} epochs that the curves hold in all; "
            f"got {over[0]}"
        )
    return checked


def _name_of(policy: PolicyLike) -> str:
    if isinstance(policy, str):
        return resolve_policy(policy)
    return name_of(policy)


def _declared_range(policy: PolicyLike, table: CurveTable) -> Parameters:
    """Return the curves' ``reward_range`` for a policy that needs it to be declared."""
    low = float(np.nanmin(table.means))
    high = float(np.nanmax(table.means))
    name = registered_name(policy)
    default = name and policy_info(name).parameters.get("reward_range")
    if not default or default[0] <= low <= high <= default[1]:
        return {}
    return {"reward_range": (low, high if low < high else low + 1.0)}


def _candidates(
    rng: Rng,
    budget: int,
    table: CurveTable,
    n_arms: int,
) -> CurveTable:
    order = rng.permutation(table.n_arms)
    enough = int(np.searchsorted(np.cumsum(table.pulls[order]), budget)) + 1
    drawn = order[: max(n_arms, enough)]
    return table._replace(means=table.means[drawn], pulls=table.pulls[drawn])
