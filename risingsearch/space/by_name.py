"""Spaces by the name of an estimator: curated, as plain data that can be edited.

``estimators.json`` has them, with what every library takes where nothing is given. No
library is imported: an estimator is known by the names of its class and its bases.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

from risingsearch.arms import Params
from risingsearch.errors import InvalidParameterError, unknown_name
from risingsearch.json_values import plain
from risingsearch.space.from_mappings import WHEN
from risingsearch.space.kinds import Kind
from risingsearch.space.space import Space

Estimator: TypeAlias = Any
"""A name, a class, or an object of any library, with ``get_params``."""

AUTO = "auto"
PACKAGE = "package"
"""The prior that is in this package: good starts, which ``benchmarks`` has learnt."""
FAMILY = "estimator"
"""The parameter that says which of several estimators a configuration is of."""
_RESERVED = (FAMILY, "families")


class Curated(NamedTuple):
    """The space of some estimators, and their default."""

    space: Params
    default: Params  # what its library takes where nothing is given
    names: list[str]  # of all estimators that it is known of


def _data(name: str) -> Any:
    return json.loads(files("risingsearch.space").joinpath(name).read_text("utf-8"))


@cache
def known_estimators() -> dict[str, Curated]:
    """Return the curated spaces by the names of classes."""
    return {
        name: Curated(entry["space"], entry["default"], entry["estimators"])
        for entry in _data("estimators.json")
        for name in entry["estimators"]
    }


def space_of(estimator: Estimator) -> Any:
    """Return the curated space of an estimator, to be printed and edited.

    Parameters
    ----------
    estimator : str, class, estimator or list of these
        The name of a class, such as "LGBMClassifier", the class, or an estimator. Of a
        pipeline the steps that are known are searched, and the last must be. Of a list,
        also of pairs of a name and an estimator, each has its own part.

    Returns
    -------
    dict, or list of dict
        Each parameter as plain data. ``RisingSearchCV`` and the ``parameters`` of a
        sweep take it. Parameters that the estimator lacks are left out, and so are
        choices where it has a word that is none of them.

    Raises
    ------
    InvalidParameterError
        If nothing is known of the estimator.

    Examples
    --------
    >>> from risingsearch import space_of
    >>> space = space_of("ElasticNet")
    >>> space["alpha"]
    {'type': 'log-uniform', 'low': 1e-05, 'high': 10.0}
    >>> space["l1_ratio"] = [0.1, 0.5, 0.9]
    """
    if isinstance(estimator, Sequence) and not isinstance(estimator, str):
        return [
            {FAMILY: {"type": "choice", "values": [name]}}
            | _prefixed(space_of(each), f"{name}__")
            for name, each in named(estimator).items()
        ]
    if isinstance(estimator, type):
        estimator = estimator.__name__
    model = estimator
    while hasattr(model, "steps"):
        model = model.steps[-1][1]
    if not any(_known(model)):
        unknown = unknown_name("estimator", _name_of(model), known_estimators())
        raise InvalidParameterError(
            f"{unknown}; search another in a space of yours, a dict of lists and "
            "distributions"
        )
    space: Params = {}
    for prefix, part, curated in _known(estimator):
        space |= _prefixed(_settable(part, curated), prefix)
    return space


def named(estimators: Sequence[Estimator]) -> dict[str, Estimator]:
    """Return estimators by their names, those of their classes where none is given."""
    by_name: dict[str, Estimator] = {}
    for each in estimators:
        pair = each if isinstance(each, tuple) else (_name_of(each), each)
        if not (len(pair) == 2 and isinstance(pair[0], str) and _may_be(pair[1])):
            raise InvalidParameterError(
                "a list of estimators has estimators, or pairs of a name and an "
                f"estimator; got {each!r}"
            )
        name, estimator = pair
        if name in _RESERVED:
            raise InvalidParameterError(
                f"no estimator may be named {name!r}, as a parameter is: give another"
            )
        if name in by_name or "__" in name:
            raise InvalidParameterError(
                f"the estimators need different names without '__', and {name!r} is "
                "there already or has it: give pairs, [('large', SVC()), ...]"
            )
        by_name[name] = estimator
    if not by_name:
        raise InvalidParameterError("there are no estimators: give at least one")
    return by_name


def own_values(estimator: Estimator) -> Params:
    """Return an estimator's value of each parameter, or the one its library takes."""
    values: Params = estimator.get_params()
    for prefix, part, curated in _known(estimator):
        values |= {prefix + name: v for name, v in _own(part, curated).items()}
    return values


def _own(estimator: Estimator, curated: Curated) -> Params:
    """Return an estimator's values of its curated parameters.

    A number that is None as its class has it is left to the library.
    """
    params = estimator.get_params()
    of_class = inspect.signature(type(estimator)).parameters
    given = {}
    for name, form in curated.space.items():
        if name not in params:
            continue
        is_left = name not in of_class or of_class[name].default is None
        if params[name] is not None or form["type"] == "choice" or not is_left:
            given[name] = params[name]
    return curated.default | given


def configuration_of(values: Params, space: Space) -> Params:
    """Return values as a configuration: of the parameters that apply.

    Parameters
    ----------
    values : dict
        A value for each parameter, also for those that do not apply.
    space : Space
        The parameters, in one part.

    Returns
    -------
    dict
        Its values may be others than those of the space.

    Examples
    --------
    >>> space = Space.of(space_of("SVC"))
    >>> configuration_of({"C": 1.0, "kernel": "rbf", "gamma": 0.1, "coef0": 0.0}, space)
    {'C': 1.0, 'kernel': 'rbf', 'gamma': 0.1}
    """
    params: Params = {}
    for coordinate in space.coordinates:
        name = coordinate.name
        if name in values and coordinate.is_active(params):
            params[name] = _plain_for(coordinate.kind, values[name])
    return params


@cache
def learnt_starts() -> dict[str, list[Params]]:
    """Return the starts that were learnt, by the names of classes."""
    starts: dict[str, list[Params]] = _data("starts.json")
    return starts


def starts_of(estimator: Estimator) -> list[Params]:
    """Return good starts of an estimator, learnt on tables, the best first.

    Parameters
    ----------
    estimator : str or estimator
        As of ``space_of``; of a pipeline, the starts are those of its last step.

    Returns
    -------
    list of dict
        Each has the parameters that apply. None are known of most estimators.

    Examples
    --------
    >>> len(starts_of("LGBMClassifier"))
    8
    """
    learnt: list[Params] = []
    for prefix, part, curated in _known(estimator):
        for name in curated.names:
            settable = _settable(part, curated)
            for start in learnt_starts().get(name, ()):
                kept = {k: v for k, v in start.items() if k in settable}
                learnt.append({prefix + k: v for k, v in kept.items()})
    return learnt


def _plain_for(kind: Kind, value: object) -> object:
    """Return a value as the kind has it: plain data has lists, estimators tuples."""
    if isinstance(value, list | tuple):
        other = list(value) if isinstance(value, tuple) else tuple(value)
        return other if kind.has(other) else value
    return plain(value)


def _may_be(estimator: Estimator) -> bool:
    """Return whether this is an estimator, its class or its name."""
    return isinstance(estimator, str) or hasattr(estimator, "get_params")


def _name_of(estimator: object) -> str:
    return estimator if isinstance(estimator, str) else type(estimator).__name__


def _known(
    estimator: Estimator, prefix: str = ""
) -> Iterator[tuple[str, Estimator, Curated]]:
    """Yield the known estimators in one: the prefix of each, itself and its space."""
    bases = [base.__name__ for base in type(estimator).__mro__]
    for name in [estimator] if isinstance(estimator, str) else bases:
        if name in known_estimators():
            yield prefix, estimator, known_estimators()[name]
            break
    if hasattr(estimator, "get_params") and not isinstance(estimator, type):
        for name, inner in estimator.get_params().items():
            if "__" not in name and not isinstance(inner, str):
                yield from _known(inner, f"{prefix}{name}__")


def _settable(estimator: Estimator, curated: Curated) -> Params:
    """Return the parameters that an estimator has, as far as they are not chosen."""
    space = deepcopy(curated.space)
    if isinstance(estimator, str):
        return space
    params = estimator.get_params()
    own = _own(estimator, curated)
    names = params.keys() | inspect.signature(type(estimator)).parameters.keys()
    for name, form in curated.space.items():
        value = own.get(name)
        is_chosen = isinstance(value, str | bool | None) and name in params
        lacks_parent = not form.get(WHEN, {}).keys() <= space.keys()
        is_other = (
            is_chosen and form["type"] == "choice" and value not in form["values"]
        )
        if name not in names or lacks_parent or is_other:
            del space[name]
        elif isinstance(value, tuple):
            space[name]["values"] = [*map(tuple, form["values"])]
    return space


def _prefixed(space: Params, prefix: str) -> Params:
    forms = {}
    for name, form in space.items():
        if WHEN in form:
            when = {prefix + other: wanted for other, wanted in form[WHEN].items()}
            form = form | {WHEN: when}
        forms[prefix + name] = form
    return forms
