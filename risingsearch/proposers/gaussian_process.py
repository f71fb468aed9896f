"""Gaussian process over configurations and epochs: its fit, and its predictions."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from risingsearch.proposers.base import Floats, Rng

FITTED_ON, STEPS = 100, 15
OPTIMISM = 0.5
UNLIKELY = 1e3  # what outweighs all differences of standardised scores
TYPICAL_LENGTH = 0.35  # times the root of the number of parameters
TREND = 0.1  # variance of the level at the end, and of its difference from the start
NOISE_RANGE = (2e-3, 2.0)


def at_end(features: Floats) -> Floats:
    """Return the features of configurations after all epochs."""
    return np.column_stack([features, np.ones(len(features))])


def place_of(epochs: Any, max_epochs: int) -> Any:
    """Return the places of epochs from 0 for the first to 1, by the logarithm."""
    return np.minimum(1.0, np.log(epochs) / math.log(max(2, max_epochs)))


def standardised(scores: Floats) -> Floats:
    """Return scores of mean 0 and deviation 1, without diverged ones."""
    middle = float(np.median(scores))
    kept = np.maximum(scores, 2.0 * middle - float(scores.max())) - middle
    kept /= float(np.abs(kept).max()) or 1.0
    found: Floats = (kept - kept.mean()) / max(float(kept.std()), 1e-9)
    return found


def normal_scores(values: Floats) -> Floats:
    """Return the normal quantiles of the ranks of the values, standardised."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * (counts + 1))[inverse]
    quantile = NormalDist().inv_cdf
    z = np.array([quantile((rank + 0.5) / len(values)) for rank in ranks])
    scores: Floats = (z - z.mean()) / max(float(z.std()), 1e-6)
    return scores


class Told(NamedTuple):
    """Scores that a process is fitted to."""

    at: Floats  # (n, n_features + 1), the last of them the epoch
    scores: Floats  # (n,)

    def sample(self, most: int, rng: Rng) -> Told:
        """Return so many at most: the best half of them, and others."""
        if len(self.scores) <= most:
            return self
        order, half = np.argsort(-self.scores, kind="stable"), most // 2
        others = rng.choice(order[half:], most - half, replace=False)
        rows = np.concatenate([order[:half], others])
        return Told(self.at[rows], self.scores[rows])


def squared(a: Floats, b: Floats) -> Floats:
    """Return the squared distances between rows."""
    apart = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2.0 * a @ b.T
    return np.asarray(np.maximum(apart, 0.0), dtype=float)


def correlations(these: Floats, those: Floats) -> Floats:
    """Return how alike rows of features are, in lengths: Matern 5/2."""
    r = np.sqrt(5.0 * squared(these, those))
    found: Floats = (1.0 + r + r * r / 3.0) * np.exp(-r)
    return found


def typical_inverse_length(n_parameters: int) -> float:
    """Return where the lengths start, and are pulled to."""
    return 1.0 / (TYPICAL_LENGTH * math.sqrt(max(1, n_parameters)))


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
        return Known(self, told, whitening, whitening.T @ (whitening @ told.scores))


class Known(NamedTuple):
    """A process that was told scores."""

    process: Process
    told: Told
    whitening: Floats  # (n, n), inverse of the Cholesky factor
    weights: Floats  # (n,)
    chance: Known | None = None  # to have a score, above 0 where it is likely

    def predict(self, at: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of rows at the last epoch."""
        covariance = self.process.between(self.told.at, at)
        white = self.whitening @ covariance
        variance = self.process.amplitude + TREND - (white * white).sum(axis=0)
        mean = covariance.T @ self.weights
        if self.chance is not None:  # what will likely fail comes last
            mean += UNLIKELY * np.minimum(0.0, self.chance.predict(at)[0])
        return mean, np.sqrt(np.maximum(variance, 1e-9))

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
