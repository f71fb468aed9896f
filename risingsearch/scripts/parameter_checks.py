"""What the parameters of a sweep have to be together."""

from __future__ import annotations

import math
from typing import Any

from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.configurations import n_configurations
from risingsearch.scripts.nesting import check_name
from risingsearch.scripts.space import Choice, Fixed
from risingsearch.scripts.trainable import FIELDS

MOST_CANDIDATES = 1_000_000


def check_finite(parameters: dict[str, Any]) -> None:
    """Raise an InvalidParameterError unless all configurations can be candidates."""
    for name, parameter in parameters.items():
        if math.isinf(parameter.n_values):
            msg = (
                f"candidates: all needs a number of values for each parameter, and "
                f"parameters.{name} has no end of them: say how many are drawn, or "
                "give it a step or values"
            )
            raise InvalidParameterError(msg)
    if (n := n_configurations(parameters)) > MOST_CANDIDATES:
        many = "too many to count" if math.isinf(n) else f"{n:,}"
        msg = (
            f"candidates: all configurations are {many}; say how many are drawn, at "
            f"most {MOST_CANDIDATES}"
        )
        raise InvalidParameterError(msg)


def check_names(parameters: dict[str, Any]) -> None:
    """Raise a ValueError unless each has a name, and conditions on earlier ones."""
    before: set[str] = set()
    for name, parameter in parameters.items():
        check_name(name, parameters)
        if name in FIELDS:
            msg = (
                f"parameters.{name}: {name} is what a script is told besides its "
                f"parameters, as are {', '.join(FIELDS)}; call it otherwise"
            )
            raise ValueError(msg)
        unknown = sorted(parameter.when.keys() - before)
        if unknown:
            msg = (
                f"parameters.{name}.when names {unknown}: it may name parameters that "
                f"stand before it, {sorted(before)}"
            )
            raise ValueError(msg)
        for other, wanted in parameter.when.items():
            _check_possible(
                f"parameters.{name}.when.{other}", wanted, parameters[other]
            )
        before.add(name)


def _check_possible(place: str, wanted: Any, parameter: Any) -> None:
    if wanted == []:
        msg = f"{place} is an empty list, which no value is in: name one at least"
        raise ValueError(msg)
    if not isinstance(parameter, Choice | Fixed):
        return
    for value in wanted if isinstance(wanted, list) else [wanted]:
        if value not in parameter.possible:
            msg = f"{place}: {value!r} is none of its values, {parameter.possible}"
            raise ValueError(msg)


def check_enqueued(
    place: str, params: dict[str, Any], parameters: dict[str, Any]
) -> None:
    """Raise a ValueError unless a configuration gives what applies, and no more."""
    unknown = sorted(params.keys() - parameters.keys())
    if unknown:
        msg = (
            f"{place} names {unknown[0]!r}, which is none of the parameters, "
            f"{', '.join(parameters)}"
        )
        raise ValueError(msg)
    for name, parameter in parameters.items():
        if parameter.applies(params) != (name in params):
            needs = "leaves out" if name not in params else "has"
            msg = (
                f"{place} {needs} {name!r}: it gives a value to each parameter that "
                "applies, by its when, and to no other"
            )
            raise ValueError(msg)
