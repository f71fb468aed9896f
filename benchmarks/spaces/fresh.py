"""Six problems of others, from a folder ``problems`` beside the recorded curves'.

Its module ``fresh_problems`` has two real trainings and four formulas. A parameter that
another switches off stays in the space, and changes nothing.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from benchmarks.spaces.problems import (
    Category,
    Number,
    Params,
    Problem,
    Scores,
    Whole,
    exact,
)

NAMES = ("gbm", "charlm", "batchlr", "crossing", "highdim", "failing")
KINDS = {"f": Number, "i": Whole}


def file_beside(data: Path) -> Path:
    """Return where the module should be."""
    return data.parent / "problems" / "fresh_problems.py"


def fresh(name: str, file: Path) -> Problem:
    """Return one of the six problems."""
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    writes = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # the folder may be read-only, or another's
    spec.loader.exec_module(module)
    sys.dont_write_bytecode = writes
    made = module.PROBLEMS[name]()
    space: dict[str, Any] = {}
    for parameter, (kind, *given) in made.space.items():
        if kind == "c":
            space[parameter] = Category(given[0])
        else:
            low, high, is_log = given
            space[parameter] = KINDS[kind](low, high, log=is_log)

    def trained(p: Params, seed: int) -> Iterator[Scores]:
        return (Scores(*scores) for scores in made.run(p, seed))

    def curve(p: Params, seed: int) -> Iterator[Scores]:
        return exact(made.curve(made.active(p)))

    return Problem(
        "",
        [space],
        trained if made.is_real else curve,
        noise=0.0 if made.is_real else math.hypot(made.noise, made.run_sd),
        n_epochs=module.R,
        is_real=made.is_real,
        has_test=made.is_real,
    )
