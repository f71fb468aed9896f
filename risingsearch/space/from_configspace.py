"""Parameters and conditions as ConfigSpace describes them."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from risingsearch.arms import Configuration
from risingsearch.json_values import plain
from risingsearch.space.coordinates import Coordinate
from risingsearch.space.kinds import Choices, Drawn, Interval, Kind, Uneven


def of_configspace(name: str, value: object) -> Kind | None:
    """Return the kind of a hyperparameter of ConfigSpace."""
    if hasattr(value, "default_value") and hasattr(value, "legal_value"):
        return kind_of_hyperparameter(value)
    return None


def kind_of_hyperparameter(value: Any) -> Kind:
    """Return the values of a hyperparameter."""
    if hasattr(value, "choices"):
        return Choices(value.choices, value.probabilities)
    if hasattr(value, "sequence"):
        return Choices(value.sequence, ordered=True)
    if hasattr(value, "lower"):
        return _of_range(value)
    return Choices([value.value])  # a constant


def _of_range(value: Any) -> Kind:
    low = plain(value.lower)
    high = plain(value.upper)
    log = bool(value.log)
    whole = isinstance(low, int)
    if not (hasattr(value, "sigma") or hasattr(value, "alpha")):
        return Interval(
            low,
            high,
            log=log,
            whole=whole,
        )
    # ConfigSpace has no public way to the quantiles of its normal and beta.
    vector_distribution: Any = getattr(value, "_vector_dist", None)
    if not hasattr(vector_distribution, "rv"):
        return Drawn(value)
    return Uneven(
        low,
        high,
        log,
        whole=whole,
        within=vector_distribution.rv,
        text=str(value),
    )


def coordinates_of(space: Any) -> Iterator[Coordinate]:
    """Yield the coordinates of a ConfigurationSpace, with their conditions."""
    conditions = {condition.child.name: condition for condition in space.conditions}
    for name in space:
        kind = kind_of_hyperparameter(space[name])
        condition = conditions.get(name)
        if condition is None:
            yield Coordinate(name, kind)
            continue
        yield Coordinate(
            name,
            kind,
            needs=tuple(dict.fromkeys(_parents(condition))),
            applies=partial(_is_satisfied, condition),
            when=str(condition),
        )


def _is_satisfied(condition: Any, values: Configuration) -> bool:
    """Return whether a condition holds; parents may be absent."""
    from ConfigSpace.types import NotSet

    known = {name: values.get(name, NotSet) for name in _parents(condition)}
    return bool(condition.satisfied_by_value(known))


def _parents(condition: object) -> Iterable[str]:
    """Return the names of the parameters that a condition asks about."""
    clauses = getattr(condition, "dlcs", [condition])  # of "and" and "or"
    return [clause.parent.name for clause in clauses]
