"""Real trainings that take some milliseconds an epoch, with rows for a test.

The same configuration and seed are always trained alike, whoever trains in between.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.spaces.problems import (
    EPOCHS,
    Category,
    Number,
    Params,
    Problem,
    Scores,
    Whole,
    logs,
)

NETWORK = {
    "lr": logs(1e-5, 1.0),
    "wd": logs(1e-7, 1e-1),
    "momentum": Number(0.0, 0.99),
    "dropout": Number(0.0, 0.8),
    "init": logs(0.1, 10.0),
    "warm": Number(0.0, 0.5),
}
LOWEST = -20.0  # a mean log-likelihood that is worse counts as this


def shuffled(x: Any, y: Any, *sizes: int) -> list[tuple[Any, Any]]:
    """Return rows to train, to validate and to test, so many of each."""
    order = np.random.default_rng(0).permutation(len(x))[: sum(sizes)]
    return [(x[rows], y[rows]) for rows in np.split(order, np.cumsum(sizes)[:-1])]


def network(
    rows: list[tuple[Any, Any]],
    layers: Callable[[float], list[Any]],
    score: Callable[[Any, Any], Any],
    *,
    batch_size: int,
    lowest: float = 0.0,
) -> Problem:
    """Return a network of PyTorch by stochastic gradients, with a warm-up.

    The layers are made of the dropout. The score is of outputs and targets; the loss is
    the sum of squares where targets are rows of numbers, or else the cross-entropy.
    """
    import torch
    from torch import nn

    train, *judged = [(torch.as_tensor(x), torch.as_tensor(y)) for x, y in rows]
    loss_of = squares if train[1].ndim > 1 else nn.functional.cross_entropy
    n_batches = len(train[0]) // batch_size

    def epochs(p: Params, seed: int) -> Iterator[Scores]:
        torch.manual_seed(seed)
        model = nn.Sequential(*layers(p["dropout"]))
        with torch.no_grad():
            for weights in model.parameters():
                if weights.ndim > 1:
                    weights.mul_(p["init"])
        optimizer = torch.optim.SGD(
            model.parameters(), p["lr"], p["momentum"], weight_decay=p["wd"]
        )
        n_steps = EPOCHS * n_batches
        n_warm = p["warm"] * n_steps
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer,
            lambda step: (
                min((step + 1) / (n_warm + 1), 1.0)
                * (0.5 + 0.5 * math.cos(math.pi * min(step / n_steps, 1.0)))
            ),
        )
        for epoch in range(EPOCHS):
            torch.manual_seed(EPOCHS * seed + epoch)  # others have trained since
            model.train()
            for batch in torch.randperm(len(train[0])).split(batch_size)[:n_batches]:
                optimizer.zero_grad()
                loss_of(model(train[0][batch]), train[1][batch]).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
                schedule.step()
            model.eval()
            with torch.no_grad():
                scores = [float(score(model(x), y)) for x, y in judged]
            yield Scores(*(max(lowest, s) if s == s else lowest for s in scores))

    return real(NETWORK, epochs)


def real(
    space: dict[str, Any], epochs: Callable[[Params, int], Iterator[Scores]]
) -> Problem:
    """Return the problem of a training."""
    return Problem("", [space], epochs, noise=0.0, is_real=True, has_test=True)


def accuracy(outputs: Any, y: Any) -> Any:
    """Return the share of right classes."""
    return (outputs.argmax(1) == y).float().mean()


def likelihood(outputs: Any, y: Any) -> Any:
    """Return the mean log-likelihood of the classes."""
    from torch.nn.functional import cross_entropy

    return -cross_entropy(outputs, y)


def squares(outputs: Any, y: Any) -> Any:
    """Return the mean over rows of the sum of squared errors."""
    return ((outputs - y) ** 2).sum(1).mean()


def explained(outputs: Any, y: Any) -> Any:
    """Return the share of the variance that is explained."""
    return 1.0 - squares(outputs, y) / squares(y.mean(0), y)


def images(noise: float = 0.0) -> tuple[Any, Any]:
    """Return digits of 8 times 8 pixels, with noise on each."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    noisy = x / 16.0 + noise * np.random.default_rng(1).standard_normal(x.shape)
    return noisy.astype(np.float32), y


def convolutions() -> Problem:
    """Return a small convolutional network on 200 digits; many seeds stay at chance."""
    from torch import nn

    x, y = images()

    def layers(dropout: float) -> list[nn.Module]:
        seen = [nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        hidden = [nn.Dropout(dropout), nn.Linear(36, 32), nn.ReLU(), nn.Linear(32, 10)]
        return [*seen, *hidden]

    rows = shuffled(x.reshape(-1, 1, 8, 8), y, 200, 300, 600)
    return network(rows, layers, accuracy, batch_size=25)


def recurrent() -> Problem:
    """Return a recurrent network that reads digits row by row."""
    from torch import nn

    x, y = images()

    class Last(nn.Module):
        """The last output of a recurrent layer."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.RNN(8, 24, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.layer(x)[0][:, -1]

    def layers(dropout: float) -> list[nn.Module]:
        return [Last(), nn.Dropout(dropout), nn.Linear(24, 10)]

    rows = shuffled(x.reshape(-1, 8, 8), y, 300, 400, 800)
    return network(rows, layers, accuracy, batch_size=30)


def compressed() -> Problem:
    """Return digits of which six numbers have to keep as much as they can."""
    from torch import nn

    x, _ = images()

    def layers(dropout: float) -> list[nn.Module]:
        inward = [nn.Linear(64, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, 6)]
        return [*inward, nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 64)]

    rows = shuffled(x, x, 300, 400, 800)
    return network(rows, layers, explained, batch_size=20)


def texts(data: Path, n: int, seed: int) -> Any:
    """Return film reviews."""
    import pandas as pd

    file = data / "imdb_text/train.parquet"
    return pd.read_parquet(file).sample(n, random_state=seed)


def words(data: Path) -> Problem:
    """Return a network on the 300 most frequent words of 400 film reviews."""
    from sklearn.feature_extraction.text import CountVectorizer
    from torch import nn

    frame = texts(data, 5000, 0)
    counts = CountVectorizer(max_features=300, binary=True).fit_transform(frame["text"])

    def layers(dropout: float) -> list[nn.Module]:
        inward = [nn.Linear(300, 32), nn.ReLU(), nn.Dropout(dropout)]
        return [*inward, nn.Linear(32, 2)]

    x = counts.toarray().astype(np.float32)
    rows = shuffled(x, frame["label"].to_numpy(), 400, 600, 1000)
    return network(rows, layers, likelihood, batch_size=100, lowest=LOWEST)


def characters(data: Path) -> Problem:
    """Return a network that writes the next character of film reviews."""
    from torch import nn

    text = " ".join(texts(data, 200, 1)["text"]).lower()[:40_000]
    known = " etaoinsrhldcumfpgwybv.,k'-"
    ids = np.array([known.find(character) + 1 for character in text])
    windows = np.lib.stride_tricks.sliding_window_view(ids, 5)

    def layers(dropout: float) -> list[nn.Module]:
        inward = [nn.Embedding(30, 8), nn.Flatten(), nn.Linear(32, 48), nn.ReLU()]
        return [*inward, nn.Dropout(dropout), nn.Linear(48, 30)]

    rows = shuffled(windows[:, :4], windows[:, 4], 2000, 2000, 4000)
    return network(rows, layers, likelihood, batch_size=200, lowest=LOWEST)


def estimated(
    space: dict[str, Any],
    rows: list[tuple[Any, Any]],
    make: Callable[[Params, int], Any],
    train: Callable[[Any, Any, Any], Any],
) -> Problem:
    """Return the problem of an estimator of scikit-learn; diverged, it scores 0."""
    fitted, *judged = rows

    def epochs(p: Params, seed: int) -> Iterator[Scores]:
        model = make(dict(p), seed)
        for _ in range(EPOCHS):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    train(model, *fitted)
                    yield Scores(*(max(0.0, model.score(*each)) for each in judged))
                except ValueError:
                    yield Scores(0.0, 0.0)

    return real(space, epochs)


def partly(model: Any, x: Any, y: Any) -> None:
    """Train one epoch."""
    model.partial_fit(x, y, classes=np.unique(y))


def perceptron() -> Problem:
    """Return a network of scikit-learn on 400 digits that can hardly be seen."""
    from sklearn.neural_network import MLPClassifier

    space = {
        "learning_rate_init": logs(1e-4, 1.0),
        "alpha": logs(1e-6, 1.0),
        "hidden": Whole(4, 64, log=True),
        "batch_size": Whole(8, 200, log=True),
        "momentum": Number(0.0, 0.99),
        "activation": Category(["relu", "tanh", "logistic"]),
    }

    def make(p: Params, seed: int) -> Any:
        hidden = (p.pop("hidden"),)
        return MLPClassifier(hidden, solver="sgd", random_state=seed, **p)

    return estimated(space, shuffled(*images(1.0), 400, 500, 800), make, partly)


def linear() -> Problem:
    """Return a linear classifier of 200 digits that can be seen with effort."""
    from sklearn.linear_model import SGDClassifier

    space = {
        "loss": Category(["log_loss", "hinge", "modified_huber", "squared_hinge"]),
        "alpha": logs(1e-7, 1.0),
        "eta0": logs(1e-5, 10.0),
        "learning_rate": Category(["constant", "invscaling"]),
        "power_t": Number(0.05, 1.0),
        "l1_ratio": Number(0.0, 1.0),
        "average": Category([False, True]),
    }

    def make(p: Params, seed: int) -> Any:
        return SGDClassifier(penalty="elasticnet", random_state=seed, **p)

    return estimated(space, shuffled(*images(0.5), 200, 500, 900), make, partly)


def boosting() -> Problem:
    """Return boosted trees of 200 patients' diabetes, three more an epoch."""
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import HistGradientBoostingRegressor

    space = {
        "learning_rate": logs(1e-3, 1.0),
        "max_leaf_nodes": Whole(2, 64, log=True),
        "min_samples_leaf": Whole(1, 80, log=True),
        "l2_regularization": logs(1e-4, 1e3),
        "max_features": Number(0.1, 1.0),
        "max_bins": Whole(3, 255, log=True),
    }

    def make(p: Params, seed: int) -> Any:
        return HistGradientBoostingRegressor(
            max_iter=0, warm_start=True, early_stopping=False, random_state=seed, **p
        )

    def train(model: Any, x: Any, y: Any) -> None:
        model.set_params(max_iter=model.max_iter + 3)
        model.fit(x, y)

    rows = shuffled(*load_diabetes(return_X_y=True), 200, 121, 121)
    return estimated(space, rows, make, train)


BUNDLED: tuple[Callable[[], Problem], ...] = (
    convolutions,
    recurrent,
    compressed,
    perceptron,
    linear,
    boosting,
)
OF_REVIEWS: tuple[Callable[[Path], Problem], ...] = (words, characters)
