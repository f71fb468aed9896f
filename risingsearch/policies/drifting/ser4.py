"""Elimination that starts over at random times, for arms that change."""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

from risingsearch.checks import checked_float, checked_reward_range
from risingsearch.policies.arrays import (
    Bools,
    Floats,
    Ints,
    RewardRange,
    Rng,
    all_true,
    int_zeros,
    zeros,
)
from risingsearch.policies.base import NO_LIMIT, WAIT, arm_arrays, best_available
from risingsearch.policies.shared.rewards import record_mean, unit_reward


class SER4(NamedTuple):
    r"""SER4: successive elimination in random order, restarted at random.

    All arms take part at first. A sweep pulls each arm that takes part once, in random
    order. After the :math:`\tau`-th sweep every arm :math:`i` leaves for which, with
    :math:`m` the means since the last restart,

    .. math:: \max_j m_j - m_i + \epsilon \ge
              2 \sqrt{\frac{\ln(4 K \tau^2 / \delta)}{2 \tau}},

    but for the arm of the highest mean. After every pull, with the probability

    .. math:: \phi = \sqrt{\frac{N}{T K \ln(K T)}},

    everything starts over: all arms take part, nothing is known.

    :math:`\delta = 1 / T` and :math:`\epsilon = 1 / (K T)` are those of the CURE-UCB
    paper, which does not give :math:`N` = ``switches`` and prints the root of
    :math:`\phi` without brackets: this is our reading of it, and that the coin for a
    restart is tossed per pull, not per sweep. Where all arms that take part are busy or
    have ended, the best of the others, by its mean, is pulled.

    References
    ----------
    Allesiardo, Feraud, Maillard: "The Non-stationary Stochastic Multi-armed Bandit
    Problem", International Journal of Data Science and Analytics 3, 2017.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = SER4.create(n_arms=3, horizon=1000, switches=0)
    >>> _ = play_alone(policy, lambda arm, n, t: [0.0, 0.9, 0.5][arm], 300)
    >>> policy.pulls.tolist(), policy.active.tolist()
    ([42, 129, 129], [False, True, True])
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    log_factor: float  # ln(4 K / delta)
    eps: float
    restart_probability: float  # phi
    reward_range: RewardRange
    active: Bools  # (n_arms,), takes part
    turns: Ints  # (n_arms,), pulls since the restart
    mean: Floats  # (n_arms,), since the restart
    sweeps: Ints  # (1,), complete since the restart

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        delta: float | None = None,
        eps: float | None = None,
        switches: float = 1.0,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> SER4:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, reward_range
            See ``risingsearch.policies.base``.
        delta : float, optional
            Chance of a wrong elimination, above 0 and at most 1; by default ``1 / T``.
        eps : float, optional
            Differences that do not matter, at least 0; by default ``1 / (K T)``.
        switches : float, default 1.0
            Expected changes of the best arm, ``N``, at least 0; 0 for no restart.
        """
        rounds = float(n_arms) * horizon
        if delta is None:
            delta = 1.0 / horizon
        if eps is None:
            eps = 1.0 / rounds
        switches = checked_float("switches", switches, 0.0)
        delta = checked_float("delta", delta, 0.0, 1.0, open_low=True)
        restarts = 0.0
        if rounds > 1.0:
            restarts = switches / (rounds * log(rounds))
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            log_factor=log(4.0 * n_arms / delta),
            eps=checked_float("eps", eps, 0.0),
            restart_probability=min(1.0, sqrt(restarts)),
            reward_range=checked_reward_range(reward_range),
            active=all_true(n_arms),
            turns=int_zeros(n_arms),
            mean=zeros(n_arms),
            sweeps=int_zeros(1),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return one of the arms that the sweep owes a pull, any with the same chance.

        Drawn one after another, they come in the order of a shuffle.
        """
        fewest = NO_LIMIT
        n_owed = 0
        for i in range(len(self.turns)):
            if self.active[i] and self.available[i]:
                if self.turns[i] < fewest:
                    fewest = self.turns[i]
                    n_owed = 1
                elif self.turns[i] == fewest:
                    n_owed += 1
        if n_owed == 0:
            return best_available(self.available, self.mean, self.pulls)
        skip = int(rng.random() * n_owed)
        for i in range(len(self.turns)):
            if self.active[i] and self.available[i] and self.turns[i] == fewest:
                if skip == 0:
                    return i
                skip -= 1
        return WAIT

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Move the arm's mean, end the sweep if it was the last of it, or restart."""
        self.pulls[arm] += 1
        x = unit_reward(reward, self.reward_range)
        record_mean(self.turns, self.mean, arm, x)
        if rng.random() >= self.restart_probability:
            end_sweep(self)
            return
        self.sweeps[0] = 0  # all take part again, with nothing known about them
        for i in range(len(self.turns)):
            self.active[i] = True
            self.turns[i] = 0
            self.mean[i] = 0.0

    def explain(self, arm: int) -> dict[str, float]:
        """Return the arm's mean since the restart, and whether it takes part (1)."""
        return {
            "mean": self.mean[arm],
            "active": float(self.active[arm]),
        }


def end_sweep(policy: SER4) -> None:
    """Drop arms too far behind, once all that can still train had their turn."""
    best = WAIT
    tau = NO_LIMIT
    for i in range(len(policy.turns)):
        if policy.active[i] and policy.pulls_left[i] > 0:
            if policy.turns[i] <= policy.sweeps[0]:
                return
            if best == WAIT or policy.mean[i] > policy.mean[best]:
                best = i
            if policy.turns[i] < tau:
                tau = policy.turns[i]
    if best == WAIT:
        return
    policy.sweeps[0] = tau
    log_term = policy.log_factor + 2.0 * log(tau)
    radius = 2.0 * sqrt(log_term / (2.0 * tau))
    for i in range(len(policy.turns)):
        gap = policy.mean[best] - policy.mean[i] + policy.eps
        if policy.active[i] and i != best and gap >= radius:
            policy.active[i] = False
