"""Which arm next: every policy by its name.

>>> import numpy as np
>>> policy = make_policy("cure-ucb", n_arms=3, horizon=100, sigma=0.01)
>>> policy.select(1, np.random.default_rng(0))
0
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from risingsearch.checks import checked_choice, checked_int
from risingsearch.errors import unknown_name
from risingsearch.policies.base import (
    CALLER_ARRAYS,
    WAIT,
    Policy,
    explain,
    slice_length,
)
from risingsearch.policies.extrapolating import ScreenedDampedSlope
from risingsearch.policies.halving import ASHA, Hyperband, SuccessiveHalving
from risingsearch.policies.rising import CureUCB, REdUCB
from risingsearch.policies.smooth import BudgetedExploration
from risingsearch.policies.stationary import (
    EpsilonGreedy,
    RandomSearch,
    RoundRobin,
    UniformRandom,
)
from risingsearch.policies.stopping import MedianStopping

__all__ = [
    "ASHA",
    "CALLER_ARRAYS",
    "POLICIES",
    "WAIT",
    "BudgetedExploration",
    "CureUCB",
    "EpsilonGreedy",
    "Hyperband",
    "MedianStopping",
    "Policy",
    "PolicyInfo",
    "REdUCB",
    "RandomSearch",
    "RoundRobin",
    "ScreenedDampedSlope",
    "SuccessiveHalving",
    "UniformRandom",
    "explain",
    "list_policies",
    "make_policy",
    "recommended_arms",
    "resolve_policy",
    "slice_length",
]

PAPER = "formula of the paper"
STANDARD = "standard formula"
OWN = "own rule"


class PolicyInfo(NamedTuple):
    """What there is to know about a policy before using it.

    Parameters
    ----------
    name : str
        Its registered name.
    parameters : dict
        Names and defaults of what ``make_policy`` takes besides the sizes.
    paper : str
        Where it comes from.
    provenance : str
        "formula of the paper", "standard formula", "reconstruction" or "own rule".
    adaptive : bool
        True if it leaves nothing of a budget unspent while an arm can still train.
    plans_rounds : bool
        True if it plans the whole horizon in rounds before it starts, so that it needs
        a budget in epochs.
    summary : str
        The first line of its documentation.
    """

    name: str
    parameters: dict[str, Any]
    paper: str
    provenance: str
    adaptive: bool
    plans_rounds: bool
    summary: str


class _Entry(NamedTuple):
    policy: Any
    paper: str
    provenance: str
    adaptive: bool = True
    plans_rounds: bool = False


_ENTRIES: dict[str, _Entry] = {
    "asha": _Entry(ASHA, "Li et al. 2020, MLSys", STANDARD),
    "be": _Entry(
        BudgetedExploration,
        "Jia et al., Smooth Non-Stationary Bandits",
        PAPER,
        plans_rounds=True,
    ),
    "cure-ucb": _Entry(CureUCB, "Song et al., arXiv 2602.10727", PAPER),
    "epsilon-greedy": _Entry(
        EpsilonGreedy, "Sutton, Barto, section 2.2; Fang et al., section 4.3", STANDARD
    ),
    "hyperband": _Entry(Hyperband, "Li et al. 2018, JMLR", STANDARD),
    "median-stopping": _Entry(
        MedianStopping, "Golovin et al. 2017, KDD", STANDARD, adaptive=False
    ),
    "r-ed-ucb": _Entry(REdUCB, "Metelli et al. 2022, ICML", PAPER),
    "random": _Entry(UniformRandom, "baseline", STANDARD),
    "random-search": _Entry(RandomSearch, "Bergstra, Bengio 2012, JMLR", STANDARD),
    "round-robin": _Entry(RoundRobin, "baseline", STANDARD),
    "screened-damped-slope": _Entry(ScreenedDampedSlope, "risingsearch", OWN),
    "successive-halving": _Entry(
        SuccessiveHalving,
        "Karnin et al. 2013, ICML; Jamieson, Talwalkar 2016, AISTATS",
        STANDARD,
        adaptive=False,
        plans_rounds=True,
    ),
}

POLICIES: dict[str, Callable[..., Policy]] = {
    name: entry.policy.create for name, entry in _ENTRIES.items()
}

_AUTO = {"best": "screened-damped-slope", "sum": "cure-ucb"}


def resolve_policy(name: str, objective: str = "best") -> str:
    """Return the registered name that ``name`` stands for.

    Parameters
    ----------
    name : str
        A registered name, or ``"auto"``.
    objective : {"best", "sum"}, default "best"
        What ``"auto"`` is chosen for: the best model at the end of the budget, or the
        sum of all rewards on the way.

    Returns
    -------
    str

    Raises
    ------
    UnknownNameError
        If there is no such policy; the message names the closest one.

    Examples
    --------
    >>> resolve_policy("auto"), resolve_policy("auto", "sum")
    ('screened-damped-slope', 'cure-ucb')
    """
    checked_choice("objective", objective, tuple(_AUTO))
    if name == "auto":
        return _AUTO[objective]
    if name not in POLICIES:
        raise unknown_name("policy", name, ["auto", *POLICIES])
    return name


def make_policy(
    name: str,
    n_arms: int,
    horizon: int,
    max_pulls: int | None = None,
    **parameters: Any,
) -> Policy:
    """Build a policy by its registered name.

    Parameters
    ----------
    name : str
        A registered name, see ``list_policies``; ``"auto"`` is the default for tuning.
    n_arms : int
        Number of arms, at least 1.
    horizon : int
        Number of rounds, at least 1.
    max_pulls : int, optional
        Pulls an arm can give at most, at least 1; by default the horizon.
    **parameters
        The policy's own, see ``list_policies``.

    Returns
    -------
    Policy
        Ready for ``select`` at round 1.

    Raises
    ------
    UnknownNameError
        If there is no such policy or parameter; the message names the closest one.
    InvalidParameterError
        If a value is outside its range.

    Examples
    --------
    >>> make_policy("r-ed-ucb", n_arms=2, horizon=10, eps=0.5).eps
    0.5
    >>> make_policy("cure", n_arms=2, horizon=10)
    Traceback (most recent call last):
    ...
    risingsearch.errors.UnknownNameError: unknown policy 'cure'; did you mean ...
    """
    name = resolve_policy(name)
    known = _parameters(name)
    for parameter in parameters:
        if parameter not in known:
            raise unknown_name(f"parameter of {name}:", parameter, known)
    n_arms = checked_int("n_arms", n_arms, 1)
    horizon = checked_int("horizon", horizon, 1)
    if max_pulls is not None:
        max_pulls = checked_int("max_pulls", max_pulls, 1)
    return POLICIES[name](n_arms, horizon, max_pulls, **parameters)


def list_policies() -> list[PolicyInfo]:
    """Return what there is to know about every policy, in the order of their names.

    Returns
    -------
    list of PolicyInfo

    Examples
    --------
    >>> [info.name for info in list_policies()][:3]
    ['asha', 'be', 'cure-ucb']
    """
    return [policy_info(name) for name in sorted(_ENTRIES)]


def policy_info(name: str) -> PolicyInfo:
    """Return what there is to know about the policy of this registered name."""
    entry = _ENTRIES[name]
    return PolicyInfo(
        name=name,
        parameters=_parameters(name),
        paper=entry.paper,
        provenance=entry.provenance,
        adaptive=entry.adaptive,
        plans_rounds=entry.plans_rounds,
        summary=(inspect.getdoc(entry.policy) or "").splitlines()[0],
    )


def recommended_arms(name: str, horizon: int, max_pulls: int, **parameters: Any) -> int:
    """Return how many arms a budget is best spread over, by the policy's own rule.

    Parameters
    ----------
    name : str
        A registered name or ``"auto"``.
    horizon : int
        The budget in rounds.
    max_pulls : int
        Pulls an arm can give at most.
    **parameters
        The policy's own.

    Returns
    -------
    int
        At least as many as it takes to use the budget up, and no more than it has
        rounds. Policies without a rule of their own get a quarter of the rounds, or a
        quarter of its 50ths of ``max_pulls`` where curves are longer than 50.

    Raises
    ------
    UnknownNameError, InvalidParameterError
        As ``make_policy``.

    Examples
    --------
    >>> recommended_arms("auto", horizon=270, max_pulls=27)
    81
    """
    make_policy(name, 1, horizon, max_pulls, **parameters)  # raises what is wrong
    policy = _ENTRIES[resolve_policy(name)].policy
    rule = getattr(policy, "recommended_arms", None)
    if rule is None:
        n_arms = int(0.25 * horizon / max(1, max_pulls // 50))
    else:
        used = inspect.signature(rule).parameters
        taken = {key: value for key, value in parameters.items() if key in used}
        n_arms = rule(horizon, max_pulls, **taken)
    return min(horizon, max(n_arms, math.ceil(horizon / max_pulls)))


def _parameters(name: str) -> dict[str, Any]:
    signature = inspect.signature(POLICIES[name])
    return {
        parameter.name: parameter.default
        for parameter in signature.parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
