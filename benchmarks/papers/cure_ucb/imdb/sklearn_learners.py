"""The online learners of the IMDB experiment as estimators of scikit-learn.

The counts are finite and the labels 0 or 1, so scikit-learn need not check them for
every review: that takes several times as long as to predict and to learn it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

from benchmarks.papers.cure_ucb.imdb.arms import Arm

RATES = {"logistic": "constant", "gradient": "invscaling"}
CLASSES = [0, 1]
UNCHECKED = {"assume_finite": True, "skip_parameter_validation": True}


class EstimatorLearner:
    """An estimator of scikit-learn; before its first review it predicts negative."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    @property
    def has_learned(self) -> bool:
        """Whether it has had a review."""
        return hasattr(self.estimator, "classes_")

    def predict(self, counts: NDArray[np.float64]) -> NDArray[np.bool_]:
        if not self.has_learned:
            return np.zeros(len(counts), dtype=bool)
        with config_context(**UNCHECKED):
            probabilities = self.estimator.predict_proba(counts)
        positive: NDArray[np.bool_] = probabilities[:, 1] > 0.5
        return positive

    def learn(self, counts: NDArray[np.float64], labels: NDArray[np.uint8]) -> None:
        classes = None if self.has_learned else CLASSES
        with config_context(**UNCHECKED):
            self.estimator.partial_fit(counts, labels, classes=classes)


class Network(MLPClassifier):
    """A network that checks the first reviews that it learns, and no others."""

    def _validate_input(
        self, counts: Any, labels: Any, incremental: bool, reset: bool
    ) -> tuple[Any, Any]:
        if reset:
            return super()._validate_input(counts, labels, incremental, reset)
        return counts, labels.astype(bool)[:, None]  # as the checks return them

    def _forward_pass_fast(self, counts: Any, check_input: bool = True) -> Any:
        return super()._forward_pass_fast(counts, check_input=False)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")


def make_estimator_learner(arm: Arm, seed: int) -> EstimatorLearner:
    """Return the estimator of an arm, with its settings: all but Adagrad."""
    if arm.rule == "network":
        return EstimatorLearner(_network(arm, seed))
    return EstimatorLearner(_linear(arm))


def _network(arm: Arm, seed: int) -> Network:
    return Network(
        arm.hidden,
        learning_rate_init=arm.step,
        batch_size=1,
        shuffle=False,
        # A number would seed a generator for every review, and only the first draws.
        random_state=np.random.RandomState(seed),
    )


def _linear(arm: Arm) -> SGDClassifier:
    return SGDClassifier(
        loss="log_loss",
        penalty=None,
        fit_intercept=False,
        shuffle=False,
        learning_rate=RATES[arm.rule],
        eta0=arm.step,
        power_t=0.5,
    )
