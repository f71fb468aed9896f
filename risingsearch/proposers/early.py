"""Proposals by the learning rate, from the first arm on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from risingsearch.arms import Configuration
from risingsearch.proposers.base import (
    Floats,
    Ints,
    Opened,
    Proposal,
    Proposer,
    Rng,
    best_first,
)
from risingsearch.proposers.gaussian_process import (
    EXPLORATION,
    LEAST_VARIANCE,
    normal_scores,
    squared_distances,
)
from risingsearch.proposers.learning_rate import LearningRate
from risingsearch.proposers.open_space import ArmPoints, nearest
from risingsearch.space import Space

MOST_OBSERVATIONS = 150
DRAWN = 80  # configurations to choose a proposal from: of more, they are too alike
AT_FIRST = 30  # arms of which two in three are proposed; of later ones, one in three

LENGTH = 0.08  # how far a learning rate tells of others, as a share of its range
AMPLITUDE = 0.4  # variance of the learning rate alone, and again with all parameters
NOISE = 1.0  # variance of a score besides, where all scores together have one of 1

# Prior of the coefficients of the mean: that of all, and that of the hump.
COEFFICIENTS = np.array([0.0, 0.5])
COEFFICIENT_VARIANCE = 1.0
HUMP_WIDTH = 0.25


class Inputs(NamedTuple):
    """Configurations as the model takes them."""

    rates: Floats  # (n, 1), places of the learning rate
    others: Floats  # (n, k), the other features
    basis: Floats  # (n, 2), of the mean: constant, and a hump about the centre

    @classmethod
    def from_features(cls, features: Floats, rate: LearningRate) -> Inputs:
        """Return the parts of rows of features.

        Parameters
        ----------
        features : array of shape (n, n_features)
            As ``Space.features`` returns them.
        rate : LearningRate
            Says which columns it has.

        Returns
        -------
        Inputs
            Of as many rows.
        """
        offsets = features[:, rate.columns] - 0.5
        rates = 0.5 + offsets.sum(axis=1, keepdims=True)
        away = (rates - rate.centre) / HUMP_WIDTH
        hump = np.exp(-0.5 * away**2) - 0.5
        others = np.delete(features, rate.columns, axis=1)
        return cls(rates, others, np.hstack([np.ones_like(hump), hump]))

    def kernel(self, other: Inputs) -> Floats:
        """Return the covariances with others, without those of the mean."""
        alike = np.exp(-0.5 * squared_distances(self.others, other.others))
        squares = squared_distances(self.rates, other.rates)
        near = np.exp(-0.5 * squares / LENGTH**2)
        return np.asarray(AMPLITUDE * near * (1.0 + alike))

    def covariance(self, other: Inputs) -> Floats:
        """Return the covariances with others, with those of the mean."""
        of_mean = COEFFICIENT_VARIANCE * self.basis @ other.basis.T
        return self.kernel(other) + of_mean


class EarlyModel(NamedTuple):
    """The model of the opened arms: a Gaussian process whose constants are fixed."""

    seen: Inputs
    lower: Floats  # Cholesky factor of the covariance of the scores
    whitened: Floats  # residuals of the scores, whitened

    @classmethod
    def condition(cls, seen: Inputs, ends: Floats) -> EarlyModel:
        """Return the model of arms, given the ends of the first of them.

        Parameters
        ----------
        seen : Inputs
            The arms; those in training last.
        ends : array of shape (n,)
            Where the first arms are expected to end.

        Returns
        -------
        EarlyModel
            For arms without an end, the mean is the observation.
        """
        n_arms = len(seen.others)
        n_known = len(ends)
        covariance = seen.covariance(seen) + NOISE * np.eye(n_arms)
        lower = np.linalg.cholesky(covariance)
        residuals = np.zeros(n_arms)
        if n_known:
            mean = seen.basis[:n_known] @ COEFFICIENTS
            residuals[:n_known] = normal_scores(ends) - mean
        whitened = np.linalg.solve(lower, residuals)
        return cls(seen, np.asarray(lower, dtype=float), whitened)

    def upper_confidence_bound(self, rows: Inputs) -> Floats:
        """Return how high configurations may end: the mean and half a deviation."""
        white = np.linalg.solve(self.lower, self.seen.covariance(rows))
        variance = COEFFICIENT_VARIANCE * (rows.basis * rows.basis).sum(axis=1)
        variance = 2.0 * AMPLITUDE + variance - (white * white).sum(axis=0)
        deviation = np.sqrt(np.maximum(variance, LEAST_VARIANCE))
        mean = rows.basis @ COEFFICIENTS + white.T @ self.whitened
        return np.asarray(mean + EXPLORATION * deviation)


class EarlyProposer(Proposer):
    """Proposes by the learning rate while first looks say next to nothing.

    Its mean is a hump about the centre of the learning rate, whose height is fitted:
    a centre that is wrong is soon worth nothing, as arms left as drawn show.

    Provenance: own rule. That a belief gives way to the scores is in the spirit of
    PriorBand (Mallik et al. 2023).

    Parameters
    ----------
    candidates : sequence of dict
        The configurations of all arms.
    space : Space
        What new configurations are drawn from.
    rate : LearningRate
        The learning rate of the space.
    own : Proposer, optional
        Proposes the arms that the policy asks for.

    Examples
    --------
    >>> space = Space.of({"lr": [0.01, 0.02, 0.03, 0.04, 0.05], "depth": [1, 2]})
    >>> candidates = list(space.every())
    >>> proposer = EarlyProposer(candidates, space, LearningRate.of(space))
    >>> [proposer.is_due(n, wanted=False) for n in range(4)]
    [True, True, False, True]
    """

    def __init__(
        self,
        candidates: Sequence[Configuration],
        space: Space,
        rate: LearningRate,
        own: Proposer | None = None,
    ) -> None:
        self.own = own
        self.candidates = candidates
        self._space = space
        self._rate = rate
        self._points = ArmPoints(space, candidates)

    @property
    def identity(self) -> list[object]:
        """All that tells it from others, as JSON."""
        return [
            self._rate.name,
            self._rate.centre,
            self.own and self.own.identity,
        ]

    def is_due(self, n_begun: int, wanted: bool) -> bool:
        """Return whether to propose the arm after so many."""
        if wanted:
            return super().is_due(n_begun, wanted)
        if n_begun < AT_FIRST:
            return n_begun % 3 != 2
        return n_begun % 3 == 0

    def propose(
        self,
        opened: Opened,
        unopened: Ints,
        rng: Rng,
    ) -> int | Proposal | None:
        """Return the most promising of some random configurations.

        An arm that the policy wants is proposed by the other proposer.
        """
        if opened.wanted:
            return super().propose(opened, unopened, rng)
        rows = rng.permutation(len(opened.arms))[:MOST_OBSERVATIONS]
        arms = np.concatenate([opened.arms[rows], opened.without_score])
        seen = self._inputs(self._points.features(arms))
        model = EarlyModel.condition(seen, opened.ends[rows])
        points = rng.random((DRAWN, len(self._space.names)))
        bound = model.upper_confidence_bound(self._inputs(self._space.features(points)))
        points = points[best_first(bound)]
        for features, proposal in self._points.untried(points, opened, unopened):
            alike = seen.kernel(self._inputs(features))[:, 0]
            return proposal._replace(like=nearest(arms, alike))
        return None

    def _inputs(self, features: Floats) -> Inputs:
        return Inputs.from_features(features, self._rate)
