"""Which arm next: every policy by its name.

>>> import numpy as np
>>> policy = make_policy("cure-ucb", n_arms=3, horizon=100, sigma=0.01)
>>> policy.select(1, np.random.default_rng(0))
0
"""

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
from risingsearch.policies.registry import (
    POLICIES,
    PolicyInfo,
    list_policies,
    make_policy,
    policy_info,
    recommended_arms,
    resolve_policy,
)
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
