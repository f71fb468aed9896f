"""The history: finished searches in a folder of the user's, where one is wanted."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from risingsearch.arms import sign_of
from risingsearch.checks import LARGEST_INT
from risingsearch.errors import PriorError
from risingsearch.json_values import as_json, from_json
from risingsearch.priors.earlier import MOST_SEARCHES, EarlierSearch
from risingsearch.priors.folders import text_of, unreadable
from risingsearch.priors.matching import Params
from risingsearch.priors.models import check_usable
from risingsearch.priors.runs import Asked, Run, earlier_search
from risingsearch.storage.files import PRIVATE, make_folder, write_whole

HISTORY = "history"
"""The source that stands for the searches in the user's history."""
SETTING = "RISINGSEARCH_HISTORY"
"""The environment variable with the folder; without it, nothing is kept."""
OPT_IN = (
    f"set the environment variable {SETTING} to a folder, and every search that is "
    "finished from then on is kept there"
)
VERSION = 1
_VERSION = "risingsearch_history"
_FILE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-([0-9a-f]{16})\.json", re.ASCII)
_UNFINISHED = re.compile(rf"{_FILE.pattern}\.[0-9a-f]+\.tmp", re.ASCII)
_LONGEST_NAME = 100
_NAMED = 5  # damaged files in a message


@dataclass(frozen=True)
class Entry:
    """A finished search in the history.

    Parameters
    ----------
    key : str
        16 hexadecimal digits that tell it from all others; one with the same key takes
        its place.
    name : str
        What its user calls it; ``printable`` makes it fit.
    time : datetime
        When it was finished, with a time zone.
    n_runs, n_epochs : int
        Of the whole search, of which ``search`` may be a sample.
    search : EarlierSearch
        What it has found; its name has the date and is unique in a history.
    """

    key: str
    name: str
    time: datetime
    n_runs: int
    n_epochs: int
    search: EarlierSearch

    @classmethod
    def of(cls, search: EarlierSearch, key: str, name: str, time: datetime) -> Entry:
        """Return the entry of a search, of which at most a sample is kept."""
        name = printable(name)
        n_epochs = int(search.epochs.sum())
        sample = replace(search.sample(), name=_title(name, time))
        return cls(key, name, time, len(search.params), n_epochs, sample)

    @property
    def date(self) -> str:
        """The date and time, as its name has it."""
        return _date(self.time)

    @property
    def best_score(self) -> float:
        """The best score, in the user's direction."""
        best = float(np.nanmax(self.search.scores))
        return sign_of(self.search.direction or "maximize") * best

    @property
    def best_params(self) -> dict[str, Any]:
        """The parameters that have reached it."""
        return dict(self.search.params[int(np.nanargmax(self.search.scores))])

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values, with the best for whoever looks at it."""
        return {
            _VERSION: VERSION,
            "name": self.name,
            "time": self.time.isoformat(),
            "direction": self.search.direction,
            "metric": self.search.metric,
            "runs": self.n_runs,
            "epochs": self.n_epochs,
            "best_score": self.best_score,
            "best_params": as_json(self.best_params),
            "search": self.search.to_json(),
        }

    @classmethod
    def from_json(cls, key: str, saved: Mapping[str, Any]) -> Entry:
        """Read what ``to_json`` wrote; anything else is an error of some kind."""
        if saved[_VERSION] != VERSION:
            msg = f"it is of version {saved[_VERSION]!r:.20}, and {VERSION} is known"
            raise ValueError(msg)
        name, time = saved["name"], datetime.fromisoformat(saved["time"])
        direction, metric = saved["direction"], saved.get("metric")
        _check(isinstance(name, str) and name == printable(name), "name")
        _check(time.tzinfo is not None, "time")
        _check(direction in (None, "maximize", "minimize"), "direction")
        _check(metric is None or isinstance(metric, str), "metric")
        for count in ("runs", "epochs"):
            _check(_is_count(saved[count]), count)
        search = _search(_title(name, time), saved["search"])
        search = replace(search, direction=direction, metric=metric)
        return cls(key, name, time, saved["runs"], saved["epochs"], search)


def history_folder() -> Path | None:
    """Return the user's folder, None where no history is wanted."""
    folder = os.environ.get(SETTING)
    return Path(os.path.expanduser(folder)) if folder else None


def run_key(run_dir: Path, entropy: object) -> str:
    """Return the key of the search in a run directory: the same whenever it goes on."""
    return _key(str(run_dir.resolve()), str(entropy))


def source_key(source: str) -> str:
    """Return the key of an earlier search in a source that is no run directory."""
    return _key(source)


def printable(name: str) -> str:
    r"""Return a name that can be shown anywhere, not empty and not too long.

    Examples
    --------
    >>> printable("lr\n sweep "), printable("")
    ('lr? sweep', 'search')
    """
    shown = "".join(one if one.isprintable() else "?" for one in name[:_LONGEST_NAME])
    return shown.strip() or "search"


def write_entry(folder: Path, entry: Entry) -> Path:
    """Write an entry, in the place of the one that has its key, and return where.

    Whatever happens, the old one is there or the new one; what prevents it is an
    OSError.
    """
    make_folder(folder, parents=True)
    path = folder / f"{entry.time:%Y-%m-%d}-{entry.key}.json"
    for earlier in folder.glob(f"*-{entry.key}.json"):
        if _FILE.fullmatch(earlier.name):
            path = earlier
    content = json.dumps(entry.to_json(), allow_nan=False)
    write_whole(path, [content.encode()], PRIVATE)
    return path


def remove_entry(folder: Path, entry: Entry) -> None:
    """Remove an entry from the folder; what prevents it is an OSError."""
    for path in folder.glob(f"*-{entry.key}.json"):
        if _FILE.fullmatch(path.name):
            path.unlink(missing_ok=True)


def read_history(folder: Path) -> tuple[list[Entry], list[PriorError]]:
    """Return the entries of a folder, the newest first, and what is wrong with others.

    They are read as data. No link is followed. A folder that is not there is empty;
    hidden files, and those that a process is writing, are left alone.

    Raises
    ------
    PriorError
        If the folder cannot be read.
    """
    entries: list[Entry] = []
    damaged: list[PriorError] = []
    for name in _names(folder):
        try:
            entries += _entries_in(folder / name)
        except PriorError as error:
            damaged.append(error)
    entries.sort(key=lambda entry: (entry.time, entry.key), reverse=True)
    times = Counter(entry.search.name for entry in entries)
    return [
        entry if times[entry.search.name] == 1 else _told_apart(entry)
        for entry in entries
    ], damaged


def history_of(candidates: Params, most: int = MOST_SEARCHES) -> list[EarlierSearch]:
    """Return the searches of the history that something can be learnt from here.

    Parameters
    ----------
    candidates : sequence of dict
        The configurations of the new search. Earlier ones have to share a parameter
        that varies in them; see ``check_usable``.
    most : int, default 32
        The newest of them that are returned, at most.

    Raises
    ------
    PriorError
        If no folder is set, or it cannot be read. Files in it that hold no search are
        skipped with a RuntimeWarning.
    """
    found: list[EarlierSearch] = []
    for search in all_of_history():
        if len(found) == most:
            break
        with suppress(PriorError):  # it is about something else
            check_usable(search, candidates)
            found.append(search)
    return found


def all_of_history() -> list[EarlierSearch]:
    """Return the searches of the history, the newest first; see ``history_of``."""
    folder = history_folder()
    if folder is None:
        msg = f"prior='history' needs a history, and none is kept: {OPT_IN}"
        raise PriorError(msg)
    entries, damaged = read_history(folder)
    if damaged:
        warnings.warn(skipped(damaged), RuntimeWarning, stacklevel=3)
    return [entry.search for entry in entries]


def skipped(damaged: list[PriorError]) -> str:
    """Return what is said of files in a history that hold no search."""
    reasons = "; ".join(str(error) for error in damaged[:_NAMED])
    more = len(damaged) - _NAMED
    reasons += f"; and {more} more" if more > 0 else ""
    return f"the history is read without what is no entry of it: {reasons}"


# ------------------------------------------------------------------------------ files


def _names(folder: Path) -> list[str]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unreadable(folder, error) from error
    return [
        name
        for name in sorted(names)
        if not name.startswith(".") and not _UNFINISHED.fullmatch(name)
    ]


def _entries_in(path: Path) -> Iterator[Entry]:
    """Yield the entry in a file; none where it has just been removed."""
    match = _FILE.fullmatch(path.name)
    if match is None:
        msg = f"{path} is called as no entry is"
        raise PriorError(msg)
    text = text_of(path)
    if text is None:
        return
    try:
        yield Entry.from_json(match[1], json.loads(text, parse_constant=_no_constant))
    except Exception as error:  # a file may hold anything
        msg = f"{path} is damaged ({type(error).__name__}: {error!s:.200})"
        raise PriorError(msg) from error


def _no_constant(name: str) -> None:
    msg = f"{name} is no JSON"
    raise ValueError(msg)


# ------------------------------------------------------------------------------- names


def _date(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _title(name: str, time: datetime) -> str:
    return f"{name} {_date(time)}"


def _told_apart(entry: Entry) -> Entry:
    own = replace(entry.search, name=f"{entry.search.name} {entry.key}")
    return replace(entry, search=own)


def _key(*parts: str) -> str:
    text = "\0".join(parts).encode(errors="surrogatepass")
    return hashlib.sha256(text).hexdigest()[:16]


# ------------------------------------------------------------------------------ checks


def _check(fits: bool, what: str) -> None:
    if not fits:
        msg = f"its {what} cannot be used"
        raise ValueError(msg)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_INT


def _search(name: str, saved: Mapping[str, Any]) -> EarlierSearch:
    """Return a saved search, put together anew from what it holds."""
    params, curves = from_json(saved["params"]), from_json(saved["curves"])
    seconds, max_epochs = from_json(saved["seconds"]), saved["max_epochs"]
    if seconds is None:
        seconds = [float("nan")] * len(params)
    _check(all(type(one) is dict for one in params), "parameters")
    _check(all(type(one) is list and _are_numbers(one) for one in curves), "curves")
    _check(type(seconds) is list and _are_numbers(seconds), "seconds")
    _check(_is_count(max_epochs), "max_epochs")
    runs = [
        Run(one, curve, took, failed=not curve)
        for one, curve, took in zip(params, curves, seconds, strict=True)
    ]
    return earlier_search(name, runs, Asked(), "maximize", max_epochs)


def _are_numbers(values: list[Any]) -> bool:
    return all(type(value) in (int, float) for value in values)
