"""Suggestions of earlier searches for new arms, in a space not known before."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from risingsearch.arms import Configuration
from risingsearch.errors import InvalidParameterError
from risingsearch.json_values import Json
from risingsearch.priors import EarlierSearch, PriorProposer, read_prior
from risingsearch.priors.models import Learnt, check_usable
from risingsearch.priors.proposer import is_due
from risingsearch.proposers.base import Opened, Proposal
from risingsearch.space import Space

DRAWN = 200  # configurations by which the values of earlier searches are placed


class OpenedArms(NamedTuple):
    """The arms of a study, by their numbers in the scheduler."""

    known: Opened  # those that have trained
    trials: dict[int, FrozenTrial]  # the newest of each arm, with its parameters

    @property
    def params(self) -> dict[int, Configuration]:
        """The parameters of every arm, as far as its objective has asked for them."""
        return {arm: trial.params for arm, trial in self.trials.items()}

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The latest distribution of every parameter."""
        distributions: dict[str, BaseDistribution] = {}
        for trial in self.trials.values():
            distributions |= trial.distributions
        return distributions

    @property
    def space(self) -> dict[str, BaseDistribution]:
        """Those of the parameters that all have that have trained."""
        trained = [self.trials[arm].params for arm in self.known.arms.tolist()]
        return {
            name: distribution
            for name, distribution in self.distributions.items()
            if trained and all(name in params for params in trained)
        }


class PriorSuggestions:
    """Asks ``PriorProposer`` for the parameters that all arms have."""

    # A suggestion depends on the seed, the study and the number of the trial alone: it
    # is the same in every process.

    def __init__(self, prior: list[EarlierSearch], seed: int | None) -> None:
        self._prior = prior
        self._seed = 0 if seed is None else seed
        self._candidates: Any = {}  # by arm
        self._space: Mapping[str, BaseDistribution] | None = None
        self._proposer: PriorProposer | None = None

    def __getstate__(self) -> Json:
        return vars(self) | {"_space": None, "_proposer": None}

    def suggest(self, number: int, opened: OpenedArms) -> Proposal | None:
        """Return a proposal for the arm that a trial opens; None to ask another."""
        if not is_due(len(opened.trials) - 1, in_space=True):  # without this arm
            return None
        proposer = self._proposer_for(opened)
        if proposer is None:
            return None
        names = searched(opened.space).keys()
        waiting = [
            arm
            for arm in sorted(opened.trials.keys() - opened.known.arms.tolist())
            if names <= self._candidates[arm].keys()
        ]
        known = opened.known._replace(without_score=np.array(waiting, dtype=np.int64))
        rng = np.random.default_rng([self._seed, number, 3])
        return proposer.most_promising(known, known.arms[:0], rng)

    def trusted(self, opened: OpenedArms) -> dict[str, float]:
        """Return how far each earlier search is trusted; nothing before it is known."""
        proposer = self._proposer_for(opened)
        if proposer is None:
            return {}
        return proposer.trusted(opened.known)

    def _proposer_for(self, opened: OpenedArms) -> PriorProposer | None:
        """Return the proposer for the common parameters, None without a choice."""
        common = searched(opened.space)
        if not common:
            return None
        if self._space != common:
            self._proposer = self._made_for(common, searched(opened.distributions))
            self._space = common
        self._candidates.update(opened.params)
        return self._proposer

    def _made_for(
        self,
        common: Mapping[str, BaseDistribution],
        everything: Mapping[str, BaseDistribution],
    ) -> PriorProposer | None:
        """Return a proposer for the common parameters, None if no search has them."""
        space = Space.of(common)
        drawn = space.draw(DRAWN, np.random.default_rng(0))
        of_everything = Space.of(everything).draw(DRAWN, np.random.default_rng(0))
        usable = []
        for search in read_prior(self._prior, of_everything):
            # An earlier search may have what only some arms have: it is no mistake.
            with suppress(InvalidParameterError):
                check_usable(search, drawn)
                usable.append(search)
        if not usable:
            return None
        return PriorProposer(Learnt(drawn, usable), self._candidates, space=space)


def searched(space: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
    """Return the parameters of a space that have a choice, by name."""
    return {name: space[name] for name in sorted(space) if not space[name].single()}
