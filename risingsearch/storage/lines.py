"""Facts as one line of JSON that ends with a checksum of itself."""

from __future__ import annotations

import json
import zlib
from typing import Any

Facts = dict[str, Any]

_MARK = b', "crc": "'
_END = b'"}\n'
_json = json.JSONEncoder(allow_nan=False).encode


def encoded(facts: Facts) -> bytes:
    r"""Return the line of some facts.

    Examples
    --------
    >>> line = encoded({"n": 1, "event": "flushed"})
    >>> line
    b'{"n": 1, "event": "flushed", "crc": "0915f1bc"}\n'
    >>> checksum(line), decoded(line)
    ('0915f1bc', {'n': 1, 'event': 'flushed'})
    """
    body = _json(facts).encode()[:-1]
    return b"%s%s%08x%s" % (body, _MARK, zlib.crc32(body), _END)


def checksum(line: bytes) -> str:
    """Return the checksum at the end of a line."""
    return line[-len(_END) - 8 : -len(_END)].decode()


def decoded(line: bytes) -> Facts | None:
    """Return the facts of a line, None where it is not as it was written."""
    body, _, end = line.rpartition(_MARK)
    if end != b"%08x%s" % (zlib.crc32(body), _END):
        return None
    try:
        facts = json.loads(f"{body.decode()}}}")
    except (ValueError, RecursionError):  # written by somebody else
        return None
    return facts if isinstance(facts, dict) else None
