"""Which column of a table is what, by the form that a tool gives it.

The forms are those of ``risingsearch export``, Optuna's ``study.trials_dataframe()``,
``mlflow.search_runs()``, Ray's ``results.get_dataframe()``, the runs table of Weights &
Biases or what ``pandas.json_normalize`` makes of its API's runs, scikit-learn's
``cv_results_``, and a plain table, in which all columns but the score, the epoch and
the run are parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from risingsearch.curves.files import EPOCH_COLUMNS, SCORE_COLUMNS, UNNAMED
from risingsearch.priors import ray_results, studies
from risingsearch.priors.runs import chosen
from risingsearch.priors.score_names import is_score
from risingsearch.priors.values import as_number, is_missing, value_of

RUN_COLUMNS = ("run", "run_id", "run id", "trial", "trial_id", "arm")
SECONDS = "seconds"

Columns = dict[str, Sequence[Any]]


class Table(NamedTuple):
    """Columns of the same length, and what messages call them."""

    name: str
    columns: Columns
    parameters: frozenset[str] = frozenset()  # of the new search, where it is known


class Roles(NamedTuple):
    """Which column is what; of the parameters, the column of each."""

    params: Mapping[str, str]
    score: str
    run: str | None = None
    epoch: str | None = None
    seconds: str | None = None
    state: str | None = None
    nested: bool = False  # whether a slash in a parameter's name is a level
    telling: bool = True  # whether the score is called by what it is


def with_roles(table: Table, score: str | None) -> tuple[Table, Roles]:
    """Return a table with what its columns are; a score may be asked for."""
    reads = next(reads for known, reads in _FORMS if known(table.columns))
    return reads(table, score)


def _of_ours(table: Table, score: str | None) -> tuple[Table, Roles]:
    metrics = _numbers(
        table, table.columns.keys() - _prefixed(table, "param_").values()
    )
    score = chosen(score or "score", metrics, table.name)
    params = {
        name: column
        for name, column in _prefixed(table, "param_").items()
        if name != "as_text"
    }
    telling = score != "score"  # so it is called whatever the direction was
    return table, Roles(params, score, "arm", "epoch", SECONDS, telling=telling)


def _of_optuna(table: Table, score: str | None) -> tuple[Table, Roles]:
    values = [name for name in table.columns if name.split("_")[0] in _VALUES]
    score = _chosen_by_suffix(score, _numbers(table, values), "values_", table.name)
    roles = Roles(_prefixed(table, "params_"), score, state="state")
    attr = "user_attrs_{}".format
    if attr(studies.N_EPOCHS) not in table.columns:
        return table, roles
    return _arms(table, attr), roles._replace(run=attr(studies.ARM))


def _arms(table: Table, attr: Callable[[str], str]) -> Table:
    """Return the rows that are slices of arms: of each arm the last one alone."""
    n_epochs = table.columns[attr(studies.N_EPOCHS)]
    arms = table.columns.get(attr(studies.ARM), [math.nan] * len(n_epochs))
    numbers = table.columns.get("number", range(len(n_epochs)))
    last = {
        number if is_missing(arm) else arm: row
        for row, (number, arm, n) in enumerate(
            zip(numbers, arms, n_epochs, strict=True)
        )
        if not is_missing(n) and n
    }
    columns = {
        name: [column[row] for row in last.values()]
        for name, column in table.columns.items()
    }
    return Table(table.name, columns | {attr(studies.ARM): list(last)})


def _of_mlflow(table: Table, score: str | None) -> tuple[Table, Roles]:
    metrics = _numbers(table, _prefixed(table, "metrics.").values())
    score = _chosen_by_suffix(score, metrics, "metrics.", table.name)
    params = _prefixed(table, "params.")
    columns = dict(table.columns)
    for column in params.values():  # MLflow keeps them all as text
        columns[column] = [
            value_of(value) if isinstance(value, str) else value
            for value in columns[column]
        ]
    return Table(table.name, columns), Roles(params, score, state="status")


def _of_ray(table: Table, score: str | None) -> tuple[Table, Roles]:
    params = _prefixed(table, "config/")
    others = table.columns.keys() - params.values() - ray_results.NO_METRICS
    score = chosen(score, _numbers(table, others), table.name)
    return table, Roles(params, score, nested=True)


def _of_config(table: Table, score: str | None) -> tuple[Table, Roles]:
    config = _prefixed(table, "config.")
    params = {name: config[name] for name in config if not name.startswith("_")}
    others = [
        name
        for name in table.columns.keys() - config.values() - ray_results.NO_METRICS
        if name.lower() not in _WANDB and not name.startswith(("_", "summary._"))
    ]
    score = _chosen_by_suffix(score, _numbers(table, others), "summary.", table.name)
    state = next((name for name in table.columns if name.lower() == "state"), None)
    return table, Roles(params, score, state=state)


def _of_sklearn(table: Table, score: str | None) -> tuple[Table, Roles]:
    metrics = _numbers(table, _prefixed(table, "mean_test_").values())
    score = _chosen_by_suffix(score, metrics, "mean_test_", table.name)
    return table, Roles(_prefixed(table, "param_"), score)


def _of_wandb(table: Table, score: str | None) -> tuple[Table, Roles]:
    own = {
        name: name
        for name in table.columns
        if name.lower() not in _WANDB and not name.startswith("_")
    }
    score = _score_of_plain(table, score, own.keys())
    del own[score]
    return table, Roles(own, score, state="State")


def _of_plain(table: Table, score: str | None) -> tuple[Table, Roles]:
    names = {name.lower(): name for name in table.columns}
    epochs = (*EPOCH_COLUMNS, ray_results.EPOCH)
    run = next((names[name] for name in RUN_COLUMNS if name in names), None)
    epoch = next((names[name] for name in epochs if name in names), None)
    seconds = names.get(SECONDS)
    used = {run, epoch, seconds, *(names.get(name) for name in UNNAMED)}
    score = _score_of_plain(table, score, table.columns.keys() - used)
    params = {name: name for name in table.columns if name not in {*used, score}}
    return table, Roles(params, score, run, epoch, seconds)


def _score_of_plain(table: Table, score: str | None, names: Iterable[str]) -> str:
    """Return the column asked for, or the one that is called as scores are.

    What the new search has as a parameter is none here, unless nothing else is left.
    """
    own = [name for name in table.columns if name in set(names)]
    numbers = _numbers(table, own)
    if score is not None:
        return chosen(score, own if score in own else numbers, table.name)
    own = [name for name in own if name not in table.parameters] or own
    numbers = [name for name in numbers if name in own] or numbers
    best, *others = SCORE_COLUMNS
    called = [name for name in own if name.lower() == best]
    called = called or [name for name in numbers if name.lower() in others]
    called = called or [name for name in numbers if is_score(name)]
    return chosen(None, called or numbers, table.name)


_VALUES = ("value", "values")
_INFINITE = ("'inf'", "'-inf'", "inf", "-inf")
_WANDB = frozenset(
    {
        "commit",
        "created",
        "description",
        "end time",
        "github",
        "gpu count",
        "gpu type",
        "group",
        "hostname",
        "id",
        "job type",
        "name",
        "notes",
        "runtime",
        "state",
        "sweep",
        "tags",
        "updated",
        "user",
    }
)
"""What its runs table tells of every run, in lower case."""
_Form = tuple[
    Callable[[Columns], bool],
    Callable[[Table, str | None], tuple[Table, Roles]],
]
_FORMS: list[_Form] = [
    (lambda names: {"arm", "epoch", "score", "round", "job"} <= names.keys(), _of_ours),
    (lambda names: _any(names, "params_") and _value_in(names), _of_optuna),
    (lambda names: _any(names, "params.") and _any(names, "metrics."), _of_mlflow),
    (lambda names: _any(names, "config/"), _of_ray),
    (lambda names: _any(names, "config."), _of_config),
    (lambda names: _any(names, "param_") and _any(names, "mean_test_"), _of_sklearn),
    (lambda names: {"Name", "State"} <= names.keys(), _of_wandb),
    (lambda _: True, _of_plain),
]


def _any(names: Iterable[str], prefix: str) -> bool:
    return any(name.startswith(prefix) for name in names)


def _value_in(names: Iterable[str]) -> bool:
    return any(name.split("_")[0] in _VALUES for name in names)


def _prefixed(table: Table, prefix: str) -> dict[str, str]:
    """Return the columns with a prefix by what follows it."""
    return {
        name.removeprefix(prefix): name
        for name in table.columns
        if name.startswith(prefix) and name != prefix
    }


def _numbers(table: Table, names: Iterable[str]) -> list[str]:
    """Return those columns that hold numbers and nothing else, in their order."""
    wanted = set(names)
    return [
        name
        for name, column in table.columns.items()
        if name in wanted and _holds_numbers(column)
    ]


def _holds_numbers(column: Sequence[Any]) -> bool:
    found = False
    for value in column:
        if value is None or is_missing(value) or repr(value) in _INFINITE:
            continue
        if math.isnan(as_number(value)):
            return False
        found = True
    return found


def _chosen_by_suffix(
    score: str | None, names: Sequence[str], prefix: str, where: str
) -> str:
    """Return the column of a metric, which may be asked for without its prefix."""
    full = f"{prefix}{score}"
    return chosen(full if full in names else score, names, where)
