"""``RisingSearchCV`` beside scikit-learn's own searches: same problem, same epochs.

Epochs are counted inside the model, whoever trains it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingRandomSearchCV, RandomizedSearchCV

from benchmarks import report
from benchmarks.problems import PROBLEMS, load
from risingsearch import RisingSearchCV, list_policies
from risingsearch.demo import BUDGET, MAX_EPOCHS, CountedClassifier, configurations

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
    n = len(configurations(seed))
    report.write(
        out,
        f"{n} configurations, {BUDGET} epochs, seeds {list(seeds)}",
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
        search = make(seed, [split])
        CountedClassifier.n_trained = 0
        begin = time.perf_counter()
        search.fit(X, y)
        seconds.append(time.perf_counter() - begin)
        scores.append(float(np.nanmax(search.cv_results_["mean_test_score"])))
        epochs.append(CountedClassifier.n_trained)
    return {
        "problem": problem,
        "search": name,
        "mean score": float(np.mean(scores)),
        "worst seed": float(np.min(scores)),
        "audited epochs": f"{min(epochs)}-{max(epochs)}",
        "seconds": float(np.mean(seconds)),
    }


def _rising(policy: str) -> Callable[..., Any]:
    def make(seed: int, cv: Any) -> Any:
        return RisingSearchCV(
            CountedClassifier(),
            configurations(seed),
            policy=policy,
            budget=BUDGET,
            max_epochs=MAX_EPOCHS,
            cv=cv,
            refit=False,
            random_state=seed,
        )

    return make


def _halving(seed: int, cv: Any) -> Any:
    return HalvingRandomSearchCV(
        CountedClassifier(),
        _space(seed),
        resource="epochs",
        n_candidates=len(configurations(seed)),
        min_resources=1,
        max_resources=MAX_EPOCHS,
        factor=3,
        cv=cv,
        refit=False,
        random_state=seed,
    )


def _in_full(seed: int, cv: Any) -> Any:
    return RandomizedSearchCV(
        CountedClassifier(epochs=MAX_EPOCHS),
        _space(seed),
        n_iter=BUDGET // MAX_EPOCHS,
        cv=cv,
        refit=False,
        random_state=seed,
    )


def _space(seed: int) -> dict[str, Any]:
    return {"model": [params["model"] for params in configurations(seed)]}
