"""Epochs counted where they are trained: inside the model, in whatever process.

Every epoch and every score is a line that the model appends to a file. A line is one
write to a file opened for appending, so that lines of several processes do not mix.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks.shared.problems import label, make_model


class Event(NamedTuple):
    """A line of the log: an epoch was trained, or a score was seen."""

    time: float  # seconds since the Unix epoch
    configuration: str
    epoch: int  # of this model, from 1
    score: float | None  # None: the epoch was trained


class AuditedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A configuration of a problem that logs its epochs and scores.

    Parameters
    ----------
    log : str
        The file that is appended to.
    seed : int, default=0
        Seed of the model.
    epochs : int, default=1
        Epochs of a ``fit``, which starts afresh: what searches use that cannot go on
        training a model.
    kind, alpha, rate, penalty, width, warm_up
        The configuration; see ``benchmarks.shared.problems``.
    """

    def __init__(
        self,
        log: str = "",
        seed: int = 0,
        epochs: int = 1,
        kind: str = "linear",
        alpha: float | None = None,
        rate: float | None = None,
        penalty: str | None = None,
        width: int | None = None,
        warm_up: float | None = None,
    ) -> None:
        self.log = log
        self.seed = seed
        self.epochs = epochs
        self.kind = kind
        self.alpha = alpha
        self.rate = rate
        self.penalty = penalty
        self.width = width
        self.warm_up = warm_up

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> AuditedClassifier:
        """Train one epoch more, and log it."""
        if not hasattr(self, "model_"):
            self.model_ = make_model(self._settings(), self.seed)
            self.classes_ = np.unique(y) if classes is None else np.asarray(classes)
            self.epoch_ = 0
        self.model_.partial_fit(X, y, classes=self.classes_)
        self.epoch_ += 1
        self._append()
        return self

    def fit(self, X: Any, y: Any) -> AuditedClassifier:
        """Start afresh and train ``epochs`` epochs."""
        if hasattr(self, "model_"):
            del self.model_
        for _ in range(self.epochs):
            self.partial_fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        """Predict with the model."""
        return self.model_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, and log it."""
        accuracy = float(super().score(X, y, sample_weight))
        self._append(repr(accuracy))
        return accuracy

    def _settings(self) -> dict[str, Any]:
        settings = self.get_params()
        return {k: settings[k] for k in settings if k not in ("log", "seed", "epochs")}

    def _append(self, *score: str) -> None:
        line = [repr(time.time()), label(self._settings()), str(self.epoch_), *score]
        file = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, (" ".join(line) + "\n").encode())
        finally:
            os.close(file)


def read(log: Path) -> list[Event]:
    """Return what was logged, in the order in which it was."""
    if not log.is_file():
        return []
    events = []
    for line in log.read_text().splitlines():
        moment, configuration, epoch, *score = line.split(" ")
        value = float(score[0]) if score else None
        events.append(Event(float(moment), configuration, int(epoch), value))
    return events


def n_epochs(log: Path) -> int:
    """Return how many epochs were trained so far."""
    return sum(event.score is None for event in read(log))
