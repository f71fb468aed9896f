"""What becomes of a finished search: an entry in the user's history, if one is kept."""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from risingsearch.errors import PriorError
from risingsearch.priors.history import Entry, history_folder, write_entry
from risingsearch.priors.results import of_result
from risingsearch.priors.runs import Asked
from risingsearch.search.results import SearchResult

_NAMES = 4  # parameters in the name of a search


def keep_in_history(
    result: SearchResult, *, key: str, run_dir: Path | None, max_epochs: int | None
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
        earlier = replace(earlier, max_epochs=max_epochs or 0)
        name = _name(earlier.parameter_names, run_dir)
        write_entry(folder, Entry.of(earlier, key, name, now, result.direction))
    except (OSError, PriorError) as error:
        why = str(error)
        if isinstance(error, OSError):
            why = f"{folder} cannot be written ({error.strerror or error})"
        warnings.warn(
            f"the search is finished, but it is not kept in the history: {why}",
            RuntimeWarning,
            stacklevel=3,
        )


def _name(parameters: list[str], run_dir: Path | None) -> str:
    if run_dir is not None:
        return run_dir.resolve().name
    more = len(parameters) - _NAMES
    others = f" and {more} more" if more > 0 else ""
    return f"search of {', '.join(parameters[:_NAMES])}{others}"
