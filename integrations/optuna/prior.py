"""Suggestions of earlier searches for new arms, in a space not known before."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from optuna._transform import _SearchSpaceTransform
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from risingsearch.errors import InvalidParameterError
from risingsearch.priors import EarlierSearch, PriorProposer, read_prior
from risingsearch.priors.models import Learnt, check_usable
from risingsearch.priors.proposer import is_due
from risingsearch.proposers.base import Opened

POOL = 4_000  # configurations that are drawn from a space
COMPARED = 1_000
"""Of which so many are compared for an arm: others for the arms after it, so that
workers that open arms at the same moment do not open the same."""

Space = Mapping[str, BaseDistribution]
Params = Mapping[str, Any]


class OpenedArms(NamedTuple):
    """The arms of a study, by their numbers in the scheduler."""

    known: Opened  # those that have trained
    trials: dict[int, FrozenTrial]  # the newest of each arm, with its parameters

    @property
    def params(self) -> list[Params]:
        """The parameters of those that have trained."""
        return [self.trials[arm].params for arm in self.known.arms.tolist()]

    @property
    def waiting(self) -> list[Params]:
        """Those of all others, as far as they are known."""
        others = self.trials.keys() - self.known.arms.tolist()
        return [self.trials[arm].params for arm in sorted(others)]

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The latest distribution of every parameter."""
        spaces = (trial.distributions for trial in self.trials.values())
        return dict(item for space in spaces for item in space.items())

    @property
    def space(self) -> dict[str, BaseDistribution]:
        """Those of the parameters that all have that have trained."""
        names = set.intersection(*map(set, self.params)) if self.params else set()
        return {name: one for name, one in self.distributions.items() if name in names}


class _Pool(NamedTuple):
    """Configurations of one space, and predictions of them from earlier searches."""

    configurations: list[dict[str, Any]]
    learnt: Learnt

    def proposer(
        self, opened: OpenedArms, space: Space
    ) -> tuple[PriorProposer, Opened]:
        """Return a proposer for pool and arms, and these as it knows them."""
        waiting = [params for params in opened.waiting if space.keys() <= params.keys()]
        ours = [
            {name: params[name] for name in space}
            for params in (*opened.params, *waiting)
        ]
        arms = len(self.configurations) + np.arange(len(ours))
        known, without_score = np.split(arms, [len(opened.params)])
        seen = opened.known._replace(arms=known, without_score=without_score)
        return PriorProposer(self.learnt.said_with(ours)), seen


class PriorSuggestions:
    """Asks ``PriorProposer`` for the parameters of new arms, from a pool."""

    # The pool is the same in every process with the same seed: a suggestion depends on
    # the study and on the number of the trial alone.

    def __init__(self, prior: list[EarlierSearch], seed: int | None) -> None:
        self._prior = prior
        self._seed = 0 if seed is None else seed
        self._space: Space | None = None
        self._pool: _Pool | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_space": None, "_pool": None}

    def suggest(self, number: int, opened: OpenedArms) -> dict[str, Any] | None:
        """Return parameters for the arm that a trial opens; None to ask another."""
        taken = [*opened.params, *opened.waiting]
        if not is_due(len(taken)):
            return None
        space = searched(opened.space)
        pool = self._pool_of(space, opened.params)
        if pool is None:
            return None
        parts = max(1, len(pool.configurations) // COMPARED)
        known = {_key(params, space) for params in taken}
        free = [
            k
            for k in range(number % parts, len(pool.configurations), parts)
            if _key(pool.configurations[k], space) not in known
        ]
        if not free:
            return None
        proposer, seen = pool.proposer(opened, space)
        chosen = proposer.most_promising(seen, np.array(free))
        return None if chosen is None else dict(pool.configurations[chosen])

    def trusted(self, opened: OpenedArms) -> dict[str, float]:
        """Return how far each earlier search is trusted; nothing before it is known."""
        space = searched(opened.space)
        pool = self._pool_of(space, opened.params)
        if pool is None:
            return {}
        proposer, seen = pool.proposer(opened, space)
        return proposer.trusted(seen)

    def _pool_of(self, space: Space, opened: Sequence[Params]) -> _Pool | None:
        """Return the pool of a space, None where there is nothing to choose."""
        if self._space == space:
            return self._pool
        if not space:
            return None
        configurations = drawn(space, POOL, np.random.default_rng([self._seed, 3]))
        # An earlier search may have what only some arms have: it is no mistake.
        searches = read_prior(self._prior, [*configurations, *opened])
        usable = []
        for search in searches:
            with suppress(InvalidParameterError):
                check_usable(search, configurations)
                usable.append(search)
        learnt = Learnt(configurations, usable) if usable else None
        self._pool = None if learnt is None else _Pool(configurations, learnt)
        self._space = space
        return self._pool


def searched(space: Space) -> dict[str, BaseDistribution]:
    """Return the parameters of a space that have a choice, by name."""
    return {name: space[name] for name in sorted(space) if not space[name].single()}


def drawn(space: Space, n: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return random configurations of a space, each once: fewer where it has fewer."""
    transform = _SearchSpaceTransform(dict(space))
    low, high = transform.bounds.T
    points = rng.uniform(low, high, size=(n, len(low)))
    rows = [transform.untransform(point) for point in points]
    return list({_key(row, space): row for row in rows}.values())


def _key(params: Params, space: Space) -> tuple[str, ...]:
    return tuple(repr(params.get(name)) for name in space)
