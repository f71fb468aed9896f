"""Configurations of a space that are proposed by a model of all scores."""

import numpy as np
import pytest
from scipy.optimize import minimize

from risingsearch.proposers.base import Opened
from risingsearch.proposers.gaussian_process import (
    GaussianProcess,
    LogLikelihood,
    Observations,
    standardised,
)
from risingsearch.proposers.open_space import FEWEST, ListProposer, OpenSpaceProposer
from risingsearch.space import Choices, Coordinate, Interval, Space

SPACE = Space.of({"x": Interval(0.0, 1.0), "y": Interval(0.0, 1.0)})
UNOPENED = np.empty(0, dtype=int)


def value(params, epoch, limit=9):
    height = 1.0 - (params["x"] - 0.3) ** 2 - (params.get("y", 0.5) - 0.6) ** 2
    return height * epoch / (1.0 + epoch)


def opened(candidates, epochs=3, limit=9, score=value):
    """Return the first arms as a search would show them."""
    curves = [
        np.array([score(params, e) for e in range(1, epochs + 1)])
        for params in candidates
    ]
    n = len(candidates)
    ends = np.array([curve[-1] for curve in curves])
    return Opened(
        np.arange(n),
        np.full(n, epochs),
        ends,
        np.zeros(n, dtype=bool),
        limit,
        curves=tuple(curves),
    )


def drawn(n, space=SPACE, seed=0):
    rng = np.random.default_rng(seed)
    return [space.sample(rng) for _ in range(n)]


def proposed(candidates, known, space=SPACE, seed=1):
    proposer = OpenSpaceProposer(space, candidates)
    return proposer.propose(known, UNOPENED, np.random.default_rng(seed))


@pytest.mark.parametrize("epochs", [1, 3, 9])
def test_what_is_proposed_is_near_the_best_and_says_which_arms_it_resembles(epochs):
    candidates = drawn(40)
    known = opened(candidates, epochs)
    found = proposed(candidates, known)
    assert abs(found.params["x"] - 0.3) < 0.2
    assert abs(found.params["y"] - 0.6) < 0.2
    assert found == proposed(candidates, known)
    assert found != proposed(candidates, known, seed=2)

    def distance(arm):
        each = candidates[arm]
        return np.hypot(*(each[name] - found.params[name] for name in ("x", "y")))

    assert len(found.like) == 3
    assert max(map(distance, found.like)) < np.median([distance(a) for a in range(40)])


def test_of_a_list_an_arm_is_proposed_that_looks_like_the_best():
    features = np.random.default_rng(1).uniform(size=(400, 2))
    known = opened([{"x": x, "y": y} for x, y in features[:60]])
    found = [
        ListProposer(features).propose(
            known, np.arange(60, 400), np.random.default_rng(seed)
        )
        for seed in range(10)
    ]
    assert min(found) >= 60
    assert np.abs(features[found] - [0.3, 0.6]).mean() < 0.1


def test_with_too_few_arms_nothing_is_proposed():
    candidates = drawn(FEWEST - 1)
    known = opened(candidates)
    assert proposed(candidates, known) is None
    own = ListProposer(np.random.default_rng(1).uniform(size=(50, 2)))
    assert own.propose(known, UNOPENED, np.random.default_rng(0)) is None


def test_arms_that_train_without_a_score_spread_what_is_proposed():
    candidates = drawn(30)
    known = opened(candidates)
    alone = [proposed(candidates, known, seed=seed).params for seed in range(8)]
    found = []
    for seed in range(8):
        everyone = candidates + found
        waiting = known._replace(without_score=np.arange(30, len(everyone)))
        found.append(proposed(everyone, waiting, seed=seed).params)

    def nearest(several):
        places = np.array([list(params.values()) for params in several])
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)
        return np.median((apart + np.eye(8)).min(axis=1))

    assert nearest(found) > 1.5 * nearest(alone)


def test_known_and_forbidden_configurations_are_not_proposed():
    class NoThree:
        def is_forbidden_value(self, params):
            return params["n"] == 3

    count, kinds = Interval(1, 10, whole=True), Choices(["a", "b"])
    extra = Coordinate("z", Interval(0.0, 1.0), ("kind",), lambda p: p["kind"] == "b")
    space = Space(
        [Coordinate("n", count), Coordinate("kind", kinds), extra], [NoThree()]
    )
    candidates = [{"n": n, "kind": "a"} for n in range(1, 11) if n != 4]
    candidates += [{"n": n, "kind": "b", "z": 0.1 * n} for n in range(1, 11)]
    known = opened(
        candidates, score=lambda p, e: (p["kind"] == "a") - 0.1 * abs(p["n"] - 3) + e
    )
    assert proposed(candidates, known, space).params == {"n": 4, "kind": "a"}


@pytest.mark.parametrize("worst", [0.0, -1e120, -np.inf])
def test_equal_scores_and_diverged_ones_are_no_trouble(worst):
    candidates = drawn(300)
    known = opened(
        candidates, score=lambda p, e: worst if p["x"] < 0.4 else value(p, e)
    )
    with np.errstate(invalid="ignore"):
        found = proposed(candidates, known)
    assert found.params["x"] > 0.35
    equal = opened(candidates, score=lambda p, e: 0.5)
    assert set(proposed(candidates, equal).params) == {"x", "y"}


def test_scores_below_the_median_count_as_far_as_the_best_is_above_it():
    found = standardised(np.array([1.0, 2.0, 3.0, -1e9]))
    assert found[3] < found[0] < found[1] < found[2]
    assert found.mean() == pytest.approx(0.0)
    assert found.std() == pytest.approx(1.0)
    assert found[2] - found[1] == pytest.approx(found[1] - found[0])


def test_the_fit_climbs_the_likelihood_along_its_gradient():
    rng = np.random.default_rng(3)
    at = rng.random((25, 4))
    seen = Observations(at, np.sin(6 * at[:, 0]) + 0.1 * rng.standard_normal(25))
    fit = LogLikelihood(seen, 3)
    logs = fit.typical + 0.2 * rng.standard_normal(6)
    slopes = [
        (fit.evaluate(logs + step)[0] - fit.evaluate(logs - step)[0]) / 2e-5
        for step in 1e-5 * np.eye(6)
    ]
    np.testing.assert_allclose(fit.evaluate(logs)[1], slopes, rtol=1e-4, atol=1e-6)
    process = GaussianProcess.fitted(seen, 3)
    reached = np.log([*process.inverse_lengths, *process[1:]])
    assert fit.evaluate(reached)[0] > fit.evaluate(fit.typical)[0]
    assert process.inverse_lengths[0] > 2 * process.inverse_lengths[1:].max()


def score_of_epoch(at):
    return at[:, -1]


def score_of_two(at):
    return np.sin(3 * at[:, 0]) * at[:, 1]


@pytest.mark.parametrize(
    ("score", "n", "n_parameters"), [(score_of_epoch, 30, 3), (score_of_two, 40, 6)]
)
def test_a_fit_is_near_the_highest_likelihood(score, n, n_parameters):
    at = np.random.default_rng(0).random((n, n_parameters + 1))
    scores = score(at)
    seen = Observations(at, (scores - scores.mean()) / scores.std())
    objective = LogLikelihood(seen, n_parameters)

    def loss(logs):
        likelihood, gradient = objective.evaluate(logs)
        return -likelihood, -gradient

    bounds = list(zip(objective.low, objective.high, strict=True))
    highest = -minimize(loss, objective.typical, jac=True, bounds=bounds).fun
    process = GaussianProcess.fitted(seen, n_parameters)
    start, _ = objective.evaluate(objective.typical)
    reached, _ = objective.evaluate(np.log([*process.inverse_lengths, *process[1:]]))
    assert highest - reached < 0.01 * (highest - start)


def test_where_arms_fail_does_not_hide_how_the_others_rise():
    places = [0.001, 0.002, *np.linspace(0.08, 1.0, 12)]  # and from 0.08 on all fail
    candidates, space = [{"x": x} for x in places], Space.of({"x": Interval(0.0, 1.0)})
    known = opened(candidates, score=lambda params, _: min(params["x"], 0.001))
    known = known._replace(failed=np.arange(2, 14))
    found = [proposed(candidates, known, space, k).params["x"] for k in range(5)]
    assert 0.01 < min(found) < max(found) < 0.08


@pytest.mark.parametrize(("scale", "noise"), [(100.0, 2.0), (1e-6, 0.002)])
def test_the_noise_of_a_fit_stays_in_its_range(scale, noise):
    rng = np.random.default_rng(0)
    seen = Observations(rng.random((40, 3)), scale * rng.standard_normal(40))
    assert GaussianProcess.fitted(seen, 2).noise == pytest.approx(noise)
