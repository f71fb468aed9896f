"""Proposals of new configurations in a space, from all scores of a search so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from risingsearch.arms import Configuration, Params
from risingsearch.json_values import Json
from risingsearch.proposers.base import (
    Floats,
    Ints,
    Opened,
    Proposal,
    Proposer,
    Rng,
    best_first,
)
from risingsearch.proposers.gaussian_process import (
    Observations,
    Posterior,
    at_last_epoch,
    fitted_posterior,
    places_of_epochs,
    standardised,
)
from risingsearch.space import Space, key_of_all

FEWEST = 8  # arms to propose by
MOST = 200  # rows of the model
FRESH = 200
NEAR = 400
CLIMBERS = 10
ROUNDS = 3
DRAWN = 100  # configurations of a list
MOST_ALIKE = 3  # arms that a proposal resembles
AS_DRAWN = 4  # of so many arms, one is not proposed
LARGE = 5  # full trainings; the learning rate proposes in no larger budget
SHARES = {"opening_share": 0.1, "later_share": 0.4}  # of a larger one, for the policy
SAME = 1e-9  # difference of features within which configurations are the same


def nearest(arms: Ints, alike: Floats) -> tuple[int, ...]:
    """Return the arms that a proposal resembles, by how much each is alike."""
    return tuple(arms[best_first(alike)[:MOST_ALIKE]].tolist())


Draw = Callable[[Space, Sequence[Configuration]], Sequence[Params]]
"""Draws configurations of a space that are not among the known ones."""


class ArmPoints:
    """The configurations of arms that have begun, as points of a space."""

    def __init__(self, space: Space, candidates: Sequence[Configuration]) -> None:
        self.space = space
        self.candidates = candidates
        self._known: dict[int, Floats] = {}

    def points(self, arms: Ints) -> Floats:
        """Return the points of these arms' configurations."""
        for arm in arms.tolist():
            if arm not in self._known:
                self._known[arm] = self.space.to_unit(self.candidates[arm])
        points = [self._known[arm] for arm in arms.tolist()]
        return np.reshape(points, (len(arms), len(self.space.coordinates)))

    def features(self, arms: Ints) -> Floats:
        """Return the features of these arms' configurations."""
        return self.space.features(self.points(arms))

    def untried(
        self,
        points: Floats,
        opened: Opened,
        unopened: Ints,
    ) -> Iterator[tuple[Floats, Proposal]]:
        """Yield the features and proposals of allowed points that no arm has tried.

        A proposal names the unopened arm with the same configuration, if any.
        """
        begun = self.features(np.concatenate([opened.arms, opened.without_score]))
        arms = {}  # by configuration, the first of equal ones
        for arm in reversed(unopened.tolist()):
            arms[key_of_all(self.candidates[arm])] = arm
        for point, features in zip(points, self.space.features(points), strict=True):
            if (np.abs(begun - features) < SAME).all(axis=1).any():
                continue
            params = self.space.from_unit(point)
            if self.space.permits(params):
                proposal = Proposal(params, arm=arms.get(key_of_all(params)))
                yield features[None], proposal


class OpenSpaceProposer(Proposer):
    """Proposes configurations of a space that will end high; see ``modelled``.

    ``candidates`` are those of the search, in which a proposal has taken its
    place; ``draw(space, known)`` draws others than those, and None has no more.
    """

    def __init__(
        self,
        space: Space,
        candidates: list[Params],
        n_trainings: float = math.inf,
        draw: Draw | None = None,
    ) -> None:
        self.space = space
        self.candidates: list[Params] = candidates
        self._is_short = n_trainings <= LARGE
        self._draw = draw
        self._points = ArmPoints(space, candidates)

    def is_due(self, n_begun: int, wanted: bool) -> bool:
        """Return whether the policy wants a proposal, for three of four arms."""
        return wanted and n_begun % AS_DRAWN != 0

    def policy_params(self) -> dict[str, float]:
        """Return how the default policy shares a budget in an open space."""
        return {} if self._is_short else SHARES

    def more_slots(self, n: int, proposals: Mapping[int, Proposal]) -> int:
        """Return how many there are after the first ``n``, drawn if need be."""
        if self._draw is not None and len(self.candidates) <= n:
            known = []
            for arm, params in enumerate(self.candidates):
                if arm in proposals:
                    params = self.space.restored(proposals[arm].params)
                known.append(params)
            more = self._draw(self.space, known)
            self.candidates.extend(more)
            if not more:
                self._draw = None
        return max(n, min(2 * n, len(self.candidates)))

    @property
    def identity(self) -> Json:
        """Identity among proposers, as JSON."""
        return {
            "proposer": "open-space",
            "space": self.space.description,
        }

    def propose(
        self,
        opened: Opened,
        unopened: Ints,
        rng: Rng,
    ) -> Proposal | None:
        """Return a promising configuration; None with too few arms opened."""
        if len(opened.arms) < FEWEST:
            return None
        features = self._points.features(opened.arms)
        waiting = self._points.features(opened.without_score)
        model = modelled(
            opened,
            features,
            waiting,
            len(self.space.coordinates),
            rng,
        )
        arms = at_last_epoch(features)
        points = self._promising(model, opened, rng)
        for untried, proposal in self._points.untried(points, opened, unopened):
            alike = model.process.kernel(arms, at_last_epoch(untried))[:, 0]
            return proposal._replace(like=nearest(opened.arms, alike))
        return None

    def _promising(
        self,
        model: Posterior,
        opened: Opened,
        rng: Rng,
    ) -> Floats:
        """Return points, from the most promising on."""
        space = self.space
        points = self._points.points(opened.arms)
        expected, _ = model.predict(at_last_epoch(space.features(points)))
        best = points[best_first(expected)[:CLIMBERS]]
        near = best[rng.integers(0, len(best), NEAR)]
        fresh = rng.random((FRESH, len(space.coordinates)))
        points = np.concatenate([fresh, space.perturbed(near, rng)])
        promise = model.upper_confidence_bound(space.features(points))
        for _ in range(ROUNDS):
            top = points[best_first(promise)[:CLIMBERS]]
            around = space.perturbed(np.repeat(top, CLIMBERS, axis=0), rng)
            points = np.concatenate([points, around])
            bound = model.upper_confidence_bound(space.features(around))
            promise = np.concatenate([promise, bound])
        return points[best_first(promise)]


class ListProposer(Proposer):
    """Proposes one of 100 unopened configurations of a list, by the same model.

    ``features`` are those of ``encoding.encode``.
    """

    def __init__(self, features: ArrayLike) -> None:
        self.features = np.asarray(features, dtype=float)

    def propose(
        self,
        opened: Opened,
        unopened: Ints,
        rng: Rng,
    ) -> int | None:
        """Return a promising unopened arm; None with too few opened."""
        if len(opened.arms) < FEWEST:
            return None
        features = self.features[opened.arms]
        waiting = self.features[opened.without_score]
        model = modelled(
            opened,
            features,
            waiting,
            features.shape[1],
            rng,
        )
        drawn = rng.choice(unopened, min(DRAWN, len(unopened)), replace=False)
        bound = model.upper_confidence_bound(self.features[drawn])
        return int(drawn[np.argmax(bound)])


def modelled(
    opened: Opened,
    features: Floats,
    waiting: Floats,
    n_parameters: int,
    rng: Rng,
) -> Posterior:
    """Return a model of the scores of arms, and of others in training, by features."""
    numbers, places, averages = rows_of(opened, rng)
    at = np.concatenate([features[numbers], waiting])
    epochs = np.concatenate([places, np.ones(len(waiting))])
    scores = np.concatenate([standardised(averages), np.zeros(len(waiting))])
    seen = Observations(np.column_stack([at, epochs]), scores)
    posterior = fitted_posterior(seen, n_parameters, rng)
    if not len(opened.failed):
        return posterior
    chances = np.ones(len(features))  # the worst scores would hide how others differ
    chances[opened.failed] = -1.0
    ended = Observations(at_last_epoch(features), chances)
    feasibility = fitted_posterior(ended, n_parameters, rng)
    return posterior._replace(feasibility=feasibility)


def rows_of(opened: Opened, rng: Rng) -> tuple[Ints, Floats, Floats]:
    """Return recent averages of arms, with the arms' numbers and places of epochs.

    They are of the arms with the highest ends, and of others: after 1, 2, 4, 8, ...
    epochs and the last.
    """
    order = best_first(opened.ends)
    order = order[~np.isin(order, opened.failed)]
    half = MOST // 4
    if len(order) > 2 * half:
        others = rng.choice(order[half:], half, replace=False)
        order = np.concatenate([order[:half], others])
    limit = max(2, opened.max_epochs)
    rows = []
    for k in order.tolist():
        curve = opened.curves[k]
        last = len(curve)
        for epoch in sorted({last, *(1 << i for i in range(last.bit_length()))}):
            recent = curve[epoch - max(1, epoch // 4) : epoch]
            rows.append((k, float(places_of_epochs(epoch, limit)), recent.mean()))
    numbers, places, scores = (np.array(column) for column in zip(*rows, strict=True))
    last_first = best_first(places)[:MOST]
    return numbers[last_first], places[last_first], scores[last_first]
