"""Made families of problems in spaces, whose best moves from task to task.

What the tasks of a family share is drawn by its version, and where the best of a task
lies by the number of the task. A task trains for ``EPOCHS`` epochs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.spaces.problems import (
    Category,
    N,
    Number,
    Params,
    Problem,
    Whole,
    exact,
    logs,
)

MOVED = 0.08
"""Standard deviation of the best among tasks, as a share of a parameter's range."""
Rngs = tuple[np.random.Generator, np.random.Generator]  # of the family, of the task


def problem(family: str, version: int, task: int) -> Problem:
    """Return one task of a version of a family."""
    key = [FAMILIES[family][0], version]
    rngs = np.random.default_rng(key), np.random.default_rng([*key, task])
    return FAMILIES[family][1](f"{family} {version}.{task}", rngs)


def best(n: int, rngs: Rngs) -> NDArray[np.float64]:
    """Return where the best of a task lies in the unit cube, near its family's."""
    shared, own = rngs
    middle = shared.uniform(0.25, 0.75, n)
    found: NDArray[np.float64] = middle + MOVED * own.standard_normal(n)
    return np.clip(found, 0.05, 0.95)


def log_unit(value: float, low: float, high: float) -> float:
    """Return the place of a value in its range, in the logarithm."""
    return math.log(value / low) / math.log(high / low)


def valley(name: str, rngs: Rngs) -> Problem:
    """Return ends along a curved valley; a high rate learns fast, and diverges."""
    at = best(6, rngs)
    bend = rngs[0].uniform(0.5, 1.5)
    space = {f"x{k}": Number(0.0, 1.0) for k in range(4)}
    space |= {"lr": logs(1e-5, 1.0), "wd": logs(1e-7, 1e-1)}

    def curve(p: Params) -> NDArray[np.float64]:
        x = np.array([p[f"x{k}"] for k in range(4)]) - at[:4]
        lr = log_unit(p["lr"], 1e-5, 1.0) - at[4]
        wd = log_unit(p["wd"], 1e-7, 1e-1) - at[5]
        if lr > 0.2:
            return np.where(N < 2, 0.2, 0.1)
        off = float((20 * (x[1:] - bend * x[:-1] ** 2) ** 2 + 2 * x[:-1] ** 2).sum())
        end = 0.9 - 0.15 * math.log1p(3 * off) - 0.8 * lr**2 - 0.2 * wd**2
        return end - (end - 0.1) * np.exp(-N / (2.0 + 20.0 * max(0.0, -lr)))

    return Problem(name, [space], lambda p, seed: exact(curve(p)))


def peaks(name: str, rngs: Rngs) -> Problem:
    """Return ends with many peaks; what has a wide layer begins slowly."""
    at = best(6, rngs)
    often = rngs[0].uniform(2.0, 4.0)
    space: dict[str, Any] = {f"x{k}": Number(0.0, 1.0) for k in range(4)}
    space |= {"lr": logs(1e-5, 1e-1), "width": Whole(8, 512, log=True)}

    def curve(p: Params) -> NDArray[np.float64]:
        x = np.array([p[f"x{k}"] for k in range(4)]) - at[:4]
        lr = log_unit(p["lr"], 1e-5, 1e-1) - at[4]
        width = log_unit(p["width"], 8, 512)
        hills = float((x**2).mean()) + 0.02 * float(
            (1 - np.cos(2 * math.pi * often * x)).mean()
        )
        end = 0.85 - 0.9 * hills - 0.5 * lr**2 - 0.15 * (width - at[5]) ** 2
        return end * N / (N + 0.5 + 3.0 * width + 6.0 * max(0.0, -lr))

    return Problem(name, [space], lambda p, seed: exact(curve(p)))


def network(name: str, rngs: Rngs) -> Problem:
    """Return a network whose rate, decay and batch belong together, by optimizer."""
    at = best(5, rngs)
    apart = rngs[0].uniform(0.1, 0.3)
    gain = 0.03 * rngs[0].choice([-1.0, 1.0]) + 0.02 * rngs[1].standard_normal()
    space: dict[str, Any] = {
        "optimizer": Category(["sgd", "adam"]),
        "lr": logs(1e-5, 1.0),
        "wd": logs(1e-6, 1e-1),
        "batch": Whole(8, 512, log=True),
        "dropout": Number(0.0, 0.7),
        "layers": Whole(1, 8),
        "momentum": Number(0.0, 0.99),
    }

    def curve(p: Params) -> NDArray[np.float64]:
        is_adam = p["optimizer"] == "adam"
        batch = log_unit(p["batch"], 8, 512)
        lr = log_unit(p["lr"], 1e-5, 1.0) - at[0] + (apart if is_adam else 0.0)
        lr -= 0.15 * (batch - 0.5)
        if not is_adam:
            lr += 0.2 * (p["momentum"] - 0.8)
        wd = log_unit(p["wd"], 1e-6, 1e-1) - at[1]
        depth = (p["layers"] - 1) / 7 - at[2]
        drop = p["dropout"] / 0.7 - at[3] - 0.3 * depth
        end = 0.88 + (gain if is_adam else 0.0)
        end -= 1.5 * lr**2 + 0.1 * wd**2 + 0.15 * depth**2 + 0.15 * drop**2
        end -= 0.05 * (batch - at[4]) ** 2
        if lr > 0.3:
            end = 0.1
        rise = 1.0 + 2.0 * batch + 15.0 * max(0.0, -lr) + p["dropout"]
        return end - (end - 0.1) * np.exp(-N / rise)

    return Problem(name, [space], lambda p, seed: exact(np.maximum(curve(p), 0.0)))


FAMILIES = {"valley": (1, valley), "peaks": (2, peaks), "network": (3, network)}
