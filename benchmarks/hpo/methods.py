"""The methods compared: epoch schedulers, variants of our own, and an oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.hpo import dyhpo, one_epoch
from benchmarks.hpo.draws import Search
from risingsearch.policies import policy_info, resolve_policy
from risingsearch.proposers.open_space import ListProposer

ORACLE = "oracle"
DEFAULT = "auto"
RULE = "looks-then-slope"


class Method(NamedTuple):
    """A policy, and what it is given besides the table.

    Parameters
    ----------
    name : str
        What tables call it.
    policy : str
        Its registered name, or ``ORACLE``.
    params : dict
        Its parameters.
    arms_per_budget : float, optional
        It gets this many arms per ``R`` epochs of budget. By default as many as its own
        rule recommends, and at least enough to use the budget up.
    proposer : callable, optional
        Makes the ``Scheduler``'s proposer from the features of all configurations, in
        the order in which they may be opened; then all of them may be opened.
    play : callable, optional
        Searches by itself, without a policy of the library, and from the features:
        returns the configuration of every epoch of a search with this budget, or None
        if that fails.
    """

    name: str
    policy: str
    params: dict[str, Any] = {}  # noqa: RUF012 - never changed
    arms_per_budget: float | None = None
    proposer: Callable[[NDArray[np.float64]], Any] | None = None
    play: Callable[[Search, int], NDArray[np.int64] | None] | None = None

    @property
    def plans_rounds(self) -> bool:
        """Whether it needs the budget beforehand, in epochs."""
        return policy_info(resolve_policy(self.policy)).plans_rounds


# The constants of the reference, chosen there for each on the public tasks.
HALVING_ARMS, OTHER_ARMS = 15.0, 12.5

BASELINES = (
    Method("successive-halving-4", "successive-halving", {"eta": 4}, HALVING_ARMS),
    Method("successive-halving-3", "successive-halving", {"eta": 3}, HALVING_ARMS),
    Method("asha-4", "asha", {"eta": 4}),
    Method("asha-3", "asha", {"eta": 3}),
    Method("hyperband", "hyperband"),
    Method("epsilon-greedy", "epsilon-greedy", {}, OTHER_ARMS),
    Method("median-stopping", "median-stopping"),
    Method("random-search", "random-search"),
)
DYHPO = Method("dyhpo", "dyhpo", play=dyhpo.play)
ONE_EPOCH = Method("one-epoch", "one-epoch", play=one_epoch.play)
BANDITS = (
    Method("cure-ucb", "cure-ucb", {"sigma": 0.0}, OTHER_ARMS),
    Method("r-ed-ucb", "r-ed-ucb", {"sigma": 0.01}, OTHER_ARMS),
    Method("rising-bandits-cash", "rising-bandits-cash"),
    Method("r-sr", "r-sr"),
    Method("r-ucbe", "r-ucbe"),
    Method("max-ucb", "max-ucb"),
)


def shipped() -> list[Method]:
    """Return the default as it is."""
    return [Method(DEFAULT, DEFAULT, proposer=ListProposer)]


def settings() -> list[Method]:
    """Return the settings among which ``left_out`` chooses."""
    shares = ("opening_share", "kept_share", "later_share")
    grid = product((0.25, 0.3, 0.4), (0.25, 1 / 3, 0.4), (0.0, 0.2, 0.4))
    return [
        Method(
            ", ".join(
                f"{name}={value:g}" for name, value in zip(shares, one, strict=True)
            ),
            RULE,
            dict(zip(shares, one, strict=True)),
        )
        for one in grid
    ]


def own(default: Sequence[Method]) -> list[Method]:
    """Return the default in its settings, and its rule without proposals."""
    return [*default, Method(RULE, RULE)]


def ablations() -> list[Method]:
    """Return the rule of the default with other shares."""
    changes: tuple[dict[str, float], ...] = (
        {"opening_share": 0.2},
        {"opening_share": 0.5},
        {"kept_share": 0.2},
        {"kept_share": 0.5},
        {"later_share": 0.0},
        {"later_share": 0.4},
    )
    return [
        Method(f"{name}={value:g}", RULE, {name: value})
        for one in changes
        for name, value in one.items()
    ]


def everyone(default: Sequence[Method]) -> list[Method]:
    """Return all methods that search by epochs, and the oracle."""
    oracle = Method(ORACLE, ORACLE)
    others = [*BASELINES, DYHPO, ONE_EPOCH, *BANDITS]
    return [*own(default), *others, *ablations(), oracle]


def in_conditions(default: Sequence[Method]) -> list[Method]:
    """Return the methods that are compared under conditions that take longer."""
    return [*own(default), *BASELINES, BANDITS[0]]


def without_horizon(default: Sequence[Method]) -> list[Method]:
    """Return the methods that can go on with a budget that grows."""
    return [
        method
        for method in (*own(default), *BASELINES)
        if method.arms_per_budget is None and not method.plans_rounds
    ]


def by_cost(default: Sequence[Method]) -> list[Method]:
    """Return the methods that can spend a budget in seconds."""
    return [method for method in in_conditions(default) if not method.plans_rounds]
