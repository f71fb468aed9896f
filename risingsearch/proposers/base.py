"""Proposers: choose the configuration of an arm that a policy opens.

A policy decides *when* to open an arm. By default the next configuration of a random
order is taken; a proposer looks at the configurations and at where the opened ones are
heading, and picks one of the unopened, or gives the next another configuration.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


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
    """A configuration for the arm that the policy opens, in place of the drawn one."""

    params: Mapping[str, Any]
    like: tuple[int, ...] = ()  # the opened arms that it resembles


class Proposer(Protocol):
    """Interface of proposers.

    One that changes as it proposes has ``identity``: JSON that tells it from others.
    One that has a ``propose_early`` like ``propose`` is asked by it for the arms that
    the policy opens without a proposal. One of a space has ``more_slots``, see there,
    and its live ``candidates``.
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
        """Return the arm to open by earlier knowledge, in place of the policy's."""
        ...

    def trusted(self, opened: Opened) -> dict[str, float]:
        """Return how far each source of that knowledge is trusted, from 0 to 1."""
        ...
