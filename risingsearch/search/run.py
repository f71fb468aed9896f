"""A saved search, read once and handed down, its arguments and its results."""

from __future__ import annotations

import base64
import hashlib
import inspect
import sys
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from risingsearch import errors
from risingsearch.budget import Budget, budget_within
from risingsearch.checks import checked_flag, checked_int
from risingsearch.comparison import OBJECT, adopted, named
from risingsearch.errors import InvalidParameterError, RisingSearchError, RunDirError
from risingsearch.json_values import AS_TEXT, SHOWN, from_json, plain
from risingsearch.priors import EarlierSearch, read_prior
from risingsearch.priors.models import check_usable
from risingsearch.scheduling.ledger import checked_epoch_costs
from risingsearch.scheduling.options import DEFAULTS, SearchOptions
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.arguments import (
    ShownSpace,
    check_learning_rate,
    checked_candidates,
    slots_in,
    with_enqueued,
)
from risingsearch.search.trainable import Seeds, is_trained_anew
from risingsearch.search.training import Workers
from risingsearch.search.workers import checked_n_jobs, workers_of
from risingsearch.space import Space, is_space
from risingsearch.space.pickled import unpickled
from risingsearch.storage.journal import Event, read_appended
from risingsearch.storage.run_directory import (
    JOURNAL,
    Saved,
    damage_as_error,
    gc_paused,
    holds_search,
    saved_search,
)

STOP_RULES = ("patience", "target_score")
# arguments that are not compared when a search is resumed
PER_PROCESS = (
    *("trainable", "executor", "callbacks", "progress", "metric"),
    *("timeout", "epoch_timeout", "run_dir", "max_checkpoint_bytes", "checkpoints"),
    *STOP_RULES,
)
# common options that the scheduler takes
_SCHEDULED = inspect.signature(Scheduler).parameters.keys() & DEFAULTS.keys()


# Arguments that a header lacks had these values before the release that introduced
# them, as JSON. A default that changes later stays here as it was.
FIRST_DEFAULTS: dict[str, Any] = {
    "policy": "auto",
    "proposer": "auto",
    "max_epochs": None,
    "n_jobs": 1,
    "deterministic": False,
    "policy_params": None,
    "epochs_per_job": None,
    "direction": "maximize",
    "error_score": None,
    "max_failures": 0,
    "seed": None,
    "n_candidates": None,
    "shuffle": True,
    "fingerprint": {},
    "learning_rate": None,
    "epoch_costs": None,
    "min_epochs": 1,
    "enqueue": [],
}


class EarlierError(RisingSearchError):
    """A failure of which the text alone is known, and the name of its type."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        kind = type(self)
        return earlier_failure, (self.text, kind.__name__, kind.__module__)


def earlier_failure(text: str, type_name: str, module: str | None) -> Exception:
    """Return a failure that was recorded, of the same type if that is loaded.

    Nothing is imported for it, and no code of the type runs but its ``__str__``.
    """
    names = (module or "builtins", "builtins", errors.__name__)
    modules = [sys.modules.get(name) for name in names]
    found = (vars(one).get(type_name) for one in modules if one is not None)
    kind: type[Exception] = next(
        (one for one in found if isinstance(one, type) and issubclass(one, Exception)),
        Exception,
    )
    with suppress(Exception):
        failure: Exception = kind.__new__(kind, text)
        if kind.__name__ == type_name and str(failure) == text:
            return failure
    own_names = {"__module__": module or "builtins"}
    with suppress(Exception):
        both: Exception = type(type_name, (EarlierError, kind), own_names)(text)
        return both
    named_alike: Exception = type(type_name, (EarlierError,), own_names)(text)
    return named_alike


def check_known(settings: Mapping[str, Any], names: Collection[str]) -> None:
    """Raise an error that names an argument of a saved search that is not known."""
    if unknown := sorted(settings.keys() - {*names, "space"}):
        raise RunDirError(
            f"{unknown[0]!r} among the arguments of the search is unknown: "
            "use the release that wrote it"
        )


class Run(NamedTuple):
    """The search in a directory, as it was when it was read."""

    path: Path
    saved: Saved

    @classmethod
    def at(cls, path: Path) -> Run | None:
        """Read the search in a directory; None if there is none."""
        return cls.open(path) if holds_search(path) else None

    @classmethod
    def open(cls, path: Path) -> Run:
        """Read the search in a directory; a RunDirError if there is none."""
        with gc_paused(), damage_as_error(path):
            run = cls(path, saved_search(path))
            run.header["settings"] = FIRST_DEFAULTS | run.header["settings"]
            for name in ("metric", "begun"):
                if not isinstance(run.header.get(name), str | None):
                    raise TypeError(f"{name} is no text")
            return run

    def refreshed(self) -> Run:
        """Read the events that were added since; a RunDirError if others came."""
        with gc_paused(), damage_as_error(self.path):
            recorded = read_appended(self.path / JOURNAL, self.saved.recorded)
        return self._replace(saved=self.saved._replace(recorded=recorded))

    @property
    def header(self) -> Event:
        """The header of the journal: the arguments of the search."""
        return self.saved.recorded.header

    @property
    def entropy(self) -> int:
        """The entropy that all seeds of the search derive from."""
        with damage_as_error(self.path):
            return int(self.header["entropy"])

    def budget(self, budget: Budget) -> Budget:
        """Return the budget in the unit that the search was begun with."""
        with damage_as_error(self.path):
            begun = Budget.from_json(self.header["settings"]["budget"])
        return begun if budget.in_unit(begun.unit) == begun else budget

    def prior(self, candidates: Sequence[Mapping[str, Any]]) -> list[EarlierSearch]:
        """Return the earlier searches that the search was begun with."""
        with damage_as_error(self.path):
            try:
                searches = [
                    EarlierSearch.from_json(saved)
                    for saved in self.header.get("prior", ())
                ]
                for search in searches:
                    check_usable(search, candidates)
            except InvalidParameterError as error:
                raise RunDirError(
                    f"the search in {self.path} was begun with an earlier search that "
                    f"these candidates cannot learn from ({error}): give the "
                    "candidates that it was begun with, or restore it from a backup"
                ) from error
        return searches

    def arguments(
        self, names: Sequence[str], objects: Mapping[str, Any], *, unpickle: bool
    ) -> dict[str, Any]:
        """Return the ``known`` arguments, with the objects among them as ``given``."""
        settings = self.header["settings"]
        check_known(settings, names)
        arguments: dict[str, Any] = {}
        for name, value in settings.items():
            if isinstance(value, dict) and OBJECT in value:
                if objects.get(name) is None and unpickle:
                    raise InvalidParameterError(
                        f"give {name} to RisingSearch.resume: it was a {value[OBJECT]}"
                    )
                arguments[name] = objects.get(name)
                if unpickle:
                    settings[name] = _accept_replacement(
                        name, value, named(objects[name])
                    )
            elif name == "budget":
                arguments[name] = Budget.from_json(value)
            elif name == "space":
                arguments[name] = ShownSpace(value)
            elif name != "candidates":
                arguments[name] = from_json(value)
        if unpickle and "space" in arguments:
            arguments["space"] = unpickled(base64.b64decode(self.header["space"]))
        if not unpickle and arguments["policy"] is None:  # it explains no index
            arguments |= {"policy": "round-robin", "policy_params": None}
        if unpickle and (saved := self.header.get("candidates")) is not None:
            pickled = base64.b64decode(saved)
            return arguments | {"candidates": unpickled(pickled)}  # runs any code
        arguments["candidates"] = [
            {AS_TEXT: str(params[SHOWN])} if SHOWN in params else from_json(params)
            for params in settings["candidates"]
        ]
        return arguments

    @property
    def left_out(self) -> str | None:
        """A note on the candidates that are shown as text; None if there are none."""
        candidates = self.header["settings"]["candidates"]
        n_texts = sum(SHOWN in params for params in candidates)
        if n_texts == 0:
            return None
        return (
            f"the values of {n_texts:,} of {len(candidates):,} candidates: JSON cannot "
            "hold them, so they are shown as text; only RisingSearch.resume unpickles "
            "them"
        )


def _accept_replacement(
    name: str, saved: dict[str, str], now: dict[str, str]
) -> dict[str, str]:
    """Return the saved entry of an object, today's if its code was replaced."""
    saved = adopted(saved, now)
    if saved == now or saved[OBJECT] != now[OBJECT]:
        return saved
    msg = f"the search continues with another {name}, {now[OBJECT]}, than it had"
    warnings.warn(msg, RuntimeWarning, stacklevel=5)
    return now


def completed(
    arguments: dict[str, Any], run: Run | None, seeds: Seeds
) -> tuple[Workers, dict[str, Any]]:
    """Check and complete the arguments; return the workers, and the scheduler's own."""
    error_score = arguments["error_score"]
    raises_failures = isinstance(error_score, str)
    if raises_failures and error_score != "raise":
        msg = f"error_score must be a number, None or 'raise'; got {error_score!r}"
        raise InvalidParameterError(msg)
    metric = arguments["metric"]
    if metric is not None and (not isinstance(metric, str) or not metric):
        msg = f"metric must be the name of the score, as text; got {metric!r}"
        raise InvalidParameterError(msg)
    if arguments["checkpoints"] is not None and arguments["run_dir"] is None:
        msg = "checkpoints need a run_dir, whose journal names them: give both, or none"
        raise InvalidParameterError(msg)
    options = SearchOptions.among(
        arguments, error_score=None if raises_failures else error_score
    )
    common = arguments.keys() & DEFAULTS.keys()
    arguments |= {name: getattr(options, name) for name in common}
    timeout = arguments["timeout"]
    arguments["timeout_of_run"] = None if arguments["budget"] is None else timeout
    arguments["budget"] = budget_within(arguments["budget"], timeout)
    candidates = _with_candidates(arguments, seeds)
    if run is None:
        check_learning_rate(arguments)
        arguments["prior"] = read_prior(arguments["prior"], candidates)
        arguments["begun"] = datetime.now().astimezone().isoformat(timespec="seconds")
    else:
        arguments["prior"] = run.prior(candidates)
        arguments["budget"] = run.budget(arguments["budget"])
        arguments["begun"] = run.header.get("begun")
    saved_metric = None if run is None else run.header.get("metric")
    arguments["metric"] = metric or saved_metric or "score"
    executor, n_jobs = arguments["executor"], arguments["n_jobs"]
    workers = workers_of(executor, n_jobs=n_jobs)
    if arguments["epoch_timeout"] is not None and not workers.isolates_jobs:
        raise InvalidParameterError(
            "epoch_timeout needs worker processes of the search: give n_jobs, at least "
            "2, without an executor, or a GpuPool as executor"
        )
    in_order = arguments["deterministic"]
    arguments["n_jobs"] = checked_n_jobs(n_jobs, executor, workers, in_order)
    scheduled = {name: arguments[name] for name in _SCHEDULED}
    scheduled["trains_anew"] = is_trained_anew(arguments["trainable"], arguments)
    if raises_failures:
        arguments["error_score"] = "raise"
    costs = checked_epoch_costs(arguments["epoch_costs"], options.max_epochs)
    arguments["epoch_costs"] = costs and list(costs)
    arguments["direction"] = plain(arguments["direction"])
    for flag in ("shuffle", "progress"):
        arguments[flag] = checked_flag(flag, arguments[flag])
    if (most := arguments["max_checkpoint_bytes"]) is not None:
        checked_int("max_checkpoint_bytes", most, 1)
    return workers, scheduled


def _with_candidates(arguments: dict[str, Any], seeds: Seeds) -> list[dict[str, Any]]:
    """Complete candidates, space and enqueued arms; return the candidates."""
    own, whole = arguments["candidates"], None
    if is_space(own):
        whole = Space.of(own)
        own = slots_in(arguments, seeds.of_candidates())
    arguments["space"] = space = getattr(own, "space", arguments.get("space"))
    arguments["n_candidates"] = arguments["n_candidates"] or getattr(own, "most", None)
    arguments["candidates"], arguments["enqueue"] = with_enqueued(
        checked_candidates(own), arguments["enqueue"], space, whole
    )
    return arguments["candidates"]  # type: ignore[no-any-return]


def key_of(run_dir: Path, entropy: object) -> str:
    """Return a name for the search in a run directory, the same when it is resumed."""
    text = f"{run_dir.resolve()}\0{entropy}"
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
