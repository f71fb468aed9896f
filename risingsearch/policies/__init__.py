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
from functools import cache
from typing import Any, NamedTuple

from risingsearch.checks import checked_int
from risingsearch.errors import unknown_name
from risingsearch.policies.base import (
    CALLER_ARRAYS,
    WAIT,
    Policy,
    explain,
    slice_length,
)
from risingsearch.policies.drifting.budgeted_exploration import BudgetedExploration
from risingsearch.policies.drifting.discounted import DUCB, FDSWTS
from risingsearch.policies.drifting.rexp3 import Rexp3
from risingsearch.policies.drifting.ser4 import SER4
from risingsearch.policies.drifting.sliding_window import ETSWGTS, SWKLUCB, SWTS, SWUCB
from risingsearch.policies.drifting.wls_ots import WLSOptimisticTS
from risingsearch.policies.rising.cure_ucb import CureUCB
from risingsearch.policies.rising.max_ucb import MaxUCB
from risingsearch.policies.rising.r_ed_ae import REdAE
from risingsearch.policies.rising.r_ed_ucb import RUCBE, REdUCB
from risingsearch.policies.rising.r_sr import RSR
from risingsearch.policies.rising.rising_bandits_cash import RisingBandits
from risingsearch.policies.rising.ti_ucb import TIUCB
from risingsearch.policies.rotting.adaptive_windows import FEWA, RAWUCB
from risingsearch.policies.rotting.cto import DCTOUCB, CTOSim, DCTOSimUCB
from risingsearch.policies.rotting.swa import SWA, WSWA
from risingsearch.policies.stationary.baselines import RoundRobin, UniformRandom
from risingsearch.policies.stationary.ccb import CCB
from risingsearch.policies.stationary.epsilon_greedy import EpsilonGreedy
from risingsearch.policies.stationary.kl_ucb import KLUCB
from risingsearch.policies.stationary.raven_ucb import RavenUCB
from risingsearch.policies.stationary.thompson import ThompsonBeta, ThompsonGaussian
from risingsearch.policies.stationary.ucb1 import UCB1
from risingsearch.policies.stationary.ucb_improved import ImprovedUCB
from risingsearch.policies.stationary.ucb_v import UCBV
from risingsearch.policies.tuning.asha import ASHA
from risingsearch.policies.tuning.hyperband import Hyperband
from risingsearch.policies.tuning.median_stopping import MedianStopping
from risingsearch.policies.tuning.random_search import RandomSearch
from risingsearch.policies.tuning.successive_halving import SuccessiveHalving
from risingsearch.policies.tuning.trusted_damped_slope import TrustedDampedSlope

__all__ = [
    "ASHA",
    "CALLER_ARRAYS",
    "CCB",
    "DCTOUCB",
    "DUCB",
    "ETSWGTS",
    "FDSWTS",
    "FEWA",
    "KLUCB",
    "POLICIES",
    "RAWUCB",
    "RSR",
    "RUCBE",
    "SER4",
    "SWA",
    "SWKLUCB",
    "SWTS",
    "SWUCB",
    "TIUCB",
    "UCB1",
    "UCBV",
    "WAIT",
    "WSWA",
    "BudgetedExploration",
    "CTOSim",
    "CureUCB",
    "DCTOSimUCB",
    "EpsilonGreedy",
    "Hyperband",
    "ImprovedUCB",
    "MaxUCB",
    "MedianStopping",
    "Policy",
    "PolicyInfo",
    "REdAE",
    "REdUCB",
    "RandomSearch",
    "RavenUCB",
    "Rexp3",
    "RisingBandits",
    "RoundRobin",
    "SuccessiveHalving",
    "ThompsonBeta",
    "ThompsonGaussian",
    "TrustedDampedSlope",
    "UniformRandom",
    "WLSOptimisticTS",
    "explain",
    "list_policies",
    "make_policy",
    "policy_info",
    "recommended_arms",
    "resolve_policy",
    "slice_length",
]

PAPER = "formula of the paper"
STANDARD = "standard formula"
RECONSTRUCTION = "reconstruction"
OWN = "own rule"
STOPS, PLANS, IN_FULL = "stops", "plans rounds", "trains arms in full"
RANGE, MODELS = NEEDS = ("reward_range", "models")


class PolicyInfo(NamedTuple):
    """Description of a policy: its parameters, its paper and its properties.

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
    needs : tuple of str
        Parameters that a live search must give, because only simulated rewards fit
        their defaults; empty for most policies.
    summary : str
        The first line of its documentation.
    """

    name: str
    parameters: dict[str, Any]
    paper: str
    provenance: str
    adaptive: bool
    plans_rounds: bool
    needs: tuple[str, ...]
    summary: str


class _Entry(NamedTuple):
    policy: Any
    paper: str
    provenance: str
    traits: tuple[str, ...]

    @classmethod
    def of(cls, policy: Any, paper: str, provenance: str, *traits: str) -> _Entry:
        return cls(policy, paper, provenance, traits)


_ENTRIES: dict[str, _Entry] = {
    "asha": _Entry.of(ASHA, "Li et al. 2020, MLSys", STANDARD),
    "be": _Entry.of(
        BudgetedExploration,
        "Jia et al., Smooth Non-Stationary Bandits",
        PAPER,
        PLANS,
        IN_FULL,
    ),
    "ccb": _Entry.of(
        CCB, "Liu, Tsuruoka 2016, as run by Fang et al., section 4.3", PAPER
    ),
    "cto-sim": _Entry.of(
        CTOSim, "Levine et al. 2017, NIPS, Algorithm 2", PAPER, MODELS
    ),
    "cure-ucb": _Entry.of(CureUCB, "Song et al., arXiv 2602.10727", PAPER),
    "d-cto-sim-ucb": _Entry.of(
        DCTOSimUCB, "Levine et al. 2017, NIPS, D-CTO-SIM-UCB", PAPER, MODELS
    ),
    "d-cto-ucb": _Entry.of(
        DCTOUCB, "Levine et al. 2017, NIPS, Algorithm 3", PAPER, MODELS
    ),
    "d-ucb": _Entry.of(
        DUCB,
        "Garivier, Moulines 2011, ALT; Kocsis, Szepesvari 2006",
        STANDARD,
        PLANS,
    ),
    "epsilon-greedy": _Entry.of(
        EpsilonGreedy, "Sutton, Barto, section 2.2; Fang et al., section 4.3", STANDARD
    ),
    "et-swgts": _Entry.of(
        ETSWGTS, "Fiandri et al., arXiv 2505.12092 and 2409.05181", RECONSTRUCTION
    ),
    "f-dsw-ts": _Entry.of(
        FDSWTS, "Cavenaghi et al. 2021, Entropy 23(3):380", STANDARD, RANGE
    ),
    "fewa": _Entry.of(FEWA, "Seznec et al. 2019, AISTATS", PAPER),
    "hyperband": _Entry.of(Hyperband, "Li et al. 2018, JMLR", STANDARD),
    "kl-ucb": _Entry.of(KLUCB, "Garivier, Cappe 2011, COLT", STANDARD, RANGE),
    "max-ucb": _Entry.of(MaxUCB, "Balef et al., arXiv 2505.05226", PAPER),
    "median-stopping": _Entry.of(
        MedianStopping, "Golovin et al. 2017, KDD", STANDARD, STOPS
    ),
    "r-ed-ae": _Entry.of(
        REdAE, "Amichay, Mansour, arXiv 2501.04403", RECONSTRUCTION, IN_FULL
    ),
    "r-ed-ucb": _Entry.of(REdUCB, "Metelli et al. 2022, ICML", PAPER),
    "r-sr": _Entry.of(RSR, "Mussi et al., arXiv 2302.07510", PAPER, PLANS),
    "r-ucbe": _Entry.of(RUCBE, "Mussi et al., arXiv 2302.07510", PAPER),
    "random": _Entry.of(UniformRandom, "baseline", STANDARD, IN_FULL),
    "random-search": _Entry.of(
        RandomSearch, "Bergstra, Bengio 2012, JMLR", STANDARD, IN_FULL
    ),
    "raven-ucb": _Entry.of(
        RavenUCB, "Fang et al., From Theory to Practice with RAVEN-UCB", PAPER
    ),
    "raw-ucb": _Entry.of(RAWUCB, "Seznec et al. 2020, AISTATS", PAPER),
    "rexp3": _Entry.of(Rexp3, "Besbes, Gur, Zeevi 2014, NIPS", STANDARD, PLANS, RANGE),
    "rising-bandits-cash": _Entry.of(
        RisingBandits, "Li et al. 2020, AAAI", PAPER, RANGE, IN_FULL
    ),
    "round-robin": _Entry.of(RoundRobin, "baseline", STANDARD, IN_FULL),
    "ser4": _Entry.of(
        SER4, "Allesiardo, Feraud, Maillard 2017, IJDSA", STANDARD, PLANS, RANGE
    ),
    "successive-halving": _Entry.of(
        SuccessiveHalving,
        "Karnin et al. 2013, ICML; Jamieson, Talwalkar 2016, AISTATS",
        STANDARD,
        STOPS,
        PLANS,
    ),
    "sw-kl-ucb": _Entry.of(
        SWKLUCB,
        "Garivier, Cappe 2011, COLT; Combes, Proutiere 2014, ICML",
        STANDARD,
        RANGE,
    ),
    "sw-ts": _Entry.of(SWTS, "Trovo et al. 2020, JAIR", STANDARD, PLANS, RANGE),
    "sw-ucb": _Entry.of(SWUCB, "Garivier, Moulines 2011, ALT", STANDARD, PLANS),
    "swa": _Entry.of(SWA, "Levine et al. 2017, NIPS, Algorithm 1", PAPER, PLANS),
    "thompson-beta": _Entry.of(
        ThompsonBeta, "Thompson 1933; Agrawal, Goyal 2012, COLT", STANDARD, RANGE
    ),
    "thompson-gaussian": _Entry.of(
        ThompsonGaussian, "Agrawal, Goyal 2013, AISTATS", STANDARD
    ),
    "ti-ucb": _Entry.of(TIUCB, "Xia et al., arXiv 2403.07213", RECONSTRUCTION, RANGE),
    "trusted-damped-slope": _Entry.of(TrustedDampedSlope, "risingsearch", OWN),
    "ucb-improved": _Entry.of(
        ImprovedUCB, "Auer, Ortner 2010; Fang et al., section 4.3", STANDARD, IN_FULL
    ),
    "ucb-v": _Entry.of(
        UCBV, "Audibert et al. 2009, Theoretical Computer Science", STANDARD
    ),
    "ucb1": _Entry.of(UCB1, "Auer et al. 2002, Machine Learning", STANDARD),
    "wls-ots": _Entry.of(
        WLSOptimisticTS, "Fang et al., section 4.3 (its public script)", PAPER, RANGE
    ),
    "wswa": _Entry.of(WSWA, "Levine et al. 2017, NIPS, Corollary 3.1.1", PAPER),
}

POLICIES: dict[str, Callable[..., Policy]] = {
    name: entry.policy.create for name, entry in _ENTRIES.items()
}

AUTO = "trusted-damped-slope"
"""The policy that ``"auto"`` stands for."""


def resolve_policy(name: str) -> str:
    """Return the registered name that ``name`` stands for.

    Parameters
    ----------
    name : str
        A registered name, or ``"auto"``.

    Raises
    ------
    InvalidParameterError
        If there is no such policy; the message names the closest one.

    Examples
    --------
    >>> resolve_policy("auto"), resolve_policy("cure-ucb")
    ('trusted-damped-slope', 'cure-ucb')
    """
    if name == "auto":
        return AUTO
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
    InvalidParameterError
        If there is no such policy or parameter (the message names the closest one), or
        a value is outside its range.

    Examples
    --------
    >>> make_policy("r-ed-ucb", n_arms=2, horizon=10, eps=0.5).eps
    0.5
    >>> make_policy("cure", n_arms=2, horizon=10)
    Traceback (most recent call last):
    ...
    risingsearch.errors.InvalidParameterError: unknown policy 'cure'; did you mean ...
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
    """Return a description of every policy, in the order of their names.

    Examples
    --------
    >>> [info.name for info in list_policies()][:3]
    ['asha', 'be', 'ccb']
    """
    return [policy_info(name) for name in sorted(_ENTRIES)]


def policy_info(name: str) -> PolicyInfo:
    """Return the description of the policy of this registered name."""
    entry = _ENTRIES[name]
    return PolicyInfo(
        name=name,
        parameters=dict(_parameters(name)),
        paper=entry.paper,
        provenance=entry.provenance,
        adaptive=STOPS not in entry.traits,
        plans_rounds=PLANS in entry.traits,
        needs=tuple(trait for trait in entry.traits if trait in NEEDS),
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
        rounds. Policies without such a rule get a quarter of the rounds, or a
        quarter of its 50ths of ``max_pulls`` where curves are longer than 50.

    Raises
    ------
    InvalidParameterError
        As ``make_policy``.

    Examples
    --------
    >>> recommended_arms("auto", horizon=270, max_pulls=27)
    108
    """
    make_policy(name, 1, horizon, max_pulls, **parameters)  # raises what is wrong
    entry = _ENTRIES[resolve_policy(name)]
    rule = getattr(entry.policy, "recommended_arms", None)
    if IN_FULL in entry.traits:
        n_arms = 2
    elif rule is None:
        n_arms = int(0.25 * horizon / max(1, max_pulls // 50))
    else:
        used = inspect.signature(rule).parameters
        taken = {key: value for key, value in parameters.items() if key in used}
        n_arms = rule(horizon, max_pulls, **taken)
    return min(horizon, max(n_arms, math.ceil(horizon / max_pulls)))


@cache
def _parameters(name: str) -> dict[str, Any]:
    signature = inspect.signature(POLICIES[name])
    return {
        parameter.name: parameter.default
        for parameter in signature.parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
