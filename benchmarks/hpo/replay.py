"""One search on a recorded table, compiled or through the product's ``Scheduler``."""

from __future__ import annotations

import heapq
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.hpo.draws import Search
from benchmarks.hpo.methods import ORACLE, Method
from benchmarks.hpo.tasks import Task
from benchmarks.hpo.unknown_ends import UnknownEnds
from risingsearch import Budget, Job, Scheduler
from risingsearch.curves import CurveTable
from risingsearch.policies import (
    make_policy,
    policy_info,
    recommended_arms,
    resolve_policy,
)
from risingsearch.scheduling.policy_choice import choose_policy
from risingsearch.simulation import simulate

GROWTH = 1.5
"""Factor by which a budget grows that was not known beforehand."""


class Setting(NamedTuple):
    """Under which conditions all methods search.

    Parameters
    ----------
    noise : float
        Standard deviation of what is added to the scores that are seen.
    n_jobs : int
        Jobs in flight.
    known : bool
        Whether the budget is known beforehand; otherwise it is ``R`` at first and
        extended by factors of ``GROWTH``.
    unit : {"epochs", "seconds"}
        Of the budget. In seconds it buys as many epochs of average cost.
    live : bool
        Through the ``Scheduler`` also where the compiled simulation does the same.
    """

    noise: float = 0.0
    n_jobs: int = 1
    known: bool = True
    unit: str = "epochs"
    live: bool = False

    @property
    def compiled(self) -> bool:
        """Whether a simulation does the same as a ``Scheduler``."""
        plain = self.n_jobs == 1 and self.known and self.unit == "epochs"
        return plain and not self.live


class Outcome(NamedTuple):
    """What came of a search."""

    regret: float  # of the clean score of the epoch that is picked
    winner_share: float  # of the epochs, spent on the configuration that is picked
    pauses: int  # times that another arm went on before the last one had ended
    opened: int
    used: float  # share of the budget
    in_vain: float  # share of the epochs, ``spent_in_vain``
    idle: float = 0.0  # share of the workers' time


def search(
    run: Search, method: Method, multiple: float, setting: Setting
) -> Outcome | None:
    """Return what a method makes of ``multiple * R`` epochs.

    None where the table does not hold that many, or another tool fails.
    """
    task = run.task
    budget = round(multiple * task.max_epochs)
    if budget > run.lengths.sum():
        return None
    if method.policy == ORACLE:
        return oracle(run, budget)
    if method.play is not None:
        trained = method.play(run, budget)
        return None if trained is None else judge(run, trained, budget)
    if setting.compiled and not proposes(method, task):
        return judge(run, simulated(run, method, budget), budget)
    arms, idle = scheduled(run, method, budget, setting)
    return judge(run, arms, budget)._replace(idle=idle)


def oracle(run: Search, budget: int) -> Outcome:
    """Return the best outcome of any search that opens arms in this order.

    It knows every curve: it opens arms one by one, an epoch each, up to the one that
    gets all the rest of the budget and is the best for that.
    """
    curves = run.task.curves[run.order]
    ends = np.array(
        [
            np.nanmax(curve[: budget - i])
            for i, curve in enumerate(curves[: min(len(curves), budget)])
        ]
    )
    i = int(ends.argmax())
    epochs = int(np.nanargmax(curves[i][: budget - i])) + 1
    used = (i + epochs) / budget
    regret = run.task.regret(float(ends[i]))
    return Outcome(regret, epochs / (i + epochs), i, i + 1, used, in_vain=0.0)


def n_candidates(
    run: Search, method: Method, budget: int, share: NDArray[np.float64]
) -> int:
    """Return how many arms a method may open.

    ``share`` is the part of the budget that each arm can use up, in the random order.
    """
    task, n_all = run.task, len(run.order)
    if proposes(method, task):
        return n_all
    if method.arms_per_budget is not None:
        n_arms = int(method.arms_per_budget * budget / task.max_epochs)
        return min(n_all, max(2, n_arms))
    advised = recommended_arms(
        method.policy, budget, task.max_epochs, **parameters(method, task)
    )
    enough = int(np.searchsorted(np.cumsum(share), 1.0)) + 1
    return min(n_all, max(advised, enough))


def proposes(method: Method, task: Task) -> bool:
    """Return whether arms are proposed: without features they come as they are."""
    return method.proposer is not None and task.features is not None


def parameters(method: Method, task: Task) -> dict[str, Any]:
    """Return a method's parameters, with the range of the scores where it has one."""
    known = policy_info(resolve_policy(method.policy)).parameters
    declared = {"reward_range": task.score_range} if "reward_range" in known else {}
    return declared | method.params


def simulated(run: Search, method: Method, budget: int) -> NDArray[np.int64]:
    """Return the configuration of every epoch of a compiled search."""
    task = run.task
    own = parameters(method, task)
    n_arms = n_candidates(run, method, budget, run.lengths / budget)
    order, lengths = run.order[:n_arms], run.lengths[:n_arms]
    table = CurveTable.create(run.seen[order], reference="best-arm")

    def blind(n_arms: int, horizon: int, _: int) -> UnknownEnds:
        policy = make_policy(method.policy, n_arms, horizon, task.max_epochs, **own)
        return UnknownEnds.around(policy, lengths)

    played = simulate(blind, table, budget, seed=run.seed, jobs=1, trace=True)
    assert played.arms is not None
    arms = played.arms[0]
    return order[arms[arms >= 0]]


def scheduled(
    run: Search, method: Method, budget: int, setting: Setting
) -> tuple[NDArray[np.int64], float]:
    """Search with the ``Scheduler``; also return the share of idle workers' time."""
    task = run.task
    costs, share = None, run.lengths / budget
    total: int | Budget = budget
    if setting.unit == "seconds":
        assert task.cost is not None
        seconds = budget * float(np.nanmean(task.cost))
        costs, total = task.cost[run.order], Budget(seconds=seconds)
        share = np.nansum(costs, axis=1) / seconds
    order = run.order
    if setting.known:
        order = order[: n_candidates(run, method, budget, share)]
    else:
        total = min(budget, task.max_epochs)
    scheduler = make_scheduler(run, method, order, total, setting.n_jobs)
    curves = run.seen[order]
    elapsed = train(scheduler, curves, setting.n_jobs, costs, budget)
    while scheduler.unit == "epochs" and scheduler.budget < budget:
        scheduler.extend(round((GROWTH - 1.0) * scheduler.budget))
        elapsed += train(scheduler, curves, setting.n_jobs, costs, budget)
    idle = 1.0 - scheduler.n_epochs / (setting.n_jobs * elapsed)
    arms = np.array([row["arm"] for row in scheduler.history], dtype=np.int64)
    if setting.unit == "seconds":  # epochs after the last second do not count
        paid = np.cumsum([row["cost"] for row in scheduler.history])
        arms = arms[paid <= scheduler.budget * (1.0 + 1e-9)]
    return order[arms], idle


def make_scheduler(
    run: Search,
    method: Method,
    order: NDArray[np.int64],
    budget: int | Budget,
    n_jobs: int = 1,
) -> Scheduler:
    """Return a scheduler of the first arms of the order."""
    task, options = run.task, {}
    if method.proposer is not None and task.features is not None:
        chosen = choose_policy(method.policy, budget, task.max_epochs, len(order))
        made = method.proposer(task.features[order])
        options["proposer"] = made if chosen.proposes else None  # as in a search
    return Scheduler(
        method.policy,
        n_arms=len(order),
        budget=budget,
        max_epochs=task.max_epochs,
        policy_params=parameters(method, task),
        seed=run.seed,
        deterministic=False,
        n_jobs=n_jobs,
        **options,
    )


def train(
    scheduler: Scheduler,
    curves: NDArray[np.float64],
    n_jobs: int = 1,
    costs: NDArray[np.float64] | None = None,
    limit: float = math.inf,
) -> int:
    """Run jobs until the scheduler is done, or has seen ``limit`` epochs.

    An epoch takes one unit of time, and jobs are told in the order in which they end.
    Returns the time at which the last one ended.
    """
    lengths = np.sum(~np.isnan(curves), axis=1)
    in_flight: list[tuple[int, int, Job]] = []
    now = 0
    while costs is not None or scheduler.n_epochs < limit:
        while len(in_flight) < n_jobs and (job := scheduler.ask()) is not None:
            n_epochs = min(job.n_epochs, int(lengths[job.arm]) - job.from_epoch)
            heapq.heappush(in_flight, (now + n_epochs, job.id, job))
        if not in_flight:
            break
        now, _, job = heapq.heappop(in_flight)
        last = min(job.from_epoch + job.n_epochs, int(lengths[job.arm]))
        if costs is None:
            last = int(min(last, job.from_epoch + limit - scheduler.n_epochs))
        epochs = slice(job.from_epoch, last)
        cost = None if costs is None else float(costs[job.arm, epochs].sum())
        scheduler.tell(job, curves[job.arm, epochs].tolist(), cost)
    return now


def judge(run: Search, arms: NDArray[np.int64], budget: int) -> Outcome:
    """Return what came of a search, from the configuration of every epoch."""
    n = len(arms)
    if n == 0:  # the first epoch has taken longer than there was time
        return Outcome(1.0, 0.0, pauses=0, opened=0, used=0.0, in_vain=0.0)
    epochs = own_epochs(arms)
    scores = run.seen[arms, epochs]
    picked = int(scores.argmax())
    winner = arms[picked]
    more = epochs + 1 < np.sum(~np.isnan(run.task.curves), axis=1)[arms]
    return Outcome(
        regret=run.task.regret(float(run.task.curves[winner, epochs[picked]])),
        winner_share=float(np.mean(arms == winner)),
        pauses=int(np.sum((arms[1:] != arms[:-1]) & more[:-1])),
        opened=len(np.unique(arms)),
        used=n / budget,
        in_vain=spent_in_vain(arms, scores),
    )


def own_epochs(arms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which of its own epochs each one is, from 0.

    >>> own_epochs(np.array([4, 4, 7, 4, 7]))
    array([0, 1, 0, 2, 1])
    """
    order = np.argsort(arms, kind="stable")
    ordered = arms[order]
    first = np.searchsorted(ordered, ordered)
    epochs = np.empty(len(arms), dtype=np.int64)
    epochs[order] = np.arange(len(arms)) - first
    return epochs


def spent_in_vain(arms: NDArray[np.int64], scores: NDArray[np.float64]) -> float:
    """Return which share of the epochs went to arms that beat nothing any more.

    The first two epochs of an arm are its looks, and count for nothing. A later one is
    in vain if its arm, from then on, never exceeds the best score that any had before.

    >>> spent_in_vain(np.zeros(6, dtype=int), np.array([0.1, 0.4, 0.3, 0.5, 0.5, 0.2]))
    0.3333333333333333
    """
    best_before = np.maximum.accumulate(np.append(-math.inf, scores[:-1]))
    from_then_on = np.empty_like(scores)
    for arm in np.unique(arms):
        own = np.flatnonzero(arms == arm)
        from_then_on[own] = np.maximum.accumulate(scores[own][::-1])[::-1]
    later = own_epochs(arms) >= 2
    return float(np.mean(later & (from_then_on <= best_before)))
