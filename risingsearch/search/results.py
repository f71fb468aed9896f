"""Result of a search: its history, its arms and the best of them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from risingsearch.arms import (
    COLUMNS,
    PRIOR,
    Arm,
    Configuration,
    Params,
    Report,
    as_frame,
    sign_of,
)
from risingsearch.budget import Budget
from risingsearch.errors import RunDirError, SearchFailedError, SetupError, unknown_name
from risingsearch.search.corrected import Evidence
from risingsearch.search.examples import SCORES_OF, Values
from risingsearch.search.trainable import State, Trainable, restore

UNFINISHED = "stopped before its end"  # why a search has stopped with budget left


class History(list[Params]):
    """One row per epoch, in the order told; a string selects a column."""

    def __getitem__(self, key: Any) -> Any:
        """Return the row of a number, the rows of a slice or the column of a name."""
        if isinstance(key, str):
            columns = set(COLUMNS).union(*self)
            if key not in columns:
                raise unknown_name("column", key, columns)
            return [row.get(key, math.nan) for row in self]
        rows = super().__getitem__(key)
        if isinstance(key, slice):
            return History(rows)
        return rows

    def to_frame(self) -> Any:
        """Return the history as a pandas DataFrame."""
        return as_frame(self)


def history_of(
    recorded: Iterable[Configuration], reports: Mapping[int, Report]
) -> History:
    """Return the scheduler's history with the seconds and metrics of the reports."""
    rows = History()
    for row in recorded:
        seconds, metrics = measured(reports[row["job"]], row["epoch"])
        facts = {name: fact for name, fact in row.items() if name != "cost"}
        full = {name: facts.pop(name) for name in ("arm", "epoch", "score")}
        rows.append(full | {"seconds": seconds} | facts | metrics)
    return rows


def measured(report: Report, epoch: int) -> tuple[float, Params]:
    """Return the seconds and metrics of an arm's epoch; NaN and none if it was lost."""
    k = epoch - report.job.from_epoch - 1
    if k >= len(report.scores):
        return math.nan, {}
    return report.seconds[k], report.metrics[k]


@dataclass(frozen=True)
class SearchResult:
    """Result of a search.

    Parameters
    ----------
    best_arm, best_params : int or None, dict
        The arm with the best score, by its position among the candidates.
    best_score, best_epoch : float, int
        That score, in the user's direction, and the arm's epoch, from 1.
    history : History
        One row per charged epoch, in the order in which the policy was told: ``arm``,
        ``epoch``, ``score``, ``seconds``, ``round``, ``job``, ``reason``, the parts of
        the arm's index when it was chosen, ``failure`` if there was one, and other
        values that ``train`` returned. A metric replaces an index part of its name.
    candidates : list of dict
        The parameters of every arm.
    arms : list of Arm
        The status of every arm, and the reason for it.
    n_epochs, n_calls : int
        Epochs charged, and calls of ``train`` made; fewer where a failure has cost the
        rest of its job.
    stop_reason : str
        Why the search ended.
    direction : {"maximize", "minimize"}
        Whether higher or lower scores are better.
    failures : list of Report
        The jobs that failed, with the exceptions.
    left_out : str, optional
        The facts that ``RisingSearch.saved_result`` cannot show without running code of
        the directory, in one sentence; None where this is all.
    trust_in_prior : dict
        How far each earlier search is trusted in the end, by its name, from 0 to 1.
    metric, other_metrics : str, list of str
        The name of the score, and the columns of ``history`` with the numbers that
        ``train`` returned besides it.
    budget, spent : Budget, float
        The budget, with all that was added, and the part of it that is spent.
    begun : str, optional
        Date and time when the search was made, as in ISO 8601.
    wall_seconds, training_seconds : float
        Wall-clock seconds in which it ran, until the last job came back, and those of
        training, summed over all workers, those of failed epochs included.
    max_epochs : int, optional
        Epochs one arm can use at most; None where that is the whole budget.
    returned_at : dict of int to float
        By job, after how many wall-clock seconds it came back.
    repeats : dict of int to list of float
        By arm, its scores when it was trained again with other seeds, for ``confirm``.
    _trainable, _best_checkpoint
        What ``best_state`` makes the trained state from.
    _examples : dict of int to ndarray
        What is known of the examples of the arms, each at its best epoch.

    Attributes
    ----------
    corrected_score : float
        The best score, corrected for having been chosen among many; see
        ``docs/results.md``. NaN where nothing is known of its noise.
    corrected_interval : tuple of float
        Its 95 % interval.
    tied : list of int
        The arms that 95 % cannot tell from the best one, after correction for having
        chosen among all; the best first.
    corrected_source : str
        What tells of the noise, in words.

    Examples
    --------
    >>> from risingsearch import Functions, RisingSearch
    >>> def start(params, seed):
    ...     return {"epochs": 0, **params}
    >>> def train(state):
    ...     state["epochs"] += 1
    ...     return state["top"] * (1 - 0.5 ** state["epochs"])
    >>> candidates = [{"top": 0.6}, {"top": 0.9}]
    >>> search = RisingSearch(Functions(start, train), candidates, budget=8, seed=0)
    >>> result = search.run()
    >>> result.best_params, result.best_epoch, result.stop_reason
    ({'top': 0.9}, 7, 'the budget of 8 epochs is spent')
    """

    best_params: Params
    best_score: float
    best_epoch: int
    best_arm: int | None
    history: History = field(repr=False)
    candidates: list[Params] = field(repr=False)
    arms: list[Arm] = field(repr=False)
    n_epochs: int
    n_calls: int
    stop_reason: str
    direction: str
    failures: list[Report] = field(repr=False)
    _trainable: Trainable = field(repr=False)
    _best_checkpoint: bytes | RunDirError | SetupError | None = field(repr=False)
    left_out: str | None = None
    trust_in_prior: dict[str, float] = field(default_factory=dict)
    metric: str = "score"
    other_metrics: list[str] = field(default_factory=list)
    budget: Budget | None = None
    spent: float = math.nan
    begun: str | None = None
    wall_seconds: float = math.nan
    training_seconds: float = 0.0
    max_epochs: int | None = None
    returned_at: dict[int, float] = field(default_factory=dict, repr=False)
    repeats: dict[int, list[float]] = field(default_factory=dict)
    _examples: dict[int, Values] = field(default_factory=dict, repr=False)

    @cached_property
    def evidence(self) -> Evidence | None:
        """Scores of arms and examples, which tell how far the best can be trusted."""
        if self.best_arm is None:
            return None
        return Evidence(
            winner=self.best_arm,
            scores={arm.arm: arm.best_score for arm in self.arms if arm.best_epoch},
            sign=sign_of(self.direction),
            curves=self.curves,
            examples=self._examples,
            repeats=self.repeats,
            scores_of=getattr(self._trainable, SCORES_OF, None),
        )

    @property
    def corrected_score(self) -> float:
        """The best score, corrected for having been chosen among many."""
        return math.nan if self.evidence is None else self.evidence.verdict.score

    @property
    def corrected_interval(self) -> tuple[float, float]:
        """The 95 % interval of the corrected score."""
        if self.evidence is None:
            return (math.nan, math.nan)
        return self.evidence.verdict.interval

    @property
    def tied(self) -> list[int]:
        """The arms that 95 % cannot tell from the best one."""
        return [] if self.evidence is None else self.evidence.verdict.tied

    @property
    def corrected_source(self) -> str:
        """The source of the correction, in words."""
        return "" if self.evidence is None else self.evidence.verdict.source

    @property
    def standing(self) -> str:
        """How the best arm stands among all, as a clause; empty without a score."""
        return "" if self.evidence is None else self.evidence.verdict.text

    @property
    def opened_by_prior(self) -> list[int]:
        """The arms that earlier searches have opened."""
        rows = (row for row in self.history if row["reason"] == PRIOR)
        return list(dict.fromkeys(row["arm"] for row in rows))

    @property
    def curves(self) -> dict[int, list[float]]:
        """The scores of every opened arm, epoch by epoch.

        An epoch lost to a failure is NaN until a retry replaces it.
        """
        curves: dict[int, list[float]] = {}
        for row in self.history:
            curves.setdefault(row["arm"], [])[row["epoch"] - 1 :] = [row["score"]]
        return curves

    def best_state(self) -> State:
        """Return the trained state of the best arm at its best epoch, ready to use."""
        if self._best_checkpoint is None:
            raise SearchFailedError(
                "no epoch has had a finite score, so there is no best state"
            )
        if isinstance(self._best_checkpoint, RunDirError | SetupError):
            raise self._best_checkpoint
        return restore(self._trainable, self._best_checkpoint)

    def to_frame(self) -> Any:
        """Return the history as a pandas DataFrame, one row per epoch."""
        return self.history.to_frame()

    def plot_allocation(self, ax: Any = None, **options: Any) -> Any:
        """Draw which arm trained when; see ``risingsearch.plotting``."""
        from risingsearch.plotting import plot_allocation

        return plot_allocation(
            self.history,
            ax=ax,
            direction=self.direction,
            metric=self.metric,
            **options,
        )

    def plot_curves(self, ax: Any = None, **options: Any) -> Any:
        """Draw the learning curves of all arms; see ``risingsearch.plotting``."""
        from risingsearch.plotting import plot_curves

        return plot_curves(
            self.history,
            ax=ax,
            direction=self.direction,
            metric=self.metric,
            **options,
        )

    def _repr_html_(self) -> str:
        from risingsearch.plotting.fragment import result_html

        return result_html(self)
