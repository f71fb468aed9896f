"""What is known of a problem: its typical scores, and its best."""

from __future__ import annotations

import math
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.spaces.problems import Problem, Scores
from risingsearch.space import Space

DRAWN = 400
CLIMBS = 3
STEPS = 100
DRAWN_REAL = 40  # of real trainings, which nobody climbs


class Reference(NamedTuple):
    """The scores of the median random configuration that survives, and the best."""

    typical: Scores
    best: Scores

    def regret(self, found: Scores) -> Scores:
        """Return how much of the way from typical to best is missing, from 0 to 1."""
        typical = np.array(self.typical)
        best = np.array(self.best)
        missing = (best - found) / (best - typical)
        return Scores(*np.clip(missing, 0.0, 1.0).tolist())


KNOWN = {
    "training-convolutions-0": Reference(Scores(0.1067, 0.095), Scores(0.9067, 0.915)),
    "training-recurrent-0": Reference(Scores(0.1238, 0.1587), Scores(0.9275, 0.9362)),
    "training-compressed-0": Reference(Scores(0.0, 0.0), Scores(0.6471, 0.6488)),
    "training-perceptron-0": Reference(Scores(0.149, 0.1388), Scores(0.354, 0.33)),
    "training-linear-0": Reference(Scores(0.499, 0.5306), Scores(0.584, 0.6211)),
    "training-boosting-0": Reference(Scores(0.4171, 0.2964), Scores(0.6326, 0.4169)),
    "training-words-0": Reference(Scores(-0.6949, -0.6957), Scores(-0.5494, -0.5677)),
    "training-characters-0": Reference(
        Scores(-3.4253, -3.4214), Scores(-2.4048, -2.4119)
    ),
    "fresh-gbm-0": Reference(Scores(0.8388, 0.8311), Scores(0.9098, 0.9057)),
    "fresh-charlm-0": Reference(Scores(-4.4006, -4.4066), Scores(-2.9337, -2.9901)),
}
"""Of trainings that take long: ``climbed(problem, 100, 3)``, of others' (60, 1)."""


def reference(problem: Problem) -> Reference:
    """Return what is known, or what random configurations and climbs find."""
    if problem.name in KNOWN:
        return KNOWN[problem.name]
    if problem.is_real:
        return climbed(problem, DRAWN_REAL, 0)
    return climbed(problem, DRAWN, CLIMBS)


def climbed(problem: Problem, n_drawn: int, n_climbs: int) -> Reference:
    """Return the scores of random configurations, with climbs from the best of them."""
    rng = np.random.default_rng(9)
    space = Space.of(problem.parts)

    def best(point: NDArray[np.float64]) -> Scores:
        """Return the scores after the epoch of the highest validation score."""
        epochs = islice(problem.epochs(space.from_unit(point), 0), problem.n_epochs)
        known = (scores for scores in epochs if math.isfinite(scores.validation))
        return max(known, default=Scores(-math.inf, -math.inf))

    points = rng.random((n_drawn, len(space.coordinates)))
    found = [best(point) for point in points]
    survivors = [scores for scores in found if math.isfinite(scores.validation)]
    typical = np.median(np.array(survivors), axis=0)
    order = sorted(range(n_drawn), key=lambda k: found[k], reverse=True)
    for k in order[:n_climbs]:
        point = points[k]
        top = found[k]
        for _ in range(STEPS):
            step = space.perturbed(point, rng)[0]
            reached = best(step)
            if reached.validation > top.validation:
                point = step
                top = reached
                found.append(top)
    return Reference(Scores(*typical), Scores(*np.max(np.array(found), axis=0)))
