"""Earlier searches, in the forms in which users have them."""

import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.events import Failed, Returned, Started, event_of
from risingsearch.json_values import AS_TEXT, SHOWN, from_json
from risingsearch.priors.earlier import (
    EarlierRun,
    EarlierSearch,
    Source,
    as_number,
    checked_score,
    told_apart,
)
from risingsearch.priors.frames import SUFFIXES, of_file, of_frame
from risingsearch.priors.matching import Params
from risingsearch.priors.models import check_runs, check_usable
from risingsearch.priors.studies import of_study
from risingsearch.storage import run_directory
from risingsearch.storage.journal import read

SCORE = "score"
MOST_SEARCHES = 32
"""Earlier searches that are learnt from: of more, those most like the new one."""
_NAMED = 5  # skipped searches in a message
_ALLOWED = (
    "a SearchResult, a fitted RisingSearchCV, an Optuna study or its storage URL, a "
    "pandas DataFrame, or the path of a run directory, a folder of them, or a CSV or "
    "parquet file (several of them are a list for prior=)"
)


def earlier_searches(
    source: Any,
    *,
    score: str | None = None,
    direction: str | None = None,
    name: str | None = None,
) -> list[EarlierSearch]:
    r"""Return the earlier searches in a source, as data that a new one can learn from.

    Nothing is unpickled or run, and nothing is written. Runs without a score that have
    not failed are left out, and so are those whose parameters JSON cannot hold.

    Parameters
    ----------
    source : object
        One of

        - an ``EarlierSearch``, which is returned as it is;
        - a ``SearchResult`` or a fitted ``RisingSearchCV``;
        - the path of a run directory, also while it is in use, or of a folder of them,
          each an earlier search; a RuntimeWarning names those that cannot be read;
        - an Optuna study, or the storage URL of a database, in which every study is
          one earlier search; of a study that a ``RisingSampler`` searched, an arm is a
          run;
        - a pandas DataFrame, or the path of a CSV or parquet file, with a row per run:
          all columns but the score are parameters. With columns ``run`` and ``epoch``
          a row is an epoch, and the rows of a run are its curve.
    score : str, optional
        The column or metric that is the score. A table needs it, unless ``risingsearch
        export`` wrote it; the others know their own.
    direction : {"maximize", "minimize"}, optional
        Whether higher or lower scores are better. A table needs it as well, and so does
        a metric other than the score of a search.
    name : str, optional
        Its name in reports; by default the source's own name.

    Returns
    -------
    list of EarlierSearch
        At least one.

    Raises
    ------
    InvalidParameterError
        If the source is none of these, is damaged, or nothing can be learnt from it; if
        its direction is not known, or is another than ``direction``.
    MissingDependencyError
        If a file needs pandas or pyarrow, or a storage URL Optuna.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "runs.csv")
    >>> _ = path.write_text("rate,kind,loss\n0.1,a,0.5\n0.01,b,0.4\n0.03,a,\n")
    >>> [earlier] = earlier_searches(path, score="loss", direction="minimize")
    >>> earlier.params[0], earlier.scores
    ({'rate': 0.1, 'kind': 'a'}, array([-0.5, -0.4,  nan]))
    """
    return _searches(Source(source, score, direction, name))


def read_prior(prior: Any, candidates: Params | None = None) -> list[EarlierSearch]:
    """Return the earlier searches of a ``prior`` that the candidates can learn from.

    Of several searches, those from which nothing can be learnt are skipped; a
    RuntimeWarning names them and says why.
    """
    if prior is None:
        return []
    listed = prior if isinstance(prior, (list, tuple)) else [prior]
    nested = [one if isinstance(one, (list, tuple)) else [one] for one in listed]
    sources = [source for several in nested for source in several]
    if not sources:
        raise InvalidParameterError(
            "prior is an empty list: leave it out, or give at least one earlier search"
        )
    read = [search.sample() for source in sources for search in _searches(source)]
    found, skipped = [], []
    for search in {(one.name, one.digest()): one for one in read}.values():
        try:
            if candidates is None:
                check_runs(search)
            else:
                check_usable(search, candidates)
            found.append(search)
        except InvalidParameterError as error:
            skipped.append(str(error))
    _warn_of_skipped(skipped, len(found), "prior")
    return told_apart(_most_alike(found, candidates or []))


def _most_alike(found: list[EarlierSearch], here: Params) -> list[EarlierSearch]:
    if len(found) <= MOST_SEARCHES:
        return found
    names = {name for params in here for name in params}

    def alike(search: EarlierSearch) -> tuple[int, int]:
        return len(names.intersection(search.parameter_names)), len(search.params)

    msg = (
        f"{len(found)} earlier searches are more than the {MOST_SEARCHES} that are "
        "learnt from: those that share most parameters, and have most runs, are taken"
    )
    warnings.warn(msg, RuntimeWarning, stacklevel=3)
    return sorted(found, key=alike, reverse=True)[:MOST_SEARCHES]


def _warn_of_skipped(skipped: Sequence[str], n_found: int, where: str) -> None:
    """Warn of searches that are skipped, or raise an error if none is left."""
    if not skipped:
        return
    reasons = "; ".join(skipped[:_NAMED])
    reasons += f"; and {len(skipped) - _NAMED} more" if len(skipped) > _NAMED else ""
    n = len(skipped) + n_found
    if not n_found:
        none = "" if n == 1 else f"{where}: none of its {n} searches is usable: "
        raise InvalidParameterError(none + reasons)
    msg = f"{where}: {len(skipped)} of its {n} searches are skipped: {reasons}"
    warnings.warn(msg, RuntimeWarning, stacklevel=4)


def _searches(source: Any) -> list[EarlierSearch]:
    """Return the earlier searches in a source; see ``earlier_searches``."""
    asked = source if isinstance(source, Source) else Source(source)
    source = asked.source
    if isinstance(source, EarlierSearch):
        if asked.score is not None:
            msg = f"{source.name}: its scores are read already: leave score out"
            raise InvalidParameterError(msg)
        asked.checked_direction(source.name, source.direction or "maximize")
        return [source if asked.name is None else replace(source, name=asked.name)]
    if isinstance(source, str) and "://" in source:
        from risingsearch.integrations.optuna.earlier_studies import read_studies

        return told_apart(read_studies(source, lambda study: of_study(study, asked)))
    if isinstance(source, (str, os.PathLike)) and source != "":
        return _of_path(Path(source), asked)
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return [of_frame(source, asked)]
    if hasattr(source, "get_trials") and hasattr(source, "directions"):
        return [of_study(source, asked)]
    if hasattr(source, "candidates") and hasattr(source, "history"):
        return [_of_result(source, asked)]
    if hasattr(source, "history_") and hasattr(source, "cv_results_"):
        name, metric = type(source).__name__, asked.score or SCORE
        direction = asked.checked_direction(name, "maximize")  # as all scorers have it
        runs = _runs(source.cv_results_["params"], source.history_, metric, name)
        most = source.scheduler_.max_epochs or 0
        return [asked.search(name, runs, direction, most, asked.score)]
    if type(source).__name__ == "RisingSearchCV":
        msg = "this RisingSearchCV is not fitted: call fit before it is a prior"
        raise InvalidParameterError(msg)
    raise InvalidParameterError(f"an earlier search is {_ALLOWED}; got {shown(source)}")


def _of_path(path: Path, asked: Source) -> list[EarlierSearch]:
    try:
        path = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:  # a circle; a NUL
        why = getattr(error, "strerror", None) or error
        msg = f"there is no earlier search at {shown(str(path.absolute()))} ({why})"
        raise InvalidParameterError(msg) from error
    if path.is_file() and path.name.lower().endswith(SUFFIXES):
        return [of_file(path, asked)]
    found, skipped = [], []
    if path.is_dir():
        if run_directory.holds_search(path):
            return [_of_run_directory(path, asked)]
        for one in sorted(one for one in path.iterdir() if one.is_dir()):
            try:
                if run_directory.holds_search(one):
                    found.append(_of_run_directory(one, asked))
            except (InvalidParameterError, RunDirError) as error:
                skipped.append(str(error))
    if not found and not skipped:
        msg = f"an earlier search is {_ALLOWED}; {path} is none of them"
        raise InvalidParameterError(msg)
    _warn_of_skipped(skipped, len(found), str(path))
    return told_apart(found)


def _of_run_directory(path: Path, asked: Source) -> EarlierSearch:
    """Return the search in a directory, also while another process continues it."""
    try:
        with run_directory.gc_paused(), run_directory.damage_as_error(path):
            header, events = read(path / run_directory.JOURNAL)[:2]
            settings = header["settings"]
            metric = asked.score or SCORE
            candidates = [
                {} if SHOWN in shown else from_json(shown)
                for shown in settings["candidates"]
            ]
            history: list[dict[str, Any]] = []
            for event in map(event_of, events):
                match event:
                    case Started(params=params) if params is not None:
                        candidates[event.job.arm] = dict(params)
                    case Returned():
                        history += _rows(event)
            own = settings.get("direction", "maximize") if metric == SCORE else None
            return asked.search(
                path.resolve().name,
                _runs(candidates, history, metric, str(path)),
                asked.checked_direction(str(path), own),
                settings.get("max_epochs") or 0,
                (header.get("metric") or SCORE) if metric == SCORE else metric,
            )
    except RunDirError as error:
        msg = f"the earlier search in {path} cannot be read: {error}"
        raise InvalidParameterError(msg) from error


def _rows(event: Returned) -> Iterator[dict[str, Any]]:
    """Yield the epochs of a job as rows of a history."""
    job, scores = event.job, event.scores
    for k, (score, metrics) in enumerate(zip(scores, event.metrics, strict=True)):
        row = {"arm": job.arm, "epoch": job.from_epoch + k + 1, SCORE: score}
        yield row | metrics
    if isinstance(event, Failed) and len(scores) < job.n_epochs:
        epoch = job.from_epoch + len(scores) + 1
        lost = {SCORE: math.nan, "failure": event.failure}
        yield {"arm": job.arm, "epoch": epoch, **lost}


def _of_result(result: Any, asked: Source) -> EarlierSearch:
    """Return the runs of a ``SearchResult``."""
    candidates = result.candidates
    if result.left_out is not None:  # text in place of parameters
        candidates = [{} if p.keys() == {AS_TEXT} else p for p in candidates]
    name, metric = "a SearchResult", asked.score or SCORE
    own = result.direction if metric == SCORE else None
    direction = asked.checked_direction(name, own)
    runs = _runs(candidates, result.history, metric, name)
    return asked.search(name, runs, direction, metric=metric)


def _runs(
    candidates: Sequence[Mapping[str, Any]],
    history: Iterable[Mapping[str, Any]],
    score: str,
    name: str,
) -> Iterator[EarlierRun]:
    """Yield the arms of a history that have been opened."""
    scores: dict[int, list[float]] = {}
    for row in history:
        arm, before = row["arm"], row["epoch"] - 1
        scores.setdefault(arm, [])[before:] = [_score(row, score, name)]
    for arm, curve in sorted(scores.items()):
        yield EarlierRun(candidates[arm], curve)


def _score(row: Mapping[str, Any], score: str, name: str) -> float:
    """Return the score of an epoch, or another metric of it; NaN if it was lost."""
    if score == SCORE or "failure" in row:
        return as_number(row[SCORE])
    splits = [as_number(row[key]) for key in row if key.endswith(f"_test_{score}")]
    if splits:  # of cross-validation
        return sum(splits) / len(splits)
    numbers = [key for key in row if not math.isnan(as_number(row[key]))]
    return as_number(row[checked_score(score, numbers, name)])
