"""Earlier searches, in the forms in which users have them."""

import math
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.json_values import SHOWN, Json, from_json
from risingsearch.priors.earlier import (
    EarlierSearch,
    Reader,
    Source,
    uniquely_named,
)
from risingsearch.priors.frames import FRAMES, SUFFIXES, of_file
from risingsearch.priors.histories import SCORE, runs_of
from risingsearch.priors.matching import Configurations
from risingsearch.priors.models import check_runs, check_usable
from risingsearch.priors.results import RESULTS, SEARCH_CVS
from risingsearch.priors.studies import STUDIES
from risingsearch.scheduling.events import Failed, Returned, Started, event_of
from risingsearch.storage import run_directory
from risingsearch.storage.journal import read

MOST_SEARCHES = 32
"""Earlier searches that are learnt from: of more, those most like the new one."""
_NAMED = 5  # skipped searches in a message


def earlier_searches(
    source: object,
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


def read_prior(
    prior: object, candidates: Configurations | None = None
) -> list[EarlierSearch]:
    """Return the earlier searches of a ``prior`` that the candidates can learn from.

    Parameters
    ----------
    prior : object
        A source, as ``earlier_searches`` takes it, a list of some, or None.
    candidates : sequence of dict, optional
        The configurations of the new search; by default they are not known yet.

    Returns
    -------
    list of EarlierSearch
        With unique names, 32 at most. Of several searches, those from which nothing
        can be learnt are skipped; a RuntimeWarning names them and says why.

    Raises
    ------
    InvalidParameterError
        If a source cannot be read, or nothing can be learnt from any.

    Examples
    --------
    >>> import numpy as np
    >>> runs = [{"rate": 0.1 * k} for k in range(5)]
    >>> may = EarlierSearch("May", runs, [np.array([0.1 * k]) for k in range(5)])
    >>> read_prior([may, may])
    [<EarlierSearch 'May': 5 runs of rate>]
    """
    if prior is None:
        return []
    sources = [source for listed in _as_list(prior) for source in _as_list(listed)]
    if not sources:
        raise InvalidParameterError(
            "prior is an empty list: leave it out, or give at least one earlier search"
        )
    different = {}
    for source in sources:
        for search in _searches(source):
            sample = search.sample()
            different[sample.name, sample.digest()] = sample
    usable = []
    skipped = []
    for search in different.values():
        try:
            if candidates is None:
                check_runs(search)
            else:
                check_usable(search, candidates)
            usable.append(search)
        except InvalidParameterError as error:
            skipped.append(str(error))
    _warn_of_skipped(skipped, len(usable), "prior")
    return uniquely_named(_most_alike(usable, candidates or []))


def _as_list(value: object) -> Sequence[object]:
    if isinstance(value, (list, tuple)):
        return value
    return [value]


def _most_alike(
    searches: list[EarlierSearch], candidates: Configurations
) -> list[EarlierSearch]:
    if len(searches) <= MOST_SEARCHES:
        return searches
    names = {name for params in candidates for name in params}

    def alike(search: EarlierSearch) -> tuple[int, int]:
        return len(names.intersection(search.parameter_names)), len(search.params)

    msg = (
        f"{len(searches)} earlier searches are more than the {MOST_SEARCHES} that are "
        "learnt from: those that share most parameters, and have most runs, are taken"
    )
    warnings.warn(msg, RuntimeWarning, stacklevel=3)
    return sorted(searches, key=alike, reverse=True)[:MOST_SEARCHES]


def _warn_of_skipped(
    skipped: Sequence[str],
    n_found: int,
    where: str,
) -> None:
    """Warn of searches that are skipped, or raise an error if none is left."""
    if not skipped:
        return
    n_skipped = len(skipped)
    reasons = "; ".join(skipped[:_NAMED])
    if n_skipped > _NAMED:
        reasons += f"; and {n_skipped - _NAMED} more"
    if n_skipped == 1 and not n_found:
        raise InvalidParameterError(reasons)
    if not n_found:
        msg = f"{where}: none of its {n_skipped} searches is usable: {reasons}"
        raise InvalidParameterError(msg)
    n_searches = n_skipped + n_found
    msg = f"{where}: {n_skipped} of its {n_searches} searches are skipped: {reasons}"
    warnings.warn(msg, RuntimeWarning, stacklevel=4)


def _searches(given: object) -> list[EarlierSearch]:
    """Return the earlier searches in a source; see ``earlier_searches``."""
    asked = given if isinstance(given, Source) else Source(given)
    if isinstance(asked.source, EarlierSearch):
        return [asked.renamed(asked.source)]
    for reader in READERS:
        if reader.is_own(asked.source):
            return reader.read(asked)
    msg = f"an earlier search is {_allowed()}; got {shown(asked.source)}"
    raise InvalidParameterError(msg)


def _is_path(source: object) -> bool:
    return isinstance(source, (str, os.PathLike)) and source != ""


def _of_path(asked: Source) -> list[EarlierSearch]:
    path = Path(asked.source)
    try:
        path = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:  # a circle; a NUL
        why = getattr(error, "strerror", None) or error
        msg = f"there is no earlier search at {shown(str(path.absolute()))} ({why})"
        raise InvalidParameterError(msg) from error
    if path.is_file() and path.name.lower().endswith(SUFFIXES):
        return [of_file(path, asked)]
    if path.is_dir() and run_directory.holds_search(path):
        return [_of_run_directory(path, asked)]
    folders = []
    if path.is_dir():
        folders = sorted(path.iterdir())
    searches = []
    skipped = []
    for folder in folders:
        try:
            if folder.is_dir() and run_directory.holds_search(folder):
                searches.append(_of_run_directory(folder, asked))
        except (InvalidParameterError, RunDirError) as error:
            skipped.append(str(error))
    if not searches and not skipped:
        msg = f"an earlier search is {_allowed()}; {path} is none of them"
        raise InvalidParameterError(msg)
    _warn_of_skipped(skipped, len(searches), str(path))
    return uniquely_named(searches)


def _of_run_directory(path: Path, asked: Source) -> EarlierSearch:
    """Return the search in a directory, also while another process continues it."""
    try:
        with run_directory.gc_paused(), run_directory.damage_as_error(path):
            header, events = read(path / run_directory.JOURNAL)[:2]
            settings = header["settings"]
            metric = asked.score or SCORE
            candidates = [
                {} if SHOWN in candidate else from_json(candidate)
                for candidate in settings["candidates"]
            ]
            history: list[Json] = []
            for event in map(event_of, events):
                match event:
                    case Started(params=params) if params is not None:
                        candidates[event.job.arm] = dict(params)
                    case Returned():
                        history += _rows(event)
            runs = runs_of(candidates, history, metric, str(path))
            known = None
            if metric == SCORE:
                known = settings.get("direction", "maximize")
                metric = header.get("metric") or SCORE
            return asked.search(
                path.resolve().name,
                runs,
                asked.checked_direction(str(path), known),
                settings.get("max_epochs") or 0,
                metric,
            )
    except RunDirError as error:
        msg = f"the earlier search in {path} cannot be read: {error}"
        raise InvalidParameterError(msg) from error


def _rows(event: Returned) -> Iterator[Json]:
    """Yield the epochs of a job as rows of a history."""
    job = event.job
    rows = [
        {SCORE: score, **metrics}
        for score, metrics in zip(event.scores, event.metrics, strict=True)
    ]
    if isinstance(event, Failed) and len(rows) < job.n_epochs:
        rows.append({SCORE: math.nan, "failure": event.failure})
    for epoch, row in enumerate(rows, job.from_epoch + 1):
        yield {"arm": job.arm, "epoch": epoch, **row}


PATHS = Reader(
    "the path of a run directory, a folder of them, or a CSV or parquet file",
    _is_path,
    _of_path,
)
READERS = [RESULTS, SEARCH_CVS, STUDIES, FRAMES, PATHS]
"""The first whose own a source is reads it."""


def _allowed() -> str:
    *most, last = (reader.forms for reader in READERS)
    return f"{', '.join(most)}, or {last} (several of them are a list for prior=)"
