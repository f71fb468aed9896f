"""The same policies in SMPyBandits and MABWiser."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import matplotlib as mpl

from benchmarks.cost.speed.stepping import (
    HORIZON,
    N_ARMS,
    REWARD_RANGE,
    SLOPES,
    AbsentToolError,
    Contestant,
    Run,
    in_python,
    own_policy,
)
from risingsearch.policies import PolicyInfo

_LOW, _HIGH = REWARD_RANGE
_SCALE = {"lower": _LOW, "amplitude": _HIGH - _LOW}

# What both have, with the parameters of our policy where theirs depends on them.
SMPYBANDITS: dict[str, Callable[[Any, Any], Any]] = {
    "d-ucb": lambda tool, own: tool.DiscountedUCB(N_ARMS, gamma=own.discount, **_SCALE),
    "epsilon-greedy": lambda tool, own: tool.EpsilonGreedy(
        N_ARMS, epsilon=own.epsilon, **_SCALE
    ),
    "kl-ucb": lambda tool, _: tool.klUCB(N_ARMS, **_SCALE),
    "random": lambda tool, _: tool.Uniform(N_ARMS, **_SCALE),
    "sw-kl-ucb": lambda tool, own: tool.SWklUCB(
        N_ARMS, tau=len(own.window_arms), **_SCALE
    ),
    "sw-ucb": lambda tool, own: tool.SWUCB(N_ARMS, tau=len(own.window_arms), **_SCALE),
    "thompson-beta": lambda tool, _: tool.Thompson(N_ARMS, **_SCALE),
    "thompson-gaussian": lambda tool, _: tool.Thompson(N_ARMS, tool.Gauss, **_SCALE),
    "ucb-improved": lambda tool, _: tool.UCBimproved(N_ARMS, HORIZON, **_SCALE),
    "ucb-v": lambda tool, _: tool.UCBV(N_ARMS, **_SCALE),
    "ucb1": lambda tool, _: tool.UCB(N_ARMS, **_SCALE),
}

MABWISER: dict[str, Callable[[Any, Any], Any]] = {
    "epsilon-greedy": lambda rule, own: rule.EpsilonGreedy(own.epsilon),
    "random": lambda rule, _: rule.Random(),
    "thompson-beta": lambda rule, _: rule.ThompsonSampling(lambda arm, x: x > 0.5),
    "ucb1": lambda rule, _: rule.UCB1(),
}


def smpybandits(
    tool: str, infos: dict[str, PolicyInfo], steps: int
) -> Iterator[Contestant]:
    """Yield what SMPyBandits has, or raise why it cannot take part."""
    library = _imported("SMPyBandits.Policies", mend=_mend)

    def play(name: str, seed: int) -> Run:
        policy = SMPYBANDITS[name](library, own_policy(infos[name]))
        policy.startGame()
        with quiet():  # it prints when its discounted indices are not numbers
            return in_python(policy.choice, policy.getReward, steps, seed)

    for name in SMPYBANDITS:
        yield Contestant(name, tool, partial(play, name))


def mabwiser(
    tool: str, infos: dict[str, PolicyInfo], steps: int
) -> Iterator[Contestant]:
    """Yield what MABWiser has, or raise why it cannot take part."""
    library = _imported("mabwiser.mab")

    def play(name: str, seed: int) -> Run:
        rule = MABWISER[name](library.LearningPolicy, own_policy(infos[name]))
        bandit = library.MAB(list(range(N_ARMS)), rule, seed=seed)
        bandit.fit(bandit.arms, list(SLOPES))  # the means of the first pulls

        def record(arm: int, reward: float) -> None:
            bandit.partial_fit([arm], [reward])

        return in_python(bandit.predict, record, steps, seed)

    for name in MABWISER:
        yield Contestant(name, tool, partial(play, name))


def quiet() -> contextlib.redirect_stdout[io.StringIO]:
    """Keep what a library prints out of the results."""
    return contextlib.redirect_stdout(io.StringIO())


def _imported(module: str, mend: Callable[[], None] = lambda: None) -> Any:
    """Return the module, or raise why it cannot be imported."""
    try:
        mend()
        with quiet(), mpl.rc_context():  # SMPyBandits changes how all figures look
            return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise AbsentToolError(f"{error} (pip install {package})") from error


def _mend() -> None:
    """Put back two names that SMPyBandits 0.9.7 imports and that have gone since.

    SciPy renamed ``btdtri``; with numba's old module the library compiles its
    Kullback-Leibler divergences again, to its own advantage.
    """
    numba: Any = import_module("numba")
    special: Any = import_module("scipy.special")
    if not hasattr(special, "btdtri"):
        special.btdtri = special.betaincinv
    decorators: Any = ModuleType("numba.decorators")
    decorators.jit = numba.jit
    sys.modules.setdefault("numba.decorators", decorators)
