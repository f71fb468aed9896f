"""UCB-Improved: elimination of arms that do not change."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from risingsearch.checks import checked_choice, checked_reward_range
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
from risingsearch.policies.base import NO_LIMIT, WAIT, arm_arrays
from risingsearch.policies.shared.race import (
    all_have,
    drop_behind,
    in_race,
    next_in_turn,
)
from risingsearch.policies.shared.rewards import range_width, record_mean


class ImprovedUCB(NamedTuple):
    r"""UCB-Improved: elimination in stages of ever finer resolution.

    With many arms or a short budget it is close to round-robin.

    A stage has a resolution :math:`\Delta`, at first 1, and ends when every arm in the
    race has

    .. math:: n = \Big\lceil \frac{2 \ln(T \Delta^2)}{\Delta^2} \Big\rceil

    pulls in all. Then the arms whose mean plus :math:`\sqrt{\ln(T \Delta^2) / (2 n)}`
    is below the highest mean minus as much are dropped, and :math:`\Delta` is halved.
    The widths are in units of the reward range. There is no further stage once
    :math:`T \Delta^2 < e`. Under a budget in seconds ``T`` is the longest of the arms'
    horizons.

    Auer and Ortner fix the number of pulls, not their order, which is in turn, or with
    ``order="random"``, after one pull of each, uniformly random, as in the UCB-Imp of
    Fang et al.

    References
    ----------
    Auer, Ortner: "UCB Revisited: Improved Regret Bounds for the Stochastic Multi-Armed
    Bandit Problem", Periodica Mathematica Hungarica 61, 2010; as a baseline in Fang et
    al., "From Theory to Practice with RAVEN-UCB".

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = ImprovedUCB.create(n_arms=2, horizon=200)
    >>> policy.target
    array([11])
    >>> _ = play_alone(policy, lambda arm, n, t: [0.1, 0.9][arm], 200)
    >>> policy.pulls
    array([ 32, 168])
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    random_order: bool
    range_width: float
    resolution: Floats  # (1,), Delta
    target: Ints  # (1,), n
    width: Floats  # (n_arms,), the same of all
    alive: Bools  # (n_arms,)
    value: Floats  # (n_arms,), mean

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        order: str = "round-robin",
        reward_range: RewardRange = (0.0, 1.0),
    ) -> ImprovedUCB:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, reward_range
            See ``risingsearch.policies.base``.
        order : {"round-robin", "random"}, default "round-robin"
            How the arms in the race get their pulls.
        """
        policy = cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            random_order=checked_choice("order", order, ("round-robin", "random"))
            == "random",
            range_width=range_width(checked_reward_range(reward_range)),
            resolution=np.ones(1),
            target=int_zeros(1),
            width=zeros(n_arms),
            alive=all_true(n_arms),
            value=zeros(n_arms),
        )
        begin_stage(policy)
        return policy

    def select(self, t: int, rng: Rng) -> int:
        """Return the next arm of the race, in turn or at random."""
        if self.random_order:
            arm = random_of_race(self, rng)
            if arm != WAIT:
                return arm
        return next_in_turn(
            self.available, self.pulls_left, self.alive, self.pulls, self.value
        )

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Move the arm's mean; end the stage when all have their pulls."""
        record_mean(self.pulls, self.value, arm, reward)
        if all_have(self.pulls_left, self.alive, self.pulls, self.target[0]):
            drop_behind(self.pulls_left, self.alive, self.value, self.width)
            self.resolution[0] *= 0.5
            begin_stage(self)

    def explain(self, arm: int) -> dict[str, float]:
        """Return the mean, and the width it will be judged with next."""
        return {
            "mean": self.value[arm],
            "width": self.width[arm],
        }


def begin_stage(policy: ImprovedUCB) -> None:
    """Set the pulls that the stage asks for, and the width at its end."""
    T = policy.horizon[policy.horizon.argmax()]  # max() does not compile
    square = policy.resolution[0] * policy.resolution[0]
    if T * square < math.e:
        policy.target[0] = NO_LIMIT
        return
    confidence = math.log(T * square)
    policy.target[0] = math.ceil(2.0 * confidence / square)
    width = math.sqrt(0.5 * confidence / policy.target[0])
    policy.width[:] = policy.range_width * width


def random_of_race(policy: ImprovedUCB, rng: Rng) -> int:
    """Return any available arm in the race, but one never pulled before all others."""
    alive = policy.alive
    pulls_left = policy.pulls_left
    n_available = 0
    for i in range(len(policy.pulls)):
        if policy.available[i] and in_race(alive, pulls_left, i):
            if policy.pulls[i] == 0:
                return i
            n_available += 1
    if n_available > 0:
        skip = int(rng.random() * n_available)
        for i in range(len(policy.pulls)):
            if policy.available[i] and in_race(alive, pulls_left, i):
                if skip == 0:
                    return i
                skip -= 1
    return WAIT
