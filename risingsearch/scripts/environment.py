"""The variables of a sweep's workers, kept where only their owner can read them.

They may be secrets, such as the key of a service. The journal, which people pass on,
holds their names; the values are in a file of the run directory that is private to its
user. A run may continue with other values: a new key, or another GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from risingsearch.errors import RunDirError
from risingsearch.scripts import private_files

FILE, NAMES = "environment.json", "environment"
_WHAT = "the values of the sweep's environment"

Variables = Sequence[Mapping[str, str]]
"""Of each worker."""


def names_of(environment: Variables) -> list[list[str]]:
    """Return the names of the variables, worker by worker.

    >>> names_of([{"GPU": "0", "API_KEY": "x"}, {"GPU": "1"}])
    [['API_KEY', 'GPU'], ['GPU']]
    """
    return [sorted(variables) for variables in environment]


def save(run_dir: Path, environment: Variables) -> None:
    """Write the values where only this user can read them, whole or not at all."""
    values = [dict(variables) for variables in environment]
    private_files.save(run_dir / FILE, {"environment": values})


def load(run_dir: Path, names: list[list[str]]) -> Variables:
    """Return the values of variables with these names.

    A file that is missing, damaged or of other variables is a ``RunDirError``.
    """
    path = run_dir / FILE
    values: Variables = private_files.load(path, _WHAT)["environment"]
    if names_of(values) != names:
        raise private_files.lost(path, _WHAT, "has the variables of another sweep")
    return values


def has_changed(
    run_dir: Path, saved: Mapping[str, Any], environment: Variables
) -> bool:
    """Whether names or values differ from the saved ones, as far as they are there."""
    names = saved.get(NAMES, [])
    if names_of(environment) != names:
        return True
    with suppress(RunDirError):
        return bool(names) and list(load(run_dir, names)) != list(environment)
    return False


def values_of(run_dir: Path, saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field of the sweep that a run continues with."""
    names = saved.get(NAMES)
    return {"environment": load(run_dir, names)} if names else {}
