"""Proposers: choose the configuration of an arm that a policy opens.

A policy decides *when* to open an arm. By default the next configuration of a random
order is taken; a proposer looks at the configurations and at where the opened ones are
heading, and picks one of the unopened, or gives the next another configuration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Opened(NamedTuple):
    """The arms opened so far, with their scores; higher ends are better."""

    arms: NDArray[np.int64]  # (n_opened,)
    epochs: NDArray[np.int64]  # (n_opened,)
    ends: NDArray[np.float64]  # (n_opened,), where each is expected to end
    finished: NDArray[np.bool_]  # (n_opened,)
    max_epochs: int
    without_score: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    # (n,), other arms, in training for the first time
    curves: tuple[NDArray[np.float64], ...] = ()
    # by opened arm, its rewards epoch by epoch; a lost epoch has the worst of all


class Proposal(NamedTuple):
    """A configuration for the arm that the policy opens, in place of its own."""

    params: Mapping[str, Any]
    like: tuple[int, ...] = ()  # the opened arms that it resembles


class Proposer(Protocol):
    """Interface of proposers.

    One that changes as it proposes has ``identity``: JSON that tells it from others.
    One that has a ``propose_early`` like ``propose`` is asked by it for the arms that
    the policy opens without a proposal.
    """

    def propose(
        self, opened: Opened, unopened: NDArray[np.int64], rng: np.random.Generator
    ) -> int | Proposal | None:
        """Return an unopened arm or a configuration; None for the next arm in order."""
        ...


@runtime_checkable
class InformedProposer(Proposer, Protocol):
    """One that knows something of the arms before the first of them is opened."""

    def propose_beforehand(
        self, opened: Opened, unopened: NDArray[np.int64]
    ) -> int | None:
        """Return the arm to open by earlier knowledge, before the policy is asked."""
        ...

    def trusted(self, opened: Opened) -> dict[str, float]:
        """Return how far each source of that knowledge is trusted, from 0 to 1."""
        ...


class GaussianProcessProposer:
    """Proposes configurations that look like those that end high.

    A Gaussian process over the configurations' features (Matern 5/2 kernel, a length
    per feature) models the normal scores of the expected ends: ranks, so that neither
    the scale of the score nor a diverged run matters. An end that is far away, or that
    few epochs speak for, counts as noisier. Lengths and noise are fitted by a short
    random climb on the marginal likelihood. Of 100 random unopened arms, the one with
    the highest mean plus half a standard deviation is proposed. ``features`` are those
    of ``candidates.encode``.
    """

    def __init__(self, features: ArrayLike) -> None:
        self.features = np.asarray(features, dtype=float)

    def propose(
        self, opened: Opened, unopened: NDArray[np.int64], rng: np.random.Generator
    ) -> int | None:
        """Return the most promising of some unopened arms; None with too few opened."""
        if len(opened.arms) < FEWEST:
            return None
        rows = some(len(opened.arms), MOST, rng)
        seen = Seen(
            self.features[opened.arms[rows]],
            normal_scores(opened.ends)[rows],
            doubts(opened)[rows],
        )
        kernel = fitted(seen.sample(FITTED_ON, rng), rng)
        drawn = rng.choice(unopened, min(CANDIDATES, len(unopened)), replace=False)
        mean, deviation = kernel.predict(seen, self.features[drawn])
        return int(drawn[np.argmax(mean + OPTIMISM * deviation)])


FEWEST, MOST = 8, 300
CANDIDATES = 100
OPTIMISM = 0.5
STEPS = 15
FITTED_ON = 100


class Seen(NamedTuple):
    """Observations that a Gaussian process is fitted to."""

    features: NDArray[np.float64]  # (n, n_features)
    scores: NDArray[np.float64]  # (n,), standardised
    doubts: NDArray[np.float64]  # (n, 2), by which the two kinds of noise count

    def sample(self, most: int, rng: np.random.Generator) -> Seen:
        """Return so many of them at most, drawn at random."""
        rows = some(len(self.scores), most, rng)
        return Seen(self.features[rows], self.scores[rows], self.doubts[rows])


def some(n: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the numbers below ``n``, or so many of them, drawn at random."""
    return np.arange(n) if n <= most else rng.choice(n, most, replace=False)


class Kernel(NamedTuple):
    """Matern 5/2 with a length per feature, and two kinds of noise on top."""

    inverse_lengths: NDArray[np.float64]  # (n_features,)
    noise: NDArray[np.float64]  # (2,), of an end early on, and of one far away

    def between(
        self, these: NDArray[np.float64], those: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the covariances of the values at two sets of features."""
        a, b = these * self.inverse_lengths, those * self.inverse_lengths
        squared = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2.0 * a @ b.T
        r = np.maximum(squared, 0.0)
        r *= 5.0
        np.sqrt(r, out=r)
        covariance: NDArray[np.float64] = np.multiply(r, r, out=squared)
        covariance /= 3.0
        covariance += 1.0 + r
        covariance *= np.exp(np.negative(r, out=r), out=r)
        return covariance

    def observed(self, seen: Seen) -> NDArray[np.float64]:
        """Return the covariance of the observations."""
        covariance = self.between(seen.features, seen.features)
        diagonal = np.diag_indices(len(covariance))
        covariance[diagonal] += LEAST_NOISE + seen.doubts @ self.noise
        return covariance

    def factor(self, seen: Seen) -> NDArray[np.float64]:
        """Return the Cholesky factor of the covariance of the observations."""
        return np.asarray(np.linalg.cholesky(self.observed(seen)), dtype=float)

    def log_likelihood(self, seen: Seen) -> float:
        """Return that of the scores and of the lengths, up to a constant."""
        n = len(seen.scores)
        bordered = np.empty((n + 1, n + 1))  # its factor ends in the whitened scores
        bordered[:n, :n] = self.observed(seen)
        bordered[n, :n] = seen.scores
        bordered[n, n] = 1.0 + (seen.scores @ seen.scores) / LEAST_NOISE
        bordered[:n, n] = bordered[n, :n]
        lower = np.linalg.cholesky(bordered)
        white = lower[n, :n]
        typical = typical_inverse_length(len(self.inverse_lengths))
        away = np.log(self.inverse_lengths / typical)
        fit = -0.5 * (white @ white) - np.log(np.diag(lower)[:n]).sum()
        return float(fit - 0.5 * (away @ away))

    def predict(
        self, seen: Seen, features: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation at new features."""
        right = np.column_stack([self.between(seen.features, features), seen.scores])
        white = np.linalg.solve(self.factor(seen), right)
        known, scores = white[:, :-1], white[:, -1]
        variance = np.maximum(1.0 - (known * known).sum(axis=0), 1e-9)
        return known.T @ scores, np.sqrt(variance)


LEAST_NOISE = 0.05
START = (1.0, 0.1)
NOISE_RANGE = ((0.05, 0.02), (10.0, 5.0))


def typical_inverse_length(n_features: int) -> float:
    """Return where the lengths start, and are pulled to."""
    return 1.0 / (0.7 * math.sqrt(n_features))


def normal_scores(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the normal quantiles of the ranks of the values, standardised."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * (counts + 1))[inverse]
    quantile = NormalDist().inv_cdf
    z = np.array([quantile((rank + 0.5) / len(values)) for rank in ranks])
    scores: NDArray[np.float64] = (z - z.mean()) / max(float(z.std()), 1e-6)
    return scores


def doubts(opened: Opened) -> NDArray[np.float64]:
    """Return how early and how far from its end each arm is, of shape (n_opened, 2)."""
    live = ~opened.finished
    early = np.maximum(0.0, 1.0 / opened.epochs - 1.0 / opened.max_epochs)
    far = np.maximum(0.0, 1.0 - opened.epochs / opened.max_epochs)
    return np.stack([early * live, far * live], axis=1)


def fitted(seen: Seen, rng: np.random.Generator, steps: int = STEPS) -> Kernel:
    """Return a kernel after a short random climb on its likelihood."""
    n_features = seen.features.shape[1]
    lengths = np.full(n_features, typical_inverse_length(n_features))
    kernel = Kernel(lengths, np.array(START))
    height = kernel.log_likelihood(seen)
    for _ in range(steps):
        step = _moved(kernel, rng)
        reached = step.log_likelihood(seen)
        if reached > height:
            kernel, height = step, reached
    return kernel


def _moved(kernel: Kernel, rng: np.random.Generator) -> Kernel:
    """Return one nearby: all lengths scaled, or some of them; perhaps the noise."""
    n_features = len(kernel.inverse_lengths)
    if rng.random() < 0.3:
        change = np.full(n_features, 0.5 * rng.standard_normal())
    else:
        chosen = rng.random(n_features) < max(0.3, 1.0 / n_features)
        change = 0.8 * rng.standard_normal(n_features) * chosen
    noise = kernel.noise
    if rng.random() < 0.5:
        noise = np.clip(noise * np.exp(0.6 * rng.standard_normal(2)), *NOISE_RANGE)
    return Kernel(kernel.inverse_lengths * np.exp(change), noise)
