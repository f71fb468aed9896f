"""The contract of environments and of their generators, on one page: what a pull pays.

An environment is a ``NamedTuple`` of numbers and arrays, compiled as well as
interpreted, by the rules of ``risingsearch.policies.base``. Arms and pulls are those of
the policy; ``n`` counts an arm's own pulls, ``t`` the rounds, both from 1. *Rested*
arms look at ``n`` (a training run moves when it trains), *restless* ones at ``t``.

``n_arms : int``
    A property or a field, as is ``reference : str``.
``mean(self, arm, n, t) -> float``
    The expected reward of the arm's ``n``-th pull, were it made at round ``t``.
``draw(self, mean, arm, n, t, rng) -> float``
    The reward of that pull.
``optimal(self, rounds) -> (len(rounds),) float64``
    The sum of means, over each number of rounds, of the policy that knows everything.
    Never compiled. What it is compared with is the environment's ``reference``:
    ``"best-arm"`` (the best single arm: optimal where means never fall), ``"greedy"``
    (the best next mean: optimal where they never rise), ``"allocation"`` (the best
    numbers of pulls, for any curves), ``"dynamic"`` (the best mean of every
    round), or ``"static"`` (a constant per round).

Optional, with what stands in for them:

``pulls : (n_arms,) int64``
    Pulls each arm can give (no limit).
``fresh(self)``
    The environment with new mutable arrays, for concurrent runs (itself).

Where a value is outside its range, ``create`` and the generators raise an
``InvalidParameterError``.

A generator makes an environment: ``(rng, horizon, *, ...) -> environment``, where what
is drawn comes from ``rng`` alone; ``make_environment`` calls it by name. What
generators have in common is documented in ``SHARED``, their own parameters in their own
docstrings; ``help`` shows both, because the decorator ``generator`` joins them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

SHARED = {
    "rng": (
        "numpy.random.Generator",
        "Draws the arms and their changes; not used where nothing is random.",
    ),
    "horizon": ("int", "Number of rounds the environment is meant for, at least 1."),
    "n_arms": ("int", "Number of arms, at least 1."),
    "mean_range": (
        "(float, float)",
        "Range of the means, drawn uniformly, in units of the reward.",
    ),
    "variance_range": (
        "(float, float)",
        "Range of the variances, drawn uniformly; at least 0.",
    ),
    "every": ("int", "The rounds that are its multiples bring a change; at least 2."),
    "exponents": ("sequence of float", "The exponents to draw from, at least 0."),
    "plateau": ("int", "Pulls between two steps of a curve, at least 1."),
    "log": (
        "ClickLog, tuple of three array-likes, str or path",
        "The log; see ``click_log``.",
    ),
    "n_items": ("int", "The items shown most often that are taken, at least 1."),
    "noise": (
        "Noise, str or float",
        "A noise model, its kind, or the standard deviation of Gaussian noise, which\n"
        "    multiplies the standard deviations of the arms.",
    ),
}
"""Type and meaning of the parameters that a generator need not document itself."""

PAPERS: dict[Callable[..., Any], str] = {}
"""Where each generator comes from, with the section."""

_SECTION = re.compile(r"\n\n(\w+)\n-+\n")
_Generator = TypeVar("_Generator", bound=Callable[..., Any])


class Environment(Protocol):
    """Interface of environments; see the module's first lines for the rules."""

    @property
    def n_arms(self) -> int:
        """Number of arms."""

    @property
    def reference(self) -> str:
        """Name of the kind of optimum that ``optimal`` returns."""

    def mean(self, arm: int, n: int, t: int) -> float:
        """Return the mean reward of an arm's ``n``-th pull, at round ``t``."""

    def draw(
        self, mean: float, arm: int, n: int, t: int, rng: np.random.Generator
    ) -> float:
        """Return the reward of a pull whose mean is ``mean``."""

    def optimal(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the sum of means of the best policy, per number of rounds."""


def fresh(environment: Any) -> Any:
    """Return the environment for one run."""
    own = getattr(environment, "fresh", None)
    return environment if own is None else own()


def pull_limits(environment: Any, rounds: int) -> NDArray[np.int64]:
    """Return the pulls each arm can give within a number of rounds."""
    own = getattr(environment, "pulls", None)
    if own is None:
        return np.full(environment.n_arms, rounds, dtype=np.int64)
    return np.asarray(np.minimum(own, rounds))


def generator(paper: str) -> Callable[[_Generator], _Generator]:
    """Note where a generator comes from, and complete its docstring.

    Added are the parameters in ``SHARED`` that it has and does not document, what it
    returns, that parameters outside their ranges are refused, and the paper where the
    generator names no references itself.
    """

    def completed(function: _Generator) -> _Generator:
        PAPERS[function] = paper
        if function.__doc__:  # unless Python runs without docstrings
            function.__doc__ = _completed(function, function.__doc__, paper)
        return function

    return completed


def _completed(function: Callable[..., Any], docstring: str, paper: str) -> str:
    description, *rest = _SECTION.split(inspect.cleandoc(docstring))
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    signature = inspect.signature(function)
    own = sections.pop("Parameters", "")
    shared = [
        _entry(parameter)
        for name, parameter in signature.parameters.items()
        if name in SHARED and not re.search(rf"^{name} :", own, re.MULTILINE)
    ]
    complete = {
        "Parameters": "\n".join([*shared, own]).rstrip(),
        "Returns": str(signature.return_annotation),
        "Raises": "InvalidParameterError\n    If a parameter is outside its range.",
        "References": f"{paper}.",
    } | sections
    return "\n\n".join(
        [description]
        + [f"{name}\n{'-' * len(name)}\n{text}" for name, text in complete.items()]
    )


def _entry(parameter: inspect.Parameter) -> str:
    kind, meaning = SHARED[parameter.name]
    default = parameter.default
    if default is not parameter.empty:
        shown = f"{default:.3g}" if isinstance(default, float) else repr(default)
        kind += f", default {shown}"
    return f"{parameter.name} : {kind}\n    {meaning}"
