"""Spaces of ConfigSpace, in which categories are numbered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ConfigSpace import (
    CategoricalHyperparameter,
    ConfigurationSpace,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)

from benchmarks.spaces.runners.asking import Job


def space_of(job: Job) -> ConfigurationSpace:
    """Return the space of a job."""
    space = ConfigurationSpace(seed=job["seed"])
    for name, (kind, given) in job["space"].items():
        if kind == "choice":
            space.add(CategoricalHyperparameter(name, range(len(given[0]))))
            continue
        whole = kind.endswith("randint")
        made = UniformIntegerHyperparameter if whole else UniformFloatHyperparameter
        space.add(made(name, *given, log=kind.startswith("log")))
    return space


def params_of(job: Job, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with its categories."""
    return {
        name: given[0][int(configuration[name])]
        if kind == "choice"
        else configuration[name]
        for name, (kind, given) in job["space"].items()
    }
