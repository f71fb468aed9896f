"""Contract of proposers: their view of a search, their proposals, and when it asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import Configuration
from risingsearch.checks import call_problem
from risingsearch.errors import InvalidParameterError
from risingsearch.identity.comparison import named

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rng = np.random.Generator


def best_first(values: Floats) -> NDArray[np.intp]:
    """Return the positions of values, from the highest on; of equal ones, in order."""
    return np.argsort(-values, kind="stable")


class Opened(NamedTuple):
    """The arms opened so far, with their scores; higher ends are better.

    Parameters
    ----------
    arms, epochs, ends, finished : arrays of shape (n_opened,)
        The arms, the epochs that each has trained, where each is expected to end, and
        whether it is finished.
    max_epochs : int
        Epochs that an arm can train at most.
    without_score : array of shape (n_waiting,)
        Other arms, in training for the first time.
    curves : tuple of arrays
        By opened arm, its rewards epoch by epoch; a lost epoch has the worst of all.
    wanted : bool, default True
        Whether the policy wants the next arm to be proposed.
    failed : array of shape (n_failed,)
        Positions of arms without a score, where others have one.

    Examples
    --------
    >>> opened = Opened(
    ...     arms=np.array([0, 1]),
    ...     epochs=np.array([3, 1]),
    ...     ends=np.array([0.9, 0.5]),
    ...     finished=np.array([False, False]),
    ...     max_epochs=10,
    ...     without_score=np.array([2]),
    ... )
    >>> opened.n_begun
    3
    """

    arms: Ints
    epochs: Ints
    ends: Floats
    finished: NDArray[np.bool_]
    max_epochs: int
    without_score: Ints = np.empty(0, dtype=np.int64)
    curves: tuple[Floats, ...] = ()
    wanted: bool = True
    failed: Ints = np.empty(0, dtype=np.int64)

    @property
    def n_begun(self) -> int:
        """The number of all arms that have begun."""
        return len(self.arms) + len(self.without_score)


class Proposal(NamedTuple):
    """A configuration for the arm that the policy opens, or another unopened arm.

    Parameters
    ----------
    params : mapping, default {}
        The values in place of the drawn ones.
    like : tuple of int, default ()
        The opened arms that they resemble.
    arm : int, optional
        The arm to open, if it is another than the policy's.
    by_prior : bool, default False
        Whether it is chosen for what earlier searches found.

    Examples
    --------
    >>> Proposal({"rate": 0.1}, like=(3,)).params
    {'rate': 0.1}
    """

    params: Mapping[str, object] = {}
    like: tuple[int, ...] = ()
    arm: int | None = None
    by_prior: bool = False


class Proposer:
    """Base class of proposers: define ``propose``; all else has a default.

    Attributes
    ----------
    own : Proposer or None
        Another one, which does all that a subclass does not define.
    candidates : sequence of dict
        The configurations of all arms, of one with ``more_slots``.
    n_arms : int or None
        The number of arms that it was made for; None if it may be any.

    Examples
    --------
    >>> from risingsearch import Scheduler
    >>> class Last(Proposer):
    ...     def propose(self, opened, unopened, rng):
    ...         return int(unopened[-1])
    >>> Scheduler("round-robin", n_arms=5, budget=9, proposer=Last()).ask().arm
    4
    """

    own: Proposer | None = None
    candidates: Sequence[Configuration] = ()
    n_arms: int | None = None

    @property
    def identity(self) -> object:
        """JSON that stays the same, and tells it from others when a state is loaded."""
        return named(self)

    def is_due(self, n_begun: int, wanted: bool) -> bool:
        """Return whether to propose an arm, after so many others have begun.

        ``wanted``: whether the policy wants it to be proposed. The default policy does
        for every later look, other policies for every arm.
        """
        if self.own:
            return self.own.is_due(n_begun, wanted)
        return wanted

    def propose(
        self, opened: Opened, unopened: Ints, rng: Rng
    ) -> int | Proposal | None:
        """Return an unopened arm or a configuration; None for the next arm in order.

        It is asked for the arms that are due, and draws from ``rng`` alone.
        """
        if self.own:
            return self.own.propose(opened, unopened, rng)
        return None

    def trusted(self, opened: Opened) -> dict[str, float]:
        """Return how far each earlier search is trusted, from 0 to 1."""
        if self.own:
            return self.own.trusted(opened)
        return {}

    def policy_params(self) -> dict[str, float]:
        """Return values for parameters that a policy has and that are not given."""
        if self.own:
            return self.own.policy_params()
        return {}

    def more_slots(self, n: int, proposals: Mapping[int, Proposal]) -> int:
        """Return how many arms there are once the first ``n`` are opened.

        ``proposals`` are those that arms were opened with, by arm.
        """
        if self.own:
            return self.own.more_slots(n, proposals)
        return n


class AsDrawn(Proposer):
    """Leaves every arm as it was drawn."""

    identity = None

    def is_due(self, n_begun: int, wanted: bool) -> bool:
        """Return False."""
        return False


def checked_proposer(given: object) -> Proposer:
    """Return the proposer that is given, ``AsDrawn`` for None; else raise an error."""
    if given is None or isinstance(given, AsDrawn):
        return given or AsDrawn()
    if not isinstance(given, Proposer):
        raise InvalidParameterError(
            "proposer must be an instance of risingsearch.proposers.Proposer, None or, "
            f"of a search, 'auto'; got {given!r}"
        )
    lacks = type(given).propose is Proposer.propose and given.own is None
    if lacks or call_problem(given.propose, "opened, unopened, rng"):
        raise InvalidParameterError(
            f"{type(given).__name__} proposes nothing: define its method "
            "propose(self, opened, unopened, rng), or give proposer=None"
        )
    return given
