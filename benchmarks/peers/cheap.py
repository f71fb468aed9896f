"""Cheap models with a time as the budget, beside random search in full.

The search has ``SECONDS`` of CPU time and no other limit. A random search then trains
one configuration in full after the other, as each ends by itself, until it has used as
much. Both hold out as many rows, and train their best configuration afresh on all of
them; that model scores the test rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from scipy.stats import loguniform, randint
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import ParameterSampler, train_test_split

from benchmarks.peers import reviews
from benchmarks.shared import report
from risingsearch import RisingSearchCV
from risingsearch.errors import InvalidParameterError, MissingDependencyError

SECONDS = 8.0
HELD_OUT = 0.25


class Task(NamedTuple):
    """A model, its space, and the rows."""

    name: str
    model: Any
    space: dict[str, Any]
    X: Any
    y: Any


class Outcome(NamedTuple):
    """Test score, CPU seconds and number of configurations of a search."""

    score: float
    seconds: float
    tried: int


def tasks(out: Path, data_dir: Path | None) -> Iterator[Task]:
    """Make the tasks that this machine has the data and libraries for."""
    boosting = {
        "learning_rate": loguniform(0.01, 1.0),
        "min_child_samples": randint(2, 60),
        "num_leaves": randint(3, 60),
        "reg_lambda": loguniform(1e-3, 30.0),
    }
    X, y = make_classification(
        2_500, 20, n_informative=8, n_classes=3, flip_y=0.05, random_state=3
    )
    try:
        with np.load(reviews.write(data_dir, out), allow_pickle=False) as kept:
            counts, labels = np.expm1(kept["X"]), kept["y"]
        linear = {
            "alpha": loguniform(1e-7, 1e-2),
            "loss": ["hinge", "log_loss", "modified_huber"],
            "penalty": ["l2", "elasticnet"],
        }
        words = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
        yield Task("text, SGD", SGDClassifier(), linear, words, labels)
    except (InvalidParameterError, MissingDependencyError) as error:
        warnings.warn(f"no text: {error}", stacklevel=1)
    from lightgbm import LGBMClassifier

    trees: Any = LGBMClassifier(n_jobs=1, verbose=-1)
    yield Task("LightGBM", trees, boosting, X, y)
    named = {
        "learning_rate": boosting["learning_rate"],
        "min_samples_leaf": boosting["min_child_samples"],
        "max_leaf_nodes": boosting["num_leaves"],
        "l2_regularization": boosting["reg_lambda"],
    }
    trees = HistGradientBoostingClassifier(early_stopping=False)
    yield Task("HistGradientBoosting", trees, named, X, y)


def rising(task: Task, rows: Any, seed: int) -> Outcome:
    """Search for ``SECONDS`` of the processor, not of a clock that others' jobs use."""
    X, X_test, y, y_test = rows
    began, options = time.process_time(), {"cv": HELD_OUT, "random_state": seed}
    search = RisingSearchCV(task.model, task.space, timeout=SECONDS, **options)
    clock = time.process_time
    with patch.multiple(time, monotonic=clock, perf_counter=clock):
        search.fit(X, y)
    used = time.process_time() - began
    opened = int((search.cv_results_["epochs"] > 0).sum())
    return Outcome(search.score(X_test, y_test), used, opened)


def in_full(task: Task, rows: Any, seed: int, seconds: float) -> Outcome:
    """Train as many in full as the CPU time allows, the best one twice."""
    X, X_test, y, y_test = rows
    began = time.process_time()
    held = train_test_split(
        X, y, test_size=HELD_OUT, stratify=y, random_state=seed + 1000
    )
    best, best_score, took, tried = None, -np.inf, 0.0, 0
    for params in ParameterSampler(task.space, 100_000, random_state=seed):
        begin = time.process_time()
        half = 0.5 * (begin - began) / max(1, tried)  # as often too early as too late
        if begin - began + half + took > seconds and tried:
            break
        model = clone(task.model).set_params(**params, random_state=seed)
        score = model.fit(held[0], held[2]).score(held[1], held[3])
        tried += 1
        if score > best_score:
            took = (time.process_time() - begin) / (1 - HELD_OUT)
            best, best_score = clone(model), score
    assert best is not None
    score = best.fit(X, y).score(X_test, y_test)
    return Outcome(score, time.process_time() - began, tried)


def compare(out: Path, seeds: list[int], data_dir: Path | None) -> str:
    """Return a table of the tasks, means over the seeds."""
    lines = []
    for task in tasks(out, data_dir):
        found = []
        for seed in seeds:
            rows = train_test_split(
                task.X, task.y, test_size=0.3, stratify=task.y, random_state=seed
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of models that have not converged
                ours = rising(task, rows, seed)
                found.append((ours, in_full(task, rows, seed, ours.seconds)))
        lines.append(_line(task.name, np.array(found)))
    return report.table(lines)


def _line(name: str, found: Any) -> dict[str, Any]:
    ours, full = found.mean(axis=0)
    lead = found[:, 0, 0] - found[:, 1, 0]
    error = 1.96 * lead.std(ddof=1) / len(lead) ** 0.5 if len(lead) > 1 else np.nan
    return {
        f"{SECONDS:g} s": name,
        "test score": f"{ours[0]:.4f}",
        "random search, in full": f"{full[0]:.4f}",
        "lead": f"{lead.mean():+.4f} ± {error:.4f}",
        "CPU s": f"{ours[1]:.2f} / {full[1]:.2f}",
        "tried": f"{ours[2]:.0f} / {full[2]:.0f}",
    }
