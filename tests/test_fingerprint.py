"""Values are compared by their content, in every process alike."""

import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from risingsearch import Functions
from risingsearch.contents import code_digest, described, digest, first_difference

ROOT = Path(__file__).resolve().parents[1]

FACTOR = 2.0


def scaled(x):
    return x * FACTOR


def counted(x):
    global N_CALLS
    N_CALLS += 1


N_CALLS = 0


def counting(x):
    n_calls = 0

    def count(x):
        nonlocal n_calls
        n_calls += 1

    return count


class Counting:
    n_calls = 0

    def __call__(self, x):
        Counting.n_calls += 1


def above(limit):
    return lambda x: x > limit


def helped(by):
    def helper(x):
        return x + by

    return lambda x: helper(x) * 2


class Slow:
    rate = 0.1

    def go(self, x):
        return x * self.rate


class Fast(Slow):
    def go(self, x):
        return x * 2 * self.rate


Renamed = type("Slow", (), {"rate": 0.2, "go": Slow.go})


@dataclass
class Box:
    inside: object


def itself(n):
    one = Box([n])
    one.inside.append(one)
    return one


LONG = np.arange(2000.0)
OTHER = LONG.copy()
OTHER[1000] = 0.5
PAIRS = {
    "an array": (LONG, OTHER),
    "its type": (LONG, LONG.astype("f4")),
    "an array of objects": (np.array([{1}, {2}]), np.array([{1}, {3}])),
    "a view": (LONG[::2], LONG[1::2]),
    "a long text": ("x" * 5000 + "y", "x" * 5000 + "z"),
    "a number as text": (1, "1"),
    "a set": ({"a", "b"}, {"a", "c"}),
    "a list or a tuple": ([1, 2], (1, 2)),
    "the body of a function": (lambda x: x + 1, lambda x: x + 2),
    "its attribute": (lambda x: x.min(), lambda x: x.max()),
    "its default": (lambda x, by=1: x, lambda x, by=2: x),
    "its closure": (above(1), above(2)),
    "a function in its closure": (helped(1), helped(2)),
    "a partial": (partial(scaled, 1), partial(scaled, 2)),
    "a method of a class": (Slow, Fast),
    "a constant of a class": (Slow, Renamed),
    "an object": (Box(1), Box(2)),
    "an array in an object": (Box(LONG), Box(OTHER)),
    "a method of an object": (Box(Slow().go), Box(Fast().go)),
    "an object in itself": (itself(1), itself(2)),
    "a function of a library": (np.median, np.mean),
    "functions in other places": ([scaled, counted], [counted, scaled]),
    "a generator": (np.random.default_rng(0), np.random.default_rng(1)),
}


@pytest.mark.parametrize("one", [one for pair in PAIRS.values() for one in pair])
def test_the_same_content_has_the_same_digest(one):
    assert digest(one) == digest(one)


@pytest.mark.parametrize(("one", "other"), PAIRS.values(), ids=PAIRS)
def test_other_contents_have_other_digests(one, other):
    assert digest(one) != digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.float64(0.5), 0.5),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (Box({1, 2}), Box({2, 1})),
        (above(1), above(1)),
        (LONG, LONG[::1].copy()),
    ],
)
def test_equal_values_have_the_same_digest(one, other):
    assert digest(one) == digest(other)


def test_what_is_met_on_many_ways_is_digested_once():
    one = Box((1,))
    for _ in range(40):
        one = Box((one, (one, one)))
    assert digest(one) == digest(one)


def test_functions_that_all_call_each_other_are_digested_once_each():
    functions = {}
    for k in range(15):
        calls = ", ".join(f"f{i}(x)" for i in range(15) if i != k)
        exec(f"def f{k}(x): return {calls}", functions)
    assert digest(functions["f0"]) != digest(functions["f1"])


@pytest.mark.parametrize("call", [counted, counting(0), Counting()])
def test_what_a_function_changes_itself_does_not_count(call):
    before = digest(call)
    call(1)
    assert digest(call) == before


def test_a_global_that_a_function_reads_counts(monkeypatch):
    before = digest(scaled)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert digest(scaled) != before


def test_digests_are_the_same_in_every_process():
    program = (
        "from risingsearch.contents import digest\n"
        "words = {'good', 'bad', 'film', 'one', 'so'}\n"
        "print(digest([words, frozenset(words), lambda x: x in {'a', 'b', 'c'}]))"
    )
    one, other = (
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    )
    assert one == other


def test_a_difference_is_shown_where_it_is():
    texts = ["x" * 1000 + end for end in ("1" * 500, "2" * 500)]
    saved, given = ({"fingerprint": {"text": text}} for text in texts)
    _, was, now, _ = first_difference(saved, given)
    assert "xx1" in was
    assert "xx2" in now
    saved, given = ({"init": described(one)} for one in (LONG, OTHER))
    name, was, now, _ = first_difference(saved, given)
    assert name == "init"
    assert now == f"{was}, whose content differs"


BUFFER, OUT, ALIAS, WEIGHTS = (np.zeros(3) for _ in range(4))
SEEN, CACHE, SIZES, RATES = [], {}, [8, 4], {"low": 0.1}


class Settings:
    def __init__(self):
        self.rate, self.layers, self.n_read = 0.1, [3], 0

    def read(self):
        self.n_read += 1
        return self.rate + len(self.layers)


SETTINGS = Settings()


class Using:
    sums = np.zeros(3)

    def __init__(self):
        self.scale, self.epochs = 2.0, 0

    def start(self, params, seed):
        return params

    def train(self, state):
        for same in ALIAS[None]:
            same[0] += 1
        self.sums[0] += 1
        BUFFER[:] += np.add(WEIGHTS, 1.0, out=OUT)
        SEEN.append(state)
        CACHE[len(SEEN)] = state
        self.epochs += 1
        return self.scale * sum(SIZES) * RATES["low"] * SETTINGS.read()


USING = Using()


def test_values_that_code_changes_while_it_runs_do_not_count():
    before = code_digest(USING)
    USING.train(USING.start({}, 0))
    assert code_digest(USING) == before


READ = [(WEIGHTS, 0), (SIZES, 0), (RATES, "low"), (SETTINGS.layers, 0)]
READ += [(vars(one), name) for one, name in ((SETTINGS, "rate"), (USING, "scale"))]


@pytest.mark.parametrize(("place", "name"), READ)
def test_values_that_code_only_reads_count(place, name):
    before, was = code_digest(USING), place[name]
    place[name] = 7.0
    changed = code_digest(USING)
    place[name] = was
    assert changed != before == code_digest(USING)


NAMES = {"Decimal": Decimal, "Enum": Enum, "Functions": Functions, "np": np}
NAMES["SimpleNamespace"] = SimpleNamespace
CODE = {
    "load": "made = Functions(dict, len, print, lambda path: X)",
    "a number": "N = Decimal(X)\nmade = Functions(dict, lambda model: N)",
    "an enum": "E = Enum('E', {'a': X})\nmade = Functions(dict, lambda model: E.a)",
    "objects": "A = np.array([X, 'a'], object)\nmade = Functions(dict, lambda m: A[0])",
    "a class": "class C: rate = X\ndef train(model): model.rate = C.rate\n"
    "made = Functions(dict, train)",
    "slots": "class C: __slots__ = 'rate'\nC = C()\nC.rate = X\n"
    "made = Functions(dict, lambda m: C.rate)",
    "inside": "C = {'all': [X]}\nmade = Functions(dict, lambda m: m[:, C['all']])",
    "namespace": "C = SimpleNamespace(k=X)\nmade = Functions(dict, lambda m: C.k)",
    "a function": "C = {'f': lambda m: X}\nmade = Functions(dict, lambda m: C['f'](m))",
    "swapped": "def of(f): return lambda m: f(m)\na = of(lambda m: 1), of(lambda: 2)\n"
    "f, g = a[:: 3 - 2 * X]\nmade = Functions(dict, lambda m: f(m) - g(m))",
}


@pytest.mark.parametrize("code", CODE.values(), ids=CODE)
def test_what_code_uses_counts_by_its_value(code):
    def made(value):
        known = {"__name__": "__main__"} | NAMES
        exec(code.replace("X", value), known)
        return code_digest(known["made"])

    assert made("1") == made("1") != made("2")
