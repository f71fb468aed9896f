"""SWA and wSWA: the mean of an arm's recent rewards, for rewards that wear out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from risingsearch.checks import checked_float
from risingsearch.policies.arrays import (
    Bools,
    Floats,
    Ints,
    Rng,
    int_zeros,
    zeros,
)
from risingsearch.policies.base import WAIT, arm_arrays, best_available, least_pulled
from risingsearch.policies.shared.rewards import append_reward, prefix_sums, window_sum

N_EPOCHS = 62  # of wSWA: more rounds than anyone can play, and still an int64


class SWA(NamedTuple):
    r"""SWA and wSWA: the highest mean of the last M rewards, after M pulls of each arm.

    For rewards that fall with the pulls of their arm (rested rotting), in any way, when
    the number of rounds :math:`T` is known. With

    .. math:: M = \big\lceil \alpha\, 4^{2/3} \sigma^{2/3} K^{-2/3} T^{2/3}
              \ln^{1/3}(\sqrt 2\, T) \big\rceil

    every arm is pulled ``M`` times, round-robin; from then on the arm with the highest
    mean of its last ``M`` rewards is pulled (Algorithm 1). Where ``K M`` exceeds ``T``
    it is round-robin to the end.

    wSWA needs no number of rounds, which only bounds its memory. Its epoch
    :math:`j = 0, 1, \ldots` covers the rounds :math:`2^j` to :math:`2^{j+1} - 1` and
    runs SWA anew for the horizon :math:`2^j`, its ramp-up included; the last one is cut
    where the rounds end (Corollary 3.1.1). Early epochs, too short for their ramp-up,
    are round-robin.

    References
    ----------
    Levine, Crammer, Mannor: "Rotting Bandits", NIPS 2017.

    Examples
    --------
    Arm 1 pays more, until it is worn out.

    >>> from risingsearch.policies.base import play_alone
    >>> policy = SWA.create(n_arms=2, horizon=12)
    >>> policy.windows
    array([2])
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.9 if n <= 5 else 0.2][arm], 12)
    [0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0]

    The fourth epoch of wSWA begins at round 8, with a window of 2 and a new ramp-up.

    >>> policy = SWA.create_wswa(n_arms=2, horizon=15)
    >>> policy.windows[:4].tolist()
    [1, 1, 1, 2]
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.9][arm], 15)
    [0, 0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    windows: Ints  # (n_epochs,), M of every epoch; SWA has one
    epoch: Ints  # (1,), j
    next_epoch: Ints  # (1,), first round of the next; SWA has none
    epoch_pulls: Ints  # (n_arms,)
    P: Floats  # (n_arms, max_pulls + 1), P[i, n]: sum of n rewards
    average: Floats  # (n_arms,), of the last M rewards of the epoch

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        alpha: float = 0.2,
        sigma: float = 0.5,
    ) -> SWA:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        alpha : float, default 0.2
            Scales the window, above 0; in theory ``(2 * highest mean) ** (-2 / 3)``.
        sigma : float, default 0.5
            Standard deviation of the noise, at least 0; 0.5 covers rewards in [0, 1].
        """
        policy = cls.create_wswa(n_arms, horizon, max_pulls, alpha=alpha, sigma=sigma)
        window = swa_window(float(alpha), float(sigma), n_arms, horizon)
        never = np.array([1 << N_EPOCHS])
        return policy._replace(windows=np.array([window]), next_epoch=never)

    @classmethod
    def create_wswa(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        alpha: float = 0.2,
        sigma: float = 0.5,
    ) -> SWA:
        """Return wSWA.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        alpha, sigma
            As in ``create``.
        """
        alpha = checked_float("alpha", alpha, 0.0, open_low=True)
        sigma = checked_float("sigma", sigma, 0.0)
        windows = [swa_window(alpha, sigma, n_arms, 1 << j) for j in range(N_EPOCHS)]
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            windows=np.array(windows, dtype=np.int64),
            epoch=int_zeros(1),
            next_epoch=np.full(1, 2, dtype=np.int64),
            epoch_pulls=int_zeros(n_arms),
            P=prefix_sums(n_arms, horizon, max_pulls),
            average=zeros(n_arms),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of the highest recent mean, after ``M`` pulls of each."""
        if t >= self.next_epoch[0]:  # nothing is known in it
            return int(self.available.argmax())
        window = self.windows[self.epoch[0]]
        arm = least_pulled(self.available, self.epoch_pulls, window)
        if arm != WAIT:
            return arm
        return best_available(self.available, self.average, self.epoch_pulls)

    def started(self, t: int, arm: int) -> None:
        """Begin the epoch of round ``t``, unless it has begun."""
        start_epoch(self, t)

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Move the arm's window; rewards decided in an epoch that is over are late."""
        start_epoch(self, t)
        n = append_reward(self.P, self.pulls, arm, reward)
        if t >= 1 << self.epoch[0]:
            self.epoch_pulls[arm] += 1
            h = min(self.epoch_pulls[arm], self.windows[self.epoch[0]])
            self.average[arm] = window_sum(self.P, arm, n - h, n) / h

    def explain(self, arm: int) -> dict[str, float]:
        """Return the mean of the last ``M`` rewards in the arm's latest epoch."""
        return {"recent_average": self.average[arm]}


def swa_window(
    alpha: float,
    sigma: float,
    n_arms: int,
    horizon: int,
) -> int:
    """Return the window ``M`` of SWA, from 1 to the horizon.

    Parameters
    ----------
    alpha : float
        Scales the window.
    sigma : float
        Standard deviation of the noise.
    n_arms : int
        Number of arms, ``K``.
    horizon : int
        Number of rounds, ``T``.

    Examples
    --------
    >>> swa_window(0.2, 0.5, n_arms=2, horizon=12), swa_window(0.2, 0.5, 2, 30_000)
    (2, 425)
    """
    scale = math.pow(4.0 * sigma * horizon / n_arms, 2 / 3)
    log_root = math.pow(math.log(math.sqrt(2.0) * horizon), 1 / 3)
    return max(1, math.ceil(min(alpha * scale * log_root, horizon)))


def start_epoch(policy: SWA, t: int) -> None:
    """Forget the epochs before the one that round ``t`` belongs to."""
    if t < policy.next_epoch[0]:
        return
    while t >= policy.next_epoch[0]:
        policy.epoch[0] += 1
        policy.next_epoch[0] *= 2
    for i in range(len(policy.pulls)):
        policy.epoch_pulls[i] = 0
