"""Which arm next: every policy by its name.

>>> import numpy as np
>>> policy = make_policy("cure-ucb", n_arms=3, horizon=100, sigma=0.01)
>>> policy.select(1, np.random.default_rng(0))
0
"""

import inspect
from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple

from risingsearch.checks import checked_int, keyword_defaults
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
from risingsearch.policies.rising.r_ed_ucb import REdUCB
from risingsearch.policies.rising.r_sr import RSR
from risingsearch.policies.rising.rising_bandits_cash import RisingBandits
from risingsearch.policies.rising.ti_ucb import TIUCB
from risingsearch.policies.rotting.adaptive_windows import FEWA, RAWUCB
from risingsearch.policies.rotting.cto import DCTOUCB
from risingsearch.policies.rotting.swa import SWA
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
from risingsearch.policies.tuning.looks_then_slope import LooksThenSlope
from risingsearch.policies.tuning.median_stopping import MedianStopping
from risingsearch.policies.tuning.random_search import RandomSearch
from risingsearch.policies.tuning.successive_halving import SuccessiveHalving

PAPER = "formula of the paper"
STANDARD = "standard formula"
RECONSTRUCTION = "reconstruction"
OWN = "own rule"
STOPS = "stops"
PLANS = "plans rounds"
IN_FULL = "trains arms in full"
RANGE, MODELS = NEEDS = ("reward_range", "models")


class PolicyInfo(NamedTuple):
    """Description of a policy: its parameters, its paper and its properties.

    Parameters
    ----------
    name : str
        Its registered name.
    parameters : dict
        Names and defaults of the arguments of ``make_policy`` besides the sizes.
    paper : str
        Where it comes from.
    provenance : str
        "formula of the paper", "standard formula", "reconstruction" or "own rule".
    adaptive : bool
        True if it leaves nothing of a budget unspent while an arm can still train.
    plans_rounds : bool
        True if it plans all its rounds ahead, and so needs a budget in epochs.
    needs : tuple of str
        Parameters that a live search must give: their defaults fit simulations only.
    summary : str
        The first line of its documentation.

    Examples
    --------
    >>> [info.name for info in list_policies() if info.plans_rounds][:3]
    ['be', 'd-ucb', 'r-sr']
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
    policy: type
    provenance: str
    paper: str
    traits: tuple[str, ...] = ()
    factory: str = "create"  # one of several, where a class has variants
    rule: str = "recommended_arms"


_ENTRIES = {
    "asha": _Entry(ASHA, STANDARD, "Li et al. 2020, MLSys"),
    "be": _Entry(
        BudgetedExploration,
        PAPER,
        "Jia et al., Smooth Non-Stationary Bandits",
        (PLANS, IN_FULL),
    ),
    "ccb": _Entry(CCB, PAPER, "Liu, Tsuruoka 2016, as run by Fang et al., section 4.3"),
    "cto-sim": _Entry(
        DCTOUCB,
        PAPER,
        "Levine et al. 2017, NIPS, Algorithm 2",
        (MODELS,),
        factory="create_cto_sim",
    ),
    "cure-ucb": _Entry(CureUCB, PAPER, "Song et al., arXiv 2602.10727"),
    "d-cto-sim-ucb": _Entry(
        DCTOUCB,
        PAPER,
        "Levine et al. 2017, NIPS, D-CTO-SIM-UCB",
        (MODELS,),
        factory="create_sim",
    ),
    "d-cto-ucb": _Entry(
        DCTOUCB, PAPER, "Levine et al. 2017, NIPS, Algorithm 3", (MODELS,)
    ),
    "d-ucb": _Entry(
        DUCB,
        STANDARD,
        "Garivier, Moulines 2011, ALT; Kocsis, Szepesvari 2006",
        (PLANS,),
    ),
    "epsilon-greedy": _Entry(
        EpsilonGreedy, STANDARD, "Sutton, Barto, section 2.2; Fang et al., section 4.3"
    ),
    "et-swgts": _Entry(
        ETSWGTS, RECONSTRUCTION, "Fiandri et al., arXiv 2505.12092 and 2409.05181"
    ),
    "f-dsw-ts": _Entry(
        FDSWTS, STANDARD, "Cavenaghi et al. 2021, Entropy 23(3):380", (RANGE,)
    ),
    "fewa": _Entry(FEWA, PAPER, "Seznec et al. 2019, AISTATS"),
    "hyperband": _Entry(Hyperband, STANDARD, "Li et al. 2018, JMLR"),
    "kl-ucb": _Entry(KLUCB, STANDARD, "Garivier, Cappe 2011, COLT", (RANGE,)),
    "looks-then-slope": _Entry(LooksThenSlope, OWN, "risingsearch"),
    "max-ucb": _Entry(MaxUCB, PAPER, "Balef et al., arXiv 2505.05226"),
    "median-stopping": _Entry(
        MedianStopping, STANDARD, "Golovin et al. 2017, KDD", (STOPS,)
    ),
    "r-ed-ae": _Entry(
        REdAE, RECONSTRUCTION, "Amichay, Mansour, arXiv 2501.04403", (IN_FULL,)
    ),
    "r-ed-ucb": _Entry(REdUCB, PAPER, "Metelli et al. 2022, ICML"),
    "r-sr": _Entry(RSR, PAPER, "Mussi et al., arXiv 2302.07510", (PLANS,)),
    "r-ucbe": _Entry(
        REdUCB,
        PAPER,
        "Mussi et al., arXiv 2302.07510",
        factory="create_r_ucbe",
        rule="recommended_arms_r_ucbe",
    ),
    "random": _Entry(UniformRandom, STANDARD, "baseline", (IN_FULL,)),
    "random-search": _Entry(
        RandomSearch, STANDARD, "Bergstra, Bengio 2012, JMLR", (IN_FULL,)
    ),
    "raven-ucb": _Entry(
        RavenUCB, PAPER, "Fang et al., From Theory to Practice with RAVEN-UCB"
    ),
    "raw-ucb": _Entry(RAWUCB, PAPER, "Seznec et al. 2020, AISTATS"),
    "rexp3": _Entry(Rexp3, STANDARD, "Besbes, Gur, Zeevi 2014, NIPS", (PLANS, RANGE)),
    "rising-bandits-cash": _Entry(
        RisingBandits, PAPER, "Li et al. 2020, AAAI", (RANGE, IN_FULL)
    ),
    "round-robin": _Entry(RoundRobin, STANDARD, "baseline", (IN_FULL,)),
    "ser4": _Entry(
        SER4, STANDARD, "Allesiardo, Feraud, Maillard 2017, IJDSA", (PLANS, RANGE)
    ),
    "successive-halving": _Entry(
        SuccessiveHalving,
        STANDARD,
        "Karnin et al. 2013, ICML; Jamieson, Talwalkar 2016, AISTATS",
        (STOPS, PLANS),
    ),
    "sw-kl-ucb": _Entry(
        SWKLUCB,
        STANDARD,
        "Garivier, Cappe 2011, COLT; Combes, Proutiere 2014, ICML",
        (RANGE,),
    ),
    "sw-ts": _Entry(SWTS, STANDARD, "Trovo et al. 2020, JAIR", (PLANS, RANGE)),
    "sw-ucb": _Entry(SWUCB, STANDARD, "Garivier, Moulines 2011, ALT", (PLANS,)),
    "swa": _Entry(SWA, PAPER, "Levine et al. 2017, NIPS, Algorithm 1", (PLANS,)),
    "thompson-beta": _Entry(
        ThompsonBeta, STANDARD, "Thompson 1933; Agrawal, Goyal 2012, COLT", (RANGE,)
    ),
    "thompson-gaussian": _Entry(
        ThompsonGaussian, STANDARD, "Agrawal, Goyal 2013, AISTATS"
    ),
    "ti-ucb": _Entry(TIUCB, RECONSTRUCTION, "Xia et al., arXiv 2403.07213", (RANGE,)),
    "ucb-improved": _Entry(
        ImprovedUCB, STANDARD, "Auer, Ortner 2010; Fang et al., section 4.3", (IN_FULL,)
    ),
    "ucb-v": _Entry(
        UCBV, STANDARD, "Audibert et al. 2009, Theoretical Computer Science"
    ),
    "ucb1": _Entry(UCB1, STANDARD, "Auer et al. 2002, Machine Learning"),
    "wls-ots": _Entry(
        WLSOptimisticTS, PAPER, "Fang et al., section 4.3 (its public script)", (RANGE,)
    ),
    "wswa": _Entry(
        SWA, PAPER, "Levine et al. 2017, NIPS, Corollary 3.1.1", factory="create_wswa"
    ),
}

POLICIES: dict[str, Callable[..., Policy]] = {
    name: getattr(entry.policy, entry.factory) for name, entry in _ENTRIES.items()
}

__all__ = [
    "CALLER_ARRAYS",
    "POLICIES",
    "WAIT",
    "Policy",
    "PolicyInfo",
    "explain",
    "list_policies",
    "make_policy",
    "policy_info",
    "recommended_arms",
    "resolve_policy",
    "slice_length",
    *dict.fromkeys(entry.policy.__name__ for entry in _ENTRIES.values()),
]

AUTO = "looks-then-slope"
"""The policy that ``"auto"`` stands for."""


def resolve_policy(name: str) -> str:
    """Return the registered name that ``name`` stands for.

    Parameters
    ----------
    name : str
        A registered name, or ``"auto"``.

    Returns
    -------
    str
        The name that ``list_policies`` has.

    Raises
    ------
    InvalidParameterError
        If there is no such policy; the message names the closest one.

    Examples
    --------
    >>> resolve_policy("auto"), resolve_policy("cure-ucb")
    ('looks-then-slope', 'cure-ucb')
    """
    if name == "auto":
        return AUTO
    if name not in POLICIES:
        raise unknown_name("policy", name, ["auto", *POLICIES])
    return name


def registered_name(policy: object) -> str | None:
    """Return the name of a policy or of its factory; None if it is not registered.

    Examples
    --------
    >>> registered_name(CureUCB.create), registered_name("auto"), registered_name(len)
    ('cure-ucb', 'looks-then-slope', None)
    """
    if isinstance(policy, str):
        return resolve_policy(policy)
    factory = getattr(policy, "create", policy)
    return next((name for name, create in POLICIES.items() if create == factory), None)


def make_policy(
    name: str,
    n_arms: int,
    horizon: int,
    max_pulls: int | None = None,
    **parameters: object,
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
    factory = POLICIES[resolve_policy(name)]
    defaults = keyword_defaults(factory)
    for parameter in parameters:
        if parameter not in defaults:
            owner = name
            if name == "auto":
                owner = f"auto ({AUTO})"
            raise unknown_name(f"parameter of {owner}:", parameter, defaults)
    n_arms = checked_int("n_arms", n_arms, 1)
    horizon = checked_int("horizon", horizon, 1)
    if max_pulls is not None:
        max_pulls = checked_int("max_pulls", max_pulls, 1)
    return factory(n_arms, horizon, max_pulls, **parameters)


def list_policies() -> list[PolicyInfo]:
    """Return a description of every policy, in the order of their names.

    Returns
    -------
    list of PolicyInfo
        One for each name that ``make_policy`` takes.

    Examples
    --------
    >>> [info.name for info in list_policies()][:3]
    ['asha', 'be', 'ccb']
    """
    return [policy_info(name) for name in sorted(_ENTRIES)]


def policy_info(name: str) -> PolicyInfo:
    """Return the description of the policy of this registered name.

    Parameters
    ----------
    name : str
        A registered name, see ``list_policies``.

    Returns
    -------
    PolicyInfo
        Its parameters, its paper and its properties.

    Examples
    --------
    >>> info = policy_info("asha")
    >>> info.parameters, info.adaptive, info.plans_rounds
    ({'eta': 3, 'min_pulls': 1}, True, False)
    """
    entry = _ENTRIES[name]
    return PolicyInfo(
        name=name,
        parameters=dict(keyword_defaults(POLICIES[name])),
        paper=entry.paper,
        provenance=entry.provenance,
        adaptive=STOPS not in entry.traits,
        plans_rounds=PLANS in entry.traits,
        needs=tuple(trait for trait in entry.traits if trait in NEEDS),
        summary=(inspect.getdoc(entry.policy) or "").splitlines()[0],
    )


def recommended_arms(
    name: str,
    horizon: int,
    max_pulls: int,
    **parameters: object,
) -> int:
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
        From the fewest that use the budget up, to its rounds. Without a rule it is a
        quarter of the rounds, or of the 50ths of ``max_pulls`` where those are longer.

    Raises
    ------
    InvalidParameterError
        As ``make_policy``.

    Examples
    --------
    >>> recommended_arms("auto", horizon=270, max_pulls=27)
    119
    """
    make_policy(name, 1, horizon, max_pulls, **parameters)  # raises what is wrong
    entry = _ENTRIES[resolve_policy(name)]
    rule = getattr(entry.policy, entry.rule, None)
    if IN_FULL in entry.traits:
        n_arms = 2
    elif rule is None:
        n_arms = int(0.25 * horizon / max(1, max_pulls // 50))
    else:
        taken = parameters.keys() & keyword_defaults(rule)
        n_arms = rule(horizon, max_pulls, **{name: parameters[name] for name in taken})
    return min(horizon, max(n_arms, ceil(horizon / max_pulls)))
