"""The worth of the best score of many, and the arms that are level with the winner.

The best of many noisy scores is too high. Where the scores of the examples are known,
resamples of these tell how much: bootstrap bias correction (Tsamardinos, Greasidou and
Borboudakis, Machine Learning 2018) chooses the winner by the examples that are drawn
and scores it by the others. An arm is level with the winner unless it is worse by more
than the largest difference that chance makes between any two of the arms, in 95 % of
the resamples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from risingsearch.policies.arrays import Bools, Floats
from risingsearch.search.examples import Values

LEVEL = 0.95
RESAMPLES = 1_000
NEAR = 0.05  # of a hit or miss: rows of unequal folds weigh unequally
MANY = 100_000  # draws, where only a quantile is needed
MOST_ARMS = 200  # that are compared, the best by their scores
MOST_RESCORED = 50  # the same, where predictions are scored anew
MOST_SCORES = 1_000  # of the curves, the best
_TAILS = [50 * (1 - LEVEL), 50 * (1 + LEVEL)]
_NORMAL = 1.959964
BY_CURVES = "the noise of the scores from epoch to epoch, not of the validation rows"


class Verdict(NamedTuple):
    """The corrected score of the winner, and the arms that are level with it."""

    winner: int
    score: float
    low: float
    high: float
    tied: list[int]  # arms, the best first
    n_others: int
    source: str  # of the correction, in words
    knows_rows: bool = False  # so that it holds for other rows too

    @property
    def text(self) -> str:
        """The verdict as a clause."""
        n = len(self.tied)
        word = "better than" if self.knows_rows else "ahead of"
        standing = f"arm {self.winner} is {word} all others"
        if not self.n_others:
            standing = f"arm {self.winner} is the only one with a score"
        if n:
            others = "other" if n == 1 else "others"
            standing = f"arm {self.winner} is level with {n:,} {others}"
        if not math.isfinite(self.low):
            return f"{standing} ({self.source})"
        width = max(self.high - self.low, 1e-5)
        digits = max(1 - math.floor(math.log10(width)), 0)
        score, low, high = (_short(value, digits) for value in self[1:4])
        return f"{standing}; corrected {score} [{low}, {high}] ({self.source})"

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the interval, the lower first."""
        return (self.low, self.high)


def _short(value: float, digits: int) -> str:
    """Return a number without the zero before its point."""
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1.0 else text


class _Basis(NamedTuple):
    """The correction in rewards, and noise of the arms' scores, the winner's first."""

    source: str
    arms: Sequence[int]
    score: float
    low: float
    high: float
    rewards: Floats  # (n_arms,), of which the winner's is compared with the others
    noise: Floats  # (RESAMPLES, n_arms)
    knows_rows: bool = False


def _resampled(rewards: Values) -> tuple[Values, Values]:
    """Return means over the examples of each resample, and over those left out.

    Rewards are of shape (n_arms, n_examples), means (n_resamples, n_arms).
    """
    n = rewards.shape[1]
    rng = np.random.default_rng(0)
    counts = rng.multinomial(
        n,
        np.full(n, 1 / n),
        size=RESAMPLES,
    )
    leaves_some = counts.min(axis=1) == 0
    drawn = counts[leaves_some].astype(np.float32)
    left_out = (drawn == 0).astype(np.float32)
    n_left_out = left_out.sum(axis=1, keepdims=True)
    inside = drawn @ rewards.T / n
    outside = left_out @ rewards.T / n_left_out
    return inside, outside


@dataclass(frozen=True)
class Evidence:
    """All that a search knows of how far its scores can be trusted.

    Parameters
    ----------
    winner : int
        The arm that was chosen.
    scores : dict of int to float
        The best score of every arm that has one.
    sign : float
        Factor for scores that makes higher better.
    curves : dict of int to list of float
        The scores of every opened arm.
    examples : dict of int to ndarray
        The scores of the examples of an arm at its best epoch; with two axes,
        predictions.
    repeats : dict of int to list of float
        The scores of arms that were trained again with other seeds.
    scores_of : callable, optional
        Returns the scores of blocks of examples, by predictions.
    missing : str
        Why there are no examples, if that has a reason.
    bounds : tuple of two floats
        Between which scores lie.
    """

    winner: int
    scores: Mapping[int, float]
    sign: float
    curves: Mapping[int, Sequence[float]]
    examples: Mapping[int, Values]
    repeats: Mapping[int, Sequence[float]] = field(default_factory=dict)
    scores_of: Callable[[Values], Values] | None = None
    missing: str = ""
    bounds: tuple[float, float] = (-math.inf, math.inf)

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict, computed once."""
        basis = self._by_examples() or self._by_repeats() or self._by_curves()
        low = self._bounded(basis.low)
        high = self._bounded(basis.high)
        others = np.array(basis.arms[1:], dtype=int)
        return Verdict(
            self.winner,
            self._bounded(basis.score),
            min(low, high),
            max(low, high),
            others[_level(basis.rewards, basis.noise)].tolist(),
            len(others),
            basis.source,
            basis.knows_rows,
        )

    def _bounded(self, reward: float) -> float:
        """Return a reward as a score, within the range of scores."""
        lowest, highest = self.bounds
        return float(np.clip(self.sign * reward, lowest, highest))

    def without_data(self) -> Evidence:
        """Return it without the function for predictions, which knows the rows.

        And without examples that the verdict does not need, or no longer.
        """
        if "verdict" in vars(self):
            bare = replace(self, examples={}, scores_of=None)
            vars(bare)["verdict"] = self.verdict
            return bare
        kept = self._ranked(MOST_ARMS)
        examples = {arm: v for arm, v in self.examples.items() if arm in kept}
        return replace(self, examples=examples, scores_of=None)

    def _rewards(self, arms: Sequence[int]) -> Floats:
        return np.array([self.sign * self.scores[arm] for arm in arms])

    def _ranked(self, most: int) -> list[int]:
        """Return the winner, and the best of the others."""
        others = sorted(
            self.scores.keys() - {self.winner},
            key=lambda arm: (-self.sign * self.scores[arm], arm),
        )
        return [self.winner, *others[: most - 1]]

    def _by_examples(self) -> _Basis | None:
        """Return the basis by resamples of the examples; None without the winner's."""
        first = self.examples.get(self.winner)
        if first is None:
            return None
        ranked = self._ranked(MOST_RESCORED if first.ndim == 2 else MOST_ARMS)
        arms = [
            arm
            for arm in ranked
            if arm in self.examples and self.examples[arm].shape == first.shape
        ]
        values = [self.examples[arm] for arm in arms]
        if first.ndim == 2:
            if self.scores_of is None:
                return None
            values = [self.scores_of(predictions) for predictions in values]
            if not np.isfinite(values).all():
                return None
        rewards = np.float32(self.sign) * np.stack(values)
        n = rewards.shape[1]
        inside, fresh = _resampled(rewards)
        chosen = inside.argmax(axis=1)
        resample = np.arange(len(fresh))
        scores = fresh[resample, chosen].astype(float)
        means = rewards.mean(axis=1)
        scores += self.sign * self.scores[self.winner] - means.max()
        ends = np.percentile(scores, _TAILS)
        low, high = ends.tolist()
        score = float(scores.mean())
        low = min(low, _least(score, rewards))
        of_some = ""
        if len(arms) < len(ranked):
            of_some = f" of {len(arms)} of {len(ranked)} arms"
        return _Basis(
            f"bootstrap of {n:,} examples{of_some}",
            arms,
            score,
            low,
            high,
            self._rewards(arms),
            inside - means,
            knows_rows=True,
        )

    def _by_repeats(self) -> _Basis | None:
        """Return the basis by repeats with other seeds; None without two of the winner.

        An arm without any has the score of the search, which is a single one.
        """
        own_repeats = self.repeats.get(self.winner, ())
        if len(own_repeats) < 2:
            return None
        arms = self._ranked(MOST_ARMS)
        rewards = self._rewards(arms)
        n_of = np.ones(len(arms))
        squares = 0.0
        for place, arm in enumerate(arms):
            scores = self.sign * np.array(self.repeats.get(arm, ()))
            if len(scores):
                n_of[place] = len(scores)
                rewards[place] = scores.mean()
                deviations = scores - scores.mean()
                squares += float(np.sum(deviations**2))
        freedom = sum(len(scores) - 1 for scores in self.repeats.values())
        spreads = math.sqrt(squares / freedom) / np.sqrt(n_of)
        rng = np.random.default_rng(0)
        sizes = np.abs(rng.standard_t(freedom, MANY))
        quantile = np.quantile(sizes, LEVEL)
        squares_drawn = rng.chisquare(freedom, (RESAMPLES, 1))
        scale = np.sqrt(freedom / squares_drawn)
        shape = RESAMPLES, len(arms)
        drawn = rng.standard_normal(shape) * spreads
        score = float(rewards[0])
        half = float(quantile * spreads[0])
        return _Basis(
            f"{len(own_repeats)} repeats of arm {self.winner} with other seeds, on the "
            "same validation rows",
            arms,
            score,
            score - half,
            score + half,
            rewards,
            scale * drawn,
        )

    def _by_curves(self) -> _Basis:
        """Return the basis by the jumps of the curves."""
        curves = [self.sign * np.array(curve) for curve in self.curves.values()]
        late = [curve[(len(curve) - 1) // 2 :] for curve in curves]
        bends = np.concatenate([np.diff(curve, 2) for curve in late])
        known = bends[np.isfinite(bends)]
        noise = math.nan
        if len(known):
            sizes = np.abs(known)
            typical = float(np.median(sizes))
            noise = typical / 0.6745 / math.sqrt(6)
        arms = self._ranked(MOST_ARMS)
        best = self.sign * self.scores[self.winner]
        rewards = np.sort(np.concatenate(curves))
        rewards = rewards[np.isfinite(rewards)][-MOST_SCORES:]
        rng = np.random.default_rng(0)
        shape = RESAMPLES, len(rewards)
        drawn = noise * rng.standard_normal(shape)
        noisy = rewards + drawn
        chosen = noisy.argmax(axis=1)
        luck = drawn[np.arange(RESAMPLES), chosen]
        score = best - float(luck.mean())
        return _Basis(
            self.missing + BY_CURVES,
            arms,
            score,
            score - _NORMAL * noise,
            score + _NORMAL * noise,
            self._rewards(arms),
            noise * rng.standard_normal((RESAMPLES, len(arms))),
        )


def _least(score: float, rewards: Values) -> float:
    """Return a lower end for scores near the highest, which hardly vary in resamples.

    Of hits and misses it is that of Wilson's interval. Of others, if the winner's are
    all the same, it allows for 3 of n unlike these: none of n leaves so many in 95 %.
    """
    n = len(rewards[0])
    lowest = float(rewards.min())
    span = float(rewards.max()) - lowest
    if span == 0.0:
        return score
    shares = (rewards - lowest) / span
    if np.all((shares < NEAR) | (shares > 1 - NEAR)):
        hits = min(max((score - lowest) / span, 0.0), 1.0)
        z = _NORMAL
        variance = hits * (1 - hits) / n + (z / n) ** 2 / 4
        half = z * math.sqrt(variance)
        centre = hits + z**2 / (2 * n)
        share = (centre - half) / (1 + z**2 / n)
        return lowest + span * share
    if np.ptp(rewards[0]) == 0.0:
        return score - 3 / n * span
    return score


def _level(rewards: Floats, noise: Floats) -> Bools:
    """Return which arms are level with the first of them, which is left out.

    A score near its end is less noisy in its resamples than it is, so the median is the
    least variance that counts.
    """
    covariance = np.atleast_2d(np.cov(noise, rowvar=False))
    variances = np.diag(covariance)
    variances = np.maximum(variances, np.median(variances))
    sums = variances[:, None] + variances
    spread = np.sqrt(np.maximum(sums - 2 * covariance, 0.0))
    scale = np.where(spread > 0.0, spread, np.inf)
    np.fill_diagonal(scale, np.inf)
    largest = []
    for each in noise:
        differences = each[:, None] - each
        largest.append((differences / scale).max())
    threshold = np.quantile(largest, LEVEL)
    behind = rewards[0] - rewards[1:]
    is_worse: Bools = behind > threshold * spread[0, 1:]
    return ~is_worse
