"""Rested curves given by a formula: any number of pulls, no table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from risingsearch.curves.inputs import checked_array
from risingsearch.curves.noise import Noise, checked_noise, noisy
from risingsearch.errors import InvalidParameterError


class LinearThenFlat(NamedTuple):
    r"""Linear then flat: :math:`\mu_i(n) = \min(b_i, a_i n)`.

    The rising arms of the CURE-UCB paper (appendix A.1.1), and its two-arm figure.
    ``make_environment("ltf")`` draws random instances.

    References
    ----------
    Song et al., arXiv 2602.10727.

    Examples
    --------
    >>> arms = LinearThenFlat.create(slopes=[1.0, 0.1], plateaus=[0.4, 1.0], noise=0.0)
    >>> [arms.mean(1, n, n) for n in (1, 5, 20)]
    [0.1, 0.5, 1.0]
    >>> arms.optimal(np.array([5, 20]))
    array([ 2. , 15.5])
    """

    slopes: NDArray[np.float64]  # (n_arms,), a
    plateaus: NDArray[np.float64]  # (n_arms,), b
    noise: Noise

    @classmethod
    def create(
        cls, slopes: ArrayLike, plateaus: ArrayLike, noise: Noise | str | float = 0.01
    ) -> LinearThenFlat:
        """Return the environment.

        Parameters
        ----------
        slopes, plateaus : array-like of shape (n_arms,)
            Gain per pull and highest mean of every arm, in units of the reward; at
            least 0.
        noise : Noise, str or float, default 0.01
            A noise model, its kind, or the standard deviation of Gaussian noise.

        Raises
        ------
        InvalidParameterError
            If the two do not match or are negative, or the noise does not fit them.
        """
        a = checked_array("slopes", slopes)
        b = checked_array("plateaus", plateaus)
        fits = a.ndim == 1 and a.shape == b.shape and a.size > 0
        both = np.append(a, b)
        if not fits or not np.all((both >= 0.0) & np.isfinite(both)):
            msg = (
                "slopes and plateaus must be two lists of one number of at least 0 per "
                f"arm, none infinite; got {slopes!r} and {plateaus!r}"
            )
            raise InvalidParameterError(msg)
        return cls(a, b, checked_noise(noise, 0.0, float(b.max())))

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.slopes)

    @property
    def reference(self) -> str:
        """Kind of optimum in ``optimal``: the sum of the best single arm."""
        return "best-arm"

    def mean(self, arm: int, n: int, t: int) -> float:
        """Return ``min(b, a n)``."""
        return float(min(self.plateaus[arm], self.slopes[arm] * n))

    def draw(
        self, mean: float, arm: int, n: int, t: int, rng: np.random.Generator
    ) -> float:
        """Return the mean with noise."""
        return noisy(self.noise, mean, 1.0, rng)

    def optimal(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the sum of the best single arm, in closed form."""
        a, b = self.slopes[:, None], self.plateaus[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rising = np.where(a > 0.0, np.floor(b / a), 0.0)
        rising = np.minimum(rising, rounds)
        sums = 0.5 * a * rising * (rising + 1.0) + b * (rounds - rising)
        best: NDArray[np.float64] = np.where(a > 0.0, sums, 0.0).max(axis=0)
        return best
