"""Golden decisions: a change of what a scheduler decides is seen as a change of data.

Every policy plays short random searches with failures, arms that end early, enqueued
arms and larger budgets. To record some anew after an intended change:
python tests/scheduling/test_golden_decisions.py NAME [NAME ...]
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from risingsearch import Budget, Job, Scheduler
from risingsearch.policies import list_policies

GOLDEN = Path(__file__).parents[1] / "golden" / "decisions.json"
N_ARMS, N_SEARCHES = 8, 20
QUICK = (11, 14)  # both directions and budgets, slices or none, failures or none
PLANS_ROUNDS = {info.name for info in list_policies() if info.plans_rounds}
NEEDED = {
    "reward_range": (0.0, 2.0),
    "models": [[top * epoch / (2 + epoch) for epoch in range(1, 9)] for top in (1, 2)],
}
PARAMETERS = {
    info.name: {need: NEEDED[need] for need in info.needs} for info in list_policies()
} | {"auto": {}}
CASES = [
    (name, n_jobs, deterministic)
    for name in PARAMETERS
    for n_jobs in (1, 4, 16)
    for deterministic in (False, True)
]


def made(name: str, n_jobs: int, deterministic: bool, seed: int) -> Scheduler:
    """Return the scheduler of a search."""
    draw = Random(seed)
    max_epochs = draw.choice((5, 8))
    min_epochs = draw.choice((1, 1, 2, 3))
    budget: int | Budget = draw.randrange(25, 40)
    if seed % 4 == 3 and name not in PLANS_ROUNDS:
        budget = Budget(cost=30)
    return Scheduler(
        name,
        N_ARMS,
        budget,
        max_epochs,
        PARAMETERS[name],
        epochs_per_job=draw.choice((None, None, 1, 2)),
        direction=draw.choice(("maximize", "minimize")),
        seed=seed,
        deterministic=deterministic,
        n_jobs=n_jobs,
        max_failures=draw.choice((0, 1)),
        min_epochs=min_epochs,
        enqueue=draw.choice(((), (), (5, 2))),
    )


def curve(arm: int, epoch: int) -> float:
    """Curves that cross: the later the arm, the slower and the higher."""
    return (1 + arm / 10) * (1 - 1 / (1 + epoch / (1 + arm)))


def tell(scheduler: Scheduler, job: Job, seed: int) -> None:
    """Tell what comes of a job, by its number alone."""
    draw = Random(1000 * seed + job.id)
    sign = 1 if scheduler.direction == "maximize" else -1
    scores = [
        sign * (curve(job.arm, epoch) + draw.random() / 9)
        for epoch in range(job.from_epoch + 1, job.from_epoch + job.n_epochs + 1)
    ]
    cost = 0.5 + draw.random()
    happens = draw.random()
    if happens < 0.08:
        scheduler.fail(job, "crashed", scores[: draw.randrange(len(scores))], cost)
    elif happens < 0.14:
        scheduler.tell(job, scores[:-1], cost)
    elif happens < 0.18:
        scheduler.tell(job, scores[:-1], cost, ended=False)
    elif happens < 0.22:
        scheduler.tell(job, [math.nan, *scores[1:]], cost)
    else:
        scheduler.tell(job, scores, cost)


def decisions(
    name: str, n_jobs: int, deterministic: bool, seed: int, completion: int = 0
) -> list[tuple[int, int, int]]:
    """Return arm, epochs before and epochs of every job of a search."""
    scheduler = made(name, n_jobs, deterministic, seed)
    draw = Random(100 * seed + completion)
    in_flight: list[Job] = []
    decided = []
    n_extensions = 1
    while True:
        while (job := scheduler.ask()) is not None:
            in_flight.append(job)
            decided.append((job.arm, job.from_epoch, job.n_epochs))
        if in_flight:
            tell(scheduler, in_flight.pop(draw.randrange(len(in_flight))), seed)
        elif n_extensions:
            n_extensions -= 1
            scheduler.extend(8 if scheduler.unit == "epochs" else Budget(cost=8))
        else:
            return decided
        if deterministic or draw.random() > 0.06:
            continue
        arm = draw.randrange(N_ARMS)  # what comes from outside, at any time
        if draw.random() < 0.5:
            scheduler.extend(2 if scheduler.unit == "epochs" else Budget(cost=2))
        elif scheduler.status(arm) != "running":
            scheduler.end(arm)


def digests(
    name: str, n_jobs: int, deterministic: bool, seeds: Iterable[int]
) -> list[str]:
    """Return six digits for the decisions of each search."""
    played = (decisions(name, n_jobs, deterministic, seed) for seed in seeds)
    texts = (json.dumps(decided).encode() for decided in played)
    return [hashlib.sha256(text).hexdigest()[:6] for text in texts]


def key(name: str, n_jobs: int, deterministic: bool) -> str:
    return f"{name}, {n_jobs} jobs" + ", deterministic" * deterministic


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[str]]:
    loaded = json.loads(GOLDEN.read_text())
    return {case: text.split() for case, text in loaded.items()}


@pytest.mark.parametrize(
    "seeds", [QUICK, pytest.param({*range(20)} - {*QUICK}, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("name", "n_jobs", "deterministic"), CASES)
def test_decisions_are_the_recorded_ones(name, n_jobs, deterministic, seeds, recorded):
    case = name, n_jobs, deterministic
    expected = recorded[key(*case)]
    assert len(expected) == N_SEARCHES
    assert digests(*case, seeds) == [expected[seed] for seed in seeds]


@pytest.mark.parametrize("name", PARAMETERS)
def test_deterministic_decisions_do_not_depend_on_what_finishes_first(name):
    for n_jobs, seed in ((4, 1), (16, 2)):
        first = decisions(name, n_jobs, True, seed)
        assert decisions(name, n_jobs, True, seed, completion=1) == first


def test_nothing_is_recorded_for_policies_that_are_gone(recorded):
    assert sorted(recorded) == sorted(key(*case) for case in CASES)


def record(name: str) -> None:
    made(name, n_jobs=1, deterministic=False, seed=0)  # a wrong name is an error
    found = json.loads(GOLDEN.read_text())
    for case in CASES:
        if case[0] == name:
            found[key(*case)] = " ".join(digests(*case, range(N_SEARCHES)))
    GOLDEN.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        record(name)
