"""Arguments of a search: checked, saved and compared."""

import base64
import json
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from risingsearch.arms import Configuration, Params
from risingsearch.budget import Budget, budget_within
from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError
from risingsearch.identity.comparison import PARTS, TEXT, described, named
from risingsearch.identity.fingerprint import without_addresses
from risingsearch.identity.source_code import code_of
from risingsearch.json_values import SHOWN, Json, as_json
from risingsearch.priors import PriorProposer
from risingsearch.proposers.base import Proposer, checked_proposer
from risingsearch.proposers.early import EarlyProposer
from risingsearch.proposers.encoding import encode
from risingsearch.proposers.learning_rate import LearningRate
from risingsearch.proposers.open_space import LARGE, ListProposer, OpenSpaceProposer
from risingsearch.scheduling.options import DEFAULTS, SearchOptions
from risingsearch.scheduling.policy_choice import (
    choose_policy,
    horizon_and_limit,
    recommended_candidates,
)
from risingsearch.search.trainable import Seeds, Trainable, trains_anew
from risingsearch.space import PART, Configurations, Space, key_of_all

# options that are not compared when a search is resumed
PER_PROCESS = (
    "executor",
    "callbacks",
    "progress",
    "metric",
    "timeout",
    "epoch_timeout",
    "run_dir",
    "max_checkpoint_bytes",
    "checkpoints",
    "patience",
    "target_score",
)
SAVED = [name for name in DEFAULTS if name not in (*PER_PROCESS, "prior")]
"""Options that define a search, without its earlier searches."""


def proposer_of(
    options: SearchOptions, candidates: Configurations, seeds: Seeds
) -> Proposer:
    """Return the proposer of a search, informed by its earlier searches."""
    is_auto = options.proposer == "auto"
    proposer = checked_proposer(
        _auto_proposer(options, candidates, seeds) if is_auto else options.proposer
    )
    if options.prior:
        space = candidates.space if is_auto else None
        return PriorProposer.between(candidates, options.prior, proposer, space)
    return proposer


def _auto_proposer(
    options: SearchOptions, candidates: Configurations, seeds: Seeds
) -> Proposer | None:
    """Return the proposer for ``policy="auto"`` in random order; None for any other."""
    if options.policy != "auto" or not options.shuffle:
        return None
    budget = budget_within(options.budget)
    n_arms = len(candidates)
    space = candidates.space
    if space is None:
        choice = choose_policy(
            "auto",
            budget,
            options.max_epochs,
            n_arms,
            parameters=options.policy_params,
            min_epochs=options.min_epochs,
            epochs_per_job=options.epochs_per_job,
        )
        features = encode(candidates) if choice.proposes else None
        return None if features is None else ListProposer(features)
    horizon, limit = horizon_and_limit(budget, options.max_epochs, n_arms)
    more = None
    if options.n_candidates is None:
        more = seeds.more_configurations
    proposer = OpenSpaceProposer(space, candidates, horizon / limit, more)
    enqueued = (candidates[arm] for arm in options.enqueue)
    rate = LearningRate.of(space, options.learning_rate, enqueued)
    is_long = budget.epochs and horizon > LARGE * limit
    if rate is None or is_long:
        return proposer
    return EarlyProposer(candidates, space, rate, proposer)


def check_learning_rate(
    declared: str | Mapping[str, float] | bool | None, candidates: Configurations
) -> None:
    """Raise if the declared learning rate names no numeric parameter."""
    if candidates.space is not None:
        LearningRate.of(candidates.space, declared)
        return
    if not isinstance(declared, str | Mapping):
        return
    for name in [declared] if isinstance(declared, str) else declared:
        if all(name not in params for params in candidates):
            known = dict.fromkeys(name for params in candidates for name in params)
            raise InvalidParameterError(
                "learning_rate must name a parameter of the candidates, "
                f"{', '.join(known) or 'which have none'}; got {name!r}"
            )


def problem_of_proposals(
    candidates: Sequence[Configuration], space: Space | None
) -> Callable[[Configuration], str | None]:
    """Return a function that says why a configuration is none of a search, or None."""
    if space is not None:
        return space.problem_of
    known = set().union(*candidates)
    needed = set(candidates[0]).intersection(*candidates)

    def problem_of(params: Configuration) -> str | None:
        if missing := needed - params.keys():
            return f"{min(missing)!r} is missing"
        return _problem_of_names(params, known)

    return problem_of


def _problem_of_names(params: Configuration, known: set[str]) -> str | None:
    if unknown := params.keys() - known:
        return f"{min(unknown)!r} is not one of {', '.join(sorted(known))}"
    return None


class ShownSpace(Space):
    """The space of a search that is only shown, which opens nothing."""

    def __init__(self, description: Json) -> None:
        super().__init__([])
        self._description = dict(description)

    @property
    def description(self) -> Json:
        """All that is known of it."""
        return self._description

    def draw(
        self, n: int, rng: np.random.Generator, known: Sequence[Configuration] = ()
    ) -> Configurations:
        """Return configurations of which nothing is known."""
        return Configurations([{} for _ in range(n)], self)

    def restored(self, params: Configuration) -> Params:
        """Return a configuration, with text for the values that JSON cannot hold."""
        return {
            name: value[TEXT] if isinstance(value, dict) and TEXT in value else value
            for name, value in params.items()
        }


def header_of(
    options: SearchOptions,
    candidates: Configurations,
    trainable: Trainable,
    entropy: object,
) -> Json:
    """Return the header of a new search's journal, as JSON values."""
    saved = {name: getattr(options, name) for name in SAVED}
    saved["fingerprint"] = dict(options.fingerprint or {})
    saved["epoch_costs"] = options.epoch_costs and list(options.epoch_costs)
    settings = settings_of(candidates, saved)
    space = candidates.space
    objects = [options.policy, options.proposer, space, list(candidates)]
    header = {
        "settings": settings,
        "entropy": entropy,
        "candidates": pickled_candidates(settings, candidates),
        "code": {
            "search": code_of(trainable, *objects),
            "callbacks": code_of(*options.callbacks),
        },
    }
    if space is not None:
        settings["space"] = space.description
        header["space"] = _pickled("a space is", space)
    if options.prior:
        header["prior"] = [search.to_json() for search in options.prior]
    if trains_anew(trainable):
        header["trains_anew"] = True
    return header


def checked_candidates(candidates: Iterable[Configuration]) -> list[Params]:
    """Return copies of the candidates; raise if one is invalid."""
    checked = []
    for params in candidates if isinstance(candidates, Iterable) else [candidates]:
        if not isinstance(params, Mapping) or not all(
            isinstance(name, str) for name in params
        ):
            raise InvalidParameterError(
                f"candidates are dicts with text as keys; got {shown(params)}"
            )
        checked.append(dict(params))
    if not checked:
        raise InvalidParameterError(
            "there are no candidates: give the parameters of at least one arm"
        )
    return checked


def with_enqueued(
    candidates: Sequence[Configuration],
    enqueue: Iterable[Configuration | int],
    space: Space | None = None,
    whole: Space | None = None,  # what is enqueued has all its parameters
) -> tuple[list[Params], list[int]]:
    """Return all candidates, and which arms are opened first."""
    everyone = [dict(params) for params in candidates]
    names = set().union(*candidates, space.names if space else ()) - {PART}
    first: list[int] = []
    for given in checked_enqueue(enqueue):
        if isinstance(given, Integral):
            first.append(int(given))
            continue
        why = whole and whole.problem_of(given, beyond=True)
        if why := why or _problem_of_names(given, names):
            raise InvalidParameterError(f"enqueue has {shown(given)}: {why}")
        arm = arm_of(given, everyone)
        if arm in first:
            raise InvalidParameterError(
                f"enqueue has {shown(given)} twice: name each configuration once"
            )
        if arm == len(everyone):
            everyone.append(dict(given))
        first.append(arm)
    return everyone, first


def arm_of(params: Configuration, candidates: Sequence[Configuration]) -> int:
    """Return the arm of a configuration: 1 is 1.0, unless there are both.

    It is one more than the last if there is none.
    """
    same = [arm for arm, each in enumerate(candidates) if _is_same(params, each)]
    key = key_of_all(params)
    exact = [arm for arm in same if key_of_all(candidates[arm]) == key]
    return [*exact, *same, len(candidates)][0]


def checked_enqueue(enqueue: Any, known: Any = (Mapping, Integral)) -> list[Any]:
    """Return the enqueued configurations as a list; raise if one is invalid."""
    several = isinstance(enqueue, Iterable) and not isinstance(enqueue, Mapping)
    listed = list(enqueue) if several else [None]
    if not all(isinstance(given, known) for given in listed):
        raise InvalidParameterError(
            f"enqueue is a list of dicts of parameters; got {shown(enqueue)}"
        )
    return listed


def _is_same(params: Configuration, others: Configuration) -> bool:
    if params.keys() != others.keys():
        return False
    pairs = [(value, others[name]) for name, value in params.items()]
    try:
        return all(
            value is other or value == other or bool(value != value and other != other)
            for value, other in pairs  # NaN is NaN
        )
    except (ValueError, TypeError):  # of arrays, which are not compared as a whole
        return False


def settings_of(candidates: Sequence[Configuration], arguments: Json) -> Json:
    """Return candidates and arguments as JSON values that can be compared."""
    settings: Json = {"candidates": [_shown(params) for params in candidates]}
    for name, value in arguments.items():
        if name in ("policy", "proposer") and not isinstance(value, str | None):
            settings[name] = named(value)
        elif isinstance(value, Budget):
            settings[name] = value.to_json()
        else:
            try:
                settings[name] = as_json(value)
            except TypeError as error:
                raise InvalidParameterError(
                    f"with a run_dir {name} is saved as JSON: {error}"
                ) from error
    return settings


def pickled_candidates(
    settings: Json, candidates: Sequence[Configuration]
) -> str | None:
    """Return the candidates as pickled text, None where the settings hold them."""
    if not any(SHOWN in params for params in settings["candidates"]):
        return None
    return _pickled("candidates that JSON cannot hold are", list(candidates))


def _pickled(subject: str, value: object) -> str:
    try:
        return base64.b64encode(pickle.dumps(value)).decode()
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidParameterError(
            f"with a run_dir {subject} pickled: {error}"
        ) from error


def slots_in(
    space: Space, options: SearchOptions, rng: np.random.Generator
) -> Configurations:
    """Return the configurations that are drawn from a space for a search."""
    if not space.coordinates:
        raise InvalidParameterError("the space is empty: give at least one parameter")
    n = options.n_candidates
    if n is None:
        n = recommended_candidates(
            options.policy,
            budget_within(options.budget),
            options.max_epochs,
            options.policy_params,
            options.min_epochs,
            options.epochs_per_job,
        )
    return space.draw(n, rng)


def _shown(params: Configuration) -> Json:
    try:
        saved: Json = as_json(dict(params))
        json.dumps(saved)  # an int may have too many digits
        return saved
    except (TypeError, ValueError, RecursionError):
        parts = {name: described(value) for name, value in params.items()}
        return {SHOWN: without_addresses(shown(dict(params))), PARTS: parts}
