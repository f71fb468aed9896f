"""Searches by training rows beside halving and a random search in full."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import loguniform
from sklearn import datasets
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    train_test_split,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.shared import report
from risingsearch import RisingSearchCV

SEEDS = {"quick": 3, "default": 20, "full": 50}
FULL_TRAININGS = 3, 5
MAX_EPOCHS = 5
CV = 3
FACTOR = 3  # of halving
LOADERS: dict[str, Callable[..., Any]] = {
    "digits": datasets.load_digits,
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
}
SPACE = {"C": loguniform(1e-3, 1e4), "gamma": loguniform(1e-6, 1e1)}


class Problem(NamedTuple):
    """Rows to search on, and those to test the winner on."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any

    @classmethod
    def load(cls, name: str) -> Problem:
        """Return scaled rows of a data set, a quarter of them to test on."""
        rows, labels = LOADERS[name](return_X_y=True)
        train, test, y, y_test = train_test_split(
            rows, labels, random_state=0, stratify=labels
        )
        scaler = StandardScaler().fit(train)
        return cls(scaler.transform(train), y, scaler.transform(test), y_test)

    def tested(self, search: Any) -> float:
        """Return the test accuracy of a search's winner."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of subsets without a class
            return float(search.fit(self.X, self.y).score(self.X_test, self.y_test))


def run(out: Path, *, scale: str, seed: int) -> None:
    """Search each data set with budgets of several full trainings, seed by seed."""
    rows = [
        compared(name, n_full, range(seed, seed + SEEDS[scale]))
        for name in LOADERS
        for n_full in FULL_TRAININGS
    ]
    searches = "this search", "halving", "random in full"
    means = {name: float(np.mean([row[name] for row in rows])) for name in searches}
    chances = {
        f"{name}, lowest": min(r[f"{name}, lowest"] for r in rows) for name in searches
    }
    rows.append({"data": "mean", "full trainings": "", **means, **chances})
    notes = [f"- Test accuracy of SVC, its mean and lowest over {SEEDS[scale]} seeds."]
    report.write(out, "Searches by training rows", rows, notes)


def compared(name: str, n_full: int, seeds: range) -> dict[str, Any]:
    """Return the mean and the lowest test accuracy of the three searches."""
    problem = Problem.load(name)
    searches: dict[str, Callable[[int], Any]] = {
        "this search": lambda seed: RisingSearchCV(
            SVC(),
            SPACE,
            resource="n_samples",
            budget=n_full * MAX_EPOCHS,
            max_epochs=MAX_EPOCHS,
            cv=CV,
            random_state=seed,
        ),
        "halving": lambda seed: HalvingRandomSearchCV(
            SVC(),
            SPACE,
            n_candidates=halved_candidates(problem.y, n_full),
            factor=FACTOR,
            cv=CV,
            random_state=seed,
        ),
        "random in full": lambda seed: RandomizedSearchCV(
            SVC(), SPACE, n_iter=n_full, cv=CV, random_state=seed
        ),
    }
    row: dict[str, Any] = {"data": name, "full trainings": n_full}
    found = {
        which: [problem.tested(search(seed)) for seed in seeds]
        for which, search in searches.items()
    }
    row |= {which: float(np.mean(scores)) for which, scores in found.items()}
    return row | {f"{which}, lowest": min(scores) for which, scores in found.items()}


def halved_candidates(y: Any, n_full: int) -> int:
    """Return the most candidates that halving can afford, from its smallest rung."""
    smallest = 2 * CV * len(np.unique(y))
    n_candidates = 1
    while rows_of_halving(n_candidates + 1, smallest, len(y)) <= n_full * len(y):
        n_candidates += 1
    return n_candidates


def rows_of_halving(n_candidates: int, smallest: int, n_rows: int) -> int:
    """Return the rows that halving trains on, over all rungs."""
    total, amount = 0, smallest
    while amount <= n_rows:
        total += n_candidates * amount
        if n_candidates <= FACTOR:
            break
        n_candidates, amount = -(-n_candidates // FACTOR), amount * FACTOR
    return total
