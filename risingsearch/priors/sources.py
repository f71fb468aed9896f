"""Earlier searches, in the forms in which users have them."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from risingsearch.arms import Job
from risingsearch.checks import checked_choice, shown
from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.json_values import from_json
from risingsearch.priors.earlier import (
    Asked,
    EarlierRun,
    EarlierSearch,
    as_number,
    checked_score,
    earlier_search,
    known_direction,
    mean,
    told_apart,
)
from risingsearch.priors.frames import SUFFIXES, of_file, of_frame
from risingsearch.priors.studies import of_study
from risingsearch.storage.journal import read
from risingsearch.storage.run_directory import (
    JOURNAL,
    holds_search,
    no_collection,
    understood,
)

DIRECTIONS = ("maximize", "minimize")
SCORE = "score"
_SHOWN = "$shown"  # a candidate that JSON cannot hold, as text
_NAMED = 5  # skipped searches in a message
_ALLOWED = (
    "a SearchResult, a fitted RisingSearchCV, an Optuna study or its storage URL, a "
    "pandas DataFrame, or the path of a run directory, a folder of them, or a CSV or "
    "parquet file (several of them are a list for prior=)"
)


@dataclass(frozen=True)
class Source:
    """A source with the arguments of ``earlier_searches`` for it, to be read later."""

    source: Any
    score: str | None = None
    direction: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Found:
    """The searches in a source; of a ``folder`` of run directories, some are skipped.

    ``skipped`` says why.
    """

    searches: Sequence[EarlierSearch]
    folder: str | None = None
    skipped: Sequence[str] = ()

    def usable(
        self, check: Callable[[EarlierSearch], EarlierSearch], *, skip: bool = False
    ) -> Found:
        """Return the searches as ``check`` returns them.

        Of a folder, and of several studies with ``skip``, those that it refuses are
        skipped, with a warning that names them; if no search is left, that is an error.
        """
        if self.folder is None and (len(self.searches) == 1 or not skip):
            return Found([check(search) for search in self.searches])
        searches, skipped = [], list(self.skipped)
        for search in self.searches:
            try:
                searches.append(check(search))
            except InvalidParameterError as error:
                skipped.append(str(error))
        where = self.folder or "the studies in a database"
        n, reasons = len(skipped), "; ".join(skipped[:_NAMED])
        reasons += f"; and {n - _NAMED} more" if n > _NAMED else ""
        if not searches:
            msg = f"{where}: none of its {n} searches can be used: {reasons}"
            raise InvalidParameterError(msg)
        if skipped:
            msg = (
                f"{where}: {n} of its {n + len(searches)} searches are skipped: "
                f"{reasons}"
            )
            warnings.warn(msg, RuntimeWarning, stacklevel=5)
        return Found(searches, self.folder)


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
        What reports call it; by default the source's own name.

    Returns
    -------
    list of EarlierSearch
        At least one.

    Raises
    ------
    InvalidParameterError
        If the source is none of these, is damaged, or nothing can be learnt from it; if
        its direction is not known, or is another than ``direction``; if ``direction``
        is neither of the two.
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
    found = searches_in(Source(source, score, direction, name))
    return list(found.usable(lambda search: search).searches)


def searches_in(source: Any) -> Found:
    """Return the earlier searches in a source; see ``earlier_searches``."""
    asked = Asked()
    if isinstance(source, Source):
        if source.direction is not None:
            checked_choice("direction", source.direction, DIRECTIONS)
        asked = Asked(source.score, source.direction, source.name)
        source = source.source
    if isinstance(source, Found):
        return source
    if isinstance(source, EarlierSearch):
        return Found([_as_asked(source, asked)])
    if isinstance(source, str) and "://" in source:
        return Found(_of_storage(source, asked))
    if isinstance(source, (str, os.PathLike)) and source != "":
        return _of_path(Path(source), asked)
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return Found([of_frame(source, asked)])
    if hasattr(source, "get_trials") and hasattr(source, "directions"):
        return Found([of_study(source, asked)])
    if hasattr(source, "candidates") and hasattr(source, "history"):
        return Found([_of_result(source, asked)])
    if hasattr(source, "history_") and hasattr(source, "cv_results_"):
        return Found([_of_fitted(source, asked)])
    if type(source).__name__ == "RisingSearchCV":
        msg = "this RisingSearchCV is not fitted: call fit before it is a prior"
        raise InvalidParameterError(msg)
    msg = f"an earlier search is {_ALLOWED}; got {shown(source)}"
    raise InvalidParameterError(msg)


def _as_asked(search: EarlierSearch, asked: Asked) -> EarlierSearch:
    """Return a search that is read already, by another name if that is asked for."""
    if asked.score is not None:
        msg = f"{search.name}: its scores are read already: leave score out"
        raise InvalidParameterError(msg)
    known_direction(asked, search.name, search.direction or "maximize")
    return search if asked.name is None else replace(search, name=asked.name)


def _of_storage(url: str, asked: Asked) -> list[EarlierSearch]:
    from risingsearch.integrations.optuna.earlier_studies import read_studies

    return told_apart(read_studies(url, lambda study: of_study(study, asked)))


def _of_path(path: Path, asked: Asked) -> Found:
    try:
        path = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:  # a circle; a NUL
        why = getattr(error, "strerror", None) or error
        msg = f"there is no earlier search at {shown(str(path.absolute()))} ({why})"
        raise InvalidParameterError(msg) from error
    if path.is_dir():
        if _is_run_directory(path):
            return Found([_of_run_directory(path, asked)])
        return _of_folder(path, asked)
    if path.is_file() and path.name.lower().endswith(SUFFIXES):
        return Found([of_file(path, asked)])
    msg = f"an earlier search is {_ALLOWED}; {path} is none of them"
    raise InvalidParameterError(msg)


def _of_folder(folder: Path, asked: Asked) -> Found:
    """Return the searches in the run directories of a folder."""
    found: list[EarlierSearch] = []
    skipped: list[str] = []
    try:
        inner = sorted(one for one in folder.iterdir() if one.is_dir())
    except OSError as error:
        msg = f"{folder} cannot be read ({error.strerror or error})"
        raise InvalidParameterError(msg) from error
    for one in inner:
        try:
            if _is_run_directory(one):
                found.append(_of_run_directory(one, asked))
        except InvalidParameterError as error:
            skipped.append(str(error))
    if not found and not skipped:
        msg = (
            f"an earlier search is {_ALLOWED}; {folder} is none of them, and has no "
            "run directory in it"
        )
        raise InvalidParameterError(msg)
    return Found(told_apart(found), str(folder), skipped)


# ---------------------------------------------------------------------- run directories


def _is_run_directory(path: Path) -> bool:
    """Whether a folder is the ``run_dir`` of a search."""
    try:
        return holds_search(path)
    except RunDirError as error:
        raise InvalidParameterError(str(error)) from error


def _of_run_directory(path: Path, asked: Asked) -> EarlierSearch:
    """Return the search in a directory, also while another process continues it.

    Candidates that JSON cannot hold are left out: reading them would unpickle.
    """
    try:
        with no_collection(), understood(path):
            header, events = read(path / JOURNAL)[:2]
            settings = header["settings"]
            metric = asked.score or SCORE
            candidates = [
                {} if _SHOWN in shown else from_json(shown)
                for shown in settings["candidates"]
            ]
            told = (one for one in events if one["event"] in ("result", "failed"))
            history = [row for event in told for row in _rows(event)]
            said = settings["direction"] if metric == SCORE else None
            direction = known_direction(asked, str(path), said)
            return earlier_search(
                path.resolve().name,
                _runs(candidates, history, metric, str(path)),
                asked,
                direction,
                settings["max_epochs"] or 0,
                (header.get("metric") or SCORE) if metric == SCORE else metric,
            )
    except RunDirError as error:
        msg = f"the earlier search in {path} cannot be read: {error}"
        raise InvalidParameterError(msg) from error


def _rows(event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the epochs of a job as rows of a history."""
    job, scores = Job.from_json(event["job"]), from_json(event["scores"])
    for k, score in enumerate(scores):
        told = {name: from_json(event[name])[k] for name in ("seconds", "metrics")}
        row = {"arm": job.arm, "epoch": job.from_epoch + k + 1, SCORE: score}
        yield row | {"seconds": as_number(told["seconds"])} | told["metrics"]
    if "failure" in event and len(scores) < job.n_epochs:
        epoch = job.from_epoch + len(scores) + 1
        lost = {SCORE: math.nan, "seconds": math.nan, "failure": event["failure"]}
        yield {"arm": job.arm, "epoch": epoch, **lost}


# ------------------------------------------------------------------- results in memory


def _of_result(result: Any, asked: Asked) -> EarlierSearch:
    """Return the runs of a ``SearchResult``."""
    candidates = result.candidates
    if result.left_out is not None:  # text in place of parameters
        candidates = [
            {} if params.keys() == {"as_text"} else params for params in candidates
        ]
    name, metric = "a SearchResult", asked.score or SCORE
    direction = known_direction(
        asked, name, result.direction if metric == SCORE else None
    )
    runs = list(_runs(candidates, result.history, metric, name))
    return earlier_search(name, runs, asked, direction, metric=metric)


def _of_fitted(search: Any, asked: Asked) -> EarlierSearch:
    """Return the runs of a fitted ``RisingSearchCV``."""
    name, metric = type(search).__name__, asked.score or SCORE
    direction = known_direction(asked, name, "maximize")  # as all scorers have it
    runs = _runs(search.cv_results_["params"], search.history_, metric, name)
    most = search.scheduler_.max_epochs or 0
    return earlier_search(name, runs, asked, direction, most, asked.score)


def _runs(
    candidates: Sequence[Mapping[str, Any]],
    history: Iterable[Mapping[str, Any]],
    score: str,
    name: str,
) -> Iterator[EarlierRun]:
    """Yield the arms of a history that have been opened."""
    scores: dict[int, list[float]] = {}
    seconds: dict[int, list[float]] = {}
    for row in history:
        arm, before = row["arm"], row["epoch"] - 1
        scores.setdefault(arm, [])[before:] = [_score(row, score, name)]
        seconds.setdefault(arm, [])[before:] = [row["seconds"]]
    for arm, curve in sorted(scores.items()):
        failed = not any(map(math.isfinite, curve))
        yield EarlierRun(candidates[arm], curve, mean(seconds[arm]), failed)


def _score(row: Mapping[str, Any], score: str, name: str) -> float:
    """Return the score of an epoch, or another metric of it; NaN if it was lost."""
    if score == SCORE or "failure" in row:
        return as_number(row[SCORE])
    splits = [as_number(row[key]) for key in row if key.endswith(f"_test_{score}")]
    if splits:  # of cross-validation
        return sum(splits) / len(splits)
    numbers = [key for key in row if not math.isnan(as_number(row[key]))]
    return as_number(row[checked_score(score, numbers, name)])
