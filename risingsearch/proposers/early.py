"""Proposals by the learning rate, from the first arm on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from risingsearch.proposers.base import Floats, Ints, Opened, Proposal, Proposer, Rng
from risingsearch.proposers.gaussian_process import OPTIMISM, normal_scores, squared
from risingsearch.proposers.learning_rate import LearningRate
from risingsearch.proposers.open_space import ArmPoints
from risingsearch.space import Space

MOST_SEEN, MOST_LIKE = 150, 3
DRAWN = 80  # configurations to choose a proposal from: of more, they are too alike
AT_FIRST = 30  # arms of which two in three are proposed; of later ones, one in three

NEAR = 0.08  # how far a learning rate tells of others, as a share of its range
SHARE = 0.4  # variance that the learning rate has alone, and again with all parameters
NOISE = 1.0  # variance of a score besides, where all scores together have one of 1
# expected of the mean of all and of the hump about the centre; width of the hump
HEIGHTS, WIDTH = np.array([0.0, 0.5]), 0.25
DOUBT = 1.0  # deviation of these heights


class Described(NamedTuple):
    """Configurations as the model takes them."""

    rates: Floats  # (n, 1), places of the learning rate
    others: Floats  # (n, k), the other features
    beliefs: Floats  # (n, 2), mean of all, and nearness to the centre

    @classmethod
    def of(cls, features: Floats, rate: LearningRate) -> Described:
        """Return the parts of rows of features."""
        rates = 0.5 + (features[:, rate.columns] - 0.5).sum(axis=1, keepdims=True)
        hump = np.exp(-0.5 * ((rates - rate.centre) / WIDTH) ** 2) - 0.5
        beliefs = np.hstack([np.ones_like(hump), hump])
        return cls(rates, np.delete(features, rate.columns, axis=1), beliefs)

    def between(self, other: Described) -> Floats:
        """Return the covariances with others, without those of the beliefs."""
        alike = np.exp(-0.5 * squared(self.others, other.others))
        near = np.exp(-0.5 * squared(self.rates, other.rates) / NEAR**2)
        return np.asarray(SHARE * near * (1.0 + alike), dtype=float)


class EarlyModel(NamedTuple):
    """The model of the opened arms: a Gaussian process whose constants are fixed."""

    seen: Described
    lower: Floats  # Cholesky factor of the covariance of the scores
    white: Floats  # what was not expected of the scores, whitened

    @classmethod
    def of(cls, seen: Described, ends: Floats) -> EarlyModel:
        """Return the model of arms, of which the first have these ends."""
        n, n_known = len(seen.others), len(ends)
        said = seen.beliefs
        covariance = seen.between(seen) + DOUBT**2 * said @ said.T + NOISE * np.eye(n)
        lower = np.linalg.cholesky(covariance)
        surprise = np.zeros(n)
        if n_known:
            surprise[:n_known] = normal_scores(ends) - said[:n_known] @ HEIGHTS
        white = np.linalg.solve(lower, surprise)
        return cls(seen, np.asarray(lower, dtype=float), white)

    def promise(self, rows: Described, alike: Floats) -> Floats:
        """Return the mean plus half a deviation; ``alike``: ``seen.between(rows)``."""
        said = rows.beliefs
        shared = alike + DOUBT**2 * self.seen.beliefs @ said.T
        told = np.linalg.solve(self.lower, shared)
        variance = 2.0 * SHARE + DOUBT**2 * (said * said).sum(axis=1)
        variance = np.maximum(variance - (told * told).sum(axis=0), 1e-9)
        mean = said @ HEIGHTS + told.T @ self.white
        return np.asarray(mean + OPTIMISM * np.sqrt(variance), dtype=float)


class EarlyProposer(Proposer):
    """Proposes by the learning rate while first looks say next to nothing.

    Its mean is a hump about the centre of the learning rate, whose height is fitted:
    a centre that is wrong is soon worth nothing, as arms left as drawn show.

    Provenance: own rule. That a belief gives way to the scores is in the spirit of
    PriorBand (Mallik et al. 2023).
    """

    def __init__(
        self,
        candidates: Sequence[Mapping[str, Any]],
        space: Space,
        rate: LearningRate,
        own: Proposer | None = None,
    ) -> None:
        self.own = own
        self.candidates, self._space, self._rate = candidates, space, rate
        self._points = ArmPoints(space, candidates)

    @property
    def identity(self) -> Any:
        """All that tells it from others, as JSON."""
        return [self._rate.name, self._rate.centre, self.own and self.own.identity]

    def is_due(self, n_begun: int, wanted: bool) -> bool:
        """Return whether to propose the arm after so many."""
        if wanted:
            return super().is_due(n_begun, wanted)
        return n_begun % 3 != 2 if n_begun < AT_FIRST else n_begun % 3 == 0

    def propose(
        self, opened: Opened, unopened: Ints, rng: Rng
    ) -> int | Proposal | None:
        """Return the most promising of some random configurations, or the own one."""
        if opened.wanted:
            return super().propose(opened, unopened, rng)
        rows = rng.permutation(len(opened.arms))[:MOST_SEEN]
        arms = np.concatenate([opened.arms[rows], opened.without_score])
        seen = Described.of(self._points.features(arms), self._rate)
        known = EarlyModel.of(seen, opened.ends[rows])
        points = rng.random((DRAWN, len(self._space.names)))
        new = Described.of(self._space.features(points), self._rate)
        best = np.argsort(-known.promise(new, known.seen.between(new)), kind="stable")
        for found, proposal in self._points.untried(points[best], opened, unopened):
            near = seen.between(Described.of(found, self._rate))[:, 0]
            nearest = np.argsort(-near, kind="stable")[:MOST_LIKE]
            return proposal._replace(like=tuple(arms[nearest].tolist()))
        return None
