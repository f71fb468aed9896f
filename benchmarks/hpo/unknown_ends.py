"""A policy that is not told where the curves end, as in a live search.

A simulation tells a policy how many pulls every arm has left. A live search only knows
the limit that all arms share: it learns that a run has ended when a job returns fewer
epochs than were asked for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.policies.base import WAIT, slice_length, started
from risingsearch.simulation.engine import select, update


class UnknownEnds(NamedTuple):
    """Stands between a simulation and a policy, as the scheduler does in a search."""

    available: NDArray[np.bool_]  # (n_arms,), the truth
    pulls_left: NDArray[np.int64]  # (n_arms,), the truth
    missing: NDArray[np.int64]  # (n_arms,), what a curve lacks up to the limit
    ended: NDArray[np.bool_]  # (n_arms,), ends that have been seen
    policy: Any

    @classmethod
    def around(cls, policy: Any, lengths: NDArray[np.int64]) -> UnknownEnds:
        """Return the policy, made for a limit, with curves of these lengths."""
        n_arms = len(lengths)
        return cls(
            available=np.ones(n_arms, dtype=np.bool_),
            pulls_left=lengths.astype(np.int64),
            missing=(policy.pulls_left - lengths).astype(np.int64),
            ended=np.zeros(n_arms, dtype=np.bool_),
            policy=policy,
        )

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the policy's choice; where its curve has ended, note it and repeat."""
        while True:
            n_open = 0
            for i in range(len(self.ended)):
                show(self, i)
                n_open += self.policy.available[i]
            if n_open == 0:
                return WAIT
            arm = select(self.policy, t, rng)
            if arm == WAIT or self.available[arm]:
                return arm
            self.ended[arm] = True

    def slice_length(self, arm: int) -> int:
        """Return the policy's slice; one longer than the curve reveals its end."""
        length = slice_length(self.policy, arm)
        if length > self.pulls_left[arm]:
            self.ended[arm] = True
        return length

    def started(self, t: int, arm: int) -> None:
        """Tell the policy what is started."""
        show(self, arm)
        started(self.policy, t, arm)

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Pass the reward on."""
        show(self, arm)
        update(self.policy, t, arm, reward, rng)


def show(blind: UnknownEnds, arm: int) -> None:
    """Show the policy what a live search would know of an arm."""
    left = 0
    if not blind.ended[arm]:
        left = blind.pulls_left[arm] + blind.missing[arm]
    blind.policy.pulls_left[arm] = left
    blind.policy.available[arm] = left > 0
