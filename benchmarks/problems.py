"""One problem for every tool: 60 configurations, epochs counted inside the model.

30 linear classifiers and 30 neural networks, all trained with ``partial_fit``, one pass
over the training rows an epoch, at most 27 epochs each, 270 epochs in all; on the
handwritten digits, or on 20,000 made-up rows of six classes. A quarter of the rows is
held out, the same for every seed; the seed is that of the models and of the search.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import train_test_split

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
