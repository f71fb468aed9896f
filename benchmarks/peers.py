"""``RisingSearchCV`` beside scikit-learn's own searches: same problem, same epochs.

Epochs are counted inside the model, in a file, whoever trains it.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingRandomSearchCV, RandomizedSearchCV

from benchmarks import report
from benchmarks.problems import (
    BUDGET,
    MAX_EPOCHS,
    PROBLEMS,
    AuditedClassifier,
    load,
)
from risingsearch import RisingSearchCV, list_policies

N_CONFIGS = 60


SEEDS = {"quick": 2, "default": 5, "full": 10}


def run(out: Path, *, scale: str, seed: int) -> None:
    """Run every search on every problem; with ``full``, every policy too."""
    seeds = range(seed, seed + SEEDS[scale])
    searches = {"RisingSearchCV auto": _rising("auto")}
    if scale == "full":
        names = [info.name for info in list_policies()]
        searches |= {f"RisingSearchCV {name}": _rising(name) for name in names}
    searches["HalvingRandomSearchCV"] = _halving
    searches["random search, in full"] = _in_full
    rows = [
        row(problem, name, make, seeds)
        for problem in PROBLEMS
        for name, make in searches.items()
    ]
    report.write(
        out,
        f"{N_CONFIGS} configurations, {BUDGET} epochs, seeds {list(seeds)}",
        rows,
        ["- Scores: accuracy on the same held-out rows, the best each search saw."],
    )


def row(
    problem: str, name: str, make: Callable[..., Any], seeds: range
) -> dict[str, Any]:
    """Return mean, worst seed, audited epochs and time of one search."""
    X, y, split = load(problem)
    scores, epochs, seconds = [], [], []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "epochs")
            search = make(log, seed, [split])
            begin = time.perf_counter()
            search.fit(X, y)
            seconds.append(time.perf_counter() - begin)
            scores.append(float(np.nanmax(search.cv_results_["mean_test_score"])))
            epochs.append(os.path.getsize(log))
    return {
        "problem": problem,
        "search": name,
        "mean score": float(np.mean(scores)),
        "worst seed": float(np.min(scores)),
        "audited epochs": f"{min(epochs)}-{max(epochs)}",
        "seconds": float(np.mean(seconds)),
    }


def _rising(policy: str) -> Callable[..., Any]:
    def make(log: str, seed: int, cv: Any) -> Any:
        return RisingSearchCV(
            AuditedClassifier(seed=seed, log=log),
            [{"config": i} for i in range(N_CONFIGS)],
            policy=policy,
            budget=BUDGET,
            max_epochs=MAX_EPOCHS,
            cv=cv,
            refit=False,
            random_state=seed,
        )

    return make


def _halving(log: str, seed: int, cv: Any) -> Any:
    return HalvingRandomSearchCV(
        AuditedClassifier(seed=seed, log=log),
        {"config": list(range(N_CONFIGS))},
        resource="epochs",
        n_candidates=N_CONFIGS,
        min_resources=1,
        max_resources=MAX_EPOCHS,
        factor=3,
        cv=cv,
        refit=False,
        random_state=seed,
    )


def _in_full(log: str, seed: int, cv: Any) -> Any:
    return RandomizedSearchCV(
        AuditedClassifier(seed=seed, log=log, epochs=MAX_EPOCHS),
        {"config": list(range(N_CONFIGS))},
        n_iter=BUDGET // MAX_EPOCHS,
        cv=cv,
        refit=False,
        random_state=seed,
    )
