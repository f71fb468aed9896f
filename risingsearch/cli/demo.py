"""``risingsearch demo``: the main job on real data, beside two well-known searches."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from risingsearch.errors import missing

try:
    import sklearn  # noqa: F401
except ModuleNotFoundError as error:
    raise missing("scikit-learn", extra="sklearn") from error
try:
    import matplotlib
except ModuleNotFoundError as error:
    raise missing("matplotlib", extra="plot") from error

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import (
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    train_test_split,
)
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from risingsearch.integrations.sklearn import RisingSearchCV

BUDGET = 270
MAX_EPOCHS = 27


class CountedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that counts every epoch trained, in any of the searches.

    ``epochs`` are those of a ``fit``, for searches that cannot continue a training.
    """

    n_trained: ClassVar[int] = 0

    def __init__(self, model: Any = None, epochs: int = 1) -> None:
        self.model = model
        self.epochs = epochs

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> CountedClassifier:
        """Train one epoch more."""
        if not hasattr(self, "model_"):
            self.model_ = clone(self.model)
            self.classes_ = np.unique(y) if classes is None else np.asarray(classes)
        self.model_.partial_fit(X, y, classes=self.classes_)
        CountedClassifier.n_trained += 1
        return self

    def fit(self, X: Any, y: Any) -> CountedClassifier:
        """Start afresh and train ``epochs`` epochs."""
        if hasattr(self, "model_"):
            del self.model_
        for _ in range(self.epochs):
            self.partial_fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        """Predict with the model."""
        return self.model_.predict(X)


class Row(NamedTuple):
    """One line of the table."""

    search: str
    score: float
    epochs: int
    configurations: int
    seconds: float


def configurations(seed: int) -> list[dict[str, Any]]:
    """Return 30 linear classifiers and 30 neural networks."""
    linear = [
        SGDClassifier(
            loss="log_loss",
            alpha=alpha,
            eta0=eta0,
            penalty=penalty,
            learning_rate="constant",
            random_state=seed,
        )
        for alpha, eta0, penalty in itertools.product(
            [1e-6, 1e-5, 1e-4, 1e-3, 1e-2], [1e-3, 1e-2, 1e-1], ["l2", "l1"]
        )
    ]
    networks = [
        MLPClassifier(
            (hidden,),
            learning_rate_init=rate,
            alpha=alpha,
            batch_size=256,
            random_state=seed,
        )
        for hidden, rate, alpha in itertools.product(
            [16, 64, 128], [1e-4, 3e-4, 1e-3, 3e-3, 1e-2], [1e-5, 1e-2]
        )
    ]
    return [{"model": model} for model in linear + networks]


def describe(model: Any) -> str:
    """Return a short name of a configuration."""
    if isinstance(model, SGDClassifier):
        return f"SGD {model.penalty} lr {model.eta0:g} decay {model.alpha:g}"
    [hidden] = model.hidden_layer_sizes
    return f"MLP {hidden} lr {model.learning_rate_init:g} decay {model.alpha:g}"


def run_demo(out: Path, seed: int) -> dict[str, Any]:
    """Search 60 configurations on the handwritten digits, and print what came of it.

    Two figures, ``allocation.png`` and ``curves.png``, are written to the folder
    ``out``, which is made if missing. Returned are the table's rows, the best
    configuration and the files.
    """
    X, y = load_digits(return_X_y=True)
    rows = np.arange(len(X))
    train, valid = train_test_split(rows, test_size=0.25, stratify=y, random_state=0)
    X, split = X / 16.0, [(train, valid)]
    models = configurations(seed)
    print(f"Handwritten digits: {len(train)} rows to train on, {len(valid)} to score.")
    print(
        f"Plan: {len(models)} configurations (30 SGDClassifier, 30 MLPClassifier), at "
        f"most {MAX_EPOCHS} epochs each.\n"
        f"      Training all in full would cost {len(models) * MAX_EPOCHS} epochs; "
        f"this search spends {BUDGET}.\n"
    )
    searches = _searches(models, split, seed)
    table = [_timed(name, search, X, y) for name, search in searches.items()]
    rising = searches["RisingSearchCV"]
    _print_table(table)
    best = describe(rising.best_params_["model"])
    print(f"\nBest: {best}, at epoch {rising.best_epoch_}; {rising.stop_reason_}.")
    files = _draw(rising, out)
    print("Pictures: " + ", ".join(str(file) for file in files))
    return {
        "table": [row._asdict() for row in table],
        "best": best,
        "best_epoch": rising.best_epoch_,
        "files": [str(file) for file in files],
    }


def _searches(
    models: list[dict[str, Any]], split: list[tuple[Any, Any]], seed: int
) -> dict[str, Any]:
    """Return this package's search and two others, on the same split."""
    space = {"model": [params["model"] for params in models]}
    same: dict[str, Any] = {"cv": split, "refit": False, "random_state": seed}
    return {
        "RisingSearchCV": RisingSearchCV(
            CountedClassifier(),
            models,
            budget=BUDGET,
            max_epochs=MAX_EPOCHS,
            verbose=1,
            **same,
        ),
        "HalvingRandomSearchCV": HalvingRandomSearchCV(
            CountedClassifier(),
            space,
            resource="epochs",
            n_candidates=len(models),
            min_resources=1,
            max_resources=MAX_EPOCHS,
            factor=3,
            **same,
        ),
        "random search, in full": RandomizedSearchCV(
            CountedClassifier(epochs=MAX_EPOCHS),
            space,
            n_iter=BUDGET // MAX_EPOCHS,
            **same,
        ),
    }


def _timed(name: str, search: Any, X: Any, y: Any) -> Row:
    CountedClassifier.n_trained = 0
    begin = time.perf_counter()
    with threadpool_limits(1):  # models this small train slower with more
        search.fit(X, y)
    seconds = time.perf_counter() - begin
    tried = {
        describe(params["model"])
        for params, time_ in zip(
            search.cv_results_["params"],
            search.cv_results_["mean_fit_time"],
            strict=True,
        )
        if time_ > 0
    }
    scores = search.cv_results_["mean_test_score"]
    epochs = CountedClassifier.n_trained
    return Row(name, float(np.nanmax(scores)), epochs, len(tried), seconds)


def _print_table(table: list[Row]) -> None:
    print(f"{'':24}{'best score':>11}{'epochs':>8}{'tried':>7}{'seconds':>9}")
    for row in table:
        print(
            f"{row.search:24}{row.score:>11.4f}{row.epochs:>8}"
            f"{row.configurations:>7}{row.seconds:>9.1f}"
        )
    print(
        "Score: accuracy on the same held-out rows, the best that each search saw.\n"
        "Epochs: counted by the calls made inside the model."
    )


def _draw(search: RisingSearchCV, out: Path) -> list[Path]:
    from matplotlib.figure import Figure

    out.mkdir(parents=True, exist_ok=True)
    labels = {
        arm: describe(params["model"])
        for arm, params in enumerate(search.cv_results_["params"])
    }
    files = []
    with matplotlib.rc_context({"backend": "agg"}):
        for name, plot in (
            ("allocation", search.plot_allocation),
            ("curves", search.plot_curves),
        ):
            figure = plot(labels=labels).get_figure()
            assert isinstance(figure, Figure)
            file = out / f"{name}.png"
            figure.savefig(file)
            files.append(file)
    return files
