"""The learning rate of a space: known by its name, and proposed from the first arm.

Of all parameters it matters most, and is the most alike from task to task: almost
always the scores have one hump along it. So a model that knows which parameter it is
can propose before anything was fitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from risingsearch.arms import Configuration
from risingsearch.errors import InvalidParameterError
from risingsearch.space import Choices, Kind, Space, is_between, is_number

Declared = str | Mapping[str, float] | bool | None
"""The option ``learning_rate``: a name, a name with a good value, False, or None."""

NAMED = re.compile(
    r"(?<![a-z0-9])(lr|learning[_-]?rate|eta0?|step[_-]?size)(?![a-z0-9])"
)
FEWEST_VALUES = 5  # different values of a learning rate, at least
MIDDLE = 0.5


class LearningRate(NamedTuple):
    """The learning rate of a space.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> space = Space.of({"lr": loguniform(1e-4, 1), "depth": [1, 2]})
    >>> LearningRate.of(space)
    LearningRate(name='lr', columns=(0,), centre=0.5)
    """

    name: str
    columns: tuple[int, ...]  # of the features, one for each part of the space
    centre: float  # the place that is believed to be good

    @classmethod
    def of(
        cls,
        space: Space,
        declared: Declared = None,
        enqueued: Iterable[Configuration] = (),
    ) -> LearningRate | None:
        """Return the learning rate of a space, as ``declared`` or named, if known.

        Parameters
        ----------
        space : Space
            The space of the search.
        declared : str, dict, False or None
            Its name, a dict of its name and a good value, False for none, or None to
            go by the names.
        enqueued : iterable of dict, optional
            Configurations to try first; the first value of one is believed to be good.

        Returns
        -------
        LearningRate or None
            None if there is none.

        Raises
        ------
        InvalidParameterError
            If the declared learning rate names no numeric parameter, or its value is
            not within the space.
        """
        if declared is False:
            return None
        name, value = _parsed(declared)
        numeric = [each for each in space.coordinates if _is_numeric(each.kind)]
        name = _looked_up(name, [coordinate.name for coordinate in numeric])
        if name is None:
            return None
        kinds = [each.kind for each in numeric if each.name == name]
        if value is not None:
            _check_within(name, value, kinds)
        tried = [params.get(name) for params in enqueued]
        return cls(name, _columns(space, name), _centre(kinds, tried, value))


def _parsed(declared: Declared) -> tuple[str | None, float | None]:
    """Return the name and the value that are declared."""
    if isinstance(declared, Mapping):
        [(name, value)] = declared.items()
        return name, value
    return declared if isinstance(declared, str) else None, None


def _looked_up(name: str | None, names: Sequence[str]) -> str | None:
    """Return the name of a numeric parameter: the given one, or a learning rate's."""
    if name is None:
        return next(filter(lambda each: NAMED.search(each.lower()), names), None)
    if name in names:
        return name
    raise InvalidParameterError(
        f"learning_rate must name a number of the space with {FEWEST_VALUES} "
        f"values or more, {', '.join(names) or 'which has none'}; got {name!r}"
    )


def _check_within(
    name: str,
    value: float,
    kinds: Sequence[Kind],
) -> None:
    """Raise if a value is outside of a parameter in every part of the space."""
    ends = [(kind.value(0.0), kind.value(1.0)) for kind in kinds]
    if any(is_between(value, low, high) for low, high in ends):
        return
    low, high = ends[0]
    raise InvalidParameterError(
        f"learning_rate must be a good value of {name} in the space, from "
        f"{low:g} to {high:g}; got {value!r}: give another, or the name alone"
    )


def _centre(
    kinds: Sequence[Kind],
    tried: Iterable[object],
    declared: float | None,
) -> float:
    """Return the place that is believed to be good: of the first number there is."""
    good = next(filter(is_number, [*tried, declared]), None)
    if good is None:
        return MIDDLE
    places = [kind.place(good) for kind in kinds]
    for place in places:
        if 0.0 < place < 1.0:
            return place
    if good is declared:
        return places[0]
    return MIDDLE


def _is_numeric(kind: Kind) -> bool:
    if isinstance(kind, Choices):
        return not kind.is_category and len(kind.values) >= FEWEST_VALUES
    return not kind.is_category


def _columns(space: Space, name: str) -> tuple[int, ...]:
    """Return the columns of a parameter among the features of a space."""
    columns = []
    at = 0
    for coordinate in space.coordinates:
        if coordinate.name == name and _is_numeric(coordinate.kind):
            columns.append(at)
        at += len(coordinate.kind.columns(np.full(1, MIDDLE)))
        at += coordinate.applies is not None
    return tuple(columns)


def checked_learning_rate(given: object) -> Declared:
    """Return the option ``learning_rate``; raise if it is invalid.

    Parameters
    ----------
    given : object
        The option as a user gave it.

    Returns
    -------
    str, dict, False or None
        The same.

    Raises
    ------
    InvalidParameterError
        If it is none of these, or a dict of several names or without a number.

    Examples
    --------
    >>> checked_learning_rate({"lr": 0.01})
    {'lr': 0.01}
    """
    if given is None or given is False:
        return None if given is None else False
    if isinstance(given, str) and given:
        return given
    if isinstance(given, Mapping) and len(given) == 1:
        [(name, value)] = given.items()
        if isinstance(name, str) and name and is_number(value):
            return given
    raise InvalidParameterError(
        "learning_rate must be the name of a parameter, a dict of it and a good "
        f"value, False for none, or None to go by the names; got {given!r}"
    )
