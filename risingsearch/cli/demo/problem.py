"""The problem of the demo: a generated one, which small networks find hard.

Every search has the same rows, space and epochs. What it trains and sees is written
down inside the model, with every trainer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier

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


class Problem(NamedTuple):
    """Rows, and which of them a model trains on and is chosen by.

    The others test what was chosen.
    """

    X: Any
    y: Any
    train: Any
    valid: Any
    test: Any

    def epochs(self, params: Mapping[str, Any], seed: int) -> Iterator[float]:
        """Train a model epoch by epoch, and yield its scores."""
        model = Classifier(**params, random_state=seed)
        for _ in range(MAX_EPOCHS):
            model.partial_fit(self.X[self.train], self.y[self.train])
            yield model.score(self.X[self.valid], self.y[self.valid])


def load() -> Problem:
    """Return 4,000 points to train on, 2,000 to choose by, 2,000 to test.

    They have 12 coordinates. Each of the 4 classes is 8 clusters, and of a hundredth of
    the points the class is drawn at random.
    """
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
    parts = np.split(np.arange(len(y)), [4000, 6000])
    return Problem(X.astype(np.float32), y, *parts)


class Log:
    """Log of one search: epochs trained, configurations tried, best scores."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.epochs = 0
        self.tried: set[tuple[Any, ...]] = set()
        self.best: list[tuple[int, float]] = []
        self.test_score = float("nan")

    def saw(self, model: Classifier, score: float) -> None:
        """Keep a score that is the best so far, and test the model that has it."""
        if not self.best or score > self.best[-1][1]:
            self.best.append((self.epochs, score))
            predicted = model.predict(self.problem.X[self.problem.test])
            self.test_score = float(
                np.mean(predicted == self.problem.y[self.problem.test])
            )


class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network that writes down every epoch and every score.

    ``epochs`` are those of a ``fit``, for searches that cannot continue a training.
    """

    log: ClassVar[Log]

    def __init__(
        self,
        rate: float = 1e-3,
        alpha: float = 1e-4,
        width: int = 64,
        depth: int = 1,
        activation: str = "relu",
        solver: str = "adam",
        batch_size: int = 128,
        momentum: float = 0.9,
        epochs: int = 1,
        random_state: int | None = None,
    ) -> None:
        self.rate = rate
        self.alpha = alpha
        self.width = width
        self.depth = depth
        self.activation = activation
        self.solver = solver
        self.batch_size = batch_size
        self.momentum = momentum
        self.epochs = epochs
        self.random_state = random_state

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Classifier:
        """Train one epoch more."""
        if not hasattr(self, "model_"):
            self.model_, self.diverged_ = self._new(), False
            self.classes_ = np.unique(y) if classes is None else np.asarray(classes)
            self.log.tried.add(self._settings())
        self.log.epochs += 1
        if not self.diverged_:
            self._train(X, y)
        return self

    def fit(self, X: Any, y: Any) -> Classifier:
        """Start afresh and train ``epochs`` epochs."""
        if hasattr(self, "model_"):
            del self.model_
        for _ in range(self.epochs):
            self.partial_fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        """Predict with the model; always the same class once it has diverged."""
        if self.diverged_:
            return np.full(len(X), self.classes_[0])
        with np.errstate(over="ignore", invalid="ignore"):
            return self.model_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, and write it down."""
        accuracy = float(super().score(X, y, sample_weight))
        self.log.saw(self, accuracy)
        return accuracy

    def _train(self, X: Any, y: Any) -> None:
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                self.model_.partial_fit(X, y, classes=self.classes_)
        except ValueError as error:
            if "non-finite" not in str(error):
                raise
            self.diverged_ = True

    def _settings(self) -> tuple[Any, ...]:
        """Return the parameters, but not for how long to train."""
        return tuple(v for name, v in self.get_params().items() if name != "epochs")

    def _new(self) -> Any:
        return MLPClassifier(
            (self.width,) * self.depth,
            activation=self.activation,
            solver=self.solver,
            learning_rate_init=self.rate,
            alpha=self.alpha,
            batch_size=self.batch_size,
            momentum=self.momentum,
            random_state=self.random_state,
        )
