"""Searches in curated spaces at equal CPU time: test log loss on tables.

``python -m benchmarks.estimators.compare --tables 10 --seconds 10``. No table that a
portfolio has learnt from is used. Every search has the same seconds of the processor,
with its refit, and holds out a quarter of the training rows. FLAML joins in where it is
installed.
"""

from __future__ import annotations

import csv
import time
import warnings
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import optuna
from lightgbm import LGBMClassifier
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import HalvingRandomSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.estimators.tables import Table, tables
from risingsearch import RisingSearchCV
from risingsearch.arms import Params
from risingsearch.integrations.sklearn.folds import configured
from risingsearch.space import Space
from risingsearch.space.by_name import space_of

HELD_OUT = 0.25
SCORING = "neg_log_loss"
MODELS: dict[str, Any] = {
    "hist": HistGradientBoostingClassifier(random_state=0),
    "lgbm": LGBMClassifier(n_jobs=1, verbose=-1, random_state=0),
}
LINEAR = make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss"))
FAMILIES = [*MODELS.values(), RandomForestClassifier(), ("linear", LINEAR)]
CASH: dict[str, Params] = {
    "families": {},
    "families, rising-bandits-cash": {
        "policy": "rising-bandits-cash",
        "policy_params": {"reward_range": (-3.0, 0.0)},
    },
    "families, max-ucb": {"policy": "max-ucb"},
}


class Task(NamedTuple):
    """Rows to search on, and the seconds of the processor for it."""

    rows: Any
    y: Any
    model: Any
    seconds: float
    seed: int


def defaults(task: Task) -> Any:
    """Train the estimator as it is."""
    return clone(task.model).fit(task.rows, task.y)


def rising(task: Task, models: Any = None, **options: Any) -> Any:
    """Search for seconds of the processor, not of a clock that others' jobs use."""
    search = RisingSearchCV(
        task.model if models is None else models,
        "auto",
        timeout=task.seconds,
        cv=HELD_OUT,
        scoring=SCORING,
        random_state=task.seed,
        **options,
    )
    clock = time.process_time
    with patch.multiple(time, monotonic=clock, perf_counter=clock):
        return search.fit(task.rows, task.y)


def in_full(
    task: Task, ask: Callable[[], Params], tell: Callable[[float], None]
) -> Any:
    """Train one configuration in full after the other, the best one twice."""
    began = time.process_time()
    train, test, y, y_test = train_test_split(
        task.rows, task.y, test_size=HELD_OUT, stratify=task.y, random_state=task.seed
    )
    best: Params = {}
    least = np.inf
    refit = 0.0
    n_trained = 0
    while True:
        used = time.process_time() - began
        half = 0.5 * used / max(1, n_trained)  # as often too early as too late
        if n_trained and used + half + refit > task.seconds:
            return configured(task.model, best).fit(task.rows, task.y)
        params = ask()
        begin = time.process_time()
        model = configured(task.model, params).fit(train, y)
        loss = log_loss(y_test, model.predict_proba(test))
        tell(loss)
        n_trained += 1
        if loss < least:
            least = loss
            best = params
            refit = (time.process_time() - begin) / (1.0 - HELD_OUT)


def random_search(task: Task) -> Any:
    """Train configurations that are drawn at random."""
    space = Space.of(space_of(task.model))
    rng = np.random.default_rng(task.seed)
    return in_full(task, lambda: space.sample(rng), lambda loss: None)


def tpe(task: Task) -> Any:
    """Train configurations that Optuna's default sampler proposes."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=task.seed))
    space = space_of(task.model)
    trials = []

    def ask() -> Params:
        trials.append(study.ask())
        params: Params = {}
        for name, form in space.items():
            when = form.get("when", {})
            if all(params.get(other) == wanted for other, wanted in when.items()):
                params[name] = suggested(trials[-1], name, form)
        return params

    return in_full(task, ask, lambda loss: study.tell(trials[-1], loss))


def suggested(trial: optuna.Trial, name: str, form: Params) -> Any:
    """Return a parameter of a trial, from plain data."""
    if form["type"] == "choice":
        return trial.suggest_categorical(name, form["values"])
    if form["type"] == "int":
        log = form.get("log", False)
        return trial.suggest_int(name, form["low"], form["high"], log=log)
    log = form["type"] == "log-uniform"
    return trial.suggest_float(name, form["low"], form["high"], log=log)


def halving(task: Task) -> Any:
    """Halve as many candidates as the time is for, by the number of rows."""
    begin = time.process_time()
    defaults(task)
    took = time.process_time() - begin
    space = Space.of(space_of(task.model))
    rng = np.random.default_rng(task.seed)
    n = max(4, int(task.seconds / took / 1.5))
    drawn = {name: Drawn(space, name) for name in space.names if name != "subsample"}
    search = HalvingRandomSearchCV(
        task.model,
        drawn,
        n_candidates=n,
        cv=3,
        scoring=SCORING,
        random_state=int(rng.integers(2**31)),
    )
    return search.fit(task.rows, task.y)


class Drawn:
    """The values of a parameter, as scikit-learn draws them."""

    def __init__(self, space: Space, name: str) -> None:
        self.kind = space.coordinates[space.names.index(name)].kind

    def rvs(self, random_state: np.random.RandomState) -> Any:
        """Return a value."""
        return self.kind.value(float(random_state.random_sample()))


def flaml(task: Task) -> Any:
    """Search with FLAML over its own estimators."""
    from flaml import AutoML

    search = AutoML()
    with patch.object(time, "time", time.process_time):
        search.fit(
            task.rows,
            task.y,
            task="classification",
            metric="log_loss",
            time_budget=task.seconds,
            eval_method="holdout",
            split_ratio=HELD_OUT,
            n_jobs=1,
            seed=task.seed,
            verbose=0,
            estimator_list=["lgbm", "rf", "extra_tree", "lrl1"],
        )
    return search


METHODS: dict[str, Callable[[Task], Any]] = {
    "defaults": defaults,
    "auto": rising,
    "auto, package": lambda task: rising(task, prior="package"),
    "random": random_search,
    "TPE": tpe,
    "halving": halving,
    "FLAML": flaml,
    "families, package": lambda task: rising(task, FAMILIES, prior="package"),
} | {
    name: (lambda task, options=options: rising(task, FAMILIES, **options))
    for name, options in CASH.items()
}


def main() -> None:
    """Compare the methods and print their ranks and losses."""
    parser = ArgumentParser(description="Compare searches at equal CPU time.")
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", choices=MODELS, default="hist")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--out", type=Path, default=Path("estimators.csv"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [table for table in tables() if not table.learns]
    np.random.default_rng(1).shuffle(chosen)  # type: ignore[arg-type]
    losses = []
    with given.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["table", *given.methods, *(f"{m} s" for m in given.methods)])
        for table in chosen[: given.tables]:
            results = [outcome(name, table, given) for name in given.methods]
            losses.append([loss for loss, _ in results])
            seconds = [f"{used:.2f}" for _, used in results]
            writer.writerow([table.name, *losses[-1], *seconds])
            file.flush()
    print(summary(given.methods, np.array(losses)))


def outcome(name: str, table: Table, given: Any) -> tuple[float, float]:
    """Return the test log loss of a method, and the CPU seconds that it took."""
    train, test, y, y_test = train_test_split(
        table.rows,
        table.y,
        test_size=0.4,
        stratify=table.y,
        random_state=given.seed,
    )
    task = Task(train, y, MODELS[given.model], given.seconds, given.seed)
    begin = time.process_time()
    model = METHODS[name](task)
    used = time.process_time() - begin
    return float(log_loss(y_test, model.predict_proba(test))), used


def summary(methods: list[str], losses: Any) -> str:
    """Return a line per method: mean rank, mean loss, and how it is to the defaults."""
    ranks = rankdata(losses, axis=1).mean(axis=0)
    lines = [f"{len(losses)} tables", "method, mean rank, mean loss, worst to defaults"]
    relative = losses / losses[:, :1]
    for k, name in enumerate(methods):
        worse = relative[:, k].max() - 1.0
        lines.append(f"{name}, {ranks[k]:.2f}, {losses[:, k].mean():.4f}, {worse:+.1%}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
