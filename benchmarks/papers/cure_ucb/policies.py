"""The policies of the CURE-UCB paper's experiments, with the paper's parameters.

Song, Gan, Yoon, Wang, Chen, Ok: "Rising Multi-Armed Bandits with Known Horizons",
arXiv 2602.10727, section 6 and appendix E.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.shared import results
from benchmarks.shared.results import means
from risingsearch.policies import list_policies
from risingsearch.simulation import Comparison

RISING = ("cure-ucb", "r-ed-ucb", "et-swgts", "ti-ucb", "r-ed-ae")
NON_STATIONARY = ("sw-ucb", "sw-kl-ucb", "sw-ts", "rexp3", "ser4")


def paper_policies(
    sigma: float, et_swgts: Mapping[str, int], eps: float = 0.25
) -> dict[str, Any]:
    """Return the policies of section 6 with the parameters of appendix E.2.

    What depends on the horizon there (the windows of SW-UCB and SW-TS, Rexp3, Ser4) is
    the default here. ``eps`` of CURE-UCB is not given; it gets R-ed-UCB's. The sigma in
    SW-KL-UCB's window ``sigma ** -0.8`` bounds the drift, 0.001, which makes it 252.
    """
    parameters: dict[str, dict[str, Any]] = {
        "cure-ucb": {"sigma": sigma, "eps": eps},
        "r-ed-ucb": {"sigma": sigma, "eps": eps, "delta": 0.001},
        "et-swgts": {"precision": 1.0, **et_swgts},
        "ti-ucb": {"delta": 0.01, "omega": 100, "gamma": 0.3},
        "r-ed-ae": {"sigma": sigma, "delta": 0.01},
        "sw-ucb": {"xi": 1.5},
        "sw-kl-ucb": {"window": 252},
        "sw-ts": {},
        "rexp3": {},
        "ser4": {},
    }
    return {name: (name, given) for name, given in parameters.items()}


def exact_policies() -> dict[str, Any]:
    """Return the two policies of section 5.1, for rewards without noise."""
    names = ("cure-ucb", "r-ed-ucb")
    return {name: (name, {"sigma": 0.0, "eps": 1e-9}) for name in names}


def other_policies() -> dict[str, Any]:
    """Return every other policy that plays to the end, with its defaults."""
    names = [
        info.name
        for info in list_policies()
        if info.adaptive and info.name not in RISING + NON_STATIONARY
    ]
    return {name: (name, {}) for name in names}


def reconstructed(comparison: Comparison) -> list[str]:
    """Return the policies that are not the papers' own for want of their formulas."""
    provenance = {info.name: info.provenance for info in list_policies()}
    return [n for n in comparison.policies if provenance[n] == "reconstruction"]


def without_reconstructed(comparison: Comparison) -> Comparison:
    """Return the comparison of those policies whose published formula is known."""
    left_out = reconstructed(comparison)
    return results.only(
        comparison, [name for name in comparison.policies if name not in left_out]
    )


def below_cure(comparison: Comparison, horizon: int) -> str:
    """Return which policies have less mean regret than CURE-UCB, in words."""
    order = list(means(comparison, horizon))
    below = order[: order.index("cure-ucb")]
    return f"Below cure-ucb at T = {horizon:,}: {', '.join(below) or 'none'}."
