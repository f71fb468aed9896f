"""Rested curves: a table of the mean of every pull."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from risingsearch.checks import checked_array, checked_choice
from risingsearch.curves import optimum
from risingsearch.curves.noise import Noise, NoiseLike, checked_noise, noisy
from risingsearch.errors import InvalidParameterError
from risingsearch.policies.arrays import Floats, Ints, Rng

REFERENCES = {
    "allocation": optimum.allocation,
    "best-arm": optimum.best_arm,
    "greedy": optimum.greedy,
}


class CurveTable(NamedTuple):
    """Rested arms whose means stand in a table, one row per arm.

    Good for replaying recorded learning curves, of equal lengths or not: an arm ends
    with its curve.

    Parameters
    ----------
    means : ndarray of shape (n_arms, n_pulls)
        The mean of every pull, NaN after an arm's last one.
    pulls : ndarray of shape (n_arms,)
        Pulls that each arm can give.
    noise : Noise
        The noise on top of the means.
    reference : str
        The reference of regret.

    Examples
    --------
    >>> arms = CurveTable.create([[0.5, 0.6, 0.6], [0.1, 0.7, np.nan]])
    >>> arms.pulls
    array([3, 2])
    >>> arms.optimal(np.array([2, 3, 5]))  # at best
    array([1.1, 1.7, 2.5])
    """

    means: Floats  # (n_arms, n_pulls), NaN after an arm's last pull
    pulls: Ints  # (n_arms,)
    noise: Noise
    reference: str

    @classmethod
    def create(
        cls, means: ArrayLike, noise: NoiseLike = 0.0, reference: str = "allocation"
    ) -> CurveTable:
        """Return the environment.

        Parameters
        ----------
        means : array-like of shape (n_arms, n_pulls)
            The mean of every pull, higher is better; NaN after an arm's last pull.
        noise : Noise, str or float, default 0.0
            A noise model, its kind, or the standard deviation of Gaussian noise, on top
            of the means.
        reference : {"allocation", "best-arm", "greedy"}, default "allocation"
            The reference of regret: the best numbers of pulls, exact for curves
            of any shape; the best single arm, which is the same where means never fall
            and no curve ends; the best next mean, which is the same where they never
            rise.

        Returns
        -------
        CurveTable
            The environment, without state: any number of runs can share it.

        Raises
        ------
        InvalidParameterError
            If the table is empty, an arm has no mean, or NaN stands within a curve.

        Examples
        --------
        >>> arms = CurveTable.create([[0.5, 0.6], [0.1, 0.7]], reference="best-arm")
        >>> arms.optimal(np.array([1, 2]))
        array([0.5, 1.1])
        """
        table = checked_array("means", means, ndmin=2)
        present = ~np.isnan(table)
        pulls = present.sum(axis=1)
        within = np.arange(table.shape[1]) < pulls[:, None]
        if table.ndim != 2 or table.size == 0 or not np.all(present == within):
            raise InvalidParameterError(
                "means must be a table of one row per arm, with NaN only after an "
                f"arm's last pull; got shape {table.shape}"
            )
        if not np.all(pulls > 0) or np.any(np.isinf(table)):
            raise InvalidParameterError(
                "every arm needs at least one mean, and all must be finite"
            )
        return cls(
            table,
            pulls.astype(np.int64),
            checked_noise(noise, float(np.nanmin(table)), float(np.nanmax(table))),
            checked_choice("reference", reference, tuple(REFERENCES)),
        )

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.means)

    def mean(self, arm: int, n: int, t: int) -> float:
        """Return the mean of the arm's ``n``-th pull."""
        return float(self.means[arm, n - 1])

    def draw(
        self,
        mean: float,
        arm: int,
        n: int,
        t: int,
        rng: Rng,
    ) -> float:
        """Return the mean with noise."""
        return noisy(self.noise, mean, 1.0, rng)

    def optimal(self, rounds: Ints) -> Floats:
        """Return the best sum of means, by the ``reference``."""
        return REFERENCES[self.reference](self.means, rounds)
