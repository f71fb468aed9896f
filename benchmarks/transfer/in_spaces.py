"""What earlier searches are worth in spaces: made families, few arms.

Every problem is searched after other tasks of its family: 60 random runs of each, their
scores as they are or negated. Regret is that of the suite ``spaces``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.shared import report
from benchmarks.spaces.methods import Training
from benchmarks.spaces.problems import EPOCHS, Problem, Scores
from benchmarks.spaces.reference import reference
from benchmarks.transfer.made import FAMILIES, problem
from benchmarks.transfer.tasks import RUNS
from risingsearch.priors import EarlierSearch
from risingsearch.search.search import RisingSearch
from risingsearch.search.trainable import Functions
from risingsearch.space import Space

MULTIPLES = (1, 2, 5)
TASKS = {"quick": 1, "default": 2, "full": 4}
"""Of a family."""
SEEDS = {"quick": 1, "default": 6, "full": 16}
VERSION = 0
RESAMPLES = 2_000


class Prior(NamedTuple):
    """So many earlier tasks, with their scores negated or not."""

    name: str
    n_earlier: int
    negated: bool = False


NONE = Prior("none", 0)
PRIORS = (
    NONE,
    Prior("four", 4),
    Prior("one, negated", 1, negated=True),
    Prior("four, negated", 4, negated=True),
)


def earlier(family: str, version: int, prior: Prior, seed: int) -> list[EarlierSearch]:
    """Return the earlier searches of a seed, on tasks that are searched by no other."""
    searches = []
    for k in range(prior.n_earlier):
        own = problem(family, version, 1_000 + 10 * seed + k)
        rng = np.random.default_rng([seed, k, 3])
        space = Space.of(own.parts)
        params = [space.sample(rng) for _ in range(RUNS)]
        curves = [
            np.array([one.validation for one in islice(own.epochs(run, 0), EPOCHS)])
            for run in params
        ]
        noisy = [one + own.noise * rng.standard_normal(EPOCHS) for one in curves]
        if prior.negated:
            noisy = [np.array([-one.max()]) for one in noisy]
        searches.append(EarlierSearch(own.name, params, noisy))
    return searches


def searched(
    own: Problem, budget: int, seed: int, prior: list[EarlierSearch]
) -> tuple[float, int]:
    """Return the true score of the best found, and the arms that the prior opened."""
    training = Training(own, budget, seed)
    search = RisingSearch(
        Functions(training.start, training.train),
        Space.of(own.parts),
        budget=budget,
        max_epochs=EPOCHS,
        seed=seed,
        prior=prior or None,
        deterministic=True,
    )
    result = search.run()
    return training.found.true[-1], len(result.opened_by_prior)


def rows(version: int, tasks: range, seeds: range) -> Iterator[dict[str, Any]]:
    """Yield a row per search, seed by seed."""
    every = list(product(FAMILIES, tasks))
    own = {(name, task): problem(name, version, task) for name, task in every}
    references = {key: reference(one) for key, one in own.items()}
    for seed, family, prior in product(seeds, FAMILIES, PRIORS):
        known = earlier(family, version, prior, seed)
        for task, multiple in product(tasks, MULTIPLES):
            one = own[family, task]
            true, opened = searched(one, multiple * EPOCHS, seed, known)
            yield {
                "family": family,
                "task": task,
                "prior": prior.name,
                "multiple": multiple,
                "seed": seed,
                "regret": references[family, task]
                .regret(Scores(true, true))
                .validation,
                "opened": opened,
            }


def compare(scale: str, seed: int) -> str:
    """Return a table of the regret after each kind of earlier searches."""
    tasks, seeds = range(TASKS[scale]), range(seed, seed + SEEDS[scale])
    return table(list(rows(VERSION, tasks, seeds)), TASKS[scale])


def table(found: list[dict[str, Any]], n_tasks: int) -> str:
    """Return regret at every budget, and the change with its 95 % interval."""
    shape = -1, len(FAMILIES), len(PRIORS), n_tasks, len(MULTIPLES)
    regret = np.array([row["regret"] for row in found]).reshape(shape)
    opened = np.array([row["opened"] for row in found]).reshape(shape)
    change = regret - regret[:, :, :1]
    lines = []
    for k, prior in enumerate(PRIORS):
        line: dict[str, Any] = {"earlier searches": prior.name}
        for b, multiple in enumerate(MULTIPLES):
            low, high = bootstrapped(change[:, :, k, :, b])
            line[f"{multiple} R"] = f"{regret[:, :, k, :, b].mean():.3f}"
            mean = change[:, :, k, :, b].mean()
            line[f"change, {multiple} R"] = f"{mean:+.3f} [{low:.3f}, {high:.3f}]"
        for f, family in enumerate(FAMILIES):
            line[f"{family}, 1 R"] = f"{change[:, f, k, :, 0].mean():+.3f}"
        line["opened by it, 1 R"] = f"{opened[:, :, k, :, 0].mean():.1f}"
        lines.append(line)
    return report.table(lines)


def bootstrapped(changes: NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % interval of the mean, over problems and the seeds of each."""
    rng = np.random.default_rng(0)
    own = changes.reshape(len(changes), -1)
    n_seeds, n_problems = own.shape
    problems = rng.integers(n_problems, size=(RESAMPLES, 1, n_problems))
    seeds = rng.integers(n_seeds, size=(RESAMPLES, n_seeds, n_problems))
    low, high = np.quantile(own[seeds, problems].mean(axis=(1, 2)), [0.025, 0.975])
    return float(low), float(high)
