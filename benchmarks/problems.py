"""One problem for every tool: 60 configurations, epochs counted inside the model.

30 linear classifiers and 30 neural networks, all trained with ``partial_fit``, one pass
over the training rows an epoch, at most 27 epochs each, 270 epochs in all; on the
handwritten digits, or on 20,000 made-up rows of six classes. A quarter of the rows is
held out, the same for every seed; the seed is that of the models and of the search.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import train_test_split

from risingsearch.demo import configurations

BUDGET = 270
MAX_EPOCHS = 27
PROBLEMS = ("digits", "synth")


def load(name: str) -> tuple[Any, Any, tuple[Any, Any]]:
    """Return X, y and the one split (train, validation) of a problem."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X = X / 16.0
    else:
        X, y = make_classification(
            20_000,
            50,
            n_informative=15,
            n_redundant=10,
            n_classes=6,
            n_clusters_per_class=4,
            class_sep=1.2,
            flip_y=0.03,
            random_state=7,
        )
        X = (X - X.mean(0)) / X.std(0)
    rows = np.arange(len(X))
    split = train_test_split(rows, test_size=0.25, random_state=0, stratify=y)
    return X, y, tuple(split)


class AuditedClassifier(ClassifierMixin, BaseEstimator):
    """A configuration that writes a byte to ``log`` for every epoch it is trained."""

    def __init__(
        self, config: int = 0, epochs: int = 1, seed: int = 0, log: str | None = None
    ) -> None:
        self.config = config
        self.epochs = epochs
        self.seed = seed
        self.log = log

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> AuditedClassifier:
        if not hasattr(self, "model_"):
            self.model_ = configurations(self.seed)[self.config]["model"]
            self.classes_ = np.unique(y) if classes is None else np.asarray(classes)
        self.model_.partial_fit(X, y, classes=self.classes_)
        if self.log is not None:
            with Path(self.log).open("ab") as file:
                file.write(b".")
        return self

    def fit(self, X: Any, y: Any) -> AuditedClassifier:
        vars(self).pop("model_", None)
        for _ in range(self.epochs):
            self.partial_fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict(X)
