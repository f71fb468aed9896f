"""Paths that are given as arguments."""

import os
from contextlib import suppress
from pathlib import Path

from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError


def checked_path(name: str, value: object) -> Path:
    """Return a path, or raise an error."""
    if isinstance(value, str | os.PathLike):
        with suppress(TypeError):  # a path of bytes
            path = Path(value)
            if value != "" and "\0" not in str(path):
                return path
    msg = f"{name} must be a path, as text or a pathlib.Path; got {shown(value)}"
    raise InvalidParameterError(msg)


def kept_path(name: str, value: object) -> Path:
    """Return a checked path that stays the same if the current folder changes."""
    return checked_path(name, value).absolute()
