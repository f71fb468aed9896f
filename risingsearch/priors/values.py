"""Cells of text, as the values that they stand for."""

from __future__ import annotations

import math
import re
from typing import Any

from risingsearch.checks import as_float

_WORDS: dict[str, Any] = {
    "": math.nan,
    "nan": math.nan,
    "NaN": math.nan,
    "NA": math.nan,
    "N/A": math.nan,
    "<NA>": math.nan,
    "null": math.nan,
    "None": None,
    "True": True,
    "true": True,
    "TRUE": True,
    "False": False,
    "false": False,
    "FALSE": False,
}
_WHOLE = re.compile(r"[+-]?[0-9]{1,300}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def value_of(text: str) -> Any:
    """Return the number, the boolean or the None that a text is, or the text itself.

    Nothing, and what tables write for nothing, is NaN.

    Examples
    --------
    >>> [value_of(text) for text in ("3", "1e-3", "true", "None", "adam", "")]
    [3, 0.001, True, None, 'adam', nan]
    """
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def as_number(value: Any) -> float:
    """Return a score as a float, NaN for what is no number.

    Examples
    --------
    >>> as_number(1), as_number("0.5"), as_number(None), as_number("inf")
    (1.0, 0.5, nan, nan)
    """
    if type(value) is float:
        return value
    number = as_float(value_of(value) if isinstance(value, str) else value)
    return math.nan if number is None else number


def is_missing(value: Any) -> bool:
    """Return whether a cell holds nothing: NaN, or what pandas has for it."""
    if isinstance(value, float):
        return math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType")
