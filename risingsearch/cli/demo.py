"""``risingsearch demo``: a search compared with those of other tools, by epochs.

Every search has the same generated points, space and epochs. Training and scoring
are counted inside the models, with every trainer.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

import numpy as np

from risingsearch.arms import Configuration, Params
from risingsearch.cli.options import writing
from risingsearch.errors import needed
from risingsearch.plotting.html_report import write_report
from risingsearch.policies.arrays import Floats, Ints
from risingsearch.search.results import SearchResult

with needed("scikit-learn", "sklearn"):
    from joblib import Parallel, delayed
    from scipy.stats import loguniform
    from sklearn.datasets import make_classification
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingRandomSearchCV, ParameterSampler
    from sklearn.neural_network import MLPClassifier

    from risingsearch.integrations.sklearn import RisingSearchCV
with needed("matplotlib", "plot"):
    from matplotlib.figure import Figure

SEEDS = 4
BUDGET = 270
MAX_EPOCHS = 54
SPACE: Params = {
    "width": [4, 8, 16, 32, 64, 128],
    "depth": [1, 2, 3, 4],
    "activation": ["identity", "relu", "tanh", "logistic"],
    "solver": ["sgd", "adam"],
    "rate": loguniform(1e-6, 1.0),
    "alpha": loguniform(1e-6, 10.0),
    "batch_size": [32, 64, 128, 256, 512],
    "momentum": [0.0, 0.5, 0.8, 0.9, 0.95, 0.99],
}
DEFAULTS: Params = {**dict.fromkeys(SPACE), "random_state": None, "epochs": 1}
PLAN = f"""\
Small neural networks classify generated points: {len(SPACE)} parameters, {SEEDS} seeds.
Every search has {BUDGET} epochs; one model takes {MAX_EPOCHS} in full.
"""
LEGEND = """
Medians and ranges over the seeds, counted inside the models. Score: the best accuracy
on the points that a search chooses by; test: that of the same model on others.
"""
LINE = "{:24}{:24}{:24}{:<8}{:<8}"
OWN = "RisingSearchCV"
TRAIN, VALID, TEST = np.split(np.arange(8000), [4000, 6000])


@cache
def load() -> tuple[Floats, Ints]:
    """Return the points to train on, to choose models by, and to test them."""
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
    return X.astype(np.float32), y


@dataclass
class DemoRun:
    """A search with one seed, as its models have counted it."""

    seed: int
    best: list[float] = field(default_factory=lambda: [0.0])  # after 0, 1, ... epochs
    test_score: float = float("nan")  # of the model with the best score
    tried: set[str] = field(default_factory=set)  # the configurations
    result: SearchResult | None = None  # of this package's search


class Classifier(MLPClassifier):  # type: ignore[misc]
    """A network that counts its epochs and keeps the best scores in ``log``."""

    log: ClassVar[DemoRun]

    def __init__(self, **params: object) -> None:
        super().__init__()
        self.__dict__.update(DEFAULTS | params)

    def get_params(self, deep: bool = True) -> Params:
        """Return the parameters that searches may change."""
        return {name: getattr(self, name) for name in DEFAULTS}

    def fit(self, X: Floats, y: Ints) -> Classifier:
        """Train ``epochs`` epochs."""
        for _ in range(self.epochs):
            self.partial_fit(X, y)
        return self

    def partial_fit(self, X: Floats, y: Ints, classes: object = None) -> Classifier:
        """Train one epoch more."""
        self.hidden_layer_sizes = (self.width,) * self.depth
        self.learning_rate_init = self.rate
        self.log.tried.add(str([getattr(self, name) for name in SPACE]))
        self.log.best.append(self.log.best[-1])
        with suppress(ValueError):  # of weights that are no longer finite
            super().partial_fit(X, y, classes=np.unique(y))
        return self

    def score(self, X: Floats, y: Ints, sample_weight: object = None) -> float:
        """Return the accuracy; test the model if that is the best so far."""
        score = float(super().score(X, y))
        if score > self.log.best[-1]:
            self.log.best[-1] = score
            X, y = load()
            self.log.test_score = super().score(X[TEST], y[TEST])
        return score


def epochs_of(params: Configuration, seed: int) -> Iterator[float]:
    """Train a model epoch by epoch, and yield its scores."""
    X, y = load()
    model = Classifier(**params, random_state=seed)
    for _ in range(MAX_EPOCHS):
        model.partial_fit(X[TRAIN], y[TRAIN])
        yield model.score(X[VALID], y[VALID])


def _fitted(search: Callable[..., Any], seed: int, **options: object) -> Any:
    """Return a search of scikit-learn's form that has trained and chosen models."""
    return search(
        Classifier(random_state=seed),
        SPACE,
        cv=[(TRAIN, VALID)],
        refit=False,
        random_state=seed,
        **options,
    ).fit(*load())


def _rising(seed: int) -> SearchResult:
    search: RisingSearchCV = _fitted(
        RisingSearchCV, seed, budget=BUDGET, max_epochs=MAX_EPOCHS
    )
    return search.result()


def _halving(seed: int) -> None:
    """Train 63 for 1 epoch, the best third afresh for 3, then for 9 and 27: 270."""
    _fitted(
        HalvingRandomSearchCV,
        seed,
        resource="epochs",
        n_candidates=63,
        min_resources=1,
        max_resources=27,
        return_train_score=False,
    )


def _in_full(seed: int) -> None:
    """Train as many as the budget allows, and look at every epoch."""
    for params in ParameterSampler(SPACE, BUDGET // MAX_EPOCHS, random_state=seed):
        list(epochs_of(params, seed))


def _optuna(seed: int) -> None:
    """Train trials that TPE proposes and the median pruner stops, to the budget."""
    import optuna

    def objective(trial: optuna.Trial) -> float:
        for epoch, score in enumerate(epochs_of(_suggest(trial), seed), 1):
            trial.report(score, epoch)
            if len(Classifier.log.best) > BUDGET:
                study.stop()
                break
            if trial.should_prune():
                raise optuna.TrialPruned
        return score

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective)


def _suggest(trial: Any) -> Params:
    """Return a configuration; numbers of a list by place, so that TPE sees an order."""
    params: Params = {}
    for name, values in SPACE.items():
        if not isinstance(values, list):
            params[name] = trial.suggest_float(name, *values.support(), log=True)
        elif isinstance(values[0], str):
            params[name] = trial.suggest_categorical(name, values)
        else:
            params[name] = values[trial.suggest_int(name, 0, len(values) - 1)]
    return params


SEARCHES: dict[str, Callable[[int], SearchResult | None]] = {
    OWN: _rising,
    "HalvingRandomSearchCV": _halving,
    "random search, in full": _in_full,
}
if importlib.util.find_spec("optuna"):
    SEARCHES["Optuna, TPE and median"] = _optuna
else:
    PLAN += "Without Optuna its search is left out: pip install optuna\n"


def run(search: str, seed: int) -> DemoRun:
    """Run a search, and return the counts of its models."""
    log = DemoRun(seed)
    Classifier.log = log
    with np.errstate(over="ignore", invalid="ignore"):  # where a network diverges
        log.result = SEARCHES[search](seed)
    return log


def run_seeds(search: str, seeds: Sequence[int]) -> list[DemoRun]:
    """Run a search with every seed, on all processors."""
    return list(Parallel(n_jobs=-1)(delayed(run)(search, seed) for seed in seeds))


def run_demo(out: Path, seed: int) -> None:
    """Run every search with four seeds; print, draw and write a report to ``out``."""
    picture = out / "best-by-epochs.png"
    report = out / "report.html"
    with writing(picture):  # before anything is trained
        out.mkdir(parents=True, exist_ok=True)
        picture.touch()
    print(PLAN)
    print(LINE.format("search", "score", "test", "epochs", "tried"))
    runs = {}
    for search in SEARCHES:
        runs[search] = run_seeds(search, range(seed, seed + SEEDS))
        print(LINE.format(search, *row(runs[search]).values()), flush=True)
    print(LEGEND)
    with writing(picture):
        best_by_epochs(runs).savefig(picture, dpi=150)
        result = runs[OWN][0].result
        assert result is not None
        write_report(result, report, title="The search of the demo")
    print(f"Written: {picture}, {report}")


def row(runs: Sequence[DemoRun]) -> dict[str, object]:
    """Return the medians and ranges of a search over the seeds."""
    return {
        "score": _spread([run.best[-1] for run in runs]),
        "test": _spread([run.test_score for run in runs]),
        "epochs": round(median(len(run.best) - 1 for run in runs)),
        "tried": round(median(len(run.tried) for run in runs)),
    }


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def best_by_epochs(runs: Mapping[str, Sequence[DemoRun]]) -> Figure:
    """Draw the best scores so far, as the median over the seeds."""
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for search, group in runs.items():
        axes.plot(np.median([run.best for run in group], axis=0), label=search)
    axes.set_xlabel("epochs spent, counted inside the models")
    axes.set_ylabel("best accuracy so far, median of the seeds")
    axes.legend()
    return figure
