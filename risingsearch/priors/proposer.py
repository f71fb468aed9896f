"""Proposals of candidates by the results of earlier searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.priors.earlier import EarlierSearch, told_apart
from risingsearch.priors.models import Learnt, Predictions, correlation
from risingsearch.proposers.base import Opened, Proposal, Proposer
from risingsearch.proposers.gaussian_process import normal_scores

EXPECTED = 2.0
"""Arms for which the agreement counts that is expected before any is seen."""
EXPECTED_NO_MORE = 8.0
"""The same for a better agreement: of few arms, some agree by chance."""
SHARPNESS = 4.0
"""Power of its agreement by which a search counts."""
FEWEST_TRUST = 0.3
"""Trust from which earlier searches choose an arm."""
FIRST = 24
"""Arms after which this search's own scores say more."""
EVERY_RANDOM = 3
"""Of so many arms, one is opened as without earlier searches."""


class Trust(NamedTuple):
    """How far earlier searches are trusted."""

    weights: NDArray[np.float64]  # (n_searches,), shares that sum to 1; or all 0
    expected: NDArray[np.float64]  # (n_candidates,), what they say together
    together: float  # how well that ranks what is seen here: a correlation


def is_due(n_opened: int) -> bool:
    """Return whether the arm after so many is one that earlier searches may choose."""
    return n_opened < FIRST and n_opened % EVERY_RANDOM != 0


class PriorProposer(Proposer):
    """Opens first the candidates that earlier searches favour, while that holds here.

    For two of three arms among the first 24, the candidate is proposed that the earlier
    searches say most of, in deviations above the mean, times how unlike it is to the
    arms that are open: one less its highest correlation with one of them in the models
    of the earlier searches. Without that, arms lie side by side in a space of few
    parameters, and a best that has moved is not found.

    ``docs/earlier-searches.md`` says how far each earlier search is trusted, and when
    nothing is proposed for lack of it.

    Provenance: own rule; the weights by how tasks rank the seen arms are in the spirit
    of the ranking-weighted Gaussian process ensemble (Feurer, Letham, Bakshy 2018).

    Parameters
    ----------
    said : Predictions
        Their predictions for every candidate; see ``between``.
    own : Proposer, optional
        Proposes from the scores of this search itself, where the policy asks for it.

    Examples
    --------
    >>> candidates = [{"rate": 2.0**-k} for k in range(20)]
    >>> runs = [{"rate": 2.0**-k} for k in range(0, 20, 2)]
    >>> curves = [np.array([1.0 - (k / 20 - 0.4) ** 2]) for k in range(0, 20, 2)]
    >>> earlier = EarlierSearch("May", runs, curves)
    >>> proposer = PriorProposer.between(candidates, [earlier])
    >>> int(proposer.said.scores.argmax())
    8
    """

    def __init__(self, said: Predictions, own: Proposer | None = None) -> None:
        self.own = own
        self.said = said
        self.n_arms = int(said.scores.shape[1])
        self.digests: dict[str, str] = {}  # of the searches, where they are known

    @classmethod
    def between(
        cls,
        candidates: Sequence[Mapping[str, Any]],
        searches: Sequence[EarlierSearch],
        own: Proposer | None = None,
    ) -> PriorProposer:
        """Return the proposer for a search of these candidates after those searches."""
        searches = told_apart(searches)
        proposer = cls(Learnt(candidates, searches).said, own)
        proposer.digests = {search.name: search.digest() for search in searches}
        return proposer

    @property
    def identity(self) -> Any:
        """The earlier searches, and the identity of the other proposer."""
        return {"earlier_searches": self.digests, "own": self.own and self.own.identity}

    def is_due(self, n_begun: int, wanted: bool) -> bool:
        """Return whether to propose the arm after so many."""
        return is_due(n_begun) or super().is_due(n_begun, wanted)

    def propose(
        self, opened: Opened, unopened: NDArray[np.int64], rng: np.random.Generator
    ) -> int | Proposal | None:
        """Return the proposal by earlier searches, or else by this one's scores."""
        if is_due(opened.n_begun):
            arm = self.most_promising(opened, unopened)
            if arm is not None:
                return Proposal(arm=arm, by_prior=True)
        if super().is_due(opened.n_begun, opened.wanted):
            return super().propose(opened, unopened, rng)
        return None

    def most_promising(self, opened: Opened, unopened: NDArray[np.int64]) -> int | None:
        """Return the most promising arm by earlier searches; None if trust is low."""
        trust = self.trust(opened.arms, opened.ends)
        if trust.together < FEWEST_TRUST:
            return None
        known = np.concatenate([opened.arms, opened.without_score])
        unlike = 1.0 - self.said.alike(unopened, known).max(axis=1, initial=0.0)
        return int(unopened[np.argmax(trust.expected[unopened] * unlike)])

    def trusted(self, opened: Opened) -> dict[str, float]:
        """Return how far each earlier search is trusted: its share of all trust."""
        trust = self.trust(opened.arms, opened.ends)
        shares = trust.weights * max(0.0, trust.together)
        return dict(zip(self.said.names, shares.tolist(), strict=True))

    def trust(self, arms: NDArray[np.int64], ends: NDArray[np.float64]) -> Trust:
        """Return how far each search is trusted, after these arms with these ends."""
        said, agreement = self.said.scores, self.said.agreement
        seen = normal_scores(ends) if len(ends) else ends
        n_more = max(0.0, len(arms) - 1.0)

        def updated(expected: Any, found: Any, counts_for: float = EXPECTED) -> Any:
            return (counts_for * expected + n_more * found) / (counts_for + n_more)

        found = np.array([correlation(one[arms], seen) for one in said])
        weights = np.maximum(updated(agreement, found), 0.0) ** SHARPNESS
        total = float(weights.sum())
        if total < 1e-12:
            return Trust(np.zeros_like(weights), np.zeros(said.shape[1]), 0.0)
        weights /= total
        expected = weights @ said
        agreed, found_here = weights @ agreement, correlation(expected[arms], seen)
        counts_for = EXPECTED_NO_MORE if found_here > agreed else EXPECTED
        together = updated(agreed, found_here, counts_for)
        return Trust(weights, expected, float(together))
