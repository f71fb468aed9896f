"""Earlier searches in Optuna studies; Optuna is imported for those in a database.

A trial is a run. In a study that a ``RisingSampler`` searched, the trials of an arm are
one run together.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from risingsearch.errors import InvalidParameterError
from risingsearch.priors.earlier import (
    HOW_TO_NAME,
    EarlierRun,
    EarlierSearch,
    Reader,
    Source,
    as_number,
    checked_score,
    uniquely_named,
)

# As integrations.optuna.trials has them.
ARM = "rising:arm"
N_EPOCHS = "rising:n_epochs"
FINAL = "rising:final"


def _is_study(source: object) -> bool:
    if isinstance(source, str):
        return "://" in source
    return hasattr(source, "get_trials") and hasattr(source, "directions")


def _of_studies(asked: Source) -> list[EarlierSearch]:
    """Return the search of a study, or those of all studies in a database."""
    if not isinstance(asked.source, str):
        return [of_study(asked.source, asked)]
    from risingsearch.integrations.optuna.earlier_studies import read_studies

    searches = read_studies(asked.source, lambda study: of_study(study, asked))
    return uniquely_named(searches)


def of_study(study: Any, asked: Source) -> EarlierSearch:
    """Return the runs of a study; of several objectives, ``score`` names one.

    Parameters
    ----------
    study : optuna.Study
        The study.
    asked : Source
        The objective, if there are several.

    Returns
    -------
    EarlierSearch
        A trial is a run; of a ``RisingSampler``, an arm is.

    Raises
    ------
    InvalidParameterError
        If the objective is not named, or nothing can be learnt from it.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(study_name="May", direction="maximize")
    >>> study.optimize(lambda trial: trial.suggest_float("rate", 0, 1), n_trials=3)
    >>> of_study(study, Source(study))
    <EarlierSearch 'study May': 3 runs of rate>
    """
    own_name = f"study {study.study_name}"
    directions = [direction.name.lower() for direction in study.directions]
    names = study.metric_names
    if not names and len(directions) == 1:
        names = ["value"]
    elif not names:
        names = [f"values_{i}" for i in range(len(directions))]
    if len(names) > 1 and asked.score is None:
        msg = f"{own_name}: it has the objectives {', '.join(names)}: name one"
        raise InvalidParameterError(f"{msg} {HOW_TO_NAME}")
    score = checked_score(asked.score or names[0], names, own_name)
    objective = names.index(score)
    sampler = getattr(study, "sampler", None)
    max_epochs = getattr(sampler, "max_epochs", 0)
    if not isinstance(max_epochs, int):
        max_epochs = 0
    runs = _runs(study.get_trials(deepcopy=False), objective)
    direction = asked.checked_direction(own_name, directions[objective])
    return asked.search(own_name, runs, direction, max_epochs, score)


def _runs(trials: Iterable[Any], objective: int) -> Iterator[EarlierRun]:
    """Yield the runs in the order in which they began."""
    arms: dict[int, list[Any]] = {}
    for trial in trials:
        attrs = trial.user_attrs
        if FINAL in attrs or not attrs.get(N_EPOCHS, True):
            continue  # an arm once more; a trial that had nothing to train
        if trial.state.name != "WAITING":
            arm = attrs.get(ARM, trial.number)
            arms.setdefault(arm, []).append(trial)
    for slices in arms.values():
        last = slices[-1]
        has_failed = last.state.name == "FAIL"
        curve: dict[int, float] = {}
        for trial in slices:
            if trial.state.name != "FAIL":
                curve |= trial.intermediate_values
        scores = [curve[epoch] for epoch in sorted(curve)]
        if has_failed:
            scores = []
        elif not scores and last.values is not None:
            scores = [as_number(last.values[objective])]
        if scores or has_failed:
            yield EarlierRun(last.params, scores)


STUDIES = Reader("an Optuna study or its storage URL", _is_study, _of_studies)
