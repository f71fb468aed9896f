"""check_trainable lets a good trainable pass, and names the rule that a bad one breaks.

Every epoch of a good one draws a number from a generator of its own.
"""

import copy
import json
import math
import pickle
import random
import re
import threading

import numpy as np
import pytest
import torch

from risingsearch.errors import InvalidParameterError
from risingsearch.search.trainable import Functions
from risingsearch.testing import check_trainable

PARAMS = {"rate": 0.5}


class Good:
    def start(self, params, seed):
        return {"rng": random.Random(seed), "rate": params["rate"], "epochs": 0}

    def train(self, state):
        state["epochs"] += 1
        return state["rate"] * state["rng"].random()


class WithHooks(Good):
    """A lock keeps its states from being pickled."""

    def start(self, params, seed):
        return {**super().start(params, seed), "lock": threading.Lock()}

    def save(self, state, path):
        with open(path, "w") as file:
            json.dump([state["rng"].getstate(), state["rate"]], file)

    def load(self, path):
        with open(path) as file:
            (version, words, gauss), rate = json.load(file)
        state = self.start({"rate": rate}, 0)
        state["rng"].setstate((version, tuple(words), gauss))
        return state


class EndsByItself(Good):
    def train(self, state):
        if state["epochs"] == 3:
            raise StopIteration
        return super().train(state)


class TakesItsParameters(Good):
    def start(self, params, seed):
        return {"rng": random.Random(seed), "rate": params.pop("rate"), "epochs": 0}


class Metrics(Good):
    def train(self, state):
        return {"score": super().train(state), "loss": math.nan}


@pytest.mark.parametrize(
    "trainable",
    [Good(), WithHooks(), EndsByItself(), TakesItsParameters(), Metrics()],
    ids=lambda trainable: type(trainable).__name__,
)
def test_good_ones_pass(trainable):
    check_trainable(trainable, PARAMS)
    check_trainable(trainable, PARAMS, seed=7, epochs=2)


def test_plain_functions_pass():
    check_trainable(Functions(Good().start, Good().train), PARAMS)
    good = WithHooks()
    check_trainable(Functions(good.start, good.train, good.save, good.load), PARAMS)


def test_the_global_random_states_stay_as_they_were():
    def states():
        return random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002

    before = copy.deepcopy(states())
    check_trainable(Good(), PARAMS)
    with pytest.raises(AssertionError):
        check_trainable(GlobalRandom(), PARAMS)
    assert repr(states()) == repr(before)


def test_the_epochs_it_trains():
    class Counted(Good):
        def train(self, state):
            calls.append(state)
            return super().train(state)

    calls = []
    check_trainable(Counted(), PARAMS, epochs=6)
    assert len(calls) == 6 * (6 + 17) / 2


@pytest.mark.parametrize("epochs", [1, 2.5, "4"])
def test_two_epochs_at_least(epochs):
    with pytest.raises(InvalidParameterError, match="epochs must be a whole number"):
        check_trainable(Good(), PARAMS, epochs=epochs)


# --------------------------------------------------------------------- broken rules
class TrainFails(Good):
    def train(self, state):
        if state["epochs"] == 2:
            raise ZeroDivisionError("by zero")
        return super().train(state)


class Nothing(Good):
    def train(self, state):
        return None


class Diverges(Good):
    def train(self, state):
        return math.inf if state["epochs"] == 2 else super().train(state)


class OwnEntropy(Good):
    def start(self, params, seed):
        return super().start(params, None)


class GlobalRandom(Good):
    def train(self, state):
        return random.random()


class Unpicklable(Good):
    def start(self, params, seed):
        return {**super().start(params, seed), "lock": threading.Lock()}


class SavingDraws(WithHooks):
    def save(self, state, path):
        state["rng"].random()
        super().save(state, path)


class LoadingForgetsTheGenerator(WithHooks):
    def load(self, path):
        return self.start(PARAMS, 0)


class SharedGenerator(Good):
    """Saved and loaded with every state, and yet one for all arms."""

    def start(self, params, seed):
        self.shared = random.Random(seed)
        return {}

    def train(self, state):
        return self.shared.random()

    def save(self, state, path):
        with open(path, "wb") as file:
            pickle.dump(self.shared, file)

    def load(self, path):
        with open(path, "rb") as file:
            self.shared = pickle.load(file)
        return {}


class RemembersScores(Good):
    """Adds the last score of an arm, which no other process has."""

    def __init__(self):
        self.scores = {}

    def start(self, params, seed):
        return {**super().start(params, seed), "seed": seed}

    def train(self, state):
        arm = state["seed"]
        before = self.scores.get((arm, state["epochs"]), 0.0)
        score = super().train(state)
        self.scores[arm, state["epochs"]] = score
        return before + score


class WithoutAWarmUp(Good):
    """Begins its warm-up anew in every epoch, which one training does once."""

    def uninterrupted(self, params, seed, n_epochs):
        state = self.start(params, seed)
        return [self.train(state) + epoch for epoch in range(n_epochs)]


WORK = "start and train work, and scores are finite numbers"
SAME = "the same seed gives the same scores"
SEED = "the seed decides, not the global random states"
SAVE = "saving a state leaves it as it is"
LOAD = "a state that was saved and loaded continues as before"
ONCE = "a paused training equals one that nothing interrupts"
AWAY = "a state is all that another process needs"
TURN = "arms that train in turns leave each other alone"


BROKEN = [
    (object, WORK, "has no start"),
    (TrainFails, WORK, "train raised ZeroDivisionError('by zero') in epoch 3"),
    (Nothing, WORK, "train must return a number"),
    (Diverges, WORK, "epoch 3 scored inf"),
    (OwnEntropy, SAME, "epoch 1 scored"),
    (GlobalRandom, SEED, "with random and numpy seeded anew"),
    (Unpicklable, SAVE, "give the trainable save(state, path) and load(path)"),
    (SavingDraws, SAVE, "epoch 2 scored"),
    (LoadingForgetsTheGenerator, LOAD, "when saved after epoch 1 and loaded"),
    (WithoutAWarmUp, ONCE, "when trained epoch by epoch"),
    (RemembersScores, AWAY, "by another trainable after every epoch"),
    (SharedGenerator, TURN, "in turns with another arm"),
]


@pytest.mark.parametrize(
    ("broken", "rule", "what"), BROKEN, ids=[row[0].__name__ for row in BROKEN]
)
def test_broken_ones_are_told_which_rule(broken, rule, what):
    with pytest.raises(AssertionError, match=re.escape(what)) as caught:
        check_trainable(broken(), PARAMS)
    assert f'{broken.__name__} breaks the rule "{rule}": ' in str(caught.value)


def test_the_cause_is_kept():
    with pytest.raises(AssertionError) as caught:
        check_trainable(TrainFails(), PARAMS)
    assert isinstance(caught.value.__cause__.__cause__, ZeroDivisionError)
