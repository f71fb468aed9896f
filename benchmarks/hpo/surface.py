"""A Gaussian process over configuration and epoch, for DyHPO's rule.

It is asked before every epoch what every configuration's next one would bring. An
observation is always of such a point, so it is taken in by a row of the factorisation
at all these points; only what the trained configuration would bring then is new.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from risingsearch.proposers.gaussian_process import normal_scores

MOST, KEPT = 512, 384
"""Observations at which some are dropped, and how many stay."""
FEWEST, FITTED_ON, STEPS = 8, 150, 30
"""Observations for a fit of the kernel, at least and at most, and its steps."""
NOISE, NOISE_RANGE = 0.01, (1e-4, 1.0)

Array = NDArray[np.float64]


class Kernel(NamedTuple):
    """Matern 5/2 of variance 1 with a length per column, and noise."""

    inverse_lengths: Array  # (n_columns,)
    noise: float

    def between(self, these: Array, those: Array) -> Array:
        """Return the covariances of two sets of points."""
        r = distances(these * self.inverse_lengths, those * self.inverse_lengths)
        covariances: Array = (1.0 + r + r * r / 3.0) * np.exp(-r)
        return covariances


def distances(these: Array, those: Array) -> Array:
    """Return the distances of scaled points, times the square root of 5."""
    squared = (these**2).sum(axis=1)[:, None] + (those**2).sum(axis=1)
    found: Array = np.sqrt(5.0 * np.maximum(squared - 2.0 * these @ those.T, 0.0))
    return found


def typical(n_columns: int) -> Array:
    """Return the inverse lengths that a fit starts at, and is pulled to."""
    return np.full(n_columns, 1.0 / (0.7 * math.sqrt(n_columns)))


def fitted(x: Array, y: Array, kernel: Kernel) -> Kernel:
    """Return the kernel that explains the scores best, lengths near the typical."""
    usual = np.log(typical(x.shape[1]))

    def loss(logs: Array) -> tuple[float, Array]:
        away = logs[:-1] - usual
        found, slope = minus_log_likelihood(x, y, np.exp(logs))
        slope[:-1] += away
        return found + 0.5 * float(away @ away), slope

    start = np.log(np.append(kernel.inverse_lengths, kernel.noise))
    bounds = [(a - 4.0, a + 4.0) for a in usual] + [tuple(np.log(NOISE_RANGE))]
    options = {"maxiter": STEPS}
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return Kernel(np.exp(found.x[:-1]), float(np.exp(found.x[-1])))


def minus_log_likelihood(x: Array, y: Array, values: Array) -> tuple[float, Array]:
    """Return it up to a constant, and its slope in the logarithms of the values.

    ``values`` are the inverse lengths, and the noise last.
    """
    z, noise = x * values[:-1], values[-1]
    r = distances(z, z)
    decay = np.exp(-r)
    covariance = (1.0 + r + r * r / 3.0) * decay
    covariance[np.diag_indices(len(x))] = 1.0 + noise
    lower = np.linalg.cholesky(covariance)
    half = solve_triangular(lower, np.eye(len(x)), lower=True)
    inverse = half.T @ half
    alpha = inverse @ y
    weight = inverse - np.outer(alpha, alpha)
    by_distance = weight * (-5.0 / 3.0) * (1.0 + r) * decay
    lengths = (z * z).T @ by_distance.sum(axis=1) - (z * (by_distance @ z)).sum(axis=0)
    value = 0.5 * float(y @ alpha) + float(np.log(np.diag(lower)).sum())
    return value, np.append(lengths, 0.5 * noise * np.trace(weight))


def is_power_of_two(n: int) -> bool:
    """Return whether the kernel is fitted after so many observations."""
    return n & (n - 1) == 0


class Ranked(NamedTuple):
    """What normal scores stand for the scores seen, and for others in between."""

    seen: Array  # ascending
    normal: Array

    @classmethod
    def of(cls, scores: Array) -> Ranked:
        """Return the normal scores of what was seen."""
        seen, first = np.unique(scores, return_index=True)
        return cls(seen, normal_scores(scores)[first])

    def __call__(self, scores: ArrayLike) -> Array:
        """Return normal scores; beyond the best seen they rise by 1 at most."""
        new = np.asarray(scores, dtype=float)
        lowest, best = self.seen[[0, -1]]
        beyond = np.clip((new - best) / max(best - lowest, 1e-9), 0.0, 1.0)
        ranked: Array = np.interp(new, self.seen, self.normal) + beyond
        return ranked


class Surface:
    """What every configuration's next epoch would bring, in normal scores.

    Parameters
    ----------
    features : ndarray of shape (n, n_features)
        A row per configuration.
    max_epochs : int
        Epochs of one at most.
    rng : numpy.random.Generator
        Draws the observations that the kernel is fitted to.
    """

    def __init__(
        self, features: Array, max_epochs: int, rng: np.random.Generator
    ) -> None:
        n, n_features = features.shape
        self._rng = rng
        self._step = 1.0 / max_epochs
        self._next = np.column_stack([features, np.full(n, self._step)])
        self._kernel = Kernel(typical(n_features + 1), NOISE)
        self._rows: list[int] = []
        self._points: list[Array] = []
        self._scores: list[float] = []
        self._n_seen = 0
        self._condition()

    def observe(self, row: int, score: float) -> None:
        """Take in the score of a configuration's next epoch."""
        self._rows.append(row)
        self._points.append(self._next[row].copy())
        self._scores.append(score)
        self._next[row, -1] += self._step
        self._n_seen += 1
        refit, full = is_power_of_two(self._n_seen), len(self._rows) == MOST
        if full:
            self._drop()
        if refit:
            self._fit()
        if refit or full:
            self._condition()
        else:
            self._take_in(len(self._rows) - 1)

    def _fit(self) -> None:
        n = len(self._rows)
        if n < FEWEST:
            return
        drawn = self._rng.permutation(n)[:FITTED_ON]
        points, scores = np.array(self._points), normal_scores(np.array(self._scores))
        self._kernel = fitted(points[drawn], scores[drawn], self._kernel)

    def _drop(self) -> None:
        """Keep the last epoch of every configuration, and the newest others."""
        last = {row: i for i, row in enumerate(self._rows)}
        order = sorted(range(MOST), key=lambda i: (last[self._rows[i]] == i, i))
        kept = sorted(order[-KEPT:])
        self._rows = [self._rows[i] for i in kept]
        self._points = [self._points[i] for i in kept]
        self._scores = [self._scores[i] for i in kept]

    def _condition(self) -> None:
        """Work everything out anew."""
        n, between = len(self._rows), self._kernel.between
        self._lower = np.zeros((MOST, MOST))
        self._known = np.zeros((MOST, len(self._next)))
        self._white = np.zeros(MOST)
        if n:
            points = np.array(self._points)
            covariance = between(points, points)
            covariance[np.diag_indices(n)] += self._kernel.noise
            lower = np.linalg.cholesky(covariance)
            self.ranked = Ranked.of(np.array(self._scores))
            scores = self.ranked(self._scores)
            right = np.column_stack([between(points, self._next), scores])
            solved = solve_triangular(lower, right, lower=True)
            self._lower[:n, :n] = lower
            self._known[:n], self._white[:n] = solved[:, :-1], solved[:, -1]
        self.mean = self._white[:n] @ self._known[:n]
        self.variance = 1.0 - (self._known[:n] ** 2).sum(axis=0)

    def _take_in(self, n: int) -> None:
        """Add the newest observation to the ``n`` that are known."""
        row, point = self._rows[n], self._points[n][None]
        between = self._kernel.between
        spread = math.sqrt(max(self.variance[row], 0.0) + self._kernel.noise)
        column = self._known[:n, row].copy()
        self._lower[n, :n], self._lower[n, n] = column, spread
        ahead = between(point, self._next)[0]
        self._known[n] = (ahead - column @ self._known[:n]) / spread
        score = float(self.ranked(self._scores[n]))
        self._white[n] = (score - self.mean[row]) / spread
        self.mean += self._white[n] * self._known[n]
        self.variance -= self._known[n] ** 2
        n += 1
        to_next = between(np.array(self._points), self._next[row][None])[:, 0]
        column = solve_triangular(self._lower[:n, :n], to_next, lower=True)
        self._known[:n, row] = column
        self.mean[row] = self._white[:n] @ column
        self.variance[row] = 1.0 - column @ column
