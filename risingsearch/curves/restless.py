"""Restless arms: their means move with the rounds, whether they are pulled or not."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from risingsearch.checks import checked_array, checked_choice, checked_float
from risingsearch.curves import optimum
from risingsearch.curves.noise import Noise, NoiseLike, checked_noise, noisy
from risingsearch.errors import InvalidParameterError
from risingsearch.policies.arrays import Floats, Ints, Rng, int_zeros

BETWEEN = ("held", "linear", "mixture")
REFERENCES = ("dynamic", "static")
BLOCK = 512


class DriftingMeans(NamedTuple):
    """Means and variances given at a few rounds, held or interpolated between them.

    Good for arms that jump, drift or repeat themselves over any number of rounds:
    memory grows with the knots, not with the rounds.

    Parameters
    ----------
    rounds : ndarray of shape (n_knots,)
        The rounds of the knots, from 1, increasing.
    means, variances : ndarray of shape (n_knots, n_arms)
        Of every arm at every knot.
    rates : ndarray of shape (n_knots,)
        Part of the way to the next knot per round; 0 where the arms stay.
    mixing : bool
        Whether a reward comes from one of two knots, instead of from between them.
    noise : Noise
        The noise model.
    reference : str
        The reference of regret.
    knot : ndarray of shape (1,)
        The knot used last.

    Examples
    --------
    >>> arms = DriftingMeans.create([[0.5, 0.5], [0.0, 1.0]], [1, 11], between="linear")
    >>> [arms.mean(1, 1, t) for t in (1, 6, 11, 20)]
    [0.0, 0.5, 1.0, 1.0]
    >>> arms.optimal(np.array([6, 11]))  # arm 0, and from round 7 on arm 1
    array([3., 7.])
    """

    rounds: Ints  # (n_knots,), from 1, increasing
    means: Floats  # (n_knots, n_arms)
    variances: Floats  # (n_knots, n_arms)
    rates: Floats  # (n_knots,), part of the way to the next per round
    mixing: bool
    noise: Noise
    reference: str
    knot: Ints  # (1,), the knot used last

    @classmethod
    def create(
        cls,
        means: ArrayLike,
        rounds: ArrayLike = (1,),
        *,
        deviations: ArrayLike = 1.0,
        between: str = "held",
        noise: NoiseLike = 1.0,
        reference: str = "dynamic",
    ) -> DriftingMeans:
        """Return the environment.

        Parameters
        ----------
        means : array-like of shape (n_arms, n_knots)
            The mean of every arm at every knot.
        rounds : array-like of shape (n_knots,), default (1,)
            The round of every knot: whole numbers, increasing, from 1. After the last
            knot nothing changes.
        deviations : array-like, shape (), (n_arms,) or (n_arms, n_knots), default 1.0
            Standard deviation of the rewards; the noise's own ``sigma`` multiplies it.
        between : {"held", "linear", "mixture"}, default "held"
            From a knot to the next, mean and variance stay; or change by the same
            amount every round; or a reward comes from the next knot's distribution with
            a probability that grows from 0 to 1 by the same amount every round.
        noise : Noise, str or float, default 1.0
            A noise model, its kind, or a factor on the deviations of Gaussian noise.
        reference : {"dynamic", "static"}, default "dynamic"
            The reference of regret: the best mean of every round, or that of
            round 1 every round.

        Returns
        -------
        DriftingMeans
            The environment; ``fresh`` gives one for a concurrent run.

        Raises
        ------
        InvalidParameterError
            If shapes do not match or a value is outside its range.

        Examples
        --------
        >>> arms = DriftingMeans.create([[0.5, 0.9], [0.6, 0.2]], rounds=[1, 100])
        >>> [arms.mean(0, 1, t) for t in (1, 99, 100)]
        [0.5, 0.5, 0.9]
        """
        table = _checked_means(means)
        n_arms, n_knots = table.shape
        knots = checked_array("rounds", rounds, dtype=None)
        if (
            knots.dtype.kind not in "iu"
            or knots.shape != (n_knots,)
            or knots[0] != 1
            or np.any(np.diff(knots) < 1)
        ):
            raise InvalidParameterError(
                f"rounds must be {n_knots} whole numbers, one per column of means, "
                f"increasing from 1; got {rounds!r}"
            )
        knots = knots.astype(np.int64)
        checked_choice("between", between, BETWEEN)
        rates = np.zeros(n_knots)
        if between != "held":
            rates[:-1] = 1.0 / np.diff(knots)
        return cls(
            rounds=knots,
            means=np.ascontiguousarray(table.T),
            variances=_checked_variances(deviations, n_arms, n_knots),
            rates=rates,
            mixing=between == "mixture",
            noise=checked_noise(noise, float(table.min()), float(table.max())),
            reference=checked_choice("reference", reference, REFERENCES),
            knot=int_zeros(1),
        )

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.means[0])

    def fresh(self) -> DriftingMeans:
        """Return the environment at the start of the same tables."""
        return self._replace(knot=np.zeros_like(self.knot))

    def mean(
        self,
        arm: int,
        n: int,
        t: int,
    ) -> float:
        """Return the mean of the arm at round ``t``."""
        k, after, part = position(
            self.rounds,
            self.rates,
            self.knot,
            t,
        )
        return between(self.means[k, arm], self.means[after, arm], part)

    def draw(
        self,
        mean: float,
        arm: int,
        n: int,
        t: int,
        rng: Rng,
    ) -> float:
        """Return the mean with noise, or a reward from one of the two knots."""
        k, after, part = position(
            self.rounds,
            self.rates,
            self.knot,
            t,
        )
        if self.mixing:
            if part > 0.0 and rng.random() < part:
                k = after
            part = 0.0
            mean = self.means[k, arm]
        variance = between(self.variances[k, arm], self.variances[after, arm], part)
        return noisy(
            self.noise,
            mean,
            math.sqrt(variance),
            rng,
        )

    def optimal(self, rounds: Ints) -> Floats:
        """Return the sum of the best means or of the constant, in closed form."""
        if self.reference == "static":
            return float(self.means[0].max()) * rounds.astype(np.float64)
        bounds = np.unique(np.concatenate([self.rounds, rounds + 1]))
        bounds = bounds[bounds <= rounds.max() + 1]
        first = bounds[:-1]
        k = np.searchsorted(self.rounds, first, side="right") - 1
        after = np.minimum(k + 1, len(self.rounds) - 1)
        slopes = self.rates[k, None] * (self.means[after] - self.means[k])
        starts = self.means[k] + slopes * (first - self.rounds[k])[:, None]
        sums = optimum.upper_sums(starts, slopes, np.diff(bounds))
        best: Floats = np.concatenate([[0.0], np.cumsum(sums)])
        return best[np.searchsorted(bounds, rounds + 1)]


class Sinusoid(NamedTuple):
    r"""One-armed: a constant arm, and one that swings around it.

    :math:`r_0(t) = A`, :math:`r_1(t) = A - A \sin(\omega t + \phi)`: the arms of the
    "Smooth Non-Stationary Bandits" of Jia, Xie, Kallus, Frazier, section 7.2.
    ``make_environment("sinusoid")`` draws random instances.

    The sine is that of the last multiple of 512 rounds turned by the rest of the angle:
    two products in place of a sine, and the same value in any order of asking.

    Parameters
    ----------
    amplitude, frequency, phase : float
        As given to ``create``.
    noise : Noise
        The noise model.
    turns : ndarray of shape (512, 2)
        Cosine and sine of so many rounds.
    block : ndarray of shape (1,)
        The block of rounds that ``anchor`` belongs to.
    anchor : ndarray of shape (2,)
        Sine and cosine where that block begins.

    Examples
    --------
    >>> arms = Sinusoid.create(amplitude=0.1, frequency=math.pi / 4)
    >>> [round(arms.mean(1, 1, t), 3) for t in (2, 4, 6)]
    [0.0, 0.1, 0.2]
    >>> arms.optimal(np.array([4, 8]))
    array([0.4 , 1.041])
    """

    amplitude: float
    frequency: float  # radians per round
    phase: float
    noise: Noise
    turns: Floats  # (BLOCK, 2), cosine and sine of so many rounds
    block: Ints  # (1,), the block that the next one belongs to
    anchor: Floats  # (2,), sine and cosine where the block begins

    @classmethod
    def create(
        cls,
        amplitude: float,
        frequency: float,
        phase: float = 0.0,
        noise: NoiseLike = 1.0,
    ) -> Sinusoid:
        r"""Return the environment.

        Parameters
        ----------
        amplitude : float
            The constant mean, and the height of the swing, in units of the reward.
        frequency : float
            Radians per round, above 0 and at most :math:`\pi`.
        phase : float, default 0.0
            Angle at round 0, in radians.
        noise : Noise, str or float, default 1.0
            A noise model, its kind, or the standard deviation of Gaussian noise.

        Returns
        -------
        Sinusoid
            The environment; ``fresh`` gives one for a concurrent run.

        Raises
        ------
        InvalidParameterError
            If a value is outside its range.

        Examples
        --------
        >>> arms = Sinusoid.create(0.5, frequency=math.pi / 2, noise="bernoulli")
        >>> [round(arms.mean(1, 1, t), 3) for t in (1, 2, 3)]
        [0.0, 0.5, 1.0]
        """
        amplitude = checked_float("amplitude", amplitude, -math.inf)
        frequency = checked_float(
            "frequency",
            frequency,
            0.0,
            math.pi,
            open_low=True,
        )
        angles = frequency * np.arange(BLOCK)
        return cls(
            amplitude,
            frequency,
            checked_float("phase", phase, -math.inf),
            checked_noise(noise, min(0.0, 2.0 * amplitude), max(0.0, 2.0 * amplitude)),
            turns=np.stack([np.cos(angles), np.sin(angles)], axis=1),
            block=np.full(1, -1, dtype=np.int64),
            anchor=np.zeros(2),
        )

    @property
    def n_arms(self) -> int:
        """Number of arms: 2."""
        return 2

    @property
    def reference(self) -> str:
        """Kind of optimum in ``optimal``: the sum of every round's best mean."""
        return "dynamic"

    def fresh(self) -> Sinusoid:
        """Return the environment with a new anchor."""
        return self._replace(block=np.full(1, -1, dtype=np.int64), anchor=np.zeros(2))

    def mean(
        self,
        arm: int,
        n: int,
        t: int,
    ) -> float:
        """Return the mean of the arm at round ``t``."""
        if arm == 0:
            return self.amplitude
        sine = sine_at(
            self.frequency, self.phase, self.turns, self.block, self.anchor, t
        )
        return self.amplitude - self.amplitude * sine

    def draw(
        self,
        mean: float,
        arm: int,
        n: int,
        t: int,
        rng: Rng,
    ) -> float:
        """Return the mean with noise."""
        return noisy(
            self.noise,
            mean,
            1.0,
            rng,
        )

    def optimal(self, rounds: Ints) -> Floats:
        """Return the sum of the best means, one term per half of a swing."""
        # The swinging arm leads where its sine is below 0; for a negative amplitude
        # that is where the sine of the angle plus pi is.
        phase = self.phase
        if self.amplitude < 0.0:
            phase += math.pi
        last_angle = phase + self.frequency * float(rounds.max())
        first_swing = math.floor(phase / math.tau) - 1
        last_swing = math.ceil(last_angle / math.tau)
        swing = np.arange(first_swing, last_swing + 1)
        begin = np.ceil((math.pi * (2 * swing + 1) - phase) / self.frequency)
        begin = np.maximum(begin, 1.0)
        end = np.floor((math.pi * (2 * swing + 2) - phase) / self.frequency)
        end = np.minimum(end, rounds[:, None])
        half = 0.5 * self.frequency
        n_rounds = np.maximum(end - begin + 1.0, 0.0)
        share = np.sin(half * n_rounds) / math.sin(half)
        sines = np.sin(half * (begin + end) + phase) * share
        gained = abs(self.amplitude) * sines.sum(axis=1)
        return np.asarray(self.amplitude * rounds - gained)


# These take arrays: a NamedTuple is copied where the compiler does not inline the call.


def sine_at(
    frequency: float,
    phase: float,
    turns: Floats,
    block: Ints,
    anchor: Floats,
    t: int,
) -> float:
    """Return the sine of round ``t``, from where its block begins."""
    number = t // BLOCK
    begin = number * BLOCK
    if block[0] != number:
        angle = frequency * begin + phase
        anchor[0] = math.sin(angle)
        anchor[1] = math.cos(angle)
        block[0] = number
    i = t - begin
    return float(anchor[0] * turns[i, 0] + anchor[1] * turns[i, 1])


def position(
    rounds: Ints,
    rates: Floats,
    knot: Ints,
    t: int,
) -> tuple[int, int, float]:
    """Return the knots before and after round ``t``, and the part of the way there."""
    k = knot[0]  # The one used last.
    if t < rounds[k]:
        k = 0
    while k + 1 < len(rounds) and t >= rounds[k + 1]:
        k += 1
    knot[0] = k
    return k, min(k + 1, len(rounds) - 1), (t - rounds[k]) * rates[k]


def between(
    left: float,
    right: float,
    part: float,
) -> float:
    """Return the point that lies this part of the way from left to right."""
    return float(left + part * (right - left))


def _checked_means(means: ArrayLike) -> Floats:
    table = checked_array("means", means, ndmin=2)
    if table.ndim != 2 or table.size == 0 or not np.all(np.isfinite(table)):
        raise InvalidParameterError(
            "means must be a table of finite numbers, one row per arm and one column "
            f"per knot; got shape {table.shape}"
        )
    return table


def _checked_variances(
    deviations: ArrayLike,
    n_arms: int,
    n_knots: int,
) -> Floats:
    wide = checked_array("deviations", deviations)
    fits = wide.shape in [(), (n_arms,), (n_arms, n_knots)]
    if not fits or not np.all((wide >= 0.0) & (wide < np.inf)):
        raise InvalidParameterError(
            "deviations must be finite numbers of at least 0: one, one per arm, or one "
            f"per arm and knot; got {deviations!r}"
        )
    # The transpose of a number or of a list is itself, and it spreads over the knots.
    return np.array(np.broadcast_to(wide.T**2, (n_knots, n_arms)), order="C")
