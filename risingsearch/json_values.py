"""Values that JSON does not know, written so that they come back as they were."""

import math
from typing import Any

import numpy as np

Json = dict[str, Any]
"""An object of JSON: values by name."""

_NUMBERS = (np.bool_, np.integer, np.float16, np.float32, np.float64)
_PLAIN = frozenset({int, str, bool, type(None)})

SHOWN = "$shown"
"""Key of a candidate that JSON cannot hold, saved as text."""
AS_TEXT = "as_text"
"""Key of such a candidate that is read back."""


def as_json(value: Any) -> Any:
    """Return ``value`` with numbers and tuples that JSON lacks marked as such."""
    kind = type(value)
    if kind is float:
        if math.isfinite(value):
            return value
        return {"$float": repr(value)}
    if kind in _PLAIN:
        return value
    if isinstance(value, dict):
        return _dict_as_json(value)
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, tuple):
        return {"$tuple": [as_json(item) for item in value]}
    if isinstance(value, _NUMBERS):
        return {f"${value.dtype.name}": as_json(value.item())}
    if isinstance(value, np.str_):
        return {"$str": str(value)}
    raise TypeError(f"{value!r}, a {kind.__name__}, is not JSON-serializable")


def _dict_as_json(values: dict[object, object]) -> Json:
    # Plain items, nearly all there are, are not worth a call.
    marked = {
        key if type(key) is str else _checked_key(key): item
        if type(item) in _PLAIN or (type(item) is float and math.isfinite(item))
        else as_json(item)
        for key, item in values.items()
    }
    if any(key[:1] == "$" for key in marked):
        return {"$dict": marked}
    return marked


def from_json(value: Any) -> Any:
    """Read the values of ``as_json``."""
    # Plain items, nearly all there are, are not worth a call.
    if type(value) is list:
        return [from_json(item) if type(item) in _NESTED else item for item in value]
    if type(value) is not dict:
        return value
    if len(value) == 1:
        [(mark, marked)] = value.items()
        if mark == "$dict":
            value = marked
        elif mark in _READERS:
            return _READERS[mark](from_json(marked))
    return {
        key: from_json(item) if type(item) in _NESTED else item
        for key, item in value.items()
    }


def plain(value: object) -> Any:
    """Return a number or a text of numpy as Python's own, and all else as it is."""
    if isinstance(value, (*_NUMBERS, np.str_)):
        return value.item()
    return value


_NESTED = (list, dict)
_READERS: Json = {
    "$float": float,
    "$tuple": tuple,
    "$str": np.str_,
}
_READERS |= {
    f"${np.dtype(kind).name}": kind
    for kind in np.sctypeDict.values()
    if issubclass(kind, _NUMBERS)
}


def _checked_key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the keys of JSON objects are text; got {key!r}")
    return key
