"""Proposals of candidates by the results of earlier searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.priors.earlier import EarlierSearch
from risingsearch.priors.matching import Configurations
from risingsearch.priors.models import Learnt, Predictions, correlation
from risingsearch.proposers.base import Floats, Ints, Opened, Proposal, Proposer, Rng
from risingsearch.proposers.gaussian_process import normal_scores
from risingsearch.proposers.open_space import ArmPoints, nearest
from risingsearch.space import Space

EXPECTED = 2.0
"""Arms for which the agreement counts that is expected before any is seen."""
EXPECTED_NO_MORE = 8.0
"""The same for a better agreement: of few arms, some agree by chance."""
SHARPNESS = 4.0
"""Power of its agreement by which a search counts."""
FEWEST_TRUST = 0.5
"""Trust from which earlier searches choose an arm."""
FIRST = 24
"""Arms after which this search's own scores say more."""
DRAWN = 500
"""Configurations of a space to choose one from."""
EVERY_RANDOM = 3
"""Of so many arms, one is opened as without earlier searches."""


class Trust(NamedTuple):
    """How far earlier searches are trusted."""

    weights: Floats  # (n_searches,), shares that sum to 1; or all 0
    together: float  # how well they rank the arms opened here: a correlation


def is_due(n_opened: int, *, in_space: bool) -> bool:
    """Return whether the arm after so many is one that earlier searches may choose.

    Parameters
    ----------
    n_opened : int
        Arms that are open already.
    in_space : bool
        Whether configurations are proposed in a space, not of a list.

    Returns
    -------
    bool
        True for two of three arms among the first 24.

    Notes
    -----
    The first arm is not, and in a space neither are the next two: where few are opened,
    each counts, and fewer agree by chance too often with searches that mislead.

    Examples
    --------
    >>> [is_due(n, in_space=False) for n in range(5)]
    [False, True, True, False, True]
    """
    n_own = 3 if in_space else 1
    return n_own <= n_opened < FIRST and (n_opened + 1 - n_own) % EVERY_RANDOM != 0


class PriorProposer(Proposer):
    """Opens first the candidates that earlier searches favour, while that holds here.

    For two of three arms among the first 24, the configuration is proposed for which
    the earlier searches predict most, in deviations above the mean, times how unlike it
    is to the arms that are open: one less its highest correlation with one of them in
    the models of the earlier searches. Without that, arms lie side by side in a space
    of few parameters, and a best that has moved is not found. On a list it is one of
    the unopened arms, and in a space one of 500 random configurations.

    ``docs/lab-book/transfer.md`` says how far each earlier search is trusted, and when
    nothing is proposed for lack of it.

    Provenance: own rule; the weights by how tasks rank the seen arms are in the spirit
    of the ranking-weighted Gaussian process ensemble (Feurer, Letham, Bakshy 2018).

    Parameters
    ----------
    learnt : Learnt
        The models of the earlier searches; see ``between``.
    candidates : sequence of dict
        The configurations of all arms.
    own : Proposer, optional
        Proposes from the scores of this search itself, where the policy asks for it.
    space : Space, optional
        What new configurations are drawn from; by default, ``candidates`` are a list.

    Examples
    --------
    >>> candidates = [{"rate": 2.0**-k} for k in range(20)]
    >>> runs = [{"rate": 2.0**-k} for k in range(0, 20, 2)]
    >>> curves = [np.array([1.0 - (k / 20 - 0.4) ** 2]) for k in range(0, 20, 2)]
    >>> earlier = EarlierSearch("May", runs, curves)
    >>> proposer = PriorProposer.between(candidates, [earlier])
    >>> int(proposer.learnt.predictions(candidates).scores.argmax())
    8
    """

    def __init__(
        self,
        learnt: Learnt,
        candidates: Configurations,
        own: Proposer | None = None,
        space: Space | None = None,
    ) -> None:
        self.learnt = learnt
        self.candidates = candidates
        self.own = own
        self._listed = None
        self._points = None
        self.n_arms = None
        if space is None:
            self._listed = learnt.predictions(candidates)
            self.n_arms = len(candidates)
        else:
            self._points = ArmPoints(space, candidates)

    @classmethod
    def between(
        cls,
        candidates: Configurations,
        searches: Sequence[EarlierSearch],
        own: Proposer | None = None,
        space: Space | None = None,
    ) -> PriorProposer:
        """Return the proposer for a search of these candidates after those searches.

        Parameters
        ----------
        candidates, own, space
            As for the class.
        searches : sequence of EarlierSearch
            The earlier searches.

        Returns
        -------
        PriorProposer
            Its ``learnt`` is fitted.
        """
        return cls(Learnt(candidates, searches), candidates, own, space)

    @property
    def identity(self) -> dict[str, object]:
        """The earlier searches, and the identity of the other proposer."""
        own = self.own and self.own.identity
        return {
            "earlier_searches": self.learnt.digests,
            "own": own,
        }

    def is_due(self, n_begun: int, wanted: bool) -> bool:
        """Return whether to propose the arm after so many."""
        return self._is_due(n_begun) or super().is_due(n_begun, wanted)

    def _is_due(self, n_begun: int) -> bool:
        return is_due(n_begun, in_space=self._points is not None)

    def propose(
        self,
        opened: Opened,
        unopened: Ints,
        rng: Rng,
    ) -> int | Proposal | None:
        """Return the proposal by earlier searches, or else by this one's scores."""
        if self._is_due(opened.n_begun):
            proposal = self.most_promising(opened, unopened, rng)
            if proposal is not None:
                return proposal
        if super().is_due(opened.n_begun, opened.wanted):
            return super().propose(opened, unopened, rng)
        return None

    def most_promising(
        self,
        opened: Opened,
        unopened: Ints,
        rng: Rng,
    ) -> Proposal | None:
        """Return the proposal by earlier searches; None if trust is low."""
        trust = self.trust(opened)
        if trust.together < FEWEST_TRUST:
            return None
        begun = np.concatenate([opened.arms, opened.without_score])
        seen = self._predictions(begun)

        def best_first(offered: Predictions) -> NDArray[np.intp]:
            unlike = 1.0 - offered.alike(seen).max(axis=1, initial=0.0)
            promise = (trust.weights @ offered.scores) * unlike
            return np.argsort(-promise, kind="stable")

        if self._points is None:
            best = best_first(self._predictions(unopened))[0]
            arm = unopened[best]
            return Proposal(arm=int(arm), by_prior=True)
        space = self._points.space
        points = rng.random((DRAWN, len(space.coordinates)))
        drawn = space.from_units(points)
        order = best_first(self.learnt.predictions(drawn))
        for _, proposal in self._points.untried(points[order], opened, unopened):
            [alike] = self.learnt.predictions([proposal.params]).alike(seen)
            return proposal._replace(like=nearest(begun, alike), by_prior=True)
        return None

    def trusted(self, opened: Opened) -> dict[str, float]:
        """Return how far each earlier search is trusted: its share of all trust.

        Parameters
        ----------
        opened : Opened
            The arms of this search so far.

        Returns
        -------
        dict of str to float
            By the name of the earlier search, from 0 to 1.
        """
        trust = self.trust(opened)
        shares = trust.weights * max(0.0, trust.together)
        return dict(zip(self.learnt.digests, shares.tolist(), strict=True))

    def trust(self, opened: Opened) -> Trust:
        """Return how far each search is trusted, after these arms."""
        ends = opened.ends
        agreement = self.learnt.agreement
        predicted = self._predictions(opened.arms).scores
        seen = ends
        if len(ends):
            seen = normal_scores(ends)
        n_more = max(0.0, len(ends) - 1.0)

        def updated(
            expected: Floats,
            agreed: Floats,
            counts_for: float,
        ) -> Floats:
            """Return the mean of both, by how much each counts."""
            total = counts_for * expected + n_more * agreed
            return np.asarray(total / (counts_for + n_more))

        agreed = np.array([correlation(scores, seen) for scores in predicted])
        weights = updated(agreement, agreed, EXPECTED)
        weights = np.maximum(weights, 0.0) ** SHARPNESS
        total = float(weights.sum())
        if total < 1e-12:
            return Trust(np.zeros_like(weights), 0.0)
        weights /= total
        expected = weights @ agreement
        together = np.asarray(correlation(weights @ predicted, seen))
        counts_for = EXPECTED_NO_MORE if together > expected else EXPECTED
        return Trust(weights, float(updated(expected, together, counts_for)))

    def _predictions(self, arms: Ints) -> Predictions:
        if self._listed is not None:
            return self._listed.select(arms)
        return self.learnt.predictions([self.candidates[k] for k in arms.tolist()])
