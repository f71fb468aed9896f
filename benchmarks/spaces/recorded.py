"""Spaces between recorded curves: every family of tables is a kind of problems.

A configuration learns as the three nearest of the table do, the nearer the more. How
far a parameter takes it away is how much forests find that it matters. An epoch is a
twentieth of the table's, or one of them where it has fewer.
"""

from __future__ import annotations

import json
from ast import literal_eval
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.hpo.tasks import COLLECTIONS
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
from risingsearch.space import Space

Floats = NDArray[np.float64]
NEAREST = 3
NOISE = 0.01  # of the distance between the best and the typical end
FAMILIES = {
    "algoperf": {"imagenet_resnet_large_bn_init": 1.0, "ogbg": 1.0},
    "deepobs": {"cifar100_allcnnc": 0.3},
    "lcbench_surrogate": {"openml_task_189873": 1.0, "openml_task_167168": 1.0},
    "nmtlc": {"scratch_en-ja": 1.0, "scratch_so-en": 1.0},
    "taskset": {
        "imdb_patch128_LSTM128_avg_bs64": 1.0,
        "imdb_patch32_IRNN64_relu_avg_bs128": 1.0,
    },
    "boosting": {"boosting_cancer": 1.0, "hist_boosting_diabetes": 1.0},
    "digits_nets": {"digits_mlp": 1.0, "digits_onecycle": 1.0},
    "grokking": {"grok_addition_small": 0.5, "sparse_parity": 0.25},
    "imdb_nets": {"imdb_mlp": 1.0, "imdb_words": 1.0},
    "linear": {"mlp_cancer": 1.0, "sgd_epochs": 1.0},
    "opda": {"alexnet_imagenet": 0.5, "deberta_mnli": 1.0},
    "rl": {"rl_cartpole": 0.25},
    "arl_classic": {"dqn_acrobot_v1": 1.0, "ppo_mountaincar_v0": 1.0},
    "arl_mujoco": {"ppo_hopper_v4": 1.0, "ppo_humanoid_v4": 1.0},
    "autoencoder": {"denoise_digits": 1.0, "vae_digits": 1.0},
    "bandit": {"clicks": 0.5},
    "charlm": {"gru_python": 1.0, "transformer_python": 1.0},
    "drift": {"abrupt_so_far": 1.0, "abrupt_window": 1.0},
    "federated": {"digits_12_clients": 1.0},
    "graph": {"gcn_heterophily": 1.0},
    "physics": {"coordinates": 1.0, "pinn_oscillator": 1.0},
    "ranking": {"lightgbm_rank": 1.0},
    "restarts": {"spirals": 1.0},
    "tiny_valid": {"rows50": 1.0},
}
"""Tables, and the share of their epochs that leaves random search .1 to .7 regret."""
LCDB = (2, 14)  # data sets with as high ones, from the largest on
LONG = 0.9  # the quantile of the lengths that is the whole of a training


class Table(NamedTuple):
    """Configurations, as parameters of a space, and their curves."""

    space: dict[str, Any]
    rows: list[Params]
    valid: Floats  # (n_rows, n_epochs), without gaps
    test: Floats


def interpolated(table: Table, *, has_test: bool) -> Problem:
    """Return the problem whose curves lie between those of a table."""
    from sklearn.ensemble import ExtraTreesRegressor

    space = Space.of([table.space])
    known = np.array([space.to_unit(row) for row in table.rows])
    ends = table.valid.max(axis=1)
    forest = ExtraTreesRegressor(100, min_samples_leaf=2, random_state=0)
    weight = forest.fit(known, ends).feature_importances_
    is_category = np.array(
        [isinstance(table.space[one.name], Category) for one in space.coordinates]
    )

    def epochs(params: Params, seed: int) -> Iterator[Scores]:
        at = space.to_unit(params)
        gaps = np.where(is_category, known != at, known - at)
        squares = (weight * gaps**2).sum(axis=1)
        nearest = np.argsort(squares)[:NEAREST]
        shares = 1.0 / (squares[nearest] + 1e-9)
        shares /= shares.sum()
        return map(Scores, shares @ table.valid[nearest], shares @ table.test[nearest])

    return Problem(
        "",
        [table.space],
        epochs,
        noise=NOISE * float(ends.max() - np.median(ends)),
        n_epochs=table.valid.shape[1],
        has_test=has_test,
    )


def of_file(file: Path, share: float = 1.0) -> Problem:
    """Return the problem of a table of configurations, of a share of its epochs."""
    with np.load(file, allow_pickle=False) as arrays:
        data = dict(arrays)
    labels = json.loads(str(data["meta"])).get("hp_categories") or {}
    columns = {str(each): k for k, each in enumerate(data["hp_names"])}
    space: dict[str, Any] = {}
    for column, k in columns.items():
        values = data["X"][:, k][np.isfinite(data["X"][:, k])]
        low = float(values.min())
        high = float(values.max())
        is_log = bool(data["hp_log"][k]) and low > 0.0
        if column in labels:
            space[column] = Category(labels[column])
        elif low < high and np.all(values == values.round()):
            space[column] = Whole(int(low), int(high), log=is_log)
        elif low < high:
            space[column] = Number(low, high, log=is_log)
    rows = [
        {
            column: labels[column][int(x[k])] if column in labels else float(x[k])
            for column, k in columns.items()
            if column in space and np.isfinite(x[k])
        }
        for x in data["X"]
    ]
    lengths = np.isfinite(data["valid"]).sum(axis=1)
    longest = round(share * float(np.quantile(lengths, LONG)))
    has_test = "test" in data
    valid = thinned(data["valid"][:, :longest].astype(float))
    test = thinned(data["test"][:, :longest].astype(float)) if has_test else valid
    return interpolated(Table(space, rows, valid, test), has_test=has_test)


def thinned(curves: Floats) -> Floats:
    """Return curves of at most twenty epochs; after its end, one stays at its last."""
    filled = curves.copy()
    for epoch in range(1, filled.shape[1]):
        ended = np.isnan(filled[:, epoch])
        filled[ended, epoch] = filled[ended, epoch - 1]
    length = filled.shape[1]
    n = min(EPOCHS, length)
    return np.nan_to_num(filled[:, (np.arange(1, n + 1) * length / n).astype(int) - 1])


def of_lcdb(file: Path, number: int) -> Problem:
    """Return learners on one data set; what they score on the others is their place.

    An epoch is a twentieth of the training rows.
    """
    with np.load(file, allow_pickle=False) as arrays:
        data = dict(arrays)
    large = np.argsort(-data["max_anchor"])[number]
    last = np.nanmax(data["valid"], axis=2).T  # (learners, data sets)
    others = np.delete(last, large, axis=1)
    others = others - np.nanmean(others, axis=0)
    left, sizes, _ = np.linalg.svd(np.nan_to_num(others), full_matrices=False)
    places = left[:, :3] * sizes[:3]
    space = {
        f"place{k}": Number(float(column.min()), float(column.max()))
        for k, column in enumerate(places.T)
    }
    anchors = data["anchors"].astype(float)
    rows_seen = np.linspace(anchors[0], data["max_anchor"][large], EPOCHS + 1)[1:]
    rows = []
    curves = []
    for place, valid, test in zip(
        places, data["valid"][large], data["test"][large], strict=True
    ):
        known = np.isfinite(valid) & np.isfinite(test)
        if known.any():
            rows.append(dict(zip(space, place.tolist(), strict=True)))
            curves.append(
                [
                    np.interp(rows_seen, anchors[known], one[known])
                    for one in (valid, test)
                ]
            )
    valid, test = np.array(curves).swapaxes(0, 1)
    return interpolated(Table(space, rows, valid, test), has_test=True)


def of_reviews(file: Path) -> Problem:
    """Return online learners of reviews, which are named as ``NN: (2, 2)``."""
    with np.load(file, allow_pickle=False) as arrays:
        names, curves = arrays["names"], arrays["mean"].astype(float)
    space: dict[str, Any] = {
        "learner": Category(["ADAGRAD", "Logistic Regression", "OGD", "NN"]),
        "rate": logs(1e-4, 1.0),
        "layers": Whole(1, 3),
        "width": Whole(1, 5),
    }
    rows: list[Params] = []
    for text in names:
        learner, _, given = str(text).replace(":", " =").partition(" = ")
        row: Params = {"learner": learner.split(" alpha")[0].split(" beta")[0]}
        if learner == "NN":
            widths = literal_eval(given)
            row |= {"layers": len(widths), "width": max(widths)}
        else:
            row["rate"] = float(given)
        rows.append(row)
    valid = curves.reshape(len(curves), EPOCHS, -1).mean(axis=2)
    return interpolated(Table(space, rows, valid, valid), has_test=False)


def recorded(data: Path) -> dict[str, Callable[[], list[Problem]]]:
    """Return what makes the problems of each kind of tables."""

    def tables(family: str) -> list[Problem]:
        [folder] = data.glob(f"{COLLECTIONS}/{family}")
        return [
            of_file(folder / f"{task}.npz", share)
            for task, share in FAMILIES[family].items()
        ]

    def learners() -> list[Problem]:
        [file] = data.glob(f"{COLLECTIONS}/lcdb/*.npz")
        return [of_lcdb(file, number) for number in LCDB]

    def reviews() -> list[Problem]:
        return [of_reviews(data / "imdb_curves/imdb_online_curves.npz")]

    found = {family: partial(tables, family) for family in FAMILIES}
    return {**found, "lcdb": learners, "imdb": reviews}
