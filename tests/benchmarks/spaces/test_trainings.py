"""Real trainings: as often as one likes, the same."""

import numpy as np
import pytest

from benchmarks.spaces.trainings import BUNDLED
from risingsearch.space import Space


@pytest.mark.parametrize("make", BUNDLED)
def test_a_training_depends_on_its_configuration_and_seed_alone(make):
    problem = make()
    space = Space.of(problem.parts)
    rng = np.random.default_rng(1)
    params = space.sample(rng)
    first = problem.epochs(params, 3)
    between = problem.epochs(space.sample(rng), 4)
    scores = []
    for _ in range(4):
        scores.append(next(first))
        next(between)
    again = problem.epochs(params, 3)
    assert [next(again) for _ in range(4)] == scores
    assert all(-20.0 <= each <= 1.0 for pair in scores for each in pair)
