"""Earlier searches as Optuna's studies, known by what they hold: nothing is imported.

A trial is a run. In a study that a ``RisingSampler`` searched, the trials of an arm are
its slices, and together they are one run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from risingsearch.priors.earlier import EarlierSearch
from risingsearch.priors.runs import (
    Asked,
    Run,
    by_epoch,
    chosen,
    earlier_search,
    known_direction,
)
from risingsearch.priors.values import as_number

# As integrations.optuna.trial_attributes has them.
ARM = "rising:arm"
N_EPOCHS = "rising:n_epochs"
FINAL = "rising:final"

_VALUE = "value"


def of_study(study: Any, asked: Asked, name: str | None = None) -> EarlierSearch:
    """Return the runs of a study; one of several objectives is asked for by name."""
    directions = [direction.name.lower() for direction in study.directions]
    own_name = f"study {study.study_name}" if name is None else name
    names = objective_names(study.metric_names, len(directions))
    score = asked.score
    if len(names) == 1 and score == _VALUE:
        score = None
    objective = names.index(chosen(score, names, own_name))
    trials = study.get_trials(deepcopy=False)
    most = getattr(getattr(study, "sampler", None), "max_epochs", 0)
    return earlier_search(
        own_name,
        _runs(trials, objective),
        asked,
        known_direction(asked, own_name, said=directions[objective]),
        most if isinstance(most, int) else 0,
        names[objective],
    )


def objective_names(given: Sequence[str] | None, n_objectives: int) -> list[str]:
    """Return what the objectives are called, as the columns of its data frame are.

    Examples
    --------
    >>> objective_names(None, 1), objective_names(None, 2)
    (['value'], ['values_0', 'values_1'])
    """
    if given is not None:
        return list(given)
    if n_objectives == 1:
        return [_VALUE]
    return [f"values_{i}" for i in range(n_objectives)]


def _runs(trials: Iterable[Any], objective: int) -> Iterator[Run]:
    """Yield the runs, in the order in which they began."""
    found: dict[int, list[Any]] = {}
    for trial in trials:
        attrs = trial.user_attrs
        if FINAL in attrs or (N_EPOCHS in attrs and not attrs[N_EPOCHS]):
            continue  # an arm once more; a trial that had nothing to train
        if trial.state.name != "WAITING":
            found.setdefault(attrs.get(ARM, trial.number), []).append(trial)
    for slices in found.values():
        yield _run(slices, objective)


def _run(slices: Sequence[Any], objective: int) -> Run:
    last = slices[-1]
    if last.state.name == "FAIL":
        return Run(last.params, [], failed=True)
    trained = [trial for trial in slices if trial.state.name != "FAIL"]
    curve: dict[int, float] = {}
    for trial in trained:
        curve |= trial.intermediate_values
    scores = by_epoch(curve.items())
    if not scores and last.values is not None:
        return Run(last.params, [as_number(last.values[objective])])
    return Run(last.params, scores, _seconds(trained) / max(1, len(scores)))


def _seconds(trials: Iterable[Any]) -> float:
    """Return how long trials have taken; NaN where one has not ended."""
    durations = [trial.duration for trial in trials]
    if any(duration is None for duration in durations):
        return math.nan
    return math.fsum(duration.total_seconds() for duration in durations)
