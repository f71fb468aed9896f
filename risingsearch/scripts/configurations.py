"""The configurations of some parameters: how many there are, and all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

MOST_CASES = 10_000  # of the conditions, that are told apart


def n_configurations(parameters: Mapping[str, Any]) -> float:
    """Return how many different configurations there are; infinity for too many."""
    named = {name for parameter in parameters.values() for name in parameter.when}
    found: list[tuple[dict[str, Any], float]] = [({}, 1)]  # those named, and how often
    for name, parameter in parameters.items():
        used = [each for each in found if parameter.applies(each[0])]
        found = [each for each in found if not parameter.applies(each[0])]
        if name not in named:
            found += [(drawn, n * parameter.n_values) for drawn, n in used]
            continue
        if len(used) * parameter.n_values > MOST_CASES:
            return math.inf
        values = parameter.possible
        found += [({**drawn, name: one}, n) for drawn, n in used for one in values]
    return sum(n for _, n in found)


def every_configuration(parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all configurations; there must be finitely many.

    Examples
    --------
    >>> from risingsearch.scripts.space import Choice, Fixed
    >>> kind = Choice(type="choice", values=["sgd", "adam"])
    >>> nesterov = Fixed(type="fixed", value=True, when={"kind": "sgd"})
    >>> every_configuration({"kind": kind, "nesterov": nesterov})
    [{'kind': 'sgd', 'nesterov': True}, {'kind': 'adam'}]
    """
    found: list[dict[str, Any]] = [{}]
    for name, parameter in parameters.items():
        found = [
            more
            for drawn in found
            for more in (
                [{**drawn, name: one} for one in parameter.possible]
                if parameter.applies(drawn)
                else [drawn]
            )
        ]
    return found
