"""New arms with transformers that are fitted already, where fitting them costs much."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from risingsearch.arms import Configuration, Params, Report
from risingsearch.proposers.base import Ints, Opened, Proposal, Proposer, Rng
from risingsearch.space import Space, key_of_all

SHARE = 0.4  # of the training time, at most, that fits transformers of new arms
TRANSFORM_TIME = "transform_time"  # of a fold, in the epoch that fits its transformers


def of_transformers(estimator: BaseEstimator, params: Configuration) -> Params:
    """Return the parameters that are those of a pipeline's transformers."""
    if not isinstance(estimator, Pipeline):
        return {}
    last = estimator.steps[-1][0]
    return {k: v for k, v in params.items() if k.partition("__")[0] != last}


class FittedTransformers:
    """The time that the arms' transformers take, and that all of the training takes."""

    def __init__(
        self,
        estimator: BaseEstimator,
        candidates: Sequence[Configuration],
    ) -> None:
        self._estimator = estimator
        self._candidates = candidates
        self._seconds: dict[Hashable, float] = {}  # of each, if it were fitted again
        self._fitting = 0.0
        self._training = 0.0

    def note(self, report: Report) -> None:
        """Add the times of a job."""
        key = self._key(report.job.arm)
        for details in report.metrics:
            seconds = total(details, TRANSFORM_TIME)
            self._seconds[key] = max(self._seconds.get(key, 0.0), seconds)
            self._fitting += seconds
        self._training += sum(report.seconds)

    def seconds(self, arm: int) -> float:
        """Return how long the transformers of an arm take to be fitted."""
        return self._seconds.get(self._key(arm), 0.0)

    def may_fit_more(self) -> bool:
        """Return whether the training has paid for other transformers."""
        expected = self._fitting / max(1, len(self._seconds))
        return self._fitting + expected <= SHARE * self._training

    def _key(self, arm: int) -> Hashable:
        return key_of_all(of_transformers(self._estimator, self._candidates[arm]))


def total(details: Configuration, name: str) -> float:
    """Return the sum of a time over the folds."""
    return math.fsum(v for key, v in details.items() if key.endswith(f"_{name}"))


def _itself(proposer: Proposer) -> Proposer:
    return proposer


class SharingProposer(Proposer):
    """Gives new arms the transformers of earlier ones until others are affordable.

    The other parameters are those of a proposer, or as they were drawn. A copy is that
    proposer alone, as the times stay with the search.
    """

    own: Proposer

    def __init__(
        self,
        own: Proposer,
        estimator: BaseEstimator,
        space: Space,
        may_fit_more: Callable[[], bool],
    ) -> None:
        self.own = own
        self.candidates = own.candidates
        self.n_arms = own.n_arms
        self._estimator = estimator
        self._space = space
        self._may_fit_more = may_fit_more

    def __reduce__(self) -> tuple[object, ...]:
        return _itself, (self.own,)

    @property
    def identity(self) -> object:
        """That of the other proposer, as it needs nothing saved."""
        return self.own.identity

    def is_due(self, n_begun: int, wanted: bool) -> bool:
        """Return True."""
        return True

    def propose(
        self,
        opened: Opened,
        unopened: Ints,
        rng: Rng,
    ) -> Proposal | None:
        """Return a configuration with the nearest transformers of a begun arm."""
        proposal: int | Proposal | None = None
        if super().is_due(opened.n_begun, opened.wanted):
            proposal = super().propose(opened, unopened, rng)
        if not isinstance(proposal, Proposal):
            proposal = Proposal(arm=proposal)
        if self._may_fit_more():
            return proposal
        arm = rng.choice(unopened) if proposal.arm is None else proposal.arm
        drawn = self.candidates[arm]
        for params in filter(None, (proposal.params, drawn)):
            shared = self._with_fitted(params, opened)
            if shared is not None:
                return proposal._replace(params=shared, arm=None)
        return proposal

    def _with_fitted(self, params: Configuration, opened: Opened) -> Params | None:
        """Return a new configuration with transformers of a begun arm, if any."""
        given = of_transformers(self._estimator, params)
        rest = {k: v for k, v in params.items() if k not in given}
        place = self._space.to_unit(params)
        scored = np.delete(opened.arms, opened.failed)
        begun = [self.candidates[arm] for arm in (*scored, *opened.without_score)]
        tried = set(map(key_of_all, begun))
        best = None
        least = np.inf
        for other in begun:
            shared = rest | of_transformers(self._estimator, other)
            offset = np.nan_to_num(self._space.to_unit(shared) - place, nan=1.0)
            distance = float(offset @ offset)
            is_new = key_of_all(shared) not in tried
            if is_new and distance < least and not self._space.problem_of(shared):
                best = shared
                least = distance
        return best
