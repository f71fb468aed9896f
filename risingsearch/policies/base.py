"""The policy contract, on one page.

A policy is a ``NamedTuple`` of numbers and numpy arrays with two or three plain methods
and a factory. No decorator, no base class, no hidden state, no numba:

``create(n_arms, horizon, max_pulls=None, *, ...) -> policy``
    The policy before its first round, a class method. Every policy has the three
    sizes; the keyword parameters are its own and documented in its ``create``, but
    for three that mean the same in many. One that is outside its range is refused with
    an ``InvalidParameterError``.

    ``n_arms`` : int
        Number of arms, at least 1; ``K`` in formulas.
    ``horizon`` : int
        Number of rounds, at least 1; ``T`` in formulas.
    ``max_pulls`` : int, optional
        Pulls an arm can give at most, at least 1; by default the horizon. ``R`` in
        formulas. It bounds the memory of an arm; it does not cut short the projection
        of a formula to the horizon.
    ``reward_range`` : (float, float), default (0.0, 1.0)
        Lowest and highest reward. Bonuses grow with its width, and rewards outside are
        taken as they are; formulas for rewards in [0, 1] map and clip them.
    ``sigma`` : float, optional
        Standard deviation of the noise, at least 0. By default it is estimated from the
        second differences of the rewards seen so far.
    ``eps`` : float, default 0.25
        Share of an arm's pulls in its window, above 0 and at most 1/2.
``select(self, t, rng) -> int``
    The arm to pull at round ``t`` (from 1), or ``WAIT``. An arm never pulled before
    is thereby opened. It only reads: every array is afterwards as it was before, so
    asking twice gives the same answer (for the same state of ``rng``).
``started(self, t, arm) -> None``, optional
    Records the effects of the decision to pull an arm: a look is planned, an arm is
    promoted. Called once per decision, before the first pull, while the arm is still
    available; also for an arm that ``select`` did not name, and when a journal is read.
``update(self, t, arm, reward, rng) -> None``
    Records the reward of a pull that was decided at round ``t``.

``WAIT`` says that no arm should be pulled before another reward comes in; with no
pull in flight it says that the policy has stopped by its own rule.

Three arrays belong to the caller, a scheduler or a simulation, which keeps them up to
date before every call; every policy reads them and none writes them:

``available : (n_arms,) bool``
    False for arms that are busy, finished or failed. ``select`` is only called while
    one is available, and returns no other.
``pulls_left : (n_arms,) int64``
    Rewards the arm can still give, those in flight included; 0 for an arm that is
    finished or failed. So an arm with ``pulls_left > 0`` that is not available is
    busy.
``horizon : (n_arms,) float64``
    The last round, were this arm alone pulled from now on. Under a budget in epochs
    it is the budget, for every arm; under one in seconds, ``t - 1`` plus its rest
    divided by the arm's own cost. A formula's ``T`` is ``horizon[arm]``.

A fourth, ``pulls : (n_arms,) int64``, is the policy's own: rewards recorded so far.

Optional methods; in brackets the values without them. They only read; all but
``slice_length`` are never compiled:

``slice_length(self, arm) -> int``
    Pulls until the next decision, should the arm be started now (1). Asked before
    ``started``.
``explain(self, arm) -> dict[str, float]``
    The named parts of the arm's index, for people (none): as of the rewards recorded;
    rounds in flight are not counted. The columns of a search's history are no names of
    parts: ``risingsearch.arms.COLUMNS``.
``recommended_arms(horizon, max_pulls, *, ...) -> int``, static
    How many arms a budget is best spread over, from those of the policy's parameters
    that matter (a quarter of the budget's rounds).

Where a search proposes configurations:

``proposing(self) -> bool``
    Whether an arm that is opened now may be proposed (True).
``projection(self, arm) -> float``
    Where the arm is expected to end once it has given all its pulls (the best reward so
    far).

A policy of the package has an entry in ``risingsearch.policies``, with its paper and
these traits where they hold: ``STOPS``, it may stop with budget left; ``PLANS``, it
plans the whole horizon in rounds before it starts, so that it needs a budget in epochs;
``IN_FULL``, it is best with as many arms as the budget trains in full; and the names of
parameters whose defaults fit simulated rewards only, which a live search must give.

The source is written to be compiled as well as interpreted: so that both give the
same bits, policies use ``math`` and products only, no powers, no ``np.sum``, no
allocation; randomness comes from the generator passed in, through ``random`` and the
distributions that ``numpy.random.Generator`` shares with numba.
"""

from __future__ import annotations

from enum import Enum
from math import inf, isfinite, nan
from types import FunctionType
from typing import TYPE_CHECKING, Protocol, TypedDict

import numpy as np

from risingsearch.checks import call_problem
from risingsearch.errors import PolicyError, RunDirError

if TYPE_CHECKING:
    from collections.abc import Callable

from risingsearch.policies.arrays import (
    Array,
    Bools,
    Floats,
    Ints,
    Rng,
    all_true,
    int_zeros,
)

WAIT = -1
NO_LIMIT = np.iinfo(np.int64).max
_CONSTANTS = (int, float, complex, str, bytes, Enum, type, np.generic, FunctionType)
CALLER_ARRAYS = ("available", "pulls_left", "horizon")
_CALLS = {
    "select": "t, rng",
    "update": "t, arm, reward, rng",
    "started": "t, arm",
}
_TYPES = (np.bool_, np.integer, np.floating)  # of their entries


class Policy(Protocol):  # numpydoc ignore=PR01
    """Interface of policies; see the module's first lines for the rules.

    Examples
    --------
    >>> from risingsearch.policies import make_policy
    >>> policy: Policy = make_policy("round-robin", n_arms=2, horizon=10)
    >>> rng = np.random.default_rng(0)
    >>> arm = policy.select(1, rng)
    >>> policy.update(1, arm, 0.5, rng)
    >>> policy.select(2, rng), policy.pulls
    (1, array([1, 0]))
    """

    @property
    def available(self) -> Bools:
        """Arms that may be chosen, of shape (n_arms,)."""

    @property
    def pulls_left(self) -> Ints:
        """Rewards each arm can still give, of shape (n_arms,)."""

    @property
    def pulls(self) -> Ints:
        """Rewards recorded of each arm, of shape (n_arms,)."""

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm to pull at round ``t``, or ``WAIT``."""

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Record the reward of a pull decided at round ``t``."""


class SavedArray(TypedDict):
    """An array as JSON has it."""

    shape: list[int]
    indices: list[int] | None  # of the values that are not 0, or None for all
    values: list[float | str]  # infinities and NaN are words


def check_contract(policy: object, n_arms: int, *methods: str) -> None:
    """Raise a PolicyError if a method or an array of the caller is missing or unfit.

    Parameters
    ----------
    policy : object
        The object that a factory has returned.
    n_arms : int
        Number of arms that it was asked for.
    *methods : str
        Methods that it needs besides ``select`` and ``update``.

    Raises
    ------
    PolicyError
        The message names the first part that is missing or unfit.
    """
    kind = type(policy).__name__
    methods = (*methods, "select", "update")
    lacks = [name for name in methods if not callable(getattr(policy, name, None))]
    if lacks:
        raise PolicyError(
            "a policy is a NamedTuple of its arrays, with select and update; "
            f"{kind} lacks {', '.join(lacks)}: derive it from typing.NamedTuple"
        )
    for name, takes in _CALLS.items():
        method = getattr(policy, name, None)
        if method is not None and (why := call_problem(method, takes)):
            raise PolicyError(f"{kind}.{name} must take ({takes}): {why}")
    for name, entry in zip(CALLER_ARRAYS, _TYPES, strict=True):
        array = getattr(policy, name, None)
        if array is None and name == "horizon":
            continue
        given = "none"
        if isinstance(array, np.ndarray):
            given = f"{array.dtype} of shape {array.shape}"
            if np.issubdtype(array.dtype, entry) and array.shape == (n_arms,):
                continue
        raise PolicyError(
            f"{kind} needs an array {name} of type {entry.__name__} and length "
            f"n_arms={n_arms}, which its caller keeps up to date; it has {given}"
        )


def better(
    value: float,
    pulls: int,
    best_value: float,
    best_pulls: int,
) -> bool:
    """Return whether an arm beats an earlier one: higher value, then fewer pulls."""
    return value > best_value or (value == best_value and pulls < best_pulls)


def leader(
    arm: int,
    best: float,
    i: int,
    index: float,
    pulls: Ints,
) -> tuple[int, float]:
    """Return the better of ``arm``, of index ``best`` or none yet, and ``i``.

    Parameters
    ----------
    arm : int
        The leader so far, or ``WAIT``.
    best : float
        Its index.
    i : int
        The arm that is compared with it.
    index : float
        The index of ``i``.
    pulls : ndarray of shape (n_arms,)
        Pulls of all arms: of equal indices that of fewer pulls is better.

    Returns
    -------
    tuple of int and float
        The better arm and its index.

    Examples
    --------
    >>> pulls = np.array([3, 2])
    >>> leader(0, 0.5, 1, 0.5, pulls), leader(0, 0.5, 1, 0.4, pulls)
    ((1, 0.5), (0, 0.5))
    """
    # The first counts with any index, so that one is found where all are NaN.
    # This is ``better``, written out: a call for every arm costs a third of the time.
    if arm == WAIT or index > best or (index == best and pulls[i] < pulls[arm]):
        return i, index
    return arm, best


def least_pulled(available: Bools, pulls: Ints, limit: int) -> int:
    """Return the first available arm with fewest pulls below ``limit``, or ``WAIT``.

    Examples
    --------
    >>> pulls = np.array([2, 1, 1])
    >>> available = np.array([True, True, True])
    >>> least_pulled(available, pulls, NO_LIMIT), least_pulled(available, pulls, 1)
    (1, -1)
    """
    arm = WAIT
    fewest = limit
    for i in range(len(pulls)):
        if available[i] and pulls[i] < fewest:
            arm = i
            fewest = pulls[i]
            if fewest == 0:
                break
    return arm


def best_available(available: Bools, values: Floats | Ints, pulls: Ints) -> int:
    """Return the available arm of the best value (see ``better``), or ``WAIT``.

    Examples
    --------
    >>> pulls = np.array([2, 1, 1])
    >>> best_available(np.array([True, True, False]), np.array([0.5, 0.5, 0.9]), pulls)
    1
    """
    arm = WAIT
    best = -inf
    for i in range(len(pulls)):
        if available[i]:
            arm, best = leader(arm, best, i, float(values[i]), pulls)
    return arm


def uniform_arm(available: Bools, rng: Rng) -> int:
    """Return an available arm, each with the same probability."""
    n_available = 0
    for i in range(len(available)):
        if available[i]:
            n_available += 1
    skip = int(rng.random() * n_available)
    if n_available == len(available):
        return skip
    for i in range(len(available)):
        if available[i]:
            if skip == 0:
                return i
            skip -= 1
    return WAIT


def coming_round(pulls: Ints) -> int:
    """Return the number of the next round; those in flight are not counted."""
    return int(pulls.sum()) + 1


def pull_limit(horizon: int, max_pulls: int | None) -> int:
    """Return how many pulls an arm can give at most."""
    if max_pulls is None:
        return horizon
    return max_pulls


def arm_arrays(
    n_arms: int, horizon: int, max_pulls: int | None
) -> tuple[Bools, Ints, Floats, Ints]:
    """Return fresh ``available``, ``pulls_left``, ``horizon`` and ``pulls`` arrays.

    Parameters
    ----------
    n_arms : int
        Number of arms.
    horizon : int
        Number of rounds.
    max_pulls : int, optional
        Pulls an arm can give at most; by default the horizon.

    Returns
    -------
    tuple of four ndarrays of shape (n_arms,)
        The first fields of every policy, before its first round.

    Examples
    --------
    >>> arm_arrays(2, 10, max_pulls=4)
    (array([ True,  True]), array([4, 4]), array([10., 10.]), array([0, 0]))
    """
    limit = pull_limit(horizon, max_pulls)
    return (
        all_true(n_arms),
        np.full(n_arms, limit, dtype=np.int64),
        np.full(n_arms, float(horizon)),
        int_zeros(n_arms),
    )


def started(policy: Policy, t: int, arm: int) -> None:
    """Let the policy record that ``arm`` is pulled next, as was decided at ``t``."""
    method = getattr(policy, "started", None)
    if method is not None:
        method(t, arm)


def play_alone(
    policy: Policy,
    reward: Callable[[int, int, int], float],
    rounds: int,
    seed: int = 0,
) -> list[int]:
    """Return the arms pulled; ``reward(arm, n, t)`` pays an arm's ``n``-th pull.

    Parameters
    ----------
    policy : Policy
        A policy before its first round.
    reward : callable
        ``reward(arm, n, t)`` pays the ``n``-th pull of an arm, at round ``t``.
    rounds : int
        Rounds to play; it ends early where the policy waits or no arm is left.
    seed : int, default 0
        Of the generator that the policy draws from.

    Returns
    -------
    list of int
        The arm of every round.

    Examples
    --------
    >>> from risingsearch.policies import make_policy
    >>> policy = make_policy("epsilon-greedy", n_arms=2, horizon=6, epsilon=0.0)
    >>> play_alone(policy, lambda arm, n, t: [0.2, 0.6][arm], 6)
    [0, 1, 1, 1, 1, 1]
    """
    rng = np.random.default_rng(seed)
    arms: list[int] = []
    while len(arms) < rounds and policy.available.any():
        first = len(arms) + 1
        arm = int(policy.select(first, rng))
        if arm == WAIT:
            break
        left = min(int(policy.pulls_left[arm]), rounds - len(arms))
        n_pulls = min(slice_length(policy, arm), left)
        started(policy, first, arm)
        for t in range(first, first + n_pulls):
            policy.pulls_left[arm] -= 1
            policy.available[arm] = policy.pulls_left[arm] > 0
            n = int(policy.pulls[arm]) + 1
            policy.update(t, arm, reward(arm, n, t), rng)
            arms.append(arm)
    return arms


def slice_length(policy: Policy, arm: int) -> int:
    """Return the pulls ``arm`` gets before the policy decides again.

    Parameters
    ----------
    policy : Policy
        Asked before ``started``.
    arm : int
        The arm that would be started now.

    Returns
    -------
    int
        At least 1, which is also the answer of a policy that does not say.

    Examples
    --------
    >>> from risingsearch.policies import make_policy
    >>> policy = make_policy("random-search", n_arms=3, horizon=30, max_pulls=10)
    >>> slice_length(policy, 0)
    10
    """
    method = getattr(policy, "slice_length", None)
    if method is None:
        return 1
    return int(method(arm))


def projection(policy: Policy, arm: int) -> float:
    """Return where the arm is expected to end; NaN when the policy does not say."""
    method = getattr(policy, "projection", None)
    if method is None:
        return nan
    return float(method(arm))


def proposing(policy: Policy) -> bool:
    """Return whether an arm that is opened now may be proposed."""
    method = getattr(policy, "proposing", None)
    if method is None:
        return True
    return bool(method())


def explain(policy: Policy, arm: int) -> dict[str, float]:
    """Return the named parts of the arm's index; empty when the policy has none.

    Parameters
    ----------
    policy : Policy
        As of the rewards recorded: pulls in flight are not counted.
    arm : int
        The arm.

    Returns
    -------
    dict of str to float
        By name, as in the history of a search.

    Examples
    --------
    >>> from risingsearch.policies import make_policy
    >>> policy = make_policy("ucb1", n_arms=2, horizon=9)
    >>> arms = play_alone(policy, lambda arm, n, t: [0.2, 0.6][arm], 4)
    >>> explain(policy, 1)
    {'mean': 0.6, 'bonus': 1.2686362411795196}
    """
    method = getattr(policy, "explain", None)
    parts = {} if method is None else method(arm)
    return {name: float(part) for name, part in parts.items()}


def state_dict(policy: Policy) -> dict[str, SavedArray]:
    """Return a policy's arrays as JSON values; a PolicyError if more of it changes.

    Returns
    -------
    dict of str to dict
        By array its shape, and its values, or those that are not 0 with their indices.

    Raises
    ------
    PolicyError
        If the policy holds more that may change.

    Examples
    --------
    >>> from risingsearch.policies import make_policy
    >>> state_dict(make_policy("round-robin", n_arms=2, horizon=3))["pulls"]
    {'shape': [2], 'indices': [], 'values': []}
    """
    return {name: _encoded(array) for name, array in _changing(policy).items()}


def load_state_dict(policy: Policy, state: dict[str, SavedArray]) -> None:
    """Put saved arrays back in place, if they are of a policy of this kind and size.

    Raises
    ------
    RunDirError
        If the state is of another kind of policy, or of another size.

    Examples
    --------
    >>> from risingsearch.policies import make_policy
    >>> policy = make_policy("round-robin", n_arms=2, horizon=3)
    >>> arms = play_alone(policy, lambda arm, n, t: 0.5, 3)
    >>> again = make_policy("round-robin", n_arms=2, horizon=3)
    >>> load_state_dict(again, state_dict(policy))
    >>> again.pulls
    array([2, 1])
    """
    changing = _changing(policy)
    shapes = {name: list(array.shape) for name, array in changing.items()}
    saved = {name: array["shape"] for name, array in state.items()}
    if saved != shapes:
        raise RunDirError(
            f"the saved state has arrays of the shapes {saved}, this "
            f"{type(policy).__name__} has {shapes}: load it into a policy of the same "
            "kind and size"
        )
    for name, array in changing.items():
        values = np.array(state[name]["values"], dtype=array.dtype)
        indices = state[name]["indices"]
        array.fill(0)
        np.put(array, np.arange(array.size) if indices is None else indices, values)


def arrays(policy: Policy) -> dict[str, Array]:
    """Return the arrays of a policy by their names."""
    values = policy._asdict()  # type: ignore[attr-defined]
    return {
        name: x
        for name, x in values.items()
        if isinstance(x, np.ndarray) and not x.dtype.hasobject
    }


def _changing(policy: Policy) -> dict[str, Array]:
    """Return the arrays of a policy, or raise if it holds more that changes."""
    # A subclass of a NamedTuple has attributes that can be set anew.
    attributes = getattr(policy, "__dict__", {})
    saved = arrays(policy)
    values = policy._asdict() | attributes  # type: ignore[attr-defined]
    for name in values.keys() - saved.keys():
        if name in attributes or not _is_constant(values[name]):
            raise PolicyError(
                f"the policy {type(policy).__name__} holds {name}, a "
                f"{type(values[name]).__name__}, which no saved state has: keep what "
                "changes in arrays of numbers"
            )
    return saved


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, _CONSTANTS)


def _encoded(array: Array) -> SavedArray:
    # Sparse: the history arrays of a young search are nearly all zero; an array without
    # zeros has no indices. Infinities are written as words, because JSON has none.
    flat = array.reshape(-1)
    indices = np.flatnonzero(flat.view(f"u{array.itemsize}"))  # -0.0 has a bit, too
    is_sparse = 2 * len(indices) <= array.size
    values = flat[indices] if is_sparse else flat
    return {
        "shape": list(array.shape),
        "indices": indices.tolist() if is_sparse else None,
        "values": [x if isfinite(x) else repr(x) for x in values.tolist()],
    }
