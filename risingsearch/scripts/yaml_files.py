"""Read and write YAML 1.2 (and so JSON) files of plain values."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from risingsearch.errors import InvalidParameterError

_NO_TAG = "could not determine a constructor for the tag"


def read_yaml(path: Path) -> Any:
    """Return the values in a YAML or JSON file, or raise an error with its line."""
    try:
        text = path.read_bytes()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        msg = f"{path} cannot be read ({problem})"
        raise InvalidParameterError(msg) from error
    try:
        return load_yaml(text.decode())
    except (YAMLError, ValueError, RecursionError) as error:
        msg = f"{path} is not valid YAML: {_problem_of(error)}"
        raise InvalidParameterError(msg) from error


def load_yaml(text: str) -> Any:
    """Return the values of a YAML document.

    Examples
    --------
    >>> load_yaml("{low: 1e-4, high: 1}")
    {'low': 0.0001, 'high': 1}
    """
    return YAML(typ="safe", pure=True).load(text)


def dump_yaml(values: Any) -> str:
    """Return values as a YAML document.

    Examples
    --------
    >>> print(dump_yaml({"low": 1e-05, "name": "1e-4", "lists": [[1, 2]]}), end="")
    low: 1e-05
    name: '1e-4'
    lists:
    - [1, 2]
    """
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style = None
    yaml.sort_base_mapping_type_on_output = False
    yaml.representer.ignore_aliases = lambda data: True
    yaml.width = 88
    written = io.StringIO()
    yaml.dump(values, written)
    return written.getvalue()


def _problem_of(error: Exception) -> str:
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        problem = str(error.problem).partition("\n")[0]
        if problem.startswith("but "):
            problem = f"{error.context}, {problem}"
        if tag := problem.partition(_NO_TAG)[2]:
            problem = f"tags are not allowed; got {tag.strip()}"
        return f"line {error.problem_mark.line + 1}: {problem}"
    return " ".join(str(error).split())
