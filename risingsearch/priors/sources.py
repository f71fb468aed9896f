"""Earlier searches, in whatever form people have them."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from risingsearch.checks import checked_choice, shown
from risingsearch.errors import InvalidParameterError, PriorError
from risingsearch.priors import mlflow_runs, ray_results
from risingsearch.priors.earlier import EarlierSearch, told_apart
from risingsearch.priors.folders import begins_with, subfolders
from risingsearch.priors.results import is_unfitted, no_results, of_fitted, of_result
from risingsearch.priors.run_directories import is_run_directory, of_run_directory
from risingsearch.priors.runs import Asked, known_direction
from risingsearch.priors.studies import of_study
from risingsearch.priors.table_files import SUFFIXES, table_in, table_of
from risingsearch.priors.tables import of_table

DIRECTIONS = ("maximize", "minimize")
_NAMED = 5  # skipped searches in a message
_SQLITE = b"SQLite format 3\0"
_ALLOWED = (
    "a SearchResult, a fitted search of scikit-learn's kind, an Optuna study or its "
    "storage URL, a pandas DataFrame, or the path of a run_dir, of a folder "
    "of Ray Tune or MLflow, or of a CSV, TSV or parquet file (several of them are a "
    "list for prior=)"
)


@dataclass(frozen=True)
class RunFolder:
    """The searches in the run directories of a folder, of which any may be unusable.

    Parameters
    ----------
    path : str
        The folder.
    searches : list of EarlierSearch
        Those that can be used.
    skipped : list of str, optional
        Why others cannot be used, each with its name.
    """

    path: str
    searches: list[EarlierSearch]
    skipped: list[str] = field(default_factory=list)

    def announced(self) -> RunFolder:
        """Return the folder without skipped searches, after a warning about them.

        Raises
        ------
        PriorError
            If no search is left.
        """
        if not self.skipped:
            return self
        n, reasons = len(self.skipped), "; ".join(self.skipped[:_NAMED])
        reasons += f"; and {n - _NAMED} more" if n > _NAMED else ""
        if not self.searches:
            msg = f"{self.path}: none of its {n} searches can be used: {reasons}"
            raise PriorError(msg)
        msg = (
            f"{self.path}: {n} of its {n + len(self.searches)} searches are skipped: "
            f"{reasons}"
        )
        warnings.warn(msg, RuntimeWarning, stacklevel=5)
        return RunFolder(self.path, self.searches)


@dataclass(frozen=True)
class Source:
    """A source with what is asked of it, to be read when it is needed.

    Parameters
    ----------
    source, score, direction, name
        As for ``earlier_searches``, for which it is a source itself.
    """

    source: Any
    score: str | None = None
    direction: str | None = None
    name: str | None = None


def earlier_searches(
    source: Any,
    *,
    score: str | None = None,
    direction: str | None = None,
    name: str | None = None,
) -> list[EarlierSearch]:
    r"""Return the earlier searches in a source, as data that a new one can learn from.

    Nothing is unpickled or run, no link inside a folder is followed, and nothing is
    written. Runs without a score that have not failed are left out, and so are those
    whose parameters JSON cannot hold.

    Parameters
    ----------
    source : object
        One of

        - an ``EarlierSearch``, which is returned as it is;
        - a ``SearchResult``, a fitted ``RisingSearchCV``, or a fitted search of
          scikit-learn, by its ``cv_results_``;
        - an Optuna study, or the storage URL of a database, in which every study is
          one earlier search; of a study that a ``RisingSampler`` searched, an arm is a
          run;
        - the path of a ``run_dir``, also while it is in use; of the folder of a Ray
          Tune experiment; of MLflow's ``mlruns`` or one experiment in it; or of a
          folder with several of them, each an earlier search;
        - a pandas DataFrame, or the path of a CSV, TSV or parquet file, of text also
          with ".gz" behind its name: what ``risingsearch
          export``, ``study.trials_dataframe()``, ``mlflow.search_runs()``, Ray's
          ``results.get_dataframe()``, the runs table of Weights & Biases or
          ``cv_results_`` give; or a plain table, where all columns but the score, the
          epoch and the run are parameters. Several rows with the epochs of a run are
          its curve.
    score : str, optional
        The column or metric that is the score. Needed where there are several and not
        just one of them is called as scores are: loss, val_accuracy, auc, say.
    direction : {"maximize", "minimize"}, optional
        Whether higher or lower scores are better; by default what the source says.
        Needed where it does not, as tables and folders of Ray and MLflow, unless the
        name of the score does: val_accuracy, auc, loss, rmse, say.
    name : str, optional
        What reports call it; by default the source's own name.

    Returns
    -------
    list of EarlierSearch
        At least one.

    Raises
    ------
    PriorError
        If the source is none of these, is damaged, or nothing can be learnt from it;
        if its direction is not known, or is another than ``direction``.
    InvalidParameterError
        If ``score``, ``direction`` or ``name`` is outside what is allowed.
    MissingDependencyError
        If a parquet file needs pyarrow, or a storage URL Optuna.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "runs.csv")
    >>> _ = path.write_text("rate,kind,loss\n0.1,a,0.5\n0.01,b,0.4\n0.03,a,\n")
    >>> [earlier] = earlier_searches(path, score="loss", direction="minimize")
    >>> earlier.params[0], earlier.scores
    ({'rate': 0.1, 'kind': 'a'}, array([-0.5, -0.4, nan]))
    """
    found: list[EarlierSearch] = []
    for one in searches_in(source, _checked(score, direction, name)):
        found += one.announced().searches if isinstance(one, RunFolder) else [one]
    return found


def searches_in(source: Any, asked: Asked) -> Sequence[EarlierSearch | RunFolder]:
    """Return the earlier searches in a source; see ``earlier_searches``."""
    try:
        return _searches(source, asked)
    except RecursionError as error:
        msg = "the source is nested too deep to be an earlier search"
        raise PriorError(msg) from error


def _checked(score: Any, direction: Any, name: Any) -> Asked:
    for argument, value in (("score", score), ("name", name)):
        if value is not None and not (isinstance(value, str) and value):
            msg = f"{argument} must be None or a text; got {shown(value)}"
            raise InvalidParameterError(msg)
    if direction is not None:
        checked_choice("direction", direction, DIRECTIONS)
    return Asked(score, direction, name)


def _searches(source: Any, asked: Asked) -> Sequence[EarlierSearch | RunFolder]:
    if isinstance(source, RunFolder):
        return [source]
    if isinstance(source, EarlierSearch):
        return [_as_asked(source, asked)]
    if isinstance(source, Source):
        own = _checked(source.score, source.direction, source.name)
        return _searches(source.source, own._replace(parameters=asked.parameters))
    if isinstance(source, str) and "://" in source:
        return _of_storage(source, asked)
    if isinstance(source, (str, os.PathLike)) and source != "":
        return _of_path(Path(source), asked)
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return [of_table(table_of(source), asked)]
    if hasattr(source, "get_trials") and hasattr(source, "directions"):
        return [of_study(source, asked)]
    if hasattr(source, "candidates") and hasattr(source, "history"):
        return [of_result(source, asked)]
    if hasattr(source, "cv_results_"):
        return [of_fitted(source, asked)]
    if is_unfitted(source):
        raise no_results(source)
    if isinstance(source, Mapping):
        msg = (
            f"an earlier search is {_ALLOWED}; got the dict {shown(source)}: what a "
            "sweep's file says by a mapping is in Python prior=earlier_searches(path, "
            "score=..., direction=...), from risingsearch.priors; and runs in a dict "
            "are a DataFrame of it"
        )
        raise PriorError(msg)
    msg = f"an earlier search is {_ALLOWED}; got {shown(source)}"
    raise PriorError(msg)


def _as_asked(search: EarlierSearch, asked: Asked) -> EarlierSearch:
    """Return a search that is read already, by another name if that is asked for."""
    if asked.score is not None:
        msg = f"{search.name}: its scores are read already: leave score out"
        raise PriorError(msg)
    known_direction(asked, search.name, said=search.direction or "maximize")
    return search if asked.name is None else replace(search, name=asked.name)


def _of_storage(url: str, asked: Asked) -> list[EarlierSearch]:
    from risingsearch.integrations.optuna.earlier_studies import read_studies, shown_url

    where = shown_url(url)

    def read(study: Any) -> EarlierSearch:
        return replace(of_study(study, asked), source=f"{where} {study.study_name}")

    return told_apart(read_studies(url, read))


def _of_path(path: Path, asked: Asked) -> Sequence[EarlierSearch | RunFolder]:
    try:
        path = path.resolve(strict=True)
        mode = path.stat().st_mode
    except (OSError, RuntimeError, ValueError) as error:  # a circle; a NUL
        why = getattr(error, "strerror", None) or error
        msg = f"there is no earlier search at {shown(str(path.absolute()))} ({why})"
        raise PriorError(msg) from error
    if stat.S_ISDIR(mode):
        return _of_folder(path, asked)
    if stat.S_ISREG(mode) and path.name.lower().endswith(SUFFIXES):
        return [replace(of_table(table_in(path), asked), source=str(path))]
    if stat.S_ISREG(mode) and begins_with(path, _SQLITE):
        return _of_storage(f"sqlite:///{path}", asked)
    msg = f"an earlier search is {_ALLOWED}; {path} is none of them"
    raise PriorError(msg)


def _of_folder(folder: Path, asked: Asked) -> Sequence[EarlierSearch | RunFolder]:
    """Return the search that a folder holds, or those of the folders in it."""
    own = _in_folder(folder, asked)
    if own is not None:
        return [own]
    found: list[EarlierSearch] = []
    skipped: list[str] = []
    for one in subfolders(folder):
        try:
            search = _in_folder(one, asked)
        except PriorError as error:
            skipped.append(str(error))
        else:
            found += [search] if search is not None else []
    if not found and not skipped:
        msg = (
            f"an earlier search is {_ALLOWED}; {folder} is none of them, and has none "
            "in its folders"
        )
        raise PriorError(msg)
    return [RunFolder(str(folder), told_apart(found), skipped)]


def _in_folder(folder: Path, asked: Asked) -> EarlierSearch | None:
    readers = (
        (is_run_directory, of_run_directory),
        (ray_results.is_experiment, ray_results.of_experiment),
        (mlflow_runs.is_experiment, mlflow_runs.of_experiment),
    )
    read = next((read for known, read in readers if known(folder)), None)
    found = None if read is None else read(folder, asked)
    return found and replace(found, source=str(folder))
