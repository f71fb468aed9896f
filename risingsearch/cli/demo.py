"""``risingsearch demo``: a search compared with those of other tools, by epochs.

Every search has the same generated points, space and epochs. Training and scoring
are counted inside the models, with every trainer.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, NamedTuple

import numpy as np

from risingsearch.arms import Configuration, Params
from risingsearch.cli.options import writing
from risingsearch.errors import needed
from risingsearch.plotting.html_report import write_report
from risingsearch.search.results import SearchResult

with needed("scikit-learn", "sklearn"):
    from joblib import Parallel, delayed
    from scipy.stats import loguniform
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.datasets import make_classification
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingRandomSearchCV, ParameterSampler
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits
    from tqdm import tqdm

    from risingsearch.integrations.sklearn import RisingSearchCV
with needed("matplotlib", "plot"):
    from matplotlib.figure import Figure

SEEDS = 4
BUDGET = 270
MAX_EPOCHS = 54
SPACE: dict[str, Any] = {
    "width": [4, 8, 16, 32, 64, 128],
    "depth": [1, 2, 3, 4],
    "activation": ["identity", "relu", "tanh", "logistic"],
    "solver": ["sgd", "adam"],
    "rate": loguniform(1e-6, 1.0),
    "alpha": loguniform(1e-6, 10.0),
    "batch_size": [32, 64, 128, 256, 512],
    "momentum": [0.0, 0.5, 0.8, 0.9, 0.95, 0.99],
}
PLAN = f"""\
Problem: 8,000 generated points of 4 classes, 8 clusters each, in 12 dimensions.
Space:   neural networks, 1 to 4 layers of 4 to 128 units, with learning rates over six
         decades; what trains and penalises them, and in what batches: 8 parameters.
Budget:  {BUDGET} epochs for every search; one model takes {MAX_EPOCHS} in full.
"""
LEGEND = f"""
Median of {SEEDS} seeds, and their range. Score: the best accuracy on the points that a
search chooses by; test: that of the same model on others. Epochs: counted inside the
models. Tried: how many of them were opened. CPU s: processor time, in seconds.
"""
LINE = "{:24}{:24}{:24}{:<8}{:<8}{:<8}"
OWN = "RisingSearchCV"
OPTUNA = "Optuna, TPE and median"


class Problem(NamedTuple):
    """Points, and the rows to train on, to choose models by and to test them."""

    X: Any
    y: Any
    train: Any
    valid: Any
    test: Any

    def epochs(self, params: Configuration, seed: int) -> Iterator[float]:
        """Train a model epoch by epoch, and yield its scores."""
        model = Classifier(**params, random_state=seed)
        for _ in range(MAX_EPOCHS):
            model.partial_fit(self.X[self.train], self.y[self.train])
            yield model.score(self.X[self.valid], self.y[self.valid])


def load() -> Problem:
    """Return 4,000 points to train on, 2,000 to choose by, 2,000 to test."""
    X, y = make_classification(
        n_samples=8000,
        n_features=12,
        n_informative=12,
        n_redundant=0,
        n_classes=4,
        n_clusters_per_class=8,
        class_sep=2.0,
        random_state=0,
    )
    return Problem(X.astype(np.float32), y, *np.split(np.arange(len(y)), [4000, 6000]))


@dataclass
class DemoRun:
    """A search with one seed, as its models have counted it."""

    search: str
    seed: int
    best: list[tuple[int, float]] = field(default_factory=list)  # where it rises
    test_score: float = float("nan")  # of the model with the best score
    epochs: int = 0
    tried: int = 0
    seconds: float = 0.0  # of processor time
    result: SearchResult | None = None  # of this package's search

    @property
    def score(self) -> float:
        """The best score on the rows that a model is chosen by."""
        return self.best[-1][1]

    def best_by(self, epoch: int) -> float:
        """Return the best score after so many epochs."""
        return max((score for at, score in self.best if at <= epoch), default=0.0)


class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network that counts its epochs and keeps its best scores in ``log``."""

    problem: ClassVar[Problem]
    log: ClassVar[DemoRun]
    tried: ClassVar[set[tuple[Any, ...]]]

    def __init__(self, **params: Any) -> None:
        self.params: Params = {
            **dict.fromkeys(SPACE),
            "random_state": None,
            "epochs": 1,
            **params,
        }

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters."""
        return dict(self.params)

    def set_params(self, **params: Any) -> Classifier:
        """Change some parameters."""
        self.params |= params
        return self

    def _begin(self, y: Any) -> None:
        """Make the network, and count it."""
        params = self.get_params()
        del params["epochs"]
        self.tried.add(tuple(params.values()))
        self.log.tried = len(self.tried)
        layers = (params.pop("width"),) * params.pop("depth")
        rate = params.pop("rate")
        self.model_ = MLPClassifier(layers, learning_rate_init=rate, **params)
        self.classes_ = np.unique(y)
        self.diverged_ = False

    @np.errstate(over="ignore", invalid="ignore")
    def partial_fit(self, X: object, y: object, classes: object = None) -> Classifier:
        """Train one epoch more."""
        if not hasattr(self, "model_"):
            self._begin(y if classes is None else classes)
        self.log.epochs += 1
        if self.diverged_:
            return self
        try:
            self.model_.partial_fit(X, y, classes=self.classes_)
        except ValueError as error:
            if "non-finite" not in str(error):
                raise
            self.diverged_ = True
        return self

    def fit(self, X: object, y: object) -> Classifier:
        """Start afresh and train ``epochs`` epochs."""
        self._begin(y)
        for _ in range(self.params["epochs"]):
            self.partial_fit(X, y)
        return self

    @np.errstate(over="ignore", invalid="ignore")
    def predict(self, X: Any) -> Any:
        """Predict with the model; always the same class once it has diverged."""
        if self.diverged_:
            return np.full(len(X), self.classes_[0])
        return self.model_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: object = None) -> float:
        """Return the accuracy; test the model if that is the best so far."""
        score = float(super().score(X, y, sample_weight))
        log = self.log
        if not log.best or score > log.score:
            log.best.append((log.epochs, score))
            X, y, *_, test = self.problem
            log.test_score = float(np.mean(self.predict(X[test]) == y[test]))
        return score


def run(search: str, seed: int) -> DemoRun:
    """Run a search, and return the counts of its models."""
    problem = load()
    log = DemoRun(search, seed)
    Classifier.problem = problem
    Classifier.log = log
    Classifier.tried = set()
    begin = time.process_time()
    with threadpool_limits(1):  # models this small train slower with more
        log.result = SEARCHES[search](problem, seed)
    log.seconds = time.process_time() - begin
    return log


def run_all(seeds: Sequence[int]) -> list[DemoRun]:
    """Run every search with every seed, on all processors."""
    jobs = [delayed(run)(search, seed) for seed in seeds for search in SEARCHES]
    runs = Parallel(n_jobs=-1, return_as="generator")(jobs)
    return list(tqdm(runs, "searches", len(jobs)))


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
    """Train 63 for 1 epoch, the best third afresh for 3, then for 9 and 27: 270."""
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
    for params in ParameterSampler(SPACE, BUDGET // MAX_EPOCHS, random_state=seed):
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
    params: Params = {}
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


def run_demo(out: Path, seed: int) -> None:
    """Run every search with four seeds; print, draw and write a report to ``out``."""
    picture = out / "best-by-epochs.png"
    report = out / "report.html"
    with writing(picture):  # before anything is trained
        out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()
    print(PLAN)
    if OPTUNA not in SEARCHES:
        print("Without Optuna its search is left out: pip install optuna\n")
    runs = run_all(range(seed, seed + SEEDS))
    table = rows(runs)
    print(LINE.format(*table[0]))
    for row in table:
        print(LINE.format(*row.values()))
    print(LEGEND)
    with writing(picture):
        best_by_epochs(runs).savefig(picture, dpi=150)
        write_report(
            next(run.result for run in runs if run.result is not None),
            report,
            title="The search of the demo",
            settings={"max_epochs": MAX_EPOCHS},
        )
    print(f"Written: {picture}, {report}")


def by_search(runs: Sequence[DemoRun]) -> dict[str, list[DemoRun]]:
    """Return the runs of every search, in the order of the seeds."""
    groups: dict[str, list[DemoRun]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        groups.setdefault(run.search, []).append(run)
    return groups


def rows(runs: Sequence[DemoRun]) -> list[dict[str, Any]]:
    """Return a row per search: medians and ranges over the seeds."""
    return [
        {
            "search": search,
            "score": _spread([run.score for run in group]),
            "test": _spread([run.test_score for run in group]),
            "epochs": round(median(run.epochs for run in group)),
            "tried": round(median(run.tried for run in group)),
            "CPU s": f"{median(run.seconds for run in group):.1f}",
        }
        for search, group in by_search(runs).items()
    ]


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def best_by_epochs(runs: Sequence[DemoRun]) -> Figure:
    """Draw the best scores so far, as the median over the seeds."""
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.subplots()
    for search, group in by_search(runs).items():
        # Before a twentieth of the budget scores are too low to compare.
        epochs = range(BUDGET // 20, max(run.epochs for run in group) + 1)
        best = [median(run.best_by(epoch) for run in group) for epoch in epochs]
        axes.plot(epochs, best, linewidth=2, label=search)
    axes.set_xlabel("epochs spent, counted inside the models")
    axes.set_ylabel("best accuracy so far, median of the seeds")
    axes.legend(loc="lower right")
    return figure
