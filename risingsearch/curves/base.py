"""The contract of environments and of their generators, on one page.

An environment is a ``NamedTuple`` of numbers and arrays, compiled as well as
interpreted, by the rules of ``risingsearch.policies.base``. Arms and pulls are those of
the policy; ``n`` counts an arm's own pulls, ``t`` the rounds, both from 1. *Rested*
arms look at ``n`` (a training run moves when it trains), *restless* ones at ``t``.

``Environment`` has its attributes. Optional, with their defaults:

``pulls : (n_arms,) int64``
    Pulls each arm can give (no limit).
``fresh(self)``
    The environment with new mutable arrays, for concurrent runs (itself).

Where a value is outside its range, ``create`` and the generators raise an
``InvalidParameterError``.

A generator makes an environment: ``(rng, horizon, *, ...) -> environment``, where all
draws come from ``rng`` alone; ``make_environment`` calls it by name. ``n_arms`` is
the number of arms, at least 1. ``noise`` is a noise model, its kind, or the standard
deviation of Gaussian noise, which multiplies the standard deviations of the arms. All
other numbers are those of the paper, and other ones are given to the ``create`` of an
environment.
"""

from typing import Protocol, TypeVar

import numpy as np

from risingsearch.policies.arrays import Floats, Ints, Rng


class Environment(Protocol):  # numpydoc ignore=PR01
    """Interface of environments; see the module's first lines for the rules.

    Examples
    --------
    >>> from risingsearch.curves import make_environment
    >>> arms: Environment = make_environment("two-arm", horizon=30_000)
    >>> arms.n_arms, arms.reference, arms.mean(1, 10_000, 30_000)
    (2, 'best-arm', 0.5)
    """

    @property
    def n_arms(self) -> int:
        """Number of arms; a field or a property."""

    @property
    def reference(self) -> str:
        """Policy that ``optimal`` is the sum of; a field or a property.

        ``"best-arm"`` (the best single arm: optimal where means never fall),
        ``"greedy"`` (the best next mean: optimal where they never rise),
        ``"allocation"`` (the best numbers of pulls, for any curves), ``"dynamic"`` (the
        best mean of every round), or ``"static"`` (a constant per round).
        """

    def mean(self, arm: int, n: int, t: int) -> float:
        """Return the mean reward of an arm's ``n``-th pull, were it at round ``t``."""

    def draw(
        self,
        mean: float,
        arm: int,
        n: int,
        t: int,
        rng: Rng,
    ) -> float:
        """Return the reward of a pull whose mean is ``mean``."""

    def optimal(self, rounds: Ints) -> Floats:
        """Return the sum of means of the best policy, per number; never compiled."""


Kind = TypeVar("Kind", bound=Environment)


def fresh(environment: Kind) -> Kind:
    """Return the environment for one run."""
    method = getattr(environment, "fresh", None)
    if method is None:
        return environment
    copy: Kind = method()
    return copy


def pull_limits(environment: Environment, rounds: int) -> Ints:
    """Return the pulls each arm can give within a number of rounds.

    Examples
    --------
    >>> from risingsearch.curves import CurveTable
    >>> pull_limits(CurveTable.create([[0.5, 0.6, 0.7], [0.1, 0.2, np.nan]]), rounds=10)
    array([3, 2])
    """
    limits = getattr(environment, "pulls", rounds)
    return np.minimum(limits, np.full(environment.n_arms, rounds, dtype=np.int64))
