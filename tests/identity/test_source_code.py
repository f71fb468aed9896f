"""A change in a file of the user that a search's objects reach is told by name."""

import importlib
import linecache
import sys
from functools import partial
from types import SimpleNamespace

import pytest

from risingsearch.identity.source_code import changed_files, code_of

HELPER = "RATE = 1\n\n\ndef cost(x):\n    return x * RATE\n"
CHANGED = "RATE = 2\n\n\ndef cost(x):\n    # as before\n    return x * RATE\n"
TRAIN = "\n\ndef train(state):\n    return helper.cost(state)\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Write files into a folder of their own, and return their module ``job``."""
    monkeypatch.syspath_prepend(tmp_path)
    known = set(sys.modules)

    def written(**files):
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module("job")

    yield written
    for name in set(sys.modules) - known:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"job": "import helper" + TRAIN, "helper": HELPER}, "helper.py"),
        ({"job": "from helper import RATE" + TRAIN, "helper": HELPER}, "helper.py"),
        ({"job": "import a\n" + TRAIN, "a": "import b", "b": HELPER}, "b.py"),
        ({"job": "import lib.sub\n" + TRAIN, "lib__sub": HELPER}, "lib/sub.py"),
        ({"job": "from lib import sub\n" + TRAIN, "lib__sub": HELPER}, "lib/sub.py"),
        (
            {
                "job": "from lib.one import *\n" + TRAIN,
                "lib__one": "from . import two",
                "lib__two": HELPER,
            },
            "lib/two.py",
        ),
        (
            {"job": "def train(x):\n    import later\n", "later": HELPER},
            "later.py",
        ),
        (
            {
                "job": "import importlib\nm = importlib.import_module('plug')\n"
                "def train(x): return m.cost(x)\n",
                "plug": HELPER,
            },
            "plug.py",
        ),
    ],
)
def test_a_file_that_is_imported_is_named_with_its_lines(project, files, name):
    train = project(**files).train
    before = code_of(train)
    assert changed_files(before, code_of(train)) == []
    project(**{name[:-3].replace("/", "__"): CHANGED})
    assert changed_files(before, code_of(train)) == [f"{name} (2 lines)"]


class Holder:
    def __init__(self, held):
        self.held = held

    def method(self):
        return self.held


@pytest.mark.parametrize(
    "hold",
    [
        Holder,
        lambda train: Holder(train).method,
        lambda train: [{"call": partial(map, train)}],
        lambda train: lambda: train,
        lambda train: type("Made", (Holder,), {"__slots__": ("own",)})(train),
        lambda train: SimpleNamespace(code=train),
    ],
)
def test_it_is_found_in_whatever_holds_a_function(project, hold):
    held = hold(project(job="def train(state):\n    return 1\n").train)
    before = code_of(held)
    project(job="def train(state):\n    return 2\n")
    assert "job.py (1 line)" in changed_files(before, code_of(held))


def test_values_that_the_code_makes_while_it_runs_are_no_change(project):
    job = project(
        job="import settings\nMEMO = {}\n\n\nclass Kind:\n    seen = []\n\n\n"
        "class Job:\n    def train(self, x):\n        MEMO[x] = Kind()\n"
        "        Kind.seen.append(x)\n        self.code = MEMO\n"
        "        Job.rate = settings.rate = x\n",
        settings="rate = 1",
    ).Job()
    before = code_of(job)
    job.train(2)
    assert changed_files(before, code_of(job)) == []


def test_in_a_notebook_the_functions_are_compared_one_by_one(monkeypatch):
    def cell(text, known={"__name__": "__main__"}):  # noqa: B006 - it is to last
        name = f"<cell {len(linecache.cache)}>"
        lines = text.splitlines(keepends=True)
        monkeypatch.setitem(linecache.cache, name, (len(text), None, lines, name))
        exec(compile(text, name, "exec"), known)
        return known

    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace())
    train = cell("def helper(x):\n    return x\n")
    train = cell("def train(x):\n    return helper(x)\n")["train"]
    before = code_of(train)
    assert before.keys() == {"train", "helper"}
    cell("def helper(x):\n    # as before\n    return x\n")
    assert changed_files(before, code_of(train)) == []
    cell("def helper(x):\n    return x + 1\n")
    assert changed_files(before, code_of(train)) == ["helper (1 line)"]


def test_without_a_source_nothing_is_compared(monkeypatch):
    known = {"__name__": "nowhere"}
    exec("def train(x): return 1", known)
    assert code_of(known["train"]) == {}


def test_installed_packages_and_this_one_do_not_count():
    assert code_of(pytest.Item, changed_files, code_of) == {}


def test_files_that_are_gone_are_named_and_new_ones_with_them():
    saved = {"a.py": "aaaa", "b.py": "bbbb"}
    assert changed_files(saved, saved | {"c.py": "cccc"}) == []
    assert changed_files(saved, {"a.py": "aaaa", "moved.py": "bbbb"}) == []
    assert changed_files(saved, {"a.py": "aaaa"}) == []
    assert changed_files(saved, {"a.py": "eeee"}) == ["a.py (1 line)", "b.py (gone)"]
    now = {"a.py": "aaaa", "c.py": "ccccdddd"}
    assert changed_files(saved, now) == ["b.py (gone)", "c.py (2 lines)"]
