"""Proposals of new arms in a space that is known from the arms alone."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any
from zlib import crc32

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from risingsearch.arms import Configuration
from risingsearch.integrations.optuna.prior import OpenedArms, searched
from risingsearch.integrations.optuna.trials import ARM
from risingsearch.proposers.base import Proposal
from risingsearch.proposers.encoding import ABSENT
from risingsearch.proposers.open_space import OpenSpaceProposer
from risingsearch.space import Coordinate, Space, key_of, kind_of

REDRAWN = 50  # configurations at most, before all are looked through


class ModelSampler(RandomSampler):
    """Proposes arms by the model of a space, and draws the other parameters."""

    # Draws depend on the seed, the number of the trial and the name of the parameter:
    # they are the same in every process, and in a study that was taken up again.

    def __init__(self, seed: int | None) -> None:
        super().__init__(seed)
        self._seed: Any = np.random.SeedSequence(seed).entropy
        self._model: OpenSpaceProposer | None = None
        self._candidates: Any = {}  # by arm
        self._proposed: dict[int, Configuration] = {}  # by trial, of this process

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return a random value of a parameter."""
        at = self._draws(trial.number, param_name).random()
        return kind_of(param_name, param_distribution).value(at)

    def _draws(self, number: int, name: str = "") -> np.random.Generator:
        return np.random.default_rng([self._seed, number, crc32(name.encode())])

    def propose(self, number: int, opened: OpenedArms) -> Proposal | None:
        """Return a configuration for the arm that a trial opens, None for a draw.

        Of a finite space no arm has had it, while there is such a configuration.
        """
        space = inferred(opened)
        proposal = None
        if opened.known.wanted:
            proposal = self._by_model(number, opened, space)
        is_finite = all(coordinate.kind.listed for coordinate in space.coordinates)
        if not space.names or not is_finite:
            return proposal
        tried = self._tried(opened, space)
        rows = self._draws(number).random((REDRAWN, len(space.names)))
        rows[0] = [self._draws(number, name).random() for name in space.names]
        drawn, *redrawn = map(Proposal, space.from_units(rows))
        proposed = [] if proposal is None else [proposal]
        others = map(Proposal, space.every())
        for untried in chain(proposed, [drawn], redrawn, others):
            if space.to_unit(untried.params).tobytes() not in tried:
                self._proposed[number] = untried.params
                return None if untried is drawn else untried
        return None

    def _tried(self, opened: OpenedArms, space: Space) -> set[bytes]:
        """Return the points that arms have, or were proposed to have."""
        # A trial has no parameters before its objective asks for them.
        trials = opened.trials.values()
        tried = (trial.params or self._proposed.get(trial.number) for trial in trials)
        return {space.to_unit(params).tobytes() for params in tried if params}

    def _by_model(
        self, number: int, opened: OpenedArms, space: Space
    ) -> Proposal | None:
        """Return the most promising configuration, None with too few arms."""
        if self._model is None or self._model.space.description != space.description:
            self._model = OpenSpaceProposer(space, self._candidates)
        trials = opened.trials
        self._candidates.update({arm: trial.params for arm, trial in trials.items()})
        # An arm has all its parameters once the objective has asked for it.
        waiting = [i for i in opened.known.without_score if ARM in trials[i].user_attrs]
        known = opened.known._replace(without_score=np.array(waiting, dtype=np.int64))
        return self._model.propose(known, known.arms[:0], self._draws(number))


@dataclass(frozen=True)
class _Unless:
    """Condition of a parameter that no arm has where another has some values."""

    parent: str
    excluded: frozenset[Hashable]

    def __call__(self, values: Configuration) -> bool:
        known = self.parent in values
        return known and key_of(values[self.parent]) not in self.excluded


def inferred(opened: OpenedArms) -> Space:
    """Return the space of all parameters of arms, and when they seem to apply.

    A parameter that only some have is taken to depend on another, a category or a whole
    number, if one tells these arms from the others; else it is taken to apply always.
    """
    arms = [trial.params for trial in opened.trials.values() if trial.params]
    space = searched(opened.distributions)
    n_arms = {name: sum(name in params for params in arms) for name in space}
    coordinates: list[Coordinate] = []
    for name in sorted(space, key=lambda name: -n_arms[name]):
        parents = [earlier.name for earlier in coordinates if earlier.kind.listed]
        unless = _condition(name, parents, arms)
        needs = () if unless is None else (unless.parent,)
        kind = kind_of(name, space[name])
        coordinates.append(Coordinate(name, kind, needs, unless, unless))
    return Space(coordinates)


def _condition(
    name: str, parents: Sequence[str], arms: Sequence[Configuration]
) -> _Unless | None:
    """Return the condition that the arms with a parameter meet, if any differ."""
    for parent in parents:
        having: set[Hashable] = set()
        without: set[Hashable] = set()
        for params in arms:
            values = having if name in params else without
            values.add(key_of(params.get(parent, ABSENT)))
        if without and ABSENT not in having and having.isdisjoint(without):
            return _Unless(parent, frozenset(without))
    return None
