"""The registry: names, parameters, seeds, and errors that say what to do."""

import re

import numpy as np
import pytest

from risingsearch.curves import ENVIRONMENTS, list_environments, make_environment
from risingsearch.errors import InvalidParameterError

INFOS = {info.name: info for info in list_environments()}
FROM_DATA = {"clicks", "clicks-fitted", "imdb"}
DRAWN = sorted(INFOS.keys() - FROM_DATA)


def test_environments_are_listed_by_name():
    assert list(INFOS) == sorted(ENVIRONMENTS)
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", name) for name in INFOS)


@pytest.mark.parametrize("info", INFOS.values(), ids=list(INFOS))
def test_what_is_listed_is_complete(info):
    assert info.summary.endswith(".")
    assert len(info.summary) < 80
    assert info.paper
    assert info.setting in ("rested", "restless")
    assert info.parameters.keys().isdisjoint({"rng", "horizon", "seed"})
    assert (... in info.parameters.values()) == (info.name in FROM_DATA)


@pytest.mark.parametrize("name", DRAWN)
def test_environments_are_what_their_entry_says(name):
    info = INFOS[name]
    arms = make_environment(name, 500, seed=1, **info.parameters)
    rounds = np.array([1, 250, 500])
    best = arms.optimal(rounds)
    assert best.shape == (3,)
    assert np.all(np.diff(best) > 0.0)
    assert arms.reference in ("best-arm", "greedy", "dynamic", "static")
    own, elsewhere = arms.mean(1, 40, 40), arms.mean(1, 40, 300)
    if info.setting == "rested":
        assert own == elsewhere
    rng = np.random.default_rng(0)
    drawn = [arms.draw(own, 1, 40, 40, rng) for _ in range(200)]
    assert np.mean(drawn) == pytest.approx(own, abs=4.0 * np.std(drawn) / 200**0.5)


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_seed_gives_the_same_arms(name):
    first = make_environment(name, 500, seed=3)
    for seed in (3, np.random.default_rng(3)):
        for own, other in zip(first, make_environment(name, 500, seed), strict=True):
            np.testing.assert_array_equal(own, other)


def test_an_unknown_environment_is_met_with_the_closest():
    with pytest.raises(
        InvalidParameterError,
        match=re.escape("unknown environment 'ltv'; did you mean 'ltf'"),
    ):
        make_environment("ltv", 10)


def test_an_unknown_parameter_is_met_with_the_closest():
    message = "unknown parameter of ltf: 'arms'; did you mean 'n_arms'?"
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        make_environment("ltf", 10, arms=3)


@pytest.mark.parametrize(
    ("arguments", "parameters", "message"),
    [
        (("imdb", 10), {}, "the environment imdb needs data_dir=; it has no default"),
        (("ltf", 0), {}, "horizon must be a whole number of at least 1; got 0"),
        (("ltf", 10, -1), {}, "seed must be a whole number of at least 0; got -1"),
        (("ltf", 10), {"noise": -1.0}, "noise must be a finite number of at least 0"),
    ],
)
def test_it_says_what_is_wrong(arguments, parameters, message):
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        make_environment(*arguments, **parameters)
