"""Values are compared by their content, in every process alike."""

import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from risingsearch.identity.fingerprint import digest

ROOT = Path(__file__).resolve().parents[2]


def scaled(x):
    return x * 2.0


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


def test_digests_are_the_same_in_every_process():
    program = (
        "from risingsearch.identity.fingerprint import digest\n"
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


def of_module(k):
    return lambda x: x * k


class Model:
    """An estimator, as far as a clone needs it."""

    def __init__(self, rate=1.0):
        self.rate = rate

    def get_params(self, deep=True):
        return {"rate": self.rate}

    def predict(self, x):
        return x * self.seen_


class Kept(Model):
    def __sklearn_clone__(self):
        return self


def fitted(seen, kind=Model):
    one = kind()
    one.seen_ = seen
    return one


def made(seen):
    class Own(Model):
        factor = seen

    return Own()


def marked(seen):
    def scale(x):
        return x * scale.by

    scale.by = seen
    return scale


def unnamed(seen):
    known = {"K": seen}
    exec("def scale(x): return x * K", known)
    return known["scale"]


@pytest.mark.parametrize(
    "make",
    [
        lambda seen: fitted(seen, Kept),
        lambda seen: fitted(seen).predict,
        lambda seen: Box(fitted(seen)),
        lambda seen: Kept(fitted(seen)),
        lambda seen: of_module(fitted(seen)),
        lambda seen: StandardScaler().set_output(transform=seen),
        made,
        marked,
    ],
)
def test_what_a_clone_keeps_counts(make):
    default, pandas = make("default"), make("pandas")
    assert digest(default) == digest(make("default")) != digest(pandas)


def test_what_a_clone_forgets_does_not_count():
    assert digest(fitted(1)) == digest(fitted(2)) != digest(Model(2.0))
    assert digest([fitted(1)]) == digest([fitted(2)])


def test_functions_without_a_source_differ_in_a_process_by_what_they_use():
    one, other = unnamed(1), unnamed(2)
    same, unlike = (
        digest(one, in_process=True) == digest(f, in_process=True)
        for f in (unnamed(1), other)
    )
    assert (same, unlike) == (True, False)
    assert digest(one) == digest(other)


def test_what_cannot_be_read_is_another_in_a_process():
    one, other = threading.Lock(), threading.Lock()
    assert digest(one) == digest(other)
    assert digest(one, in_process=True) != digest(other, in_process=True)


def test_a_memo_in_a_default_or_a_closure_may_be_filled():
    cache = {}

    def with_default(x, seen={}):  # noqa: B006 - it is to last
        seen[x] = cache.setdefault(x, x)

    before = digest(with_default)
    with_default(1)
    assert digest(with_default) == before


def test_a_setting_in_a_closure_that_is_only_read_counts():
    settings = {"by": 1}
    scale = of_module(settings)
    before = digest(scale)
    settings["by"] = 2
    assert digest(scale) != before


class Images:
    def __init__(self, sizes):
        self.sizes = sizes

    @cached_property
    def largest(self):
        return max(self.sizes)


def test_a_cached_property_may_be_asked_for():
    asked = Images([1, 3])
    assert asked.largest == 3
    assert digest(asked) == digest(Images([1, 3]))
    assert digest(asked) != digest(Images([1, 4]))
