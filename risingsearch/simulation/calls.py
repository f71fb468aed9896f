"""Policies and parameters as people write them: ``cure-ucb(sigma=0.1), asha``."""

import ast
import contextlib
import re
from collections.abc import Iterable
from typing import Any

from risingsearch.errors import InvalidParameterError

CALL = re.compile(r"([^\s()=]+)\s*(?:\((.*)\))?", re.DOTALL)
PARAMETER = re.compile(r"([A-Za-z_]\w*)\s*=\s*(.+)", re.DOTALL)
WORD = re.compile(r"""[A-Za-z./~][^\s,=()\[\]{}'"]*""")
WORDS = {"true": True, "false": False, "null": None, "none": None}


def read_calls(text: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return name and parameters of every call in a list with commas, by its text."""
    calls: dict[str, tuple[str, dict[str, Any]]] = {}
    for part in _parts(text):
        match = CALL.fullmatch(part)
        if match is None:
            msg = f"must be NAME or NAME(parameter=value, ...); got {part!r}"
            raise InvalidParameterError(msg)
        if part in calls:
            raise InvalidParameterError(f"each can be named once; got {part!r} twice")
        name, inside = match.groups()
        parts = _parts(inside) if inside and inside.strip() else []
        calls[part] = name, read_parameters(parts)
    return calls


def read_parameters(texts: Iterable[str]) -> dict[str, Any]:
    """Return the values of several ``name=value``, by their names."""
    values: dict[str, Any] = {}
    for text in texts:
        match = PARAMETER.fullmatch(text.strip())
        if match is None:
            raise InvalidParameterError(f"must be parameter=value; got {text!r}")
        name, value = match.groups()
        if name in values:
            msg = f"a parameter can be given once; got {name} twice"
            raise InvalidParameterError(msg)
        values[name] = _value(value.strip())
    return values


def _value(text: str) -> Any:
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        value = ast.literal_eval(text)
        if isinstance(value, (int, float, str, list, tuple)):
            return value
    if WORD.fullmatch(text):
        return text
    raise InvalidParameterError(
        "a value must be a number, true, false, null, a word, a quoted string or a "
        f"[list]; got {text!r}"
    )


def _parts(text: str) -> list[str]:
    """Split at the commas that stand outside all brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    if depth != 0:
        raise InvalidParameterError(f"every bracket must be closed; got {text!r}")
    stripped = [part.strip() for part in parts]
    if not all(stripped):
        msg = f"must be a list with commas, and nothing empty in it; got {text!r}"
        raise InvalidParameterError(msg)
    return stripped
