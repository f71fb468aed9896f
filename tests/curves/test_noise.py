"""Noise: means and spreads as declared, and errors where a model cannot fit."""

import math
import re

import numpy as np
import pytest

from risingsearch.curves.noise import checked_noise, make_noise, noisy
from risingsearch.curves.rested import CurveTable
from risingsearch.errors import InvalidParameterError

N = 20_000

MODELS = {
    "none": make_noise("none"),
    "gaussian": make_noise("gaussian", 0.1),
    "bernoulli": make_noise("bernoulli"),
    "batch": make_noise("bernoulli", batch=25),
}


def rewards(noise, mean=0.3, scale=2.0):
    rng = np.random.default_rng(1)
    return np.array([noisy(noise, mean, scale, rng) for _ in range(N)])


@pytest.mark.parametrize(
    ("model", "deviation"),
    [
        ("none", 0.0),
        ("gaussian", 0.2),
        ("bernoulli", math.sqrt(0.3 * 0.7)),
        ("batch", math.sqrt(0.3 * 0.7 / 25)),
    ],
)
def test_rewards_have_the_mean_and_the_declared_deviation(model, deviation):
    drawn = rewards(MODELS[model])
    assert drawn.mean() == pytest.approx(0.3, abs=4.0 * deviation / math.sqrt(N))
    assert drawn.std() == pytest.approx(deviation, rel=0.05, abs=1e-12)


@pytest.mark.parametrize("model", ["gaussian", "batch"])
def test_every_model_gives_the_same_bits_compiled(model, same_either_way):
    means = np.linspace(0.0, 1.0, 500) * np.array([[1.0], [0.5]])
    arms, drawn, total = same_either_way(CurveTable.create(means, MODELS[model]), 1_000)
    assert len(set(arms)) == 2
    assert total == pytest.approx(means.sum())
    assert drawn.mean() == pytest.approx(means.mean(), abs=0.05)


def test_numbers_and_words_stand_for_noise_models():
    assert checked_noise(0.1, 0.0, 1.0) == make_noise("gaussian", 0.1)
    assert checked_noise(0, 0.0, 1.0) == make_noise("none", 0.0)
    assert checked_noise("bernoulli", 0.0, 1.0) == make_noise("bernoulli")
    assert checked_noise(MODELS["gaussian"], -5.0, 5.0) is MODELS["gaussian"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_noise("normal"), "kind must be one of 'none', 'gaussian',"),
        (lambda: make_noise("gaussian", -1.0), "sigma must be a finite number of at"),
        (
            lambda: make_noise("bernoulli", batch=0),
            "batch must be a whole number of at",
        ),
        (lambda: checked_noise(-0.1, 0.0, 1.0), "noise must be a finite number of at"),
        (
            lambda: checked_noise("bernoulli", -0.5, 1.0),
            "Bernoulli noise needs means from 0 to 1; these reach from -0.5 to 1:",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        make()
