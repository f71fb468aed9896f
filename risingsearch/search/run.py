"""A saved search, read once and handed down, its arguments and its results."""

from __future__ import annotations

import base64
import hashlib
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from risingsearch import errors
from risingsearch.arms import Configuration
from risingsearch.budget import Budget, budget_within
from risingsearch.errors import InvalidParameterError, RisingSearchError, RunDirError
from risingsearch.identity.comparison import OBJECT, adopted, named
from risingsearch.json_values import AS_TEXT, SHOWN, Json, from_json
from risingsearch.priors import EarlierSearch, read_prior
from risingsearch.priors.models import check_usable
from risingsearch.scheduling.options import SearchOptions
from risingsearch.search.arguments import (
    SAVED,
    ShownSpace,
    check_learning_rate,
    checked_candidates,
    slots_in,
    with_enqueued,
)
from risingsearch.search.callbacks import checked_callbacks
from risingsearch.search.repeats import check_divided
from risingsearch.search.trainable import Seeds
from risingsearch.search.training import Workers
from risingsearch.search.workers import checked_n_jobs, workers_of
from risingsearch.space import Configurations, Space, is_space
from risingsearch.space.pickled import unpickled
from risingsearch.storage.journal import read_appended
from risingsearch.storage.run_directory import (
    JOURNAL,
    Saved,
    damage_as_error,
    gc_paused,
    holds_search,
    saved_search,
)

# Arguments that a header lacks had these values before the release that introduced
# them, as JSON. A default that changes later stays here as it was.
FIRST_DEFAULTS: Json = {
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
    "confirm": None,
}


class EarlierError(RisingSearchError):
    """A failure of which the text alone is known, and the name of its type."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"

    def __reduce__(self) -> tuple[object, ...]:
        kind = type(self)
        return earlier_failure, (self.text, kind.__name__, kind.__module__)


def earlier_failure(text: str, type_name: str, module: str | None) -> Exception:
    """Return a failure that was recorded, also of the same type if that is loaded.

    Nothing is imported for it, and no code of that type runs.
    """
    facts = {"__module__": module or "builtins"}
    for name in (facts["__module__"], errors.__name__):
        kind = None
        if name in sys.modules:
            kind = vars(sys.modules[name]).get(type_name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            with suppress(Exception):  # of a type that allows no such subclass
                alike: Exception = type(type_name, (EarlierError, kind), facts)(text)
                return alike
    named_alike: Exception = type(type_name, (EarlierError,), facts)(text)
    return named_alike


class Run(NamedTuple):
    """The search in a directory, as it was when it was read."""

    path: Path
    saved: Saved
    entropy: int  # that all seeds of the search derive from
    budget: Budget  # that it was begun with

    @classmethod
    def at(cls, path: Path) -> Run | None:
        """Read the search in a directory; None if there is none."""
        if holds_search(path):
            return cls.open(path)
        return None

    @classmethod
    def open(cls, path: Path) -> Run:
        """Read the search in a directory; a RunDirError if there is none."""
        with gc_paused(), damage_as_error(path):
            return cls.of_saved(path, saved_search(path))

    @classmethod
    def of_saved(cls, path: Path, saved: Saved) -> Run:
        """Return the search that was read, with arguments that are newer than it."""
        header = saved.recorded.header
        settings = FIRST_DEFAULTS | header["settings"]
        if unknown := sorted(settings.keys() - {"candidates", "space", *SAVED}):
            raise RunDirError(
                f"{unknown[0]!r} among the arguments of the search is unknown: "
                "use the release that wrote it"
            )
        for name in ("metric", "begun"):
            if not isinstance(header.get(name), str | None):
                raise TypeError(f"{name} is no text")
        header["settings"] = settings
        budget = Budget.from_json(settings["budget"])
        return cls(path, saved, int(header["entropy"]), budget)

    def refreshed(self) -> Run:
        """Read the events that were added since; a RunDirError if others came."""
        with gc_paused(), damage_as_error(self.path):
            recorded = read_appended(self.path / JOURNAL, self.saved.recorded)
        return self._replace(saved=self.saved._replace(recorded=recorded))

    @property
    def header(self) -> Json:
        """The header of the journal: the arguments of the search."""
        return self.saved.recorded.header

    def prior(self, candidates: Sequence[Configuration]) -> list[EarlierSearch]:
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

    def options(self, objects: Configuration, *, unpickle: bool) -> SearchOptions:
        """Return the options of the search, with the objects among them as given."""
        settings = self.header["settings"]
        options = {name: from_json(settings[name]) for name in SAVED}
        options["budget"] = self.budget
        for name in ("policy", "proposer"):
            saved = settings[name]
            if isinstance(saved, dict) and OBJECT in saved:
                given = options[name] = objects.get(name)
                if unpickle and given is None:
                    raise InvalidParameterError(
                        f"give {name} to RisingSearch.resume: it was a {saved[OBJECT]}"
                    )
                if unpickle:
                    settings[name] = _accept_replacement(name, saved, named(given))
        if options["policy"] is None:  # it is only looked at, and explains no index
            options |= {"policy": "round-robin", "policy_params": None}
        return SearchOptions(**options)

    def candidates(self, *, unpickle: bool) -> Configurations:
        """Return the candidates of the search, and the space that they are from."""
        settings = self.header["settings"]
        space: Space | None = None
        if "space" in settings and unpickle:
            space = unpickled(base64.b64decode(self.header["space"]))
        elif "space" in settings:
            space = ShownSpace(settings["space"])
        if unpickle and (saved := self.header.get("candidates")) is not None:
            candidates = unpickled(base64.b64decode(saved))  # runs any code
        else:
            candidates = [
                {AS_TEXT: str(params[SHOWN])} if SHOWN in params else from_json(params)
                for params in settings["candidates"]
            ]
        return Configurations(checked_candidates(candidates), space)

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


def resolved(
    options: SearchOptions, candidates: Any, run: Run | None, seeds: Seeds
) -> tuple[SearchOptions, Configurations, Workers]:
    """Return the options without anything left open, all candidates, and the workers.

    A search that continues has the earlier searches and the unit that it began with.
    """
    budget = budget_within(options.budget, options.timeout)
    timeout = None if options.budget is None else options.timeout  # of each run
    options = replace(options, budget=budget, timeout=timeout)
    check_divided(budget, options.confirm)
    if options.confirm is not None and options.epoch_costs is not None:
        raise InvalidParameterError(
            "confirm needs epochs that cost the same: leave out epoch_costs"
        )
    whole = None
    if is_space(candidates):
        whole = Space.of(candidates)
    if whole is not None:
        candidates = slots_in(whole, options, seeds.of_candidates())
    space = getattr(candidates, "space", None)
    room = options.n_candidates or getattr(candidates, "most", None)
    listed, first = with_enqueued(
        checked_candidates(candidates), options.enqueue, space, whole
    )
    everyone = Configurations(listed, space, room)
    if run is None:
        check_learning_rate(options.learning_rate, everyone)
        prior = read_prior(options.prior, everyone)
    else:
        prior = run.prior(everyone)
        if budget.in_unit(run.budget.unit) == run.budget:
            budget = run.budget  # in the unit that the search was begun with
    workers = workers_of(options.executor, n_jobs=options.n_jobs)
    if options.epoch_timeout is not None and not workers.isolates_jobs:
        raise InvalidParameterError(
            "epoch_timeout needs worker processes of the search: give n_jobs, at least "
            "2, without an executor, or a GpuPool as executor"
        )
    options = replace(
        options,
        budget=budget,
        callbacks=checked_callbacks(options.callbacks),
        enqueue=first,
        n_candidates=room,
        n_jobs=checked_n_jobs(options, workers),
        metric=options.metric or (run and run.header.get("metric")),
        prior=prior,
    )
    return options, everyone, workers


def key_of(run_dir: Path, entropy: object) -> str:
    """Return a name for the search in a run directory, the same when it is resumed."""
    text = f"{run_dir.resolve()}\0{entropy}"
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
