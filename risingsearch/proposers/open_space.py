"""Proposals of new configurations in a space, from all scores of a search so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from risingsearch.proposers.base import Opened, Proposal
from risingsearch.space import Space

Floats = NDArray[np.float64]

FEWEST, MOST = 8, 200  # arms to propose by, and rows of the model
FITTED_ON, STEPS = 100, 15
FRESH, NEAR, CLIMBERS, ROUNDS = 200, 400, 10, 3
DRAWN = 100  # configurations of a list
OPTIMISM = 0.5
TYPICAL_LENGTH = 0.35  # times the root of the number of parameters
TREND = 0.1  # variance of the level at the end, and of its difference from the start
NOISE_RANGE = (2e-3, 2.0)
MOST_ALIKE = 3
FEWEST_TRAININGS = 5  # that the budget pays


class OpenSpaceProposer:
    """Proposes configurations of a space that will end high.

    A Gaussian process models the scores over configuration and epoch; see ``Process``.
    Its rows are the recent averages of up to 100 arms after their first epoch, a fifth
    of all epochs, and their last. To 200 random configurations and 400 near the ten
    best arms, the neighbours of the most promising are added, three times; then the one
    with the highest mean plus half a standard deviation after all epochs is proposed.
    Arms in training without a score count as mean ones.

    ``candidates`` are those of the search, in which what was proposed has taken its
    place; ``draw(space, n)`` draws more where there are ``n``, and None has no more. A
    budget of few full trainings is shared as it is over a list.
    """

    def __init__(
        self,
        space: Space,
        candidates: list[dict[str, Any]],
        n_trainings: float = math.inf,
        draw: Callable[[Space, int], Iterable[dict[str, Any]]] | None = None,
    ) -> None:
        self.space = space
        self.candidates = candidates
        self._is_short = n_trainings < FEWEST_TRAININGS
        self._draw = draw
        self._units: dict[int, tuple[Mapping[str, Any], Floats]] = {}

    def policy_params(self) -> dict[str, float]:
        """Return how the default policy shares a budget in an open space."""
        return {} if self._is_short else {"opening_share": 0.2, "later_share": 0.4}

    def more_slots(self, n: int) -> int:
        """Return how many there are after the first ``n``, drawn if need be."""
        if self._draw is not None and len(self.candidates) <= n:
            self.candidates.extend(self._draw(self.space, n))
        return max(n, min(2 * n, len(self.candidates)))

    @property
    def identity(self) -> dict[str, Any]:
        """Identity among proposers, as JSON."""
        return {"proposer": "open-space", "space": self.space.description}

    def propose(
        self, opened: Opened, unopened: NDArray[np.int64], rng: np.random.Generator
    ) -> Proposal | None:
        """Return a promising configuration; None with too few arms opened."""
        if len(opened.arms) < FEWEST:
            return None
        features = self.space.features(self._places(opened.arms))
        waiting = self.space.features(self._places(opened.without_score))
        known = modelled(opened, features, waiting, len(self.space.coordinates), rng)
        promising, points = self._promising(known, opened, rng)
        taken = np.concatenate([features, waiting])
        for k in promising:
            params, place = self.space.from_unit(points[k]), points[k : k + 1]
            found = self.space.features(place)
            is_known = (np.abs(taken - found) < SAME).all(axis=1).any()
            if not is_known and self.space.permits(params):
                alike = known.process.between(at_end(features), at_end(found))[:, 0]
                nearest = np.argsort(-alike, kind="stable")[:MOST_ALIKE]
                return Proposal(params, tuple(opened.arms[nearest].tolist()))
        return None

    def _places(self, arms: NDArray[np.int64]) -> Floats:
        """Return the points of these arms' configurations."""
        places = np.empty((len(arms), len(self.space.coordinates)))
        for k, arm in enumerate(arms.tolist()):
            params = self.candidates[arm]
            known = self._units.get(arm)
            if known is None or known[0] is not params:
                known = self._units[arm] = params, self.space.to_unit(params)
            places[k] = known[1]
        return places

    def _promising(
        self, model: Known, opened: Opened, rng: np.random.Generator
    ) -> tuple[NDArray[np.intp], Floats]:
        """Return points, and their numbers from the most promising on."""
        known = self._places(opened.arms)
        expected = model.predict(at_end(self.space.features(known)))[0]
        best = known[np.argsort(-expected, kind="stable")[:CLIMBERS]]
        near = best[rng.integers(0, len(best), NEAR)]
        fresh = rng.random((FRESH, len(self.space.coordinates)))
        points = np.concatenate([fresh, self.space.perturbed(near, rng)])
        promise = model.promise(self.space.features(points))
        for _ in range(ROUNDS):
            top = np.argsort(-promise, kind="stable")[:CLIMBERS]
            around = np.repeat(points[top], CLIMBERS, axis=0)
            around = self.space.perturbed(around, rng)
            points = np.concatenate([points, around])
            found = model.promise(self.space.features(around))
            promise = np.concatenate([promise, found])
        return np.argsort(-promise, kind="stable"), points


class ListProposer:
    """Proposes one of 100 unopened configurations of a list, by the same model.

    ``features`` are those of ``encoding.encode``.
    """

    def __init__(self, features: ArrayLike) -> None:
        self.features = np.asarray(features, dtype=float)

    def propose(
        self, opened: Opened, unopened: NDArray[np.int64], rng: np.random.Generator
    ) -> int | None:
        """Return a promising unopened arm; None with too few opened."""
        if len(opened.arms) < FEWEST:
            return None
        features = self.features[opened.arms]
        waiting = self.features[opened.without_score]
        model = modelled(opened, features, waiting, features.shape[1], rng)
        drawn = rng.choice(unopened, min(DRAWN, len(unopened)), replace=False)
        return int(drawn[np.argmax(model.promise(self.features[drawn]))])


SAME = 1e-9  # difference of features within which configurations are the same


def at_end(features: Floats) -> Floats:
    """Return the features of configurations after all epochs."""
    return np.column_stack([features, np.ones(len(features))])


def place_of(epochs: Any, max_epochs: int) -> Any:
    """Return the places of epochs from 0 for the first to 1, by the logarithm."""
    return np.minimum(1.0, np.log(epochs) / math.log(max(2, max_epochs)))


def modelled(
    opened: Opened,
    features: Floats,
    waiting: Floats,
    n_parameters: int,
    rng: np.random.Generator,
) -> Known:
    """Return a model of the scores of arms, and of others in training, by features."""
    rows = rows_of(opened, rng)
    at = np.concatenate([features[rows.numbers], waiting])
    epochs = np.concatenate([rows.epochs, np.ones(len(waiting))])
    scores = np.concatenate([standardised(rows.scores), np.zeros(len(waiting))])
    told = Told(np.column_stack([at, epochs]), scores)
    return Process.fitted(told.sample(FITTED_ON, rng), n_parameters).known(told)


class Rows(NamedTuple):
    """Recent averages of arms at some of their epochs."""

    numbers: NDArray[np.int64]  # (n,), of the arm among those opened
    epochs: Floats  # (n,), from 0 for the first to 1 for the last, by the logarithm
    scores: Floats  # (n,)


def rows_of(opened: Opened, rng: np.random.Generator) -> Rows:
    """Return the rows of a model: of the arms with the highest ends, and of others."""
    order = np.argsort(-opened.ends, kind="stable")
    half = MOST // 4
    if len(order) > 2 * half:
        others = rng.choice(order[half:], half, replace=False)
        order = np.concatenate([order[:half], others])
    limit = max(2, opened.max_epochs)
    fifth = limit // 5
    found: list[tuple[int, float, float]] = []
    for k in order.tolist():
        curve = opened.curves[k]
        last = len(curve)
        epochs = {1, last} | ({fifth} if fifth > 1 and fifth < last - 1 else set())
        for epoch in sorted(epochs):
            recent = curve[epoch - max(1, epoch // 4) : epoch]
            place = float(place_of(epoch, limit))
            found.append((k, place, float(recent.mean())))
    numbers, places, scores = (np.array(column) for column in zip(*found, strict=True))
    last_first = np.argsort(-places, kind="stable")[:MOST]
    return Rows(numbers[last_first], places[last_first], scores[last_first])


def standardised(scores: Floats) -> Floats:
    """Return scores of mean 0 and deviation 1, without diverged ones."""
    middle = float(np.median(scores))
    kept = np.maximum(scores, 2.0 * middle - float(scores.max())) - middle
    kept /= float(np.abs(kept).max()) or 1.0
    found: Floats = (kept - kept.mean()) / max(float(kept.std()), 1e-9)
    return found


def normal_scores(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the normal quantiles of the ranks of the values, standardised."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * (counts + 1))[inverse]
    quantile = NormalDist().inv_cdf
    z = np.array([quantile((rank + 0.5) / len(values)) for rank in ranks])
    scores: NDArray[np.float64] = (z - z.mean()) / max(float(z.std()), 1e-6)
    return scores


class Told(NamedTuple):
    """Scores that a process is fitted to."""

    at: Floats  # (n, n_features + 1), the last of them the epoch
    scores: Floats  # (n,)

    def sample(self, most: int, rng: np.random.Generator) -> Told:
        """Return so many at most: the best half of them, and others."""
        if len(self.scores) <= most:
            return self
        order, half = np.argsort(-self.scores, kind="stable"), most // 2
        others = rng.choice(order[half:], most - half, replace=False)
        rows = np.concatenate([order[:half], others])
        return Told(self.at[rows], self.scores[rows])


def correlations(these: Floats, those: Floats) -> Floats:
    """Return how alike rows of features are, in lengths: Matern 5/2."""
    a, b = these, those
    squared = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2.0 * a @ b.T
    r = np.sqrt(5.0 * np.maximum(squared, 0.0))
    found: Floats = (1.0 + r + r * r / 3.0) * np.exp(-r)
    return found


def typical_inverse_length(n_parameters: int) -> float:
    """Return where the lengths start, and are pulled to."""
    return 1.0 / (TYPICAL_LENGTH * math.sqrt(n_parameters))


class Process(NamedTuple):
    """Gaussian process over configurations and epochs, with a level and a trend."""

    inverse_lengths: Floats  # (n_features,)
    decay: float
    noise: float
    amplitude: float

    @classmethod
    def of(cls, logs: Floats) -> Process:
        """Return the one with these logarithms of its parameters."""
        values = np.exp(logs)
        return cls(values[:-3], *map(float, values[-3:]))

    @classmethod
    def fitted(cls, told: Told, n_parameters: int) -> Process:
        """Return the most likely one that some steps by the gradient's signs find."""
        fit = _Fit(told, n_parameters)
        logs, best, highest = fit.typical, fit.typical, -math.inf
        step, before = np.full(len(logs), 0.3), np.zeros(len(logs))
        for _ in range(STEPS):
            likelihood, gradient = fit.likelihood(logs)
            if likelihood > highest:
                best, highest = logs, likelihood
            turned = gradient * before
            step = step * np.where(turned > 0, 1.4, np.where(turned < 0, 0.5, 1.0))
            step = np.clip(step, 0.01, 1.0)
            before = np.where(turned < 0, 0.0, gradient)
            logs = np.clip(logs + np.sign(before) * step, fit.low, fit.high)
        return cls.of(best)

    def between(self, these: Floats, those: Floats) -> Floats:
        """Return the covariances between two sets of rows."""
        lengths = self.inverse_lengths
        alike = correlations(these[:, :-1] * lengths, those[:, :-1] * lengths)
        own = alike * np.exp(-self.decay * np.abs(these[:, -1:] - those[:, -1]))
        shared = 1.0 + np.outer(1.0 - these[:, -1], 1.0 - those[:, -1])
        found: Floats = self.amplitude * own + TREND * shared
        return found

    def known(self, told: Told) -> Known:
        """Return it with the scores so far."""
        covariance = self.between(told.at, told.at)
        covariance.flat[:: len(covariance) + 1] += self.noise
        whitening = np.linalg.inv(np.linalg.cholesky(covariance))
        weights = whitening.T @ (whitening @ told.scores)
        return Known(self, told, whitening, weights)


class Known(NamedTuple):
    """A process that was told scores."""

    process: Process
    told: Told
    whitening: Floats  # (n, n), inverse of the Cholesky factor
    weights: Floats  # (n,)

    def predict(self, at: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of rows at the last epoch."""
        covariance = self.process.between(self.told.at, at)
        white = self.whitening @ covariance
        variance = self.process.amplitude + TREND - (white * white).sum(axis=0)
        return covariance.T @ self.weights, np.sqrt(np.maximum(variance, 1e-9))

    def promise(self, features: Floats) -> Floats:
        """Return how high configurations may end: the mean and half a deviation."""
        mean, deviation = self.predict(at_end(features))
        return mean + OPTIMISM * deviation


class _Fit:
    """Likelihood of the logarithms of a process's parameters, and its gradient."""

    def __init__(self, told: Told, n_parameters: int) -> None:
        at, self.scores = told.at, told.scores
        n_features = at.shape[1] - 1
        columns = at[:, :-1].T
        apart = columns[:, :, None] - columns[:, None, :]
        self.squared = (apart * apart).reshape(n_features, len(at) ** 2)
        self.apart = np.abs(at[:, -1:] - at[:, -1]).ravel()
        self.shared = TREND * (1.0 + np.outer(1.0 - at[:, -1], 1.0 - at[:, -1]))
        length = typical_inverse_length(n_parameters)
        typical = np.full(n_features + 3, math.log(length))
        typical[-3:] = np.log([0.5, 0.1, 1.0])
        self.typical = typical
        self.spread = np.ones(n_features + 3)
        self.spread[-3:-1] = 1.5
        self.low, self.high = np.full((2, n_features + 3), [[-4.0], [4.0]])
        self.low[-2:] = math.log(NOISE_RANGE[0]), -2.0
        self.high[-2:] = math.log(NOISE_RANGE[1]), 2.0

    def likelihood(self, logs: Floats) -> tuple[float, Floats]:
        """Return the logarithm of that of scores and parameters, and its gradient."""
        process, n = Process.of(logs), len(self.scores)
        squares = process.inverse_lengths**2
        r = np.sqrt(5.0 * np.maximum(squares @ self.squared, 0.0))
        decayed = process.amplitude * np.exp(-r - process.decay * self.apart)
        own = (1.0 + r + r * r / 3.0) * decayed
        covariance = own.reshape(n, n) + self.shared
        covariance.flat[:: n + 1] += process.noise
        lower = np.linalg.cholesky(covariance)
        inverse = np.linalg.inv(covariance)
        weights = inverse @ self.scores
        away = (logs - self.typical) / self.spread
        likelihood = (
            -0.5 * (self.scores @ weights)
            - np.log(np.diag(lower)).sum()
            - 0.5 * (away @ away)
        )
        by_covariance = 0.5 * (np.outer(weights, weights) - inverse)
        each = by_covariance.ravel()
        gradient = -away / self.spread
        of_squares = each * (-5.0 / 6.0) * (1.0 + r) * decayed
        gradient[:-3] += 2.0 * squares * (self.squared @ of_squares)
        gradient[-3] -= process.decay * float((each * own) @ self.apart)
        gradient[-2] += process.noise * float(np.trace(by_covariance))
        gradient[-1] += float(each @ own)
        return float(likelihood), gradient
