"""Earlier searches as tables: a row per run, or the epochs of a run row by row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from risingsearch.errors import PriorError
from risingsearch.priors.earlier import EarlierSearch
from risingsearch.priors.runs import (
    Asked,
    Run,
    by_epoch,
    earlier_search,
    known_direction,
    mean,
)
from risingsearch.priors.table_forms import Roles, Table, with_roles
from risingsearch.priors.values import as_number, is_missing

FAILED = frozenset({"fail", "failed", "error", "errored", "crashed"})


def of_table(table: Table, asked: Asked) -> EarlierSearch:
    """Return the runs in a table."""
    table = table._replace(parameters=asked.parameters)
    table, roles = with_roles(table, asked.score)
    if not roles.params:
        msg = (
            f"{table.name}: it has scores and no column with a parameter, so nothing "
            "can be learnt from it: give the search itself, or a table with both"
        )
        raise PriorError(msg)
    telling = roles.score if roles.telling else None
    direction = known_direction(asked, table.name, metric=telling)
    own_name = Path(table.name).name  # of a file, not its folders
    runs = _runs(table, roles)
    return earlier_search(own_name, runs, asked, direction, metric=roles.score)


def _runs(table: Table, roles: Roles) -> Iterator[Run]:
    """Yield the runs of a table: a row each, or all rows of one with its epochs."""
    columns = table.columns
    scores = [as_number(value) for value in columns[roles.score]]
    states = columns.get(roles.state or "")
    seconds = columns.get(roles.seconds or "")
    epochs = _epochs(table, roles)
    runs = _rows_of_runs(table, roles, epochs)
    params = {
        name: columns[column]
        for name, column in roles.params.items()
        if _is_constant(columns[column], runs)
    }
    for rows in runs:
        first = {name: column[rows[0]] for name, column in params.items()}
        own = {name: value for name, value in first.items() if not is_missing(value)}
        if roles.nested:
            own = _nested(own)
        curve = [scores[row] for row in rows]
        if epochs is not None and len(rows) > 1:
            curve = by_epoch((epochs[row], scores[row]) for row in rows)
        state = "" if states is None else str(states[rows[-1]]).lower()
        scored = any(map(math.isfinite, curve))
        if state in FAILED or (states is None and not scored):
            yield Run(own, curve if scored else [], failed=True)
        else:
            took = (
                mean(as_number(seconds[row]) for row in rows) if seconds else math.nan
            )
            yield Run(own, curve if scored else [], took)


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as they were before Ray joined the names of their levels."""
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        *above, last = name.split("/")
        level = nested
        for one in above:
            inner = level.setdefault(one, {})
            level = inner if isinstance(inner, dict) else {}
        level[last] = value
    return nested


def _rows_of_runs(
    table: Table, roles: Roles, epochs: Sequence[float] | None
) -> list[list[int]]:
    """Return the rows of every run.

    They share the run, where a column has it and no epoch comes twice in one, and the
    parameters if not; without such a column, an epoch seen before begins another run.
    """
    n_rows = len(table.columns[roles.score])
    if roles.run is None and epochs is None:
        return [[row] for row in range(n_rows)]
    columns = [map(_key, table.columns[column]) for column in roles.params.values()]
    if roles.run is not None:
        own = [_key(value) for value in table.columns[roles.run]]
        if epochs is not None and len(set(zip(own, epochs, strict=True))) == n_rows:
            return _grouped(own)
        return _grouped(zip(own, *columns, strict=True))
    assert epochs is not None
    return _grouped(_repeats_apart(list(zip(*columns, strict=True)), epochs))


def _repeats_apart(
    configurations: Sequence[Hashable], epochs: Sequence[float]
) -> Iterator[Hashable]:
    """Yield the run of every row: one more where a configuration begins again."""
    times: Counter[Hashable] = Counter()
    for seen in zip(configurations, epochs, strict=True):
        yield seen[0], times[seen]
        times[seen] += 1


def _grouped(keys: Iterable[Hashable]) -> list[list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for row, key in enumerate(keys):
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def _is_constant(column: Sequence[Any], runs: Iterable[Sequence[int]]) -> bool:
    """Return whether a column says the same in all rows of a run, as parameters do."""
    return all(
        _key(column[row]) == _key(column[rows[0]]) for rows in runs for row in rows[1:]
    )


def _key(value: Any) -> Hashable:
    if isinstance(value, str):
        return value
    return None if is_missing(value) else repr(value)


def _epochs(table: Table, roles: Roles) -> list[float] | None:
    if roles.epoch is None:
        return None
    epochs = [as_number(value) for value in table.columns[roles.epoch]]
    for row, epoch in enumerate(epochs, start=1):
        if math.isnan(epoch):
            msg = f"{table.name}: row {row} has no number as its {roles.epoch}"
            raise PriorError(msg)
    return epochs
