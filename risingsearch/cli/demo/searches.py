"""The searches of the demo, each with the same space, rows and budget."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingRandomSearchCV, ParameterSampler
from threadpoolctl import threadpool_limits

from risingsearch.cli.demo.problem import (
    BUDGET,
    MAX_EPOCHS,
    SPACE,
    Classifier,
    Log,
    Problem,
    load,
)
from risingsearch.integrations.sklearn import RisingSearchCV
from risingsearch.search.results import SearchResult

OWN = "RisingSearchCV"
OPTUNA = "Optuna, TPE and median"


class DemoRun(NamedTuple):
    """Outcome of one search of the demo."""

    search: str
    seed: int
    best: list[tuple[int, float]]  # epochs and the best score so far, where it rises
    test_score: float  # of the model with the best score
    epochs: int
    tried: int
    seconds: float
    result: SearchResult | None = None  # of this package's search

    @property
    def score(self) -> float:
        """The best score on the rows that a model is chosen by."""
        return self.best[-1][1]


def run(search: str, seed: int) -> DemoRun:
    """Run a search, and return what was written down inside its models."""
    problem = load()
    Classifier.log = log = Log(problem)
    begin = time.perf_counter()
    with threadpool_limits(1):  # models this small train slower with more
        result = SEARCHES[search](problem, seed)
    seconds = time.perf_counter() - begin
    return DemoRun(
        search,
        seed,
        log.best,
        log.test_score,
        log.epochs,
        len(log.tried),
        seconds,
        result,
    )


def _rising(problem: Problem, seed: int) -> SearchResult:
    search = RisingSearchCV(
        Classifier(random_state=seed),
        SPACE,
        budget=BUDGET,
        max_epochs=MAX_EPOCHS,
        cv=[(problem.train, problem.valid)],
        refit=False,
        random_state=seed,
    )
    search.fit(problem.X, problem.y)
    return search._search.result()


def _halving(problem: Problem, seed: int) -> None:
    """Train 63 for 1 epoch, the best third afresh for 3, then for 9 and 27: 270 in all.

    Of the brackets that were tried when the problem was chosen it found the best.
    """
    search = HalvingRandomSearchCV(
        Classifier(random_state=seed),
        SPACE,
        resource="epochs",
        n_candidates=63,
        min_resources=1,
        max_resources=27,
        factor=3,
        cv=[(problem.train, problem.valid)],
        refit=False,
        return_train_score=False,
        random_state=seed,
    )
    search.fit(problem.X, problem.y)


def _in_full(problem: Problem, seed: int) -> None:
    """Train as many as the budget allows, and look at every epoch."""
    n = BUDGET // MAX_EPOCHS
    for params in ParameterSampler(SPACE, n, random_state=seed):
        for _ in problem.epochs(params, seed):
            pass


def _optuna(problem: Problem, seed: int) -> None:
    """Train trials that TPE proposes and the default pruner stops, to the budget."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=seed),
        pruner=optuna.pruners.MedianPruner(),
    )

    def objective(trial: optuna.Trial) -> float:
        score = 0.0
        for epoch, score in enumerate(problem.epochs(_suggest(trial), seed), 1):
            trial.report(score, epoch)
            if Classifier.log.epochs == BUDGET:
                study.stop()
                break
            if trial.should_prune():
                raise optuna.TrialPruned
        return score

    study.optimize(objective)


def _suggest(trial: Any) -> dict[str, Any]:
    """Return a configuration; numbers of a list by place, so that TPE sees an order."""
    params: dict[str, Any] = {}
    for name, values in SPACE.items():
        if not isinstance(values, list):
            low, high = values.support()
            params[name] = trial.suggest_float(name, low, high, log=True)
        elif isinstance(values[0], str):
            params[name] = trial.suggest_categorical(name, values)
        else:
            params[name] = values[trial.suggest_int(name, 0, len(values) - 1)]
    return params


SEARCHES: dict[str, Callable[[Problem, int], SearchResult | None]] = {
    OWN: _rising,
    "HalvingRandomSearchCV": _halving,
    "random search, in full": _in_full,
}
if importlib.util.find_spec("optuna"):
    SEARCHES[OPTUNA] = _optuna
