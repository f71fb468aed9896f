"""What earlier searches say of the candidates, and how reliably."""

import numpy as np
import pytest

from risingsearch.priors import EarlierSearch
from risingsearch.priors.models import Learnt

CANDIDATES = [{"x": x, "y": y} for x in np.linspace(0, 1, 9) for y in (0, 1, 2)]


def predictions(candidates, searches):
    return Learnt(candidates, searches).predictions(candidates)


def agreement(searches):
    return Learnt(CANDIDATES, searches).agreement


def earlier(name, score, n=20, seed=0, **options):
    rng = np.random.default_rng(seed)
    params = [{"x": float(rng.random()), "y": int(rng.integers(3))} for _ in range(n)]
    curves = [np.array([score(one["x"], one["y"])]) for one in params]
    return EarlierSearch(name, params, curves, **options)


def near(x, y):
    return -abs(x - 0.25) - 0.1 * y


def away(x, y):
    return abs(x - 0.25) + 0.1 * y


def test_the_candidate_that_did_well_is_said_most_of():
    said = predictions(CANDIDATES, [earlier("May", near)])
    assert CANDIDATES[int(said.scores[0].argmax())] == {"x": 0.25, "y": 0}
    assert said.scores.mean() == pytest.approx(0.0, abs=1e-9)


def test_scores_count_by_their_rank():
    plain = earlier("May", near)
    cubed = earlier("May", lambda x, y: 1e6 * near(x, y) ** 3 + 7.0)
    one, other = (predictions(CANDIDATES, [search]).scores for search in (plain, cubed))
    assert np.array_equal(one, other)


def test_searches_that_contradict_each_other_agree_in_nothing():
    alike = [earlier("May", near), earlier("June", near, seed=1)]
    assert agreement(alike).min() > 0.8
    contrary = [earlier("May", near), earlier("June", away, seed=1)]
    assert agreement(contrary).max() == 0.0


def test_a_search_without_a_pattern_is_expected_to_tell_little():
    rng = np.random.default_rng(2)
    noise = earlier("noise", lambda x, y: rng.random(), n=40)
    assert agreement([noise])[0] < 0.3
    assert agreement([earlier("May", near, n=40)])[0] > 0.4


def test_failed_runs_count_as_the_worst():
    params = [{"x": x} for x in np.linspace(0, 1, 11)]
    curves = [np.array([] if one["x"] > 0.6 else [0.5 + one["x"]]) for one in params]
    said = predictions(params, [EarlierSearch("May", params, curves)])
    assert 0.3 < params[int(said.scores[0].argmax())]["x"] < 0.7


def test_a_parameter_that_is_new_here_changes_nothing():
    richer = [one | {"new": k} for k in range(3) for one in CANDIDATES]
    said = predictions(richer, [earlier("May", near)]).scores[0]
    assert np.allclose(said[:27], said[27:54])


def test_candidates_are_as_alike_as_earlier_scores_tell_them_apart():
    flat = earlier("flat", lambda x, y: x)
    said = predictions(CANDIDATES, [flat])
    first = said.alike(said.select(np.array([0])))[:, 0]
    assert first[0] == 1.0
    x = np.array([one["x"] for one in CANDIDATES])
    assert first[x == 0.0].min() > first[x >= 0.5].max()
