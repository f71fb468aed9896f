"""Policies and parameters as people write them: ``cure-ucb(sigma=0.1), asha``."""

import ast
import contextlib
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from risingsearch.arms import Configuration, Params
from risingsearch.errors import InvalidParameterError

Calls: TypeAlias = Mapping[str, tuple[str, Configuration]]
"""Names and parameters, by the calls as they are written."""

CALL = re.compile(r"([^\s()=]+)\s*(?:\((.*)\))?", re.DOTALL)
PARAMETER = re.compile(r"([A-Za-z_]\w*)\s*=\s*(.+)", re.DOTALL)
WORD = re.compile(r"""[A-Za-z./~][^\s,=()\[\]{}'"]*""")
WORDS = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
}


def read_calls(text: str) -> Calls:
    """Return name and parameters of every call in a list with commas, by its text.

    Parameters
    ----------
    text : str
        Calls with commas between them.

    Returns
    -------
    dict of str to pairs of str and dict
        The name and the parameters of each call, by the call as it is written.

    Raises
    ------
    InvalidParameterError
        If the text is no such list, or names a call twice.

    Examples
    --------
    >>> read_calls("auto, cure-ucb(sigma=0.1)")
    {'auto': ('auto', {}), 'cure-ucb(sigma=0.1)': ('cure-ucb', {'sigma': 0.1})}
    """
    calls: dict[str, tuple[str, Params]] = {}
    for part in _parts(text):
        match = CALL.fullmatch(part)
        if match is None:
            raise InvalidParameterError(
                f"must be NAME or NAME(parameter=value, ...); got {part!r}"
            )
        if part in calls:
            raise InvalidParameterError(f"each can be named once; got {part!r} twice")
        name, inside = match.groups()
        parts: list[str] = []
        if inside and inside.strip():
            parts = _parts(inside)
        calls[part] = name, read_parameters(parts)
    return calls


def read_parameters(texts: Iterable[str]) -> Params:
    """Return the values of several ``name=value``, by their names.

    Parameters
    ----------
    texts : iterable of str
        A value is a number, true, false, null, a word or a path, a quoted string, or a
        list in brackets.

    Returns
    -------
    dict
        The values by their names.

    Raises
    ------
    InvalidParameterError
        If a value is none of these, or a name is given twice.

    Examples
    --------
    >>> read_parameters(["noise=0.1", "kind=student", "reward_range=[0, 100]"])
    {'noise': 0.1, 'kind': 'student', 'reward_range': [0, 100]}
    """
    values: Params = {}
    for text in texts:
        match = PARAMETER.fullmatch(text.strip())
        if match is None:
            raise InvalidParameterError(f"must be parameter=value; got {text!r}")
        name, value = match.groups()
        if name in values:
            raise InvalidParameterError(
                f"a parameter can be given once; got {name} twice"
            )
        values[name] = _value(value.strip())
    return values


def _value(text: str) -> object:
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
    parts = [""]
    depth = 0
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
        raise InvalidParameterError(
            f"must be a list with commas, and nothing empty in it; got {text!r}"
        )
    return stripped
