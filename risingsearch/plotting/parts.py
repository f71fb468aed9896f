"""The files that pages are made of, and the names by which a page allows them."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources


def part(name: str) -> str:
    """Return a file of ``page``."""
    page = resources.files("risingsearch.plotting") / "page"
    return (page / name).read_text(encoding="utf-8")


def hash_of(source: str) -> str:
    """Return how a content security policy names a style or program."""
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
