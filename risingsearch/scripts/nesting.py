"""Parameters in groups: nested in the file and for the script, flat for the search.

A flat name has a dot for each group that it is in: ``optimizer.lr``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

GROUP = {"parameters", "when"}
"""The keys of a group."""
_NAME = re.compile(r"[^\W\d][\w-]*(\.[^\W\d][\w-]*)*")


def flattened(parameters: Any) -> Any:
    """Return the parameters of all groups by their flat names.

    What a group needs, its ``when``, all of its parameters need.

    Examples
    --------
    >>> kind = {"type": "choice", "values": ["sgd", "adam"]}
    >>> lr = {"type": "uniform", "low": 0, "high": 1}
    >>> sgd = {"when": {"kind": "sgd"}, "parameters": {"lr": lr}}
    >>> flat = flattened({"kind": kind, "sgd": sgd})
    >>> flat["sgd.lr"]
    {'type': 'uniform', 'low': 0, 'high': 1, 'when': {'kind': 'sgd'}}
    """
    if not isinstance(parameters, dict):
        return parameters
    flat: dict[Any, Any] = {}
    for name, parameter in _flat(parameters, "", {}):
        if name in flat:
            msg = f"{name} stands twice: in a group, and with a dot in its name"
            raise ValueError(msg)
        flat[name] = parameter
    return flat


def _flat(
    parameters: Mapping[Any, Any], prefix: str, when: Mapping[str, Any]
) -> Iterator[tuple[Any, Any]]:
    for name, parameter in parameters.items():
        full = f"{prefix}{name}" if prefix else name
        if _is_group(parameter):
            _check_group(parameter, full)
            needed = _together(when, parameter.get("when", {}), full)
            yield from _flat(parameter["parameters"], f"{full}.", needed)
        elif when and isinstance(parameter, dict):
            needed = _together(when, parameter.get("when", {}), full)
            yield full, {**parameter, "when": needed}
        else:
            yield full, parameter


def _is_group(parameter: Any) -> bool:
    if not isinstance(parameter, dict) or "parameters" not in parameter:
        return False
    return parameter.keys() <= GROUP


def _check_group(group: Mapping[str, Any], name: str) -> None:
    inside = group["parameters"]
    if not isinstance(inside, dict) or not inside:
        msg = f"{name}.parameters must be a mapping, and not empty; got {inside!r}"
        raise ValueError(msg)


def _together(outer: Mapping[str, Any], inner: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(inner, dict):
        msg = f"{name}.when must be a mapping; got {inner!r}"
        raise ValueError(msg)
    if twice := sorted(outer.keys() & inner.keys()):
        msg = f"{name}.when names {twice[0]}, which the group that it is in names too"
        raise ValueError(msg)
    return {**outer, **inner}


def check_name(name: str, others: Mapping[str, Any]) -> None:
    """Raise a ValueError unless a flat name can be one, beside the others."""
    if not _NAME.fullmatch(name):
        msg = (
            f"parameters.{name}: a parameter is named with letters, digits, _ and -, "
            "with a dot behind each group that it is in"
        )
        raise ValueError(msg)
    groups = [name[: dot.start()] for dot in re.finditer(r"\.", name)]
    if both := [group for group in groups if group in others]:
        msg = f"parameters.{both[0]} is a parameter, and a group with {name}"
        raise ValueError(msg)


def nested(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with the groups of its parameters.

    Examples
    --------
    >>> nested({"depth": 3, "optimizer.kind": "sgd", "optimizer.lr": 0.1})
    {'depth': 3, 'optimizer': {'kind': 'sgd', 'lr': 0.1}}
    """
    tree: dict[str, Any] = {}
    for name, value in params.items():
        *groups, own = name.split(".")
        inside = tree
        for group in groups:
            inside = inside.setdefault(group, {})
        inside[own] = value
    return tree
