"""What the command line prints as JSON: strict, and complete."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from typing import TextIO


def print_json(value: object, file: TextIO | None = None) -> None:
    """Print a value as JSON, to standard output unless a file is given.

    JSON has no infinity, no NaN and no missing default: they are written as words.
    numpy's numbers become numbers, and what else JSON cannot hold is shown as text.

    Examples
    --------
    >>> print_json({"score": math.nan, "sizes": (1, 2)})
    {
      "score": "nan",
      "sizes": [
        1,
        2
      ]
    }
    """
    text = json.dumps(_strict(value), indent=2, allow_nan=False)
    print(text, file=file or sys.stdout)


def _strict(value: object) -> object:
    if value is ...:
        return "required"
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    if hasattr(value, "item"):  # a number of numpy
        return _strict(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(float(value))
    if value is None or isinstance(value, (str, int)):
        return value
    return repr(value)
