"""One game, played step by step and timed: where ``speed`` lets tools compete.

A step is the same for all: choose an arm, look up the mean of its next pull, draw the
noise, record the reward. Five arms rise in a line and then stay flat; those that stop
higher stop later. The noise is Gaussian.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.curves import optimum
from risingsearch.curves.noise import Noise, make_noise, noisy
from risingsearch.policies import PolicyInfo, make_policy
from risingsearch.simulation.engine import loop_for, new_record

SLOPES = (4e-5, 8e-5, 1.6e-4, 4e-4, 1e-3)
PLATEAUS = (0.9, 0.8, 0.7, 0.6, 0.5)
NOISE = 0.1
N_ARMS = len(SLOPES)
HORIZON = 50_000
REWARD_RANGE = (-0.5, 1.5)
"""What policies for bounded rewards are told: six sigmas beyond the means."""


class LinearThenFlat(NamedTuple):
    """The game: a formula as in C, because a table of it costs a nanosecond a step."""

    slopes: NDArray[np.float64]  # (n_arms,)
    plateaus: NDArray[np.float64]  # (n_arms,)
    noise: Noise

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.slopes)

    @property
    def reference(self) -> str:
        """The best single arm, because means never fall."""
        return "best-arm"

    def mean(self, arm: int, n: int, t: int) -> float:
        """Return the mean of the arm's ``n``-th pull."""
        return float(min(self.plateaus[arm], self.slopes[arm] * n))

    def draw(
        self, mean: float, arm: int, n: int, t: int, rng: np.random.Generator
    ) -> float:
        """Return the mean with noise."""
        return noisy(self.noise, mean, 1.0, rng)

    def optimal(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the sum of the best single arm."""
        rising = np.multiply.outer(self.slopes, np.arange(1, rounds.max() + 1))
        return optimum.best_arm(np.minimum(self.plateaus[:, None], rising), rounds)


ENVIRONMENT = LinearThenFlat(
    np.array(SLOPES), np.array(PLATEAUS), make_noise("gaussian", NOISE)
)


class Run(NamedTuple):
    """One run: how long a step took, and what came out."""

    nanoseconds: float  # per step, of CPU time
    total: float  # sum of the means
    pulls: list[int]


class Contestant(NamedTuple):
    """A policy of a tool, and what plays it: seed in, ``Run`` out."""

    policy: str
    tool: str
    play: Callable[[int], Run]


class AbsentToolError(Exception):
    """A tool cannot take part; the message says why."""


Times = dict[tuple[str, str], list[Run]]
"""The runs of every (policy, tool), in the order of the rounds."""


def race(contestants: Iterable[Contestant], rounds: int, seed: int) -> Times:
    """Let everybody play once per round, one after the other, after a warm-up."""
    contestants = list(contestants)
    times: Times = {(policy, tool): [] for policy, tool, _ in contestants}
    for k in range(-1, rounds):
        for policy, tool, play in contestants:
            run = play(seed + max(k, 0))
            if k >= 0:
                times[policy, tool].append(run)
    return times


def own_policy(info: PolicyInfo) -> Any:
    """Return a registered policy as it competes: with its defaults."""
    parameters: dict[str, Any] = {}
    if "reward_range" in info.parameters:
        parameters["reward_range"] = REWARD_RANGE
    return make_policy(info.name, N_ARMS, HORIZON, **parameters)


def own(info: PolicyInfo, tool: str, rounds: int, *, compiled: bool) -> Contestant:
    """Return one of this package's policies, for the first ``rounds`` of the game."""
    loop = loop_for(own_policy(info), ENVIRONMENT, compiled)

    def play(seed: int) -> Run:
        policy, rng = own_policy(info), np.random.default_rng(seed)
        record = new_record(np.array([rounds]), N_ARMS)
        begin = time.process_time_ns()
        loop(policy, ENVIRONMENT, rounds, rng, record)
        spent = time.process_time_ns() - begin
        total, n_played = float(record.reward[0]), int(record.n_played[0])
        return Run(spent / n_played, total, record.pulls.tolist())

    return Contestant(info.name, tool, play)


def in_python(
    choose: Callable[[], int],
    record: Callable[[int, float], Any],
    steps: int,
    seed: int,
) -> Run:
    """Play a library's policy in a plain loop with nothing else in it."""
    draw = np.random.default_rng(seed).standard_normal
    pulls, total = [0] * N_ARMS, 0.0
    begin = time.process_time_ns()
    for _ in range(steps):
        arm = choose()
        pulls[arm] += 1
        mean = min(PLATEAUS[arm], SLOPES[arm] * pulls[arm])
        total += mean
        record(arm, mean + NOISE * draw())
    spent = time.process_time_ns() - begin
    return Run(spent / steps, total, pulls)
