"""RAVEN-UCB: a bonus that fades with time, and one for the variance."""

from __future__ import annotations

from math import inf, log, sqrt
from typing import NamedTuple

from risingsearch.checks import checked_choice, checked_float
from risingsearch.policies.arrays import Bools, Floats, Ints, Rng, zeros
from risingsearch.policies.base import (
    WAIT,
    arm_arrays,
    coming_round,
    leader,
    least_pulled,
)
from risingsearch.policies.shared.rewards import VARIANCES, record_moments


class RavenUCB(NamedTuple):
    r"""RAVEN-UCB: a bonus that fades with time, and one that follows the variance.

    ``alpha0`` is in units of the reward; the defaults are the paper's for means between
    0.3 and 0.8. With :math:`m` and :math:`S^2` the mean and the variance of the arm's
    :math:`N` rewards, the index is (Algorithm 1)

    .. math:: m + \frac{\alpha_0}{\ln(t + \epsilon)} \sqrt{\frac{\ln(t + 1)}{N + 1}}
              + \beta_0 \sqrt{\frac{S^2}{N + 1} + \epsilon}

    Every arm is pulled once first. Three recursions of the variance are in circulation;
    with :math:`d` the product of the new reward's distances to the old and the new mean
    they are

    - ``"eq5"``: :math:`((N - 2) S^2 + d) / (N - 1)`, the unbiased variance;
    - ``"alg1"``: :math:`(S^2 + d) / (N - 1)`, as Algorithm 1 prints it, which shrinks
      to nothing like :math:`1 / N`;
    - ``"table4"``: :math:`S^2 + d / (N - 1)`, as in the script behind Table 4, which
      grows with :math:`\ln N`.

    Where text and script differ on the logarithms of the round, Algorithm 1 counts.
    The paper's regret bound assumes a bonus that the algorithm does not have.

    References
    ----------
    Fang et al.: "From Theory to Practice with RAVEN-UCB", Algorithm 1 and eq. 5.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = RavenUCB.create(n_arms=2, horizon=20)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.6][arm], 20)
    [0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    alpha0: float
    beta0: float
    eps: float
    variance_kind: int  # place in VARIANCES
    mean: Floats  # (n_arms,)
    variance: Floats  # (n_arms,), S^2
    inverse_root: Floats  # (n_arms,), 1 / sqrt(N + 1)
    variance_bonus: Floats  # (n_arms,)

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        alpha0: float = 0.5,
        beta0: float = 1.0,
        eps: float = 1e-6,
        variance: str = "eq5",
    ) -> RavenUCB:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        alpha0 : float, default 0.5
            Weight of the bonus that fades with time, at least 0.
        beta0 : float, default 1.0
            Weight of the bonus for variance, at least 0.
        eps : float, default 1e-6
            Keeps the variance bonus above 0, in units of a squared reward; at least 0.
        variance : {"eq5", "alg1", "table4"}, default "eq5"
            The recursion of the variance.
        """
        checked_choice("variance", variance, ("eq5", "alg1", "table4"))
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            alpha0=checked_float("alpha0", alpha0, 0.0),
            beta0=checked_float("beta0", beta0, 0.0),
            eps=checked_float("eps", eps, 0.0),
            variance_kind=VARIANCES.index(variance),
            mean=zeros(n_arms),
            variance=zeros(n_arms),
            inverse_root=zeros(n_arms),
            variance_bonus=zeros(n_arms),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of highest index, after one pull of each."""
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        scale = raven_scale(self, t)
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                bonus = scale * self.inverse_root[i]
                index = self.mean[i] + bonus + self.variance_bonus[i]
                arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Move the arm's mean, variance and variance bonus."""
        n = record_moments(
            self.variance_kind, self.pulls, self.mean, self.variance, arm, reward
        )
        self.inverse_root[arm] = 1.0 / sqrt(n + 1.0)
        self.variance_bonus[arm] = self.beta0 * sqrt(
            self.variance[arm] / (n + 1.0) + self.eps
        )

    def explain(self, arm: int) -> dict[str, float]:
        """Return mean, fading bonus and variance bonus at the coming round."""
        if self.pulls[arm] == 0:
            return {
                "mean": 0.0,
                "bonus": inf,
                "variance_bonus": 0.0,
            }
        scale = raven_scale(self, coming_round(self.pulls))
        return {
            "mean": self.mean[arm],
            "bonus": scale * self.inverse_root[arm],
            "variance_bonus": self.variance_bonus[arm],
        }


def raven_scale(policy: RavenUCB, t: int) -> float:
    """Return ``alpha0 sqrt(ln(t + 1)) / ln(t + eps)``, the same for all arms."""
    return policy.alpha0 * sqrt(log(t + 1)) / log(t + policy.eps)
