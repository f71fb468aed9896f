"""What becomes of a finished search: an entry in the user's history, if one is kept."""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from risingsearch.errors import PriorError
from risingsearch.priors.history import Entry, history_folder, write_entry
from risingsearch.priors.results import of_result
from risingsearch.priors.runs import Asked
from risingsearch.search.results import SearchResult
from risingsearch.search.trainable import Functions

_NAMES = 4  # parameters in the name of a search


def keep_in_history(
    result: SearchResult,
    trainable: Any,
    *,
    key: str,
    run_dir: Path | None,
    max_epochs: int | None,
) -> None:
    """Write what a search has found to the user's history, if one is kept.

    An entry with the same key is replaced. Whatever prevents it is a RuntimeWarning:
    the search itself is finished.
    """
    folder = history_folder()
    if folder is None:
        return
    now = datetime.now().astimezone()
    try:
        earlier = of_result(result, Asked())
        earlier = replace(earlier, max_epochs=max_epochs or 0, metric=result.metric)
        name = _name(trainable, earlier.parameter_names, run_dir)
        write_entry(folder, Entry.of(earlier, key, name, now))
    except (OSError, PriorError) as error:
        why = str(error)
        if isinstance(error, OSError):
            why = f"{folder} cannot be written ({error.strerror or error})"
        warnings.warn(
            f"the search is finished, but it is not kept in the history: {why}",
            RuntimeWarning,
            stacklevel=3,
        )


def _name(trainable: Any, parameters: list[str], run_dir: Path | None) -> str:
    """Return the name of the run directory, or what was trained, and by what."""
    if run_dir is not None:
        return run_dir.resolve().name
    trained = getattr(trainable, "estimator", trainable)
    what = trained.train if isinstance(trained, Functions) else type(trained)
    called = getattr(what, "__name__", type(what).__name__)
    called = called if called.isidentifier() else "search"  # of a lambda
    more = len(parameters) - _NAMES
    others = f" and {more} more" if more > 0 else ""
    return f"{called}: {', '.join(parameters[:_NAMES])}{others}"
