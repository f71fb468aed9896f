"""The variables of a sweep's workers, kept where only their owner can read them.

They may be secrets, such as the key of a service. The journal, which people pass on,
holds their names and a digest; the values are in a file of the run directory that is
private to its user. Values do not decide what is searched, so that a run may go on with
others: a new key, or another GPU.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from risingsearch.errors import RunDirError
from risingsearch.scripts import private_files

FILE = "environment.json"
NAMES, DIGEST = "environment", "environment_digest"
_WHAT = "the values of the sweep's environment"

Variables = Sequence[Mapping[str, str]]
"""Of each worker."""


def names_of(environment: Variables) -> list[list[str]]:
    """Return the names of the variables, worker by worker.

    >>> names_of([{"GPU": "0", "API_KEY": "x"}, {"GPU": "1"}])
    [['API_KEY', 'GPU'], ['GPU']]
    """
    return [sorted(variables) for variables in environment]


def new_salt() -> str:
    """Return what makes the digests of a run different from those of all others."""
    return secrets.token_hex(16)


def digest_of(environment: Variables, salt: str) -> str:
    """Return what tells values from others, and does not tell what they are.

    The salt is in the private file: without it, short values cannot be guessed either.
    """
    plain = json.dumps([dict(sorted(each.items())) for each in environment])
    return hmac.new(salt.encode(), plain.encode(), hashlib.sha256).hexdigest()


class Recorded:
    """What the journal of a run says of its variables, in ``fingerprint``.

    Runs of earlier releases say the values, in the sweep.
    """

    def __init__(self, identity: Mapping[str, Any]) -> None:
        self.values: Variables | None = identity["sweep"].get("environment")
        self.names: list[list[str]] = identity.get(NAMES) or names_of(self.values or [])
        self._digest = identity.get(DIGEST)

    def has_changed(self, environment: Variables, salt: str) -> bool:
        """Return whether the values are others, as far as that can be known."""
        if self.values is not None:
            return list(environment) != self.values
        if names_of(environment) != self.names:
            return True
        return (
            bool(salt and self.names) and digest_of(environment, salt) != self._digest
        )


def recorded_now(environment: Variables, salt: str) -> dict[str, Any]:
    """Return what ``fingerprint`` says of the variables of a new run."""
    if not environment:
        return {}
    return {NAMES: names_of(environment), DIGEST: digest_of(environment, salt)}


def save(run_dir: Path, environment: Variables, salt: str) -> None:
    """Write the values where only this user can read them, whole or not at all."""
    values = [dict(variables) for variables in environment]
    private_files.save(run_dir / FILE, {"salt": salt, "environment": values})


def load(run_dir: Path, names: list[list[str]]) -> tuple[Variables, str]:
    """Return the values of variables with these names, and the salt.

    A file that is missing, or not what ``save`` wrote, is a ``RunDirError``.
    """
    path = run_dir / FILE
    saved: dict[str, Any] = private_files.load(path, _WHAT)
    if names_of(saved["environment"]) != names:
        raise private_files.lost(path, _WHAT, "has the variables of another sweep")
    return saved["environment"], saved["salt"]


def saved_salt(run_dir: Path, names: list[list[str]]) -> str:
    """Return the salt of a run's digest, "" where it is lost."""
    with suppress(RunDirError):
        return load(run_dir, names)[1]
    return ""


def values_of(run_dir: Path, identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field of the sweep that a run goes on with."""
    recorded = Recorded(identity)
    if not recorded.names or (recorded.values and not (run_dir / FILE).exists()):
        return {}
    return {"environment": load(run_dir, recorded.names)[0]}
