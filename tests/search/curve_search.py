"""Searches whose arms follow given curves."""

import os
import pickle
import threading
import weakref
from collections import Counter
from concurrent.futures import Executor, Future

from risingsearch.search.callbacks import Callback
from risingsearch.search.search import RisingSearch

RISING = [0.3, 0.5, 0.6, 0.65, 0.68, 0.7]


PEAKED = [0.2, 0.6, 0.9, 0.4, 0.3, 0.1]


FLAT = [0.4, 0.4, 0.4, 0.4, 0.4, 0.4]


class State:
    def __init__(self, curve, seed):
        self.curve = curve
        self.seed = seed
        self.epochs = 0


class Recorded:
    """Every arm follows its curve, raises the exceptions in it, and ends after it."""

    def __init__(self):
        self.started = Counter()
        self.trained = Counter()
        self.states = []

    def start(self, params, seed):
        self.started[params["arm"]] += 1
        state = State(params["curve"], seed)
        self.states.append(weakref.ref(state))
        return state

    def train(self, state):
        if state.epochs == len(state.curve):
            raise StopIteration("no more points")
        score = state.curve[state.epochs]
        state.epochs += 1
        self.trained[tuple(map(str, state.curve)), state.epochs] += 1
        if isinstance(score, BaseException):
            raise score
        return {"score": score, "own_epoch": state.epochs, "seed": state.seed}

    def n_alive(self):
        return sum(state() is not None for state in self.states)


class Flaky(Recorded):
    """The same, but an exception in a curve is raised once only, then it is 0.5."""

    once = ValueError

    def train(self, state):
        try:
            return super().train(state)
        except self.once:
            if self.trained[tuple(map(str, state.curve)), state.epochs] == 1:
                raise
            return {"score": 0.5, "own_epoch": state.epochs}


class Interrupted(Flaky):
    """The same, but of an epoch that ends the process, once only; then it is 0.5."""

    once = KeyboardInterrupt, SystemExit


class Dies(Recorded):
    def train(self, state):
        if state.epochs == 2:
            os._exit(1)
        return super().train(state)


def arms(*curves):
    return [{"arm": i, "curve": curve} for i, curve in enumerate(curves)]


def a_search(*curves, trainable=None, **options):
    defaults = {"policy": "round-robin", "seed": 0, "budget": 12, "max_epochs": 6}
    return RisingSearch(trainable or Recorded(), arms(*curves), **defaults | options)


def facts(result):
    """Return the history without what differs between any two runs."""
    return [
        {key: repr(value) for key, value in row.items() if key != "seconds"}
        for row in result.history
    ]


class Hooks(Recorded):
    """Its states hold a lock, which pickle refuses."""

    def start(self, params, seed):
        state = super().start(params, seed)
        state.lock = threading.Lock()
        return state

    def save(self, state, path):
        with open(path, "wb") as file:
            pickle.dump([state.curve, state.seed, state.epochs], file)

    def load(self, path):
        with open(path, "rb") as file:
            curve, seed, epochs = pickle.load(file)
        state = self.start({"arm": "loaded", "curve": curve}, seed)
        state.epochs = epochs
        return state


class Listener(Callback):
    """Keeps what it hears of."""

    def __init__(self):
        self.begun, self.epochs, self.ended = [], [], []

    def on_start(self, search):
        self.begun.append(search)

    def on_epoch(self, epoch):
        self.epochs.append(epoch)

    def on_end(self, search):
        self.ended.append(search)


class AtOnce(Executor):
    """Any number of jobs are done as soon as they are submitted."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def make_nothing(params, seed):
    return None
