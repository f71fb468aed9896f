"""What is compared: the default with and without earlier searches, and rivals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.hpo.draws import Search, draw_search
from benchmarks.hpo.replay import judge, train
from benchmarks.transfer import rivals
from benchmarks.transfer.rivals import EarlierTable
from benchmarks.transfer.tasks import (
    NEGATED,
    PERMUTED,
    TransferTask,
    drawn_runs,
    earlier_searches,
)
from risingsearch import Scheduler
from risingsearch.priors import EarlierSearch, PriorProposer
from risingsearch.proposers.open_space import ListProposer

ANOTHER_FAMILY = "another family"


class Method(NamedTuple):
    """So many earlier tasks, and what is wrong with them, if anything."""

    name: str
    n_earlier: int = 0
    mislead: str | None = None


NONE = Method("no prior")
METHODS = (
    NONE,
    *(Method(f"{n} earlier", n) for n in (1, 2, 4, 8)),
    *(Method(f"4 {how}", 4, how) for how in (NEGATED, PERMUTED)),
    Method(f"4 of {ANOTHER_FAMILY}", 4, ANOTHER_FAMILY),
)


class Place(NamedTuple):
    """A task, and the others that may have come before it."""

    task: TransferTask
    siblings: list[TransferTask]
    strangers: list[TransferTask]  # of other families, with some of its parameters

    def earlier(self, method: Method, seed: int) -> list[EarlierSearch] | None:
        """Return what a method is given; None where there are not enough tasks."""
        if method.mislead == ANOTHER_FAMILY:
            others, mislead = self.strangers, None
        else:
            others, mislead = self.siblings, method.mislead
        if not method.n_earlier:
            return []
        if len(others) < min(method.n_earlier, 3):
            return None
        return earlier_searches(others, method.n_earlier, seed, mislead)


def places(families: dict[str, list[TransferTask]]) -> list[Place]:
    """Return every task that has siblings with the same parameters."""
    found = []
    for name, tasks in families.items():
        strangers = [
            one for other in families if other != name for one in families[other]
        ]
        for task in tasks:
            same = task.parameters
            siblings = [
                one for one in tasks if one is not task and one.parameters == same
            ]
            known = [one for one in strangers if len(one.parameters & same) >= 2]
            if siblings:
                found.append(Place(task, siblings, known))
    return found


def regret(place: Place, method: Method, multiple: float, seed: int) -> float:
    """Return the normalised regret of one search; NaN where it cannot be played."""
    task = place.task.task
    run = draw_search(task, seed, 0.0)
    budget = round(multiple * task.max_epochs)
    earlier = place.earlier(method, seed)
    if earlier is None or budget > run.lengths.sum():
        return float("nan")
    return judge(run, searched(run, place.task, earlier, budget), budget).regret


def rival_regret(
    place: Place, rival: str, multiple: float, seed: int, python: str | None
) -> float:
    """Return the regret of another tool after the same runs of four tasks."""
    task = place.task.task
    run = draw_search(task, seed, 0.0)
    budget = round(multiple * task.max_epochs)
    earlier = [
        EarlierTable(one.task.features[runs], one.task.curves[runs])
        for one, runs in drawn_runs(place.siblings, 4, seed)
        if one.task.features is not None
    ]
    trained = rivals.play(run, budget, earlier, rival=rival, python=python)
    return float("nan") if trained is None else judge(run, trained, budget).regret


def searched(
    run: Search, task: TransferTask, earlier: Sequence[EarlierSearch], budget: int
) -> NDArray[np.int64]:
    """Return the configuration of every epoch of the default, with earlier searches."""
    features = run.task.features
    assert features is not None
    proposer: Any = ListProposer(features[run.order])
    if earlier:
        candidates = [task.candidates[arm] for arm in run.order]
        proposer = PriorProposer.between(candidates, earlier, proposer)
    scheduler = Scheduler(
        n_arms=len(run.order),
        budget=budget,
        max_epochs=run.task.max_epochs,
        seed=run.seed,
        proposer=proposer,
    )
    train(scheduler, run.seen[run.order])
    return run.order[[row["arm"] for row in scheduler.history]]
