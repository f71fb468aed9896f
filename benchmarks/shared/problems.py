"""Four problems for every tool: 60 configurations, 27 epochs each, 270 epochs in all.

- ``digits``: the handwritten digits; 30 linear classifiers and 30 networks.
- ``synth``: 20,000 made-up rows of six classes; the same classifiers.
- ``imdb``: 7,500 film reviews as bags of words; the same classifiers.
- ``late-bloomers``: made-up rows again; 60 networks in PyTorch that warm up, of which
  the slowest end best.

A part of the rows is held out, the same for every seed: the seed is that of the models
and of the search. An epoch is one pass over the other rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

PROBLEMS = ("digits", "synth", "imdb", "late-bloomers")
MAX_EPOCHS = 27
BUDGET = 270

Space = dict[str, dict[str, list[Any]]]

CLASSIFIERS: Space = {
    "linear": {
        "alpha": [1e-6, 1e-5, 1e-4, 1e-3, 1e-2],
        "rate": [1e-3, 1e-2, 1e-1],
        "penalty": ["l2", "l1"],
    },
    "network": {
        "width": [16, 64, 128],
        "rate": [1e-4, 3e-4, 1e-3, 3e-3, 1e-2],
        "alpha": [1e-5, 1e-2],
    },
}
_WARMING: dict[str, list[Any]] = {
    "rate": [0.001, 0.003, 0.005, 0.01, 0.02],
    "warm_up": [0, 3, 9, 15, 20, 24],
}
WARMED: Space = {"shallow": _WARMING, "deep": _WARMING}


def load(name: str, data: str = "") -> tuple[Any, Any, tuple[Any, Any]]:
    """Return X, y and the one split (train, validation) of a problem.

    The rows of ``imdb`` are those of the file ``data``, with the arrays X and y.
    """
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X = X / 16.0
    elif name == "imdb":
        with np.load(data, allow_pickle=False) as kept:
            X, y = kept["X"], kept["y"]
    else:
        X, y = _made_up(8_000 if name == "late-bloomers" else 20_000)
    held_out = {"imdb": 1 / 3, "late-bloomers": 1 / 2}.get(name, 1 / 4)
    rows = np.arange(len(X))
    split = train_test_split(rows, test_size=held_out, random_state=0, stratify=y)
    return X, y, tuple(split)


def _made_up(n_rows: int) -> tuple[Any, Any]:
    X, y = make_classification(
        n_rows,
        50,
        n_informative=15,
        n_redundant=10,
        n_classes=6,
        n_clusters_per_class=4,
        class_sep=1.2,
        flip_y=0.03,
        random_state=7,
    )
    return (X - X.mean(0)) / X.std(0), y


def space(name: str) -> Space:
    """Return the kinds of models of a problem, and the values of their parameters."""
    return WARMED if name == "late-bloomers" else CLASSIFIERS


def candidates(name: str) -> list[dict[str, Any]]:
    """Return all configurations of a problem."""
    return [
        {"kind": kind, **dict(zip(values, chosen, strict=True))}
        for kind, values in space(name).items()
        for chosen in itertools.product(*values.values())
    ]


def label(settings: Mapping[str, Any]) -> str:
    """Return the name of a configuration, without spaces, whatever its order."""
    return ",".join(f"{k}={v}" for k, v in sorted(settings.items()) if v is not None)


def make_model(settings: Mapping[str, Any], seed: int) -> Any:
    """Return the untrained model of a configuration."""
    if settings["kind"] == "linear":
        return SGDClassifier(
            loss="log_loss",
            alpha=settings["alpha"],
            eta0=settings["rate"],
            penalty=settings["penalty"],
            learning_rate="constant",
            random_state=seed,
        )
    if settings["kind"] == "network":
        return MLPClassifier(
            (settings["width"],),
            learning_rate_init=settings["rate"],
            alpha=settings["alpha"],
            batch_size=256,
            random_state=seed,
        )
    from benchmarks.shared.late_bloomers import WarmedNetwork

    return WarmedNetwork(
        settings["kind"], settings["rate"], settings["warm_up"], MAX_EPOCHS, seed
    )
