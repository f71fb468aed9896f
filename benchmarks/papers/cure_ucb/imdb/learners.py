"""Online learners of the IMDB experiment: each predicts, then learns, review by review.

The update rules and settings are those of the published experiment (Metelli et al.
2022). ``make_learner`` builds each of them in up to three ways.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.cure_ucb.imdb.arms import ARMS, BOUND, SCIKIT_LEARN, TORCH

LIMIT = math.log((1 - 1e-4) / 1e-4)
"""Where the published code caps the logit: probabilities from 0.0001 to 0.9999."""
TINY = 1e-8
"""What Adagrad adds under its root."""


class Learner(Protocol):
    """What a model must do; a batch has one row of word counts per review."""

    def predict(self, counts: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return for every review whether it is predicted to be positive."""
        ...

    def learn(self, counts: NDArray[np.float64], labels: NDArray[np.uint8]) -> None:
        """Learn from one review after the other."""
        ...


def make_learner(library: str, code: str, n_words: int, seed: int) -> Learner:
    """Return a learner that has seen nothing.

    "as published": the linear rules in numpy, the networks by scikit-learn.
    "scikit-learn" and "PyTorch": models of these libraries with the same settings; only
    Adagrad stays as published in scikit-learn, which has none for linear models.
    """
    arm = ARMS[code]
    if library == TORCH:
        from benchmarks.papers.cure_ucb.imdb.torch_learners import make_torch_learner

        return make_torch_learner(arm, n_words, seed)
    if arm.rule == "network" or (library == SCIKIT_LEARN and arm.rule != "adagrad"):
        from benchmarks.papers.cure_ucb.imdb import sklearn_learners

        return sklearn_learners.make_estimator_learner(arm, seed)
    return RULES[arm.rule](n_words, arm.step)


class LogisticRegression:
    """Stochastic gradient descent on the logistic loss, with a constant step."""

    def __init__(self, n_words: int, step: float) -> None:
        self.weights = np.full(n_words, 1 / n_words)
        self.step = step

    def predict(self, counts: NDArray[np.float64]) -> NDArray[np.bool_]:
        positive: NDArray[np.bool_] = counts @ self.weights > 0
        return positive

    def learn(self, counts: NDArray[np.float64], labels: NDArray[np.uint8]) -> None:
        for row, label in zip(counts, labels.tolist(), strict=True):
            logit = min(max(float(row @ self.weights), -LIMIT), LIMIT)
            self.move((1 / (1 + math.exp(-logit)) - label) * row)

    def move(self, gradient: NDArray[np.float64]) -> None:
        """Take one step against the gradient of a review."""
        self.weights -= self.step * gradient


class OnlineGradientDescent(LogisticRegression):
    """Steps that shrink with the root of their number, and bounded weights."""

    def __init__(self, n_words: int, step: float) -> None:
        super().__init__(n_words, step)
        self.t = 0

    def move(self, gradient: NDArray[np.float64]) -> None:
        self.t += 1
        self.weights -= self.step / math.sqrt(self.t) * gradient
        np.clip(self.weights, -BOUND, BOUND, out=self.weights)


class Adagrad(LogisticRegression):
    """Steps of every weight's own length, by the gradients that it has seen."""

    def __init__(self, n_words: int, step: float) -> None:
        super().__init__(n_words, step)
        self.squares = np.zeros(n_words)

    def move(self, gradient: NDArray[np.float64]) -> None:
        self.squares += gradient * gradient
        self.weights -= self.step * gradient / np.sqrt(self.squares + TINY)


RULES = {
    "logistic": LogisticRegression,
    "gradient": OnlineGradientDescent,
    "adagrad": Adagrad,
}
