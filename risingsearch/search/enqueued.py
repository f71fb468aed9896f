"""Known configurations that a search opens first, among its candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from risingsearch.checks import check_nesting, shown
from risingsearch.errors import InvalidParameterError

Params = Mapping[str, Any]


def with_enqueued(
    candidates: Sequence[Params], enqueue: Iterable[Params | int]
) -> tuple[list[dict[str, Any]], list[int]]:
    """Return all candidates, and which arms are opened first.

    Those enqueued that are not among the candidates come after them. A number is that
    of a candidate. Values are not compared with any space: as in Optuna, what is
    enqueued may lie outside it.

    Examples
    --------
    >>> with_enqueued([{"x": 1}, {"x": 2}], [{"x": 5}, {"x": 1}])
    ([{'x': 1}, {'x': 2}, {'x': 5}], [2, 0])
    """
    everybody = [dict(params) for params in candidates]
    first: list[int] = []
    for one in checked_enqueue(enqueue):
        if isinstance(one, Integral):
            first.append(int(one))
            continue
        _check_names(one, candidates)
        arm = _number(one, everybody)
        if arm in first:
            msg = f"enqueue has {shown(one)} twice: name each configuration once"
            raise InvalidParameterError(msg)
        if arm == len(everybody):
            everybody.append(dict(one))
        first.append(arm)
    return everybody, first


def checked_enqueue(enqueue: Any) -> list[Any]:
    """Return what is enqueued as a list, or raise what is wrong."""
    known = (Mapping, Integral)
    several = isinstance(enqueue, Iterable) and not isinstance(enqueue, Mapping)
    given = list(enqueue) if several else [None]
    if not all(isinstance(one, known) for one in given):
        msg = (
            "enqueue is a list of configurations, each a dict of parameters; got "
            f"{shown(enqueue)}"
        )
        raise InvalidParameterError(msg)
    for one in given:
        if isinstance(one, Mapping):
            check_nesting("enqueue", dict(one))
    return given


def _check_names(one: Params, candidates: Sequence[Params]) -> None:
    unknown = [name for name in one if not any(name in each for each in candidates)]
    if unknown:
        known = sorted({name for each in candidates for name in each})
        msg = (
            f"enqueue names {unknown[0]!r}, which no candidate has: its parameters are "
            f"among {', '.join(known)}"
        )
        raise InvalidParameterError(msg)


def _number(one: Params, candidates: Sequence[Params]) -> int:
    """Return which candidate it is; one more than there are for none."""
    same = (arm for arm, each in enumerate(candidates) if _is_same(one, each))
    return next(same, len(candidates))


def _is_same(one: Params, other: Params) -> bool:
    if one.keys() != other.keys():
        return False
    try:
        return all(
            value is other[name] or bool(value == other[name])
            for name, value in one.items()
        )
    except (ValueError, TypeError):  # of arrays, which are not compared as a whole
        return False
