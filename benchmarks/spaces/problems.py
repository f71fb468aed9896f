"""Problems in continuous spaces: what every epoch of a configuration scores.

None of them was looked at while the constants of the proposals were chosen: three are
formulas, three are trees grown on recorded curves, and two train real models.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import CategoricalDistribution as Category
from optuna.distributions import FloatDistribution as Number
from optuna.distributions import IntDistribution as Whole

EPOCHS = 20
NOISE = 0.003
Params = dict[str, Any]
N = np.arange(1, EPOCHS + 1)


class Scores(NamedTuple):
    """The true score after an epoch, and the one on test rows."""

    validation: float
    test: float


class Problem(NamedTuple):
    """A space, and the scores after every epoch of a configuration and a seed."""

    name: str
    parts: list[dict[str, Any]]  # by name a distribution; several parts: one of them
    epochs: Callable[[Params, int], Iterator[Scores]]
    noise: float = NOISE  # of the reported score, besides that of the seed
    n_epochs: int = EPOCHS
    is_real: bool = False
    has_test: bool = False


def exact(scores: Iterable[float]) -> Iterator[Scores]:
    """Yield scores without noise, which test rows would score as well."""
    return (Scores(score, score) for score in scores)


def logs(low: float, high: float) -> Number:
    """Return numbers that are even in the logarithm."""
    return Number(low, high, log=True)


def rosenbrock() -> Problem:
    """Return ends along a curved valley; a high rate learns fast, and diverges."""
    space = {f"x{k}": Number(-1.5, 2.0) for k in range(4)}
    space |= {"lr": logs(1e-4, 1.0), "wd": logs(1e-6, 1e-1)}

    def curve(p: Params) -> NDArray[np.float64]:
        x = np.array([p[f"x{k}"] for k in range(4)])
        rate = math.log10(p["lr"]) + 0.3 * math.log10(p["wd"] / 1e-3)
        if rate > -0.5:
            return np.where(N < 2, 0.3, 0.1)
        valley = float((5 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())
        end = 0.92 - 0.12 * math.log1p(valley) - 0.02 * (rate + 1.5) ** 2
        return end - (end - 0.1) * np.exp(-N / (1.5 + 2.0 * max(0.0, -1.0 - rate)))

    return Problem("rosenbrock", [space], lambda p, seed: exact(curve(p)))


def ackley() -> Problem:
    """Return ends with many small peaks; what ends high begins slowly."""
    space: dict[str, Any] = {f"x{k}": Number(0.0, 1.0) for k in range(5)}
    space |= {"lr": logs(1e-5, 1e-1), "width": Whole(8, 512, log=True)}

    def curve(p: Params) -> NDArray[np.float64]:
        x = 6.0 * (np.array([p[f"x{k}"] for k in range(5)]) - 0.37)
        peaks = 20 * math.exp(-0.2 * math.sqrt(float((x * x).mean())))
        peaks += math.exp(float(np.cos(2 * math.pi * x).mean()))
        off = math.log10(p["lr"]) + 3.0 + 0.5 * math.log10(p["width"] / 64)
        end = 0.35 + 0.55 * peaks / (20 + math.e) - 0.03 * off**2
        half = 1.0 + 3.0 * max(0.0, -off) + 4.0 * peaks / 22
        return end * N / (N + half)

    return Problem("ackley", [space], lambda p, seed: exact(curve(p)))


def branin() -> Problem:
    """Return three optimizers with parameters of their own, each with other valleys."""
    common = {"a": Number(0.0, 1.0), "b": Number(0.0, 1.0), "dropout": Number(0.0, 0.7)}
    parts: list[dict[str, Any]] = [
        {"kind": Category(["sgd"]), **common, "momentum": Number(0.0, 0.99)},
        {"kind": Category(["adam"]), **common, "beta2": logs(1e-4, 0.3)},
        {"kind": Category(["lion"]), **common},
    ]

    def curve(p: Params) -> NDArray[np.float64]:
        u, v = 15.0 * p["a"] - 5.0, 15.0 * p["b"]
        bend = (v - 0.129 * u * u + 1.592 * u - 6.0) ** 2
        height = bend + 9.602 * math.cos(u) + 10.0
        end = 0.9 - 0.05 * math.log1p(height) - 0.2 * (p["dropout"] - 0.3) ** 2
        tau = 3.0
        if p["kind"] == "sgd":
            end += 0.03 - 0.4 * (p["momentum"] - 0.85) ** 2
            tau = 2.0 + 6.0 * (1.0 - p["momentum"])
        elif p["kind"] == "adam":
            end -= 0.01 * (math.log10(p["beta2"]) + 2.2) ** 2
            tau = 1.5
        else:
            end -= 0.04 * p["a"]
        start = 0.2 + 0.1 * p["b"]
        left = np.exp(-N / (tau * (0.5 + p["dropout"])))
        found: NDArray[np.float64] = end - (end - start) * left
        return found

    return Problem("branin", parts, lambda p, seed: exact(curve(p)))


def recorded(name: str, file: Path, ranges: dict[str, str]) -> Problem:
    """Return trees grown on recorded curves, by their six leading components.

    ``ranges`` says of each parameter whether it is even, even in the logarithm or whole
    between the ends of what was recorded.
    """
    from sklearn.ensemble import ExtraTreesRegressor

    data = np.load(file)
    names = [str(each) for each in data["hp_names"]]
    given = data["X"][:, [names.index(column) for column in ranges]].astype(float)
    space: dict[str, Any] = {}
    for values, (column, kind) in zip(given.T, ranges.items(), strict=True):
        low, high = float(values.min()), float(values.max())
        whole = Whole(round(low), round(high))
        even = Number(low, high, log=kind == "log")
        space[column] = whole if kind == "whole" else even
    is_log = np.array([kind == "log" for kind in ranges.values()])
    curves = np.nan_to_num(data["valid"].astype(float))
    at = np.linspace(0, curves.shape[1] - 1, EPOCHS).round().astype(int)
    mean = curves[:, at].mean(axis=0)
    left, sizes, right = np.linalg.svd(curves[:, at] - mean, full_matrices=False)
    trees = ExtraTreesRegressor(30, min_samples_leaf=2, random_state=0)
    known = np.where(is_log, np.log(np.where(is_log, given, 1.0)), given)
    trees.fit(known, left[:, :6] * sizes[:6])

    def curve(p: Params) -> NDArray[np.float64]:
        row = np.array([p[column] for column in ranges], dtype=float)
        row[is_log] = np.log(row[is_log])
        found: NDArray[np.float64] = mean + trees.predict([row])[0] @ right[:6]
        return np.clip(found, 0.0, 1.0)

    return Problem(name, [space], lambda p, seed: exact(curve(p)))


def recorded_problems(data: Path) -> Iterator[Problem]:
    """Yield those on recorded curves."""
    deberta = {"train_batch_size": "whole", "learning_rate": "log"}
    deberta |= {"warmup_steps": "even", "cls_drop_out": "even"}
    opda = data / "hpo_curves_2/opda"
    yield recorded("deberta", opda / "deberta_mnli.npz", deberta)
    units = {"batch_size": "log", "learning_rate": "log", "momentum": "even"}
    units |= {"weight_decay": "even", "num_layers": "whole", "max_units": "log"}
    folder = data / "hpo_curves/lcbench_surrogate"
    yield recorded("lcbench", folder / "openml_task_189909.npz", units)
    adam = {"learning_rate": "log", "epsilon": "log", "l1": "log", "l2": "log"}
    adam |= {"linear_decay": "log", "exponential_decay": "log"}
    task = sorted((data / "hpo_curves/taskset").glob("*.npz"))[-1]
    yield recorded("taskset", task, adam)


def digits() -> Problem:
    """Return a network of one layer on 400 images of digits."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order] / 16.0, y[order]
    space = {
        "learning_rate_init": logs(1e-4, 1.0),
        "alpha": logs(1e-6, 1.0),
        "hidden": Whole(4, 64, log=True),
        "batch_size": Whole(8, 200, log=True),
        "momentum": Number(0.0, 0.99),
        "activation": Category(["relu", "tanh", "logistic"]),
    }

    def epochs(p: Params) -> Iterator[float]:
        given = dict(p)
        hidden = (given.pop("hidden"),)
        net = MLPClassifier(hidden, solver="sgd", random_state=0, **given)
        for _ in range(EPOCHS):
            yield trained(net, x[:400], y[:400], x[400:1400], y[400:1400])

    return Problem(
        "digits", [space], lambda p, seed: exact(epochs(p)), noise=0.0, is_real=True
    )


def reviews(data: Path) -> Problem:
    """Return a linear model of 2,000 film reviews."""
    import pandas as pd
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import SGDClassifier

    frame = pd.read_parquet(data / "imdb_text/train.parquet")
    frame = frame.sample(4000, random_state=0)
    words = HashingVectorizer(n_features=2**14).transform(frame["text"])
    y = frame["label"].to_numpy()
    space = {
        "loss": Category(["log_loss", "hinge", "modified_huber"]),
        "alpha": logs(1e-8, 1e-1),
        "eta0": logs(1e-4, 100.0),
        "power_t": Number(0.05, 1.0),
        "l1_ratio": Number(0.0, 1.0),
        "average": Category([False, True]),
    }

    def epochs(p: Params) -> Iterator[float]:
        fixed = {"penalty": "elasticnet", "learning_rate": "invscaling"}
        model = SGDClassifier(random_state=0, **fixed, **p)
        for _ in range(EPOCHS):
            yield trained(model, words[:2000], y[:2000], words[2000:], y[2000:])

    return Problem(
        "reviews", [space], lambda p, seed: exact(epochs(p)), noise=0.0, is_real=True
    )


def trained(model: Any, x: Any, y: Any, x_test: Any, y_test: Any) -> float:
    """Train one epoch; return the accuracy, 0 once it has diverged."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model.partial_fit(x, y, classes=np.unique(y))
            return float((model.predict(x_test) == y_test).mean())
        except ValueError:
            return 0.0


def problems(data: Path | None) -> Iterator[Problem]:
    """Yield all problems that there are data for."""
    yield from (rosenbrock(), ackley(), branin())
    if data is not None:
        yield from recorded_problems(data)
    yield digits()
    if data is not None:
        yield reviews(data)
