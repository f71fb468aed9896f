"""What a budget has left, in epochs or in any cost measured as the arms train."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import Budget, Job
from risingsearch.checks import checked_float, checked_int, shown
from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.epoch_costs import EpochCosts
from risingsearch.scheduling.jobs import Result
from risingsearch.scheduling.slow_starts import NOTHING_KNOWN, SlowStarts, Start
from risingsearch.scheduling.units import BY_THE_CLOCK, budget_of, in_unit


class EpochBudget:
    """A budget in epochs: every reservation is exact, so it is never exceeded."""

    unit = "epochs"
    start_worth = 1.0  # starts cost no epochs
    spent: float
    reserved: float

    def __init__(self, total: int, n_arms: int) -> None:
        self.total = total
        self.n_arms = n_arms
        self.spent = 0
        self.reserved = 0

    def affordable(self) -> NDArray[np.int64]:
        """Return how many epochs of each arm the rest of the budget pays for."""
        left = self.total - self.spent - self.reserved
        return np.full(self.n_arms, left, dtype=np.int64)

    def pulls_left(
        self, left: NDArray[np.int64], busy: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Return how many epochs each arm can get, of those it has ``left``."""
        return left

    def horizon(self, rounds: int) -> NDArray[np.float64]:
        """Return the last round, for each arm: the budget itself."""
        return np.full(self.n_arms, float(self.total))

    def reserve(self, job: Job) -> None:
        """Set the job's epochs aside."""
        self.reserved += job.n_epochs

    def settle(self, result: Result) -> None:
        """Spend what is charged of the job's epochs and free the rest."""
        self.reserved -= result.job.n_epochs
        self.spent += result.charged

    def extend(self, budget: int | Budget) -> None:
        """Add more epochs."""
        extra = open_budget(budget, 1)
        if not isinstance(extra, EpochBudget):
            msg = (
                "the budget is in epochs: extend it by a whole number, not "
                f"{shown(budget)}"
            )
            raise InvalidParameterError(msg)
        self.total += extra.total

    def arrays(self) -> list[NDArray[Any]]:
        """Return no arrays."""
        return []

    def facts(self) -> Any:
        """Return everything."""
        return self.total, self.spent, self.reserved

    def put_back(self, facts: Any) -> None:
        """Restore what ``facts`` returned."""
        self.total, self.spent, self.reserved = facts

    def state_dict(self) -> dict[str, Any]:
        """Return the budget as JSON values."""
        return {"total": self.total, "spent": self.spent, "reserved": self.reserved}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned."""
        self.total = state["total"]
        self.spent = state["spent"]
        self.reserved = state["reserved"]


class PricedEpochBudget(EpochBudget):
    """A budget in epochs of which an arm's own cost more or less than one.

    Their costs are known before, so it is never exceeded either.
    """

    def __init__(self, total: int, n_arms: int, costs: EpochCosts) -> None:
        super().__init__(total, n_arms)
        self.costs = costs
        self.epochs = np.zeros(n_arms, dtype=np.int64)  # charged

    def affordable(self) -> NDArray[np.int64]:
        """Return how many epochs of each arm the rest of the budget pays for."""
        left = self.total - self.spent - self.reserved
        return self.costs.affordable(self.epochs, left)

    def pulls_left(
        self, left: NDArray[np.int64], busy: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Return how many epochs each arm can get, of those it has ``left``.

        What the busy ones get now is reserved already.
        """
        return np.where(busy, left, np.minimum(left, self.affordable()))

    def horizon(self, rounds: int) -> NDArray[np.float64]:
        """Return the last round, if each costs what an arm's middle epoch does.

        Arms train many of the first, cheap epochs, and few of the last.
        """
        left = self.total - self.spent - self.reserved
        return np.full(self.n_arms, rounds + left / self.costs.middle)

    def reserve(self, job: Job) -> None:
        """Set aside what the job's epochs cost."""
        self.reserved += self.costs.of(job.from_epoch, job.n_epochs)

    def settle(self, result: Result) -> None:
        """Spend what the charged ones of the job's epochs cost, and free the rest."""
        job, charged = result.job, result.charged
        self.reserved -= self.costs.of(job.from_epoch, job.n_epochs)
        self.spent += self.costs.of(job.from_epoch, charged)
        self.epochs[job.arm] += charged

    def arrays(self) -> list[NDArray[Any]]:
        """Return how many epochs of every arm were charged."""
        return [self.epochs]

    def state_dict(self) -> dict[str, Any]:
        """Return the budget as JSON values."""
        return super().state_dict() | {"epochs": self.epochs.tolist()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned."""
        super().load_state_dict(state)
        self.epochs[:] = state["epochs"]


class CostBudget:
    """A budget in seconds or any other cost, known only after it was paid.

    An epoch is expected to cost what the arm's epochs have cost on average, or those
    of all arms while it has none; what failures have cost is spent and tells nothing. A
    job starts only while its expected cost fits, so the budget is overrun by no more
    than the error of that expectation. With ``costs`` an average is one over them.

    What a job takes to start comes on top, as ``SlowStarts`` has learnt it; jobs are
    long enough for that, or have the ``slice`` that a user has chosen.
    """

    def __init__(
        self,
        total: float,
        n_arms: int,
        unit: str,
        costs: EpochCosts | None = None,
        slice: int | None = None,
    ) -> None:
        self.total = total
        self.unit = unit
        self.costs = costs
        self.slice = slice
        self.starts = NOTHING_KNOWN
        self.paid = np.zeros(n_arms)
        self.epochs = np.zeros(n_arms, dtype=np.int64)
        self.lost = 0.0
        self.in_flight: dict[int, Job] = {}

    @property
    def spent(self) -> float:
        """What all jobs told so far have cost."""
        of_starts = self.starts.cost + self.starts.unknown_cost
        return float(self.paid.sum()) + self.lost + of_starts

    @property
    def start_worth(self) -> float:
        """Epochs that cost as much as the start of a job, 1 at least, or UNKNOWN."""
        return self.starts.worth

    @property
    def reserved(self) -> float:
        """What the jobs in flight are expected to cost."""
        rate = self._rate()
        return sum(self._expected(job, rate) for job in self.in_flight.values())

    def cost_per_epoch(self) -> NDArray[np.float64]:
        """Return the expected cost of each arm's next epoch; 0 while none is known."""
        rate = self._rate()
        return rate if self.costs is None else rate * self.costs.next(self.epochs)

    def _expected(self, job: Job, rate: NDArray[np.float64]) -> float:
        epochs = self._weight(job.from_epoch, job.n_epochs)
        return self.starts.expected + float(rate[job.arm]) * epochs

    def _weight(self, from_epoch: int, n_epochs: int) -> float:
        """Return for how many epochs these count."""
        if self.costs is None:
            return float(n_epochs)
        return self.costs.of(from_epoch, n_epochs)

    def _rate(self) -> NDArray[np.float64]:
        """Return what an epoch of each arm costs, or of ``costs`` one."""
        costs, weight = self.costs, self.epochs.astype(float)
        if costs is not None:
            weight = costs.until(self.epochs)
        overall = 0.0
        if weight.any():
            overall = self.paid.sum() / weight.sum()
        elif self.starts.unknown_epochs:
            overall = self.starts.unknown_cost / self.starts.unknown_epochs
        known = np.where(weight > 0.0, weight, 1.0)
        return np.where(weight > 0.0, self.paid / known, overall)

    def affordable(self) -> NDArray[np.int64]:
        """Return how many epochs of each arm the rest of the budget pays for."""
        left = self.total - self.spent - self.reserved - self.starts.expected
        epochs = self._epochs_for(left, self.cost_per_epoch())
        if self.costs is not None:
            next_costs = self.costs.next(self.epochs)
            return self.costs.affordable(self.epochs, epochs * next_costs)
        return np.where(epochs < 1.0, 0, np.minimum(epochs, 2.0**62)).astype(np.int64)

    def pulls_left(
        self, left: NDArray[np.int64], busy: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Return how many epochs each arm can get, of those it has ``left``.

        What the busy ones get now is reserved already.
        """
        return np.where(busy, left, np.minimum(left, self.affordable()))

    def horizon(self, rounds: int) -> NDArray[np.float64]:
        """Return the last round of each arm if it alone trained from now on."""
        left = self.total - self.spent - self.reserved
        return self._last_round(rounds, left)

    def _last_round(self, rounds: int, left: float) -> NDArray[np.float64]:
        """Return which round each arm reaches with what is left, its starts paid."""
        of_starts = self.starts.expected / (self.slice or max(1.0, self.start_worth))
        epochs = self._epochs_for(left, self.cost_per_epoch() + of_starts)
        return rounds + np.minimum(epochs, 2.0**62)

    def _epochs_for(
        self, left: float, cost: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if left <= 0.0:
            return np.zeros(len(self.paid))
        epochs = np.full(len(cost), math.inf)
        with np.errstate(over="ignore"):
            np.divide(left, cost, out=epochs, where=cost > 0)
        return epochs

    def reserve(self, job: Job) -> None:
        """Set the job's expected cost aside."""
        self.in_flight[job.id] = job

    def settle(self, result: Result) -> None:
        """Spend what the job has cost; what was expected where that is unknown."""
        del self.in_flight[result.job.id]
        cost = result.cost
        if cost is None:
            cost = self._expected(result.job, self._rate())
        if result.failure is not None or not result.charged:
            self.lost += cost
        else:
            self._learn(result, cost)

    def _learn(self, result: Result, cost: float) -> None:
        """Take apart what a job has cost: to start, and for its epochs."""
        job, charged, start = result.job, result.charged, result.start
        if start is None:  # nobody measures starts, or this one took no time
            start = Start()
            known = self.starts
            if known != NOTHING_KNOWN:
                known = known.known(0.0)
        elif start.is_known:
            known = self.starts.known(start.within + start.besides)
        elif self.starts.recent:
            expected = self._expected(replace(job, n_epochs=charged), self._rate())
            share = self.starts.expected / expected if expected else 0.0
            start = Start(cost * share, start.besides)
            known = self.starts.known(start.within)
        else:
            weight = self._weight(job.from_epoch, charged)
            self.starts = self.starts.unknown(cost, weight)
            self._compare()
            return
        self.starts = known
        self.paid[job.arm] += cost - start.within
        self.epochs[job.arm] += charged
        self._compare()

    def _compare(self) -> None:
        """Compare starts and epochs, unless a user has said how long jobs are."""
        if self.slice is None:
            epochs = self.epochs.sum()
            epoch = float(self.paid.sum() / epochs) if epochs else 0.0
            self.starts = self.starts.compared(epoch)

    def extend(self, budget: int | Budget) -> None:
        """Add more of the same kind."""
        added = in_unit(budget, self.unit)
        if added is None:
            msg = (
                f"this search has a budget in {self.unit}; extend it by "
                f"Budget({self.unit}=...), not by {shown(budget)}"
            )
            raise InvalidParameterError(msg)
        self.total += open_budget(added, 1).total

    def arrays(self) -> list[NDArray[Any]]:
        """Return what the epochs of every arm have cost, and how many they were."""
        return [self.paid, self.epochs]

    def facts(self) -> Any:
        """Return all else."""
        return self.total, self.lost, self.starts, dict(self.in_flight)

    def put_back(self, facts: Any) -> None:
        """Restore what ``facts`` returned."""
        self.total, self.lost, self.starts, in_flight = facts
        self.in_flight = dict(in_flight)

    def state_dict(self) -> dict[str, Any]:
        """Return the budget as JSON values."""
        state = {
            "total": self.total,
            "paid": self.paid.tolist(),
            "epochs": self.epochs.tolist(),
            "lost": self.lost,
            "in_flight": [job.to_json() for job in self.in_flight.values()],
        }
        if self.starts != NOTHING_KNOWN:
            state["starts"] = list(self.starts)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned."""
        self.total = state["total"]
        self.paid[:] = state["paid"]
        self.epochs[:] = state["epochs"]
        self.lost = state["lost"]
        self.starts = SlowStarts.from_json(state.get("starts"))
        jobs = [Job.from_json(job) for job in state["in_flight"]]
        self.in_flight = {job.id: job for job in jobs}


class WallClockBudget(CostBudget):
    """A budget in time by the clock, which passes whether a worker trains or not.

    There is no clock here: it stands where the last job came back. An epoch of an arm
    is expected to last as in ``CostBudget``, and no job starts that is expected to end
    too late. An arm alone can get no more epochs than the time has room for, all
    workers together as many times that as they are, so what the arms in flight can use
    is never all there is.
    """

    def __init__(
        self,
        total: float,
        n_arms: int,
        n_workers: int | None,
        costs: EpochCosts | None = None,
        unit: str = "wall_seconds",
        slice: int | None = None,
    ) -> None:
        super().__init__(total, n_arms, unit, costs, slice)
        self.n_workers = n_workers or 1
        self.now = 0.0
        self.started: dict[int, float] = {}  # by job

    @property
    def spent(self) -> float:
        """What the clock says."""
        return self.now

    @property
    def reserved(self) -> float:
        """Nothing: the time of a job passes for all workers at once."""
        return 0.0

    def pulls_left(
        self, left: NDArray[np.int64], busy: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Return how many epochs each arm can get, of those it has ``left``."""
        return np.minimum(left, self.affordable())

    def horizon(self, rounds: int) -> NDArray[np.float64]:
        """Return the last round of each arm if all workers trained arms like it."""
        return self._last_round(rounds, self.n_workers * (self.total - self.spent))

    def reserve(self, job: Job) -> None:
        """Record when the job has started, and how many run at once."""
        super().reserve(job)
        self.started[job.id] = self.now
        self.n_workers = max(self.n_workers, len(self.in_flight))

    def advance(self, job: Job, now: float) -> float:
        """Put the clock to when the job came back; return how long it was away."""
        self.pass_until(now)
        return max(0.0, now - self.started[job.id])

    def pass_until(self, now: float) -> None:
        """Put the clock forward, if it is not as far."""
        self.now = max(self.now, now)

    def settle(self, result: Result) -> None:
        """Learn how long an epoch of the arm takes, and a start."""
        super().settle(result)
        del self.started[result.job.id]

    def facts(self) -> Any:
        """Return all but the arrays."""
        return super().facts(), self.n_workers, self.now, dict(self.started)

    def put_back(self, facts: Any) -> None:
        """Restore what ``facts`` returned."""
        paid, self.n_workers, self.now, started = facts
        super().put_back(paid)
        self.started = dict(started)

    def state_dict(self) -> dict[str, Any]:
        """Return the budget as JSON values."""
        started = [[job, when] for job, when in self.started.items()]
        own = {"n_workers": self.n_workers, "now": self.now, "started": started}
        return super().state_dict() | own

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned."""
        super().load_state_dict(state)
        self.n_workers, self.now = state["n_workers"], state["now"]
        self.started = dict(state["started"])


def budget_within(
    budget: int | str | Budget | None, timeout: float | None
) -> int | Budget:
    """Return what a search may spend: its budget, or all the time until the timeout.

    Raises
    ------
    InvalidParameterError
        If there is neither, or the timeout is not above 0.

    Examples
    --------
    >>> budget_within(None, timeout=600).wall_seconds
    600.0
    """
    if timeout is None and budget is None:
        msg = (
            "say when the search ends: budget=300 for 300 epochs in all, or "
            "timeout=600 for 600 seconds by the clock"
        )
        raise InvalidParameterError(msg)
    if timeout is not None:
        timeout = checked_float("timeout, in seconds,", timeout, 0.0, open_low=True)
    return Budget(wall_seconds=timeout) if budget is None else budget_of(budget)


def open_budget(
    budget: int | Budget,
    n_arms: int,
    n_jobs: int | None = None,
    epoch_costs: Sequence[float] | None = None,
    slice: int | None = None,
) -> EpochBudget | CostBudget:
    """Return what keeps a budget, for so many jobs in flight of ``slice`` epochs.

    Raises
    ------
    InvalidParameterError
        If the budget is in none of its units, or not above 0.
    """
    costs = None if epoch_costs is None else EpochCosts(epoch_costs)
    if not isinstance(budget, Budget):
        return _in_epochs(budget, n_arms, costs)
    given = budget.units
    if len(given) != 1:
        units = [unit.name for unit in fields(Budget)]
        kinds = f"{', '.join(units[:-1])} and {units[-1]}"
        each = [f"Budget({unit}={shown(getattr(budget, unit))})" for unit in given]
        advice = f": write {' or '.join(each)}" if given else ""
        msg = f"a Budget has one of {kinds}; got {shown(budget)}{advice}"
        raise InvalidParameterError(msg)
    if budget.epochs is not None:
        return _in_epochs(budget.epochs, n_arms, costs)
    [unit] = given
    total = checked_float("budget", getattr(budget, unit), 0.0, open_low=True)
    if unit in BY_THE_CLOCK:
        return WallClockBudget(total, n_arms, n_jobs, costs, unit, slice)
    return CostBudget(total, n_arms, unit, costs, slice)


def _in_epochs(budget: int, n_arms: int, costs: EpochCosts | None) -> EpochBudget:
    total = checked_int("budget", budget, 1)
    if costs is None:
        return EpochBudget(total, n_arms)
    return PricedEpochBudget(total, n_arms, costs)
