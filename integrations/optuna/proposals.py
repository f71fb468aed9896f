"""Proposals of new arms in a space that is known from the arms alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from risingsearch.integrations.optuna.prior import OpenedArms, searched
from risingsearch.parameters import key_of, kind_of
from risingsearch.proposers.base import Proposal
from risingsearch.proposers.encoding import ABSENT
from risingsearch.proposers.open_space import OpenSpaceProposer
from risingsearch.space import Coordinate, Space


class ModelSampler(RandomSampler):
    """Proposes arms by the model of a space, and draws the other parameters."""

    # Draws depend on the seed, the number of the trial and the name of the parameter:
    # they are the same in every process, and in a study that was taken up again.

    def __init__(self, seed: int | None) -> None:
        super().__init__(seed)
        self._seed: Any = np.random.SeedSequence(seed).entropy
        self._model: OpenSpaceProposer | None = None
        self._candidates: Any = {}  # by arm

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return a random value of a parameter."""
        kind = kind_of(param_name, param_distribution)
        return kind.value(self._draws(trial.number, param_name).random())

    def _draws(self, number: int, name: str = "") -> np.random.Generator:
        return np.random.default_rng([self._seed, number, crc32(name.encode())])

    def propose(self, number: int, opened: OpenedArms) -> Proposal | None:
        """Return a configuration for the arm that a trial opens, None for a draw."""
        space = inferred(opened)
        if self._model is None or self._model.space.description != space.description:
            self._model = OpenSpaceProposer(space, self._candidates)
        self._candidates |= {arm: one.params for arm, one in opened.trials.items()}
        waiting = [arm for arm in opened.known.without_score if self._candidates[arm]]
        known = opened.known._replace(without_score=np.array(waiting, dtype=np.int64))
        return self._model.propose(known, known.arms[:0], self._draws(number))


@dataclass(frozen=True)
class _Unless:
    """Condition of a parameter that no arm has where another has some values."""

    parent: str
    excluded: frozenset[Any]

    def __call__(self, values: Mapping[str, Any]) -> bool:
        known = self.parent in values
        return known and key_of(values[self.parent]) not in self.excluded


def inferred(opened: OpenedArms) -> Space:
    """Return the space of all parameters that arms have, and when they seem to apply.

    A parameter that only some have is taken to depend on another, a category or a whole
    number, if one tells these arms from the others; else it is taken to apply always.
    """
    arms = [trial.params for trial in opened.trials.values() if trial.params]
    space = searched(opened.distributions)
    found: list[Coordinate] = []
    for name in sorted(space, key=lambda name: -sum(name in params for params in arms)):
        parents = [one.name for one in found if one.kind.listed]
        unless = _condition(name, parents, arms)
        needs = () if unless is None else (unless.parent,)
        found.append(
            Coordinate(name, kind_of(name, space[name]), needs, unless, unless)
        )
    return Space(found)


def _condition(
    name: str, parents: Sequence[str], arms: Sequence[Mapping[str, Any]]
) -> _Unless | None:
    """Return the condition that the arms with a parameter meet, if any differ."""
    for parent in parents:
        values: tuple[set[Any], set[Any]] = set(), set()
        for params in arms:
            values[name in params].add(key_of(params.get(parent, ABSENT)))
        without, having = values
        if without and ABSENT not in having and having.isdisjoint(without):
            return _Unless(parent, frozenset(without))
    return None
