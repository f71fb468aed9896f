"""What the rotting bandits paper chose and counted, and what we count beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

HORIZON = 30_000
PAPER_RUNS = 100
SIGMA = math.sqrt(0.2)


class Counts(NamedTuple):
    """Wins in percent: the paper's, and those of an independent implementation."""

    paper: int  # of 100 runs
    reference: int  # of 300 runs


@dataclass(frozen=True, eq=False)
class Case:
    """One of the three experiments of section 5."""

    name: str
    environment: str
    discount: float
    window: int
    alpha: float
    informed: tuple[str, ...]  # the policy that is told the family of curves
    wins: Mapping[tuple[str, str], Counts]  # of the first over the second
    p_values: Mapping[tuple[str, str], str]  # those that are not far below 1e-5
    means: Mapping[str, float]  # of the reference; the paper has curves alone


ALWAYS = Counts(100, 100)

NP = Case(
    name="NP",
    environment="rotting-np",
    discount=0.999,
    window=4_000,
    alpha=0.2,
    informed=(),
    wins={
        ("d-ucb", "ucb1"): ALWAYS,
        ("sw-ucb", "ucb1"): ALWAYS,
        ("sw-ucb", "d-ucb"): ALWAYS,
        ("wswa", "ucb1"): ALWAYS,
        ("wswa", "d-ucb"): ALWAYS,
        ("wswa", "sw-ucb"): ALWAYS,
    },
    p_values={},
    means={"ucb1": 2008, "d-ucb": 638, "sw-ucb": 486, "wswa": 63},
)
AV = Case(
    name="AV",
    environment="rotting-av",
    discount=0.999999,
    window=8_000,
    alpha=0.2,
    informed=("cto-sim",),
    wins={
        ("d-ucb", "ucb1"): Counts(55, 50),
        ("sw-ucb", "ucb1"): Counts(15, 6),
        ("sw-ucb", "d-ucb"): Counts(22, 5),
        ("wswa", "ucb1"): Counts(98, 100),
        ("wswa", "d-ucb"): Counts(99, 99),
        ("wswa", "sw-ucb"): ALWAYS,
        ("cto-sim", "ucb1"): ALWAYS,
        ("cto-sim", "d-ucb"): ALWAYS,
        ("cto-sim", "sw-ucb"): ALWAYS,
        ("cto-sim", "wswa"): ALWAYS,
    },
    p_values={("ucb1", "d-ucb"): "0.81"},
    means={"ucb1": 497, "d-ucb": 501, "sw-ucb": 587, "wswa": 179, "cto-sim": 13},
)
ANV = Case(
    name="ANV",
    environment="rotting-anv",
    discount=0.999999,
    window=16_000,
    alpha=0.2,
    informed=("d-cto-sim-ucb",),
    wins={
        ("d-ucb", "ucb1"): Counts(40, 43),
        ("sw-ucb", "ucb1"): Counts(50, 41),
        ("sw-ucb", "d-ucb"): Counts(50, 41),
        ("wswa", "ucb1"): Counts(97, 99),
        ("wswa", "d-ucb"): Counts(98, 99),
        ("wswa", "sw-ucb"): Counts(97, 99),
        ("d-cto-sim-ucb", "ucb1"): ALWAYS,
        ("d-cto-sim-ucb", "d-ucb"): ALWAYS,
        ("d-cto-sim-ucb", "sw-ucb"): ALWAYS,
        ("d-cto-sim-ucb", "wswa"): Counts(66, 69),
    },
    p_values={
        ("ucb1", "d-ucb"): "0.54",
        ("ucb1", "sw-ucb"): "0.83",
        ("d-ucb", "sw-ucb"): "0.91",
    },
    means={
        "ucb1": 487,
        "d-ucb": 494,
        "sw-ucb": 509,
        "wswa": 222,
        "d-cto-sim-ucb": 181,
    },
)
CASES = (NP, AV, ANV)
