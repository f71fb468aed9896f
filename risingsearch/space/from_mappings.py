"""Parameters as plain data: mappings with a ``type``, as a sweep's file has them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeGuard

from risingsearch.arms import Configuration, Params
from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError, unknown_name
from risingsearch.space.coordinates import Coordinate
from risingsearch.space.kinds import Choices, Interval, Kind, Quantiles
from risingsearch.space.values import exact, is_number

TYPE = "type"
WHEN = "when"


def _uniform(low: float, high: float, step: float | None = None) -> Kind:
    _check_range(low, high, step)
    return Interval(low, high, step=step)


def _log_uniform(low: float, high: float) -> Kind:
    _check_range(low, high)
    if low <= 0:
        raise InvalidParameterError(f"low must be greater than 0; got {low}")
    return Interval(low, high, log=True)


def _int(low: int, high: int, log: bool = False, step: int = 1) -> Kind:
    _check_range(low, high, step)
    if log and low < 1:
        raise InvalidParameterError(f"with log, low must be at least 1; got {low}")
    if log and step > 1:
        raise InvalidParameterError(
            "a step and log exclude each other: leave out one of them"
        )
    return Interval(low, high, log, step, whole=True)


def _normal(mu: float, sigma: float) -> Kind:
    return Quantiles(NormalDist(mu, sigma))


def _choice(values: Sequence[object]) -> Kind:
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise InvalidParameterError(f"values must be a list; got {shown(values)}")
    return Choices(values)


FORMS: dict[str, Callable[..., Kind]] = {
    "uniform": _uniform,
    "log-uniform": _log_uniform,
    "int": _int,
    "normal": _normal,
    "choice": _choice,
}


def _check_range(low: float, high: float, step: float | None = None) -> None:
    for number in (low, high, step or 1):
        if not is_number(number):
            raise InvalidParameterError(f"{shown(number)} must be a finite number")
    if not low < high:
        raise InvalidParameterError(f"low must be below high; got {low:g} and {high:g}")
    if step is not None and exact(step) > exact(high) - exact(low):
        raise InvalidParameterError(
            f"step {step:g} is wider than high - low, {high - low:g}"
        )


def is_form(value: object) -> TypeGuard[Configuration]:
    """Return whether a value describes a parameter as plain data."""
    return isinstance(value, Mapping) and value.get(TYPE) in FORMS


def of_mapping(name: str, value: object) -> Kind | None:
    """Return the kind of a mapping with a type and its keys."""
    if not isinstance(value, Mapping) or TYPE not in value:
        return None
    form = value[TYPE]
    if form not in FORMS:
        raise unknown_name(f"type of {name!r},", form, FORMS)
    keys = {key: given for key, given in value.items() if key not in (TYPE, WHEN)}
    make = FORMS[form]
    try:
        inspect.signature(make).bind(**keys)
        return make(**keys)
    except (TypeError, InvalidParameterError) as error:
        takes = ", ".join(inspect.signature(make).parameters)
        raise InvalidParameterError(
            f"{name!r} of the type {form} (with {takes}): {error}"
        ) from error


@dataclass(frozen=True)
class Condition:
    """Whether earlier parameters have the values that ``when`` names.

    Parameters
    ----------
    when : dict
        By the name of an earlier parameter a value that it needs, or a list of values
        of which it needs one.

    Examples
    --------
    >>> Condition({"kernel": ["rbf", "poly"]})({"kernel": "rbf"})
    True
    """

    when: Params

    def __call__(self, values: Configuration) -> bool:
        """Return whether they have."""
        return all(
            name in values and values[name] in _as_list(wanted)
            for name, wanted in self.when.items()
        )


def _as_list(wanted: object) -> Sequence[object]:
    return wanted if isinstance(wanted, list) else [wanted]


def coordinate_of(
    name: str,
    kind: Kind,
    value: object,
    earlier: Mapping[str, Kind],
) -> Coordinate:
    """Return the coordinate of a parameter that may depend on earlier ones.

    Parameters
    ----------
    name : str
        The parameter.
    kind : Kind
        Its values.
    value : object
        What the space has for it, perhaps with a ``when``.
    earlier : dict
        The parameters that stand before it.

    Returns
    -------
    Coordinate
        The parameter, and when it applies.

    Raises
    ------
    InvalidParameterError
        If it depends on a parameter that does not stand before it, or on a value that
        this one never has.

    Examples
    --------
    >>> flag = Choices([True, False])
    >>> share = {"type": "uniform", "low": 0.5, "high": 1.0, "when": {"bags": True}}
    >>> coordinate_of("share", of_mapping("share", share), share, {"bags": flag}).needs
    ('bags',)
    """
    when = value.get(WHEN) if is_form(value) else None
    if not when:
        return Coordinate(name, kind)
    if not isinstance(when, Mapping):
        raise InvalidParameterError(
            f"parameters.{name}.when must be a mapping; got {shown(when)}"
        )
    if unknown := sorted(when.keys() - earlier.keys()):
        raise InvalidParameterError(
            f"parameters.{name}.when names {unknown}: it may name parameters "
            f"that stand before it, {sorted(earlier)}"
        )
    for other, wanted in when.items():
        possible = earlier[other].listed
        for needed in _as_list(wanted):
            if isinstance(possible, list) and needed not in possible:
                raise InvalidParameterError(
                    f"parameters.{name}.when.{other}: {needed!r} is none of its "
                    f"values, {possible}"
                )
    return Coordinate(name, kind, tuple(when), Condition(dict(when)), dict(when))
