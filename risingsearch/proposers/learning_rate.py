"""The learning rate of a space: known by its name, and proposed from the first arm.

Of all parameters it matters most, and is the most alike from task to task: almost
always the scores have one hump along it. So a model that knows which parameter it is
can propose before anything was fitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from risingsearch.errors import InvalidParameterError
from risingsearch.space import Choices, Space, is_between, is_number

NAMED = re.compile(
    r"(?<![a-z0-9])(lr|learning[_-]?rate|eta0?|step[_-]?size)(?![a-z0-9])"
)
FEWEST_VALUES = 5  # different values of a learning rate, at least


class LearningRate(NamedTuple):
    """The learning rate of a space."""

    name: str
    columns: tuple[int, ...]  # of the features, one for each part of the space
    centre: float  # the place that is believed to be good

    @classmethod
    def of(
        cls,
        space: Space,
        declared: str | Mapping[str, float] | bool | None = None,
        enqueued: Iterable[Mapping[str, Any]] = (),
    ) -> LearningRate | None:
        """Return the learning rate of a space, as ``declared`` or named, if known."""
        if declared is False:
            return None
        value = None
        if isinstance(declared, Mapping):
            [(declared, value)] = declared.items()
        numeric = [one for one in space.coordinates if _is_numeric(one.kind)]
        names = [one.name for one in numeric]
        name = declared or next((n for n in names if NAMED.search(n.lower())), None)
        if name is None:
            return None
        if name not in names:
            raise InvalidParameterError(
                f"learning_rate must name a number of the space with {FEWEST_VALUES} "
                f"values or more, {', '.join(names) or 'which has none'}; got {name!r}"
            )
        given = [*(one.get(name) for one in enqueued), value]
        good = next((one for one in given if is_number(one)), None)
        kinds = [one.kind for one in numeric if one.name == name]
        ends = [(kind.value(0.0), kind.value(1.0)) for kind in kinds]
        if value is not None and not any(is_between(value, *pair) for pair in ends):
            low, high = ends[0]
            raise InvalidParameterError(
                f"learning_rate must be a good value of {name} in the space, from "
                f"{low:g} to {high:g}; got {value!r}: give another, or the name alone"
            )
        inside = [] if good is None else [kind.place(good) for kind in kinds]
        default = inside[0] if value is not None and good is value else 0.5  # an end
        centre = next((one for one in inside if 0.0 < one < 1.0), default)
        return cls(str(name), _columns(space, str(name)), centre)


def _is_numeric(kind: Any) -> bool:
    values = kind.values if isinstance(kind, Choices) else range(FEWEST_VALUES)
    return not kind.is_category and len(values) >= FEWEST_VALUES


def _columns(space: Space, name: str) -> tuple[int, ...]:
    found, at = [], 0
    for one in space.coordinates:
        if one.name == name and _is_numeric(one.kind):
            found.append(at)
        at += len(one.kind.columns(np.full(1, 0.5))) + (one.applies is not None)
    return tuple(found)


def checked_learning_rate(given: Any) -> Any:
    """Return the option ``learning_rate``; raise an error if it is invalid."""
    if given is None or given is False:
        return given
    named = [*given.items()] if isinstance(given, Mapping) else [(given, 1.0)]
    [(name, value)] = named if len(named) == 1 else [(None, None)]
    if not isinstance(name, str) or not name or not is_number(value):
        raise InvalidParameterError(
            "learning_rate must be the name of a parameter, a dict of it and a good "
            f"value, False for none, or None to go by the names; got {given!r}"
        )
    return given
