"""All kinds of problems, and the half of them that may choose rules of the default.

The other half only reports. What was ever searched while rules were chosen, chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.spaces import fresh
from benchmarks.spaces.foundry import KINDS as FORMULAS
from benchmarks.spaces.foundry import cast
from benchmarks.spaces.problems import Problem
from benchmarks.spaces.recorded import recorded
from benchmarks.spaces.trainings import BUNDLED, OF_REVIEWS
from risingsearch.errors import InvalidParameterError

CHOOSES = {
    "peaks",
    "valleys",
    "basins",
    "many",
    "crossing",
    "slow",
    "failing",
    "noisy",
    "curves-lcbench_surrogate",
    "curves-taskset",
    "curves-opda",
    "curves-boosting",
    "curves-rl",
    "curves-restarts",
    "curves-charlm",
    "curves-autoencoder",
    "curves-arl_mujoco",
    "curves-graph",
    "fresh-gbm",
    "fresh-charlm",
    "fresh-batchlr",
    "fresh-crossing",
    "fresh-highdim",
    "fresh-failing",
    "training-convolutions",
    "training-words",
    "training-characters",
    "training-perceptron",
}
"""Kinds that may choose; the others only report."""


Maker = Callable[[], Iterable[Problem]]


def makers(data: Path | None) -> dict[str, Maker]:
    """Return what makes the problems of each kind that there are data for."""
    found: dict[str, Maker] = {kind.__name__: partial(cast, kind) for kind in FORMULAS}
    found |= {f"training-{make.__name__}": partial(alone, make) for make in BUNDLED}
    if data is None:
        return found
    found |= {f"curves-{name}": make for name, make in recorded(data).items()}
    found |= {
        f"training-{make.__name__}": partial(alone, make, data) for make in OF_REVIEWS
    }
    file = fresh.file_beside(data)
    if file.is_file():
        found |= {
            f"fresh-{name}": partial(alone, fresh.fresh, name, file)
            for name in fresh.NAMES
        }
    return found


def alone(make: Callable[..., Problem], *given: object) -> list[Problem]:
    """Return the problem of a kind that has one."""
    return [make(*given)]


def problems_of(kinds: Iterable[str], data: Path | None) -> Iterator[Problem]:
    """Yield the problems of some kinds.

    Raises
    ------
    InvalidParameterError
        If there is no such kind, or there are no data for it.
    """
    known = makers(data)
    for kind in kinds:
        if kind not in known:
            msg = (
                f"kinds={kind} is none of {', '.join(known)}; those of recorded curves"
                " and reviews need --data-dir"
            )
            raise InvalidParameterError(msg)
        for k, problem in enumerate(known[kind]()):
            yield problem._replace(name=f"{kind}-{k}")


def kind_of(problem: str) -> str:
    """Return the kind of a problem, by its name."""
    return problem.rpartition("-")[0]
