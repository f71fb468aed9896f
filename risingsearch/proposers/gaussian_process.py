"""Gaussian process over configurations and epochs: its fit, and its predictions."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from risingsearch.proposers.base import Floats, Rng, best_first

FITTED_ON = 100
"""Observations that the hyperparameters are fitted to, at most."""
EXPLORATION = 0.5
"""Standard deviations of the upper confidence bound above the mean."""
UNLIKELY = 1e3
"""Outweighs all differences of standardised scores."""
TYPICAL_LENGTH = 0.35
"""Length scale to start from, times the root of the number of parameters."""
TREND = 0.1
"""Variance of the level at the last epoch, and of its difference from the first."""
LEAST_VARIANCE = 1e-9

STEPS = 15
FIRST_STEP = 0.3
STEP_RANGE = (0.01, 1.0)
GROWTH = 1.4
SHRINKAGE = 0.5
"""Rprop: a step grows while its slope keeps its sign, and shrinks where it turns."""

N_SCALARS = 3  # hyperparameters after the length scales: decay, noise, amplitude
LOG_LENGTH_RANGE = (-4.0, 4.0)
NOISE_RANGE = (2e-3, 2.0)
LOG_AMPLITUDE_RANGE = (-2.0, 2.0)


def at_last_epoch(features: Floats) -> Floats:
    """Return the rows of configurations after all epochs.

    Parameters
    ----------
    features : array of shape (n, n_features)
        The configurations.

    Returns
    -------
    array of shape (n, n_features + 1)
        The last column is the place of the epoch.

    Examples
    --------
    >>> at_last_epoch(np.array([[0.2, 0.7]]))
    array([[0.2, 0.7, 1. ]])
    """
    return np.column_stack([features, np.ones(len(features))])


def places_of_epochs(epochs: ArrayLike, max_epochs: int) -> Floats:
    """Return the places of epochs, from 0 for the first to 1, by the logarithm.

    Parameters
    ----------
    epochs : int or array of int
        Epochs that a configuration has trained, from 1 on.
    max_epochs : int
        The last epoch.

    Returns
    -------
    array
        Of the same shape.

    Examples
    --------
    >>> places_of_epochs([1, 10, 100], max_epochs=100)
    array([0. , 0.5, 1. ])
    """
    places = np.log(epochs) / math.log(max(2, max_epochs))
    return np.asarray(np.minimum(1.0, places))


def standardised(scores: Floats) -> Floats:
    """Return scores of mean 0 and deviation 1, without diverged ones.

    Parameters
    ----------
    scores : array of shape (n,)
        Higher is better.

    Returns
    -------
    array of shape (n,)
        Those far below the median count as far as the best is above it.

    Examples
    --------
    >>> standardised(np.array([1.0, 2.0, 3.0, -1e9])).round(2)
    array([-0.45,  0.45,  1.34, -1.34])
    """
    middle = float(np.median(scores))
    lowest = 2.0 * middle - float(scores.max())
    kept = np.maximum(scores, lowest) - middle
    kept /= float(np.abs(kept).max()) or 1.0
    return _standard(kept, 1e-9)


def _standard(values: Floats, least_deviation: float) -> Floats:
    """Return values of mean 0 and deviation 1."""
    deviation = max(float(values.std()), least_deviation)
    return np.asarray((values - values.mean()) / deviation)


def normal_scores(values: Floats) -> Floats:
    """Return the normal quantiles of the ranks of the values, standardised.

    Parameters
    ----------
    values : array of shape (n,)
        Equal values share their mean rank.

    Returns
    -------
    array of shape (n,)
        Of mean 0 and deviation 1.

    Examples
    --------
    >>> normal_scores(np.array([5.0, -1e9, 7.0])).round(2)
    array([ 0.  , -1.22,  1.22])
    """
    _, inverse, counts = np.unique(
        values,
        return_inverse=True,
        return_counts=True,
    )
    mean_ranks = np.cumsum(counts) - 0.5 * (counts + 1)
    shares = (mean_ranks[inverse] + 0.5) / len(values)
    quantiles = map(NormalDist().inv_cdf, shares)
    return _standard(np.array(list(quantiles)), 1e-6)


def squared_distances(a: Floats, b: Floats) -> Floats:
    """Return the squared Euclidean distances between the rows of two arrays.

    Examples
    --------
    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [1.0, 0.0]]))
    array([[25.,  1.]])
    """
    squares_a = (a * a).sum(axis=1)
    squares_b = (b * b).sum(axis=1)
    distances = squares_a[:, None] + squares_b - 2.0 * a @ b.T
    return np.asarray(np.maximum(distances, 0.0))


def _matern_factor(r: Floats) -> Floats:
    """Return the polynomial of the Matern 5/2 kernel, without its exponential."""
    return np.asarray(1.0 + r + r * r / 3.0)


def matern(a: Floats, b: Floats) -> Floats:
    """Return the correlations of rows by the Matern 5/2 kernel of length scale 1.

    Examples
    --------
    >>> matern(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.524]])
    """
    r = np.sqrt(5.0 * squared_distances(a, b))
    return np.asarray(_matern_factor(r) * np.exp(-r))


def _trend(a: Floats, b: Floats) -> Floats:
    """Return the covariances that level and trend give to places of epochs."""
    before_last = np.outer(1.0 - a, 1.0 - b)
    return np.asarray(TREND * (1.0 + before_last))


def typical_inverse_length(n_parameters: int) -> float:
    """Return the inverse length scale that a fit starts from, and is pulled to."""
    return 1.0 / (TYPICAL_LENGTH * math.sqrt(max(1, n_parameters)))


class Observations(NamedTuple):
    """Scores that a process is conditioned on."""

    at: Floats  # (n, n_features + 1), the last of them the epoch
    scores: Floats  # (n,)

    def sample(self, limit: int, rng: Rng) -> Observations:
        """Return so many at most: the best half of them, and others.

        Parameters
        ----------
        limit : int
            How many to keep.
        rng : numpy.random.Generator
            Draws the others.

        Returns
        -------
        Observations
            All of them, where there are no more.
        """
        if len(self.scores) <= limit:
            return self
        n_best = limit // 2
        n_others = limit - n_best
        order = best_first(self.scores)
        others = rng.choice(
            order[n_best:],
            n_others,
            replace=False,
        )
        rows = np.concatenate([order[:n_best], others])
        return Observations(self.at[rows], self.scores[rows])


class GaussianProcess(NamedTuple):
    """Gaussian process over configurations and epochs, with a level and a trend.

    Examples
    --------
    >>> at = np.array([[0.0, 1.0], [0.4, 1.0], [0.8, 1.0], [1.0, 1.0]])
    >>> seen = Observations(at, np.array([-1.0, 0.2, 1.4, -0.6]))
    >>> posterior = GaussianProcess.fitted(seen, n_parameters=1).condition(seen)
    >>> mean, deviation = posterior.predict(np.array([[0.75, 1.0]]))
    >>> bool(mean[0] > 1.0)
    True
    """

    inverse_lengths: Floats  # (n_features,)
    decay: float
    noise: float
    amplitude: float

    @classmethod
    def from_logs(cls, logs: Floats) -> GaussianProcess:
        """Build the process from the logarithms of its hyperparameters."""
        values = np.exp(logs)
        return cls(
            values[:-N_SCALARS],
            *values[-N_SCALARS:].tolist(),
        )

    @classmethod
    def fitted(
        cls,
        observations: Observations,
        n_parameters: int,
    ) -> GaussianProcess:
        """Fit by maximum likelihood (15 steps of Rprop).

        Parameters
        ----------
        observations : Observations
            Standardised scores.
        n_parameters : int
            How many parameters the features describe.

        Returns
        -------
        GaussianProcess
            That of the most likely step, with a prior on its hyperparameters.
        """
        objective = LogLikelihood(observations, n_parameters)
        logs = objective.typical
        best = logs
        highest = -math.inf
        step = np.full(len(logs), FIRST_STEP)
        slope = np.zeros(len(logs))
        for _ in range(STEPS):
            likelihood, gradient = objective.evaluate(logs)
            if likelihood > highest:
                best = logs
                highest = likelihood
            agreement = np.sign(gradient * slope)
            step *= np.select(
                [agreement > 0, agreement < 0],
                [GROWTH, SHRINKAGE],
                1.0,
            )
            step = np.clip(step, *STEP_RANGE)
            slope = np.where(
                agreement < 0,
                0.0,
                gradient,
            )
            logs = logs + np.sign(slope) * step
            logs = np.clip(
                logs,
                objective.low,
                objective.high,
            )
        return cls.from_logs(best)

    def kernel(self, a: Floats, b: Floats) -> Floats:
        """Return the covariances between two sets of rows.

        Parameters
        ----------
        a, b : arrays of shape (n, n_features + 1) and (m, n_features + 1)
            Configurations after some epochs.

        Returns
        -------
        array of shape (n, m)
            Without the noise.
        """
        epochs_a = a[:, -1]
        epochs_b = b[:, -1]
        scaled_a = a[:, :-1] * self.inverse_lengths
        scaled_b = b[:, :-1] * self.inverse_lengths
        decay = self.decay * np.abs(epochs_a[:, None] - epochs_b)
        alike = matern(scaled_a, scaled_b) * np.exp(-decay)
        return np.asarray(self.amplitude * alike + _trend(epochs_a, epochs_b))

    def condition(self, observations: Observations) -> Posterior:
        """Return the posterior, given the scores so far."""
        covariance = self.kernel(observations.at, observations.at)
        covariance.flat[:: len(covariance) + 1] += self.noise
        lower = np.linalg.cholesky(covariance)
        whitening = np.linalg.inv(lower)
        whitened = whitening @ observations.scores
        return Posterior(
            process=self,
            observations=observations,
            whitening=whitening,
            weights=whitening.T @ whitened,
        )


class Posterior(NamedTuple):
    """A Gaussian process conditioned on scores."""

    process: GaussianProcess
    observations: Observations
    whitening: Floats  # (n, n), inverse of the Cholesky factor
    weights: Floats  # (n,)
    feasibility: Posterior | None = None  # above 0 where a score is likely

    def predict(self, at: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of rows at the last epoch.

        Parameters
        ----------
        at : array of shape (n, n_features + 1)
            Configurations, as ``at_last_epoch`` returns them.

        Returns
        -------
        mean, deviation : arrays of shape (n,)
            What will likely fail has a mean below that of all others.
        """
        covariance = self.process.kernel(self.observations.at, at)
        white = self.whitening @ covariance
        explained = (white * white).sum(axis=0)
        variance = self.process.amplitude + TREND - explained
        variance = np.maximum(variance, LEAST_VARIANCE)
        mean = covariance.T @ self.weights
        if self.feasibility is not None:
            feasible, _ = self.feasibility.predict(at)
            mean += UNLIKELY * np.minimum(0.0, feasible)
        return mean, np.sqrt(variance)

    def upper_confidence_bound(self, features: Floats) -> Floats:
        """Return how high configurations may end: the mean and half a deviation."""
        mean, deviation = self.predict(at_last_epoch(features))
        return mean + EXPLORATION * deviation


def fitted_posterior(
    observations: Observations,
    n_parameters: int,
    rng: Rng,
) -> Posterior:
    """Fit a process to some of the observations, and condition it on all.

    Parameters
    ----------
    observations : Observations
        Standardised scores.
    n_parameters : int
        How many parameters the features describe.
    rng : numpy.random.Generator
        Draws those that it is fitted to.

    Returns
    -------
    Posterior
        Of all observations.
    """
    sample = observations.sample(FITTED_ON, rng)
    process = GaussianProcess.fitted(sample, n_parameters)
    return process.condition(observations)


class LogLikelihood:
    """Logarithm of the likelihood of log-hyperparameters, with their prior."""

    def __init__(self, observations: Observations, n_parameters: int) -> None:
        self.scores = observations.scores
        epochs = observations.at[:, -1]
        columns = observations.at[:, :-1].T
        n_features, n = columns.shape
        differences = columns[:, :, None] - columns[:, None, :]
        self.squared = (differences * differences).reshape(n_features, n**2)
        self.epochs_apart = np.abs(epochs[:, None] - epochs).ravel()
        self.trend = _trend(epochs, epochs)
        length = math.log(typical_inverse_length(n_parameters))
        lengths = np.ones(n_features)
        # The hyperparameters after the length scales: decay, noise, amplitude.
        self.typical = np.append(length * lengths, np.log([0.5, 0.1, 1.0]))
        self.spread = np.append(lengths, [1.5, 1.5, 1.0])
        ranges = np.tile(LOG_LENGTH_RANGE, (n_features + N_SCALARS, 1))
        ranges[-2:] = np.log(NOISE_RANGE), LOG_AMPLITUDE_RANGE
        self.low, self.high = ranges.T

    def evaluate(self, logs: Floats) -> tuple[float, Floats]:
        """Return the logarithm of the likelihood, and its gradient."""
        n = len(self.scores)
        process = GaussianProcess.from_logs(logs)
        squares = process.inverse_lengths**2
        distances = np.maximum(squares @ self.squared, 0.0)
        r = np.sqrt(5.0 * distances)
        decay = process.decay * self.epochs_apart
        decayed = process.amplitude * np.exp(-r - decay)
        alike = _matern_factor(r) * decayed
        covariance = alike.reshape(n, n) + self.trend
        covariance.flat[:: n + 1] += process.noise
        lower = np.linalg.cholesky(covariance)
        inverse = np.linalg.inv(covariance)
        weights = inverse @ self.scores
        deviations = (logs - self.typical) / self.spread
        fit = -0.5 * (self.scores @ weights)
        complexity = np.log(np.diag(lower)).sum()
        prior = 0.5 * (deviations @ deviations)
        # Slopes along the covariances, then along the hyperparameters that make them.
        by_covariance = 0.5 * (np.outer(weights, weights) - inverse)
        by_pair = by_covariance.ravel()
        by_square = by_pair * (-5.0 / 6.0) * (1.0 + r) * decayed
        by_lengths = 2.0 * squares * (self.squared @ by_square)
        by_decay = -process.decay * ((by_pair * alike) @ self.epochs_apart)
        by_noise = process.noise * np.trace(by_covariance)
        by_amplitude = by_pair @ alike
        gradient = np.append(by_lengths, [by_decay, by_noise, by_amplitude])
        gradient -= deviations / self.spread
        return float(fit - complexity - prior), gradient
