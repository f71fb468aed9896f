"""Looking at a directory runs nothing that it holds, and shows all that JSON holds."""

import base64
import hashlib
import json
import pickle
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from kept_search import Rising, a_search, crashed

from risingsearch.cli.main import main
from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.policies import UCB1
from risingsearch.proposers import Proposer
from risingsearch.search.arguments import PER_PROCESS
from risingsearch.search.search import RisingSearch
from risingsearch.storage.checkpoints import Folder, Key, Store
from risingsearch.storage.journal import Journal, create, read
from risingsearch.storage.run_directory import CHECKPOINTS, JOURNAL, STATE

SHAPES = [np.zeros((2, n)) for n in range(3)]


def factory(n_arms, horizon, max_pulls, delta):
    return UCB1.create(n_arms, horizon, max_pulls)


class Layer:
    """Equal to itself alone, and shown as all others are."""


class Wider(Layer):
    pass


def candidates(n_arms, seed=0):
    """Return candidates that JSON cannot hold, and some that it can."""
    rng = np.random.default_rng(seed)
    layers = [Layer(), Layer(), Wider()]
    drawn = []
    for arm in range(n_arms):
        params = {"arm": arm, "top": float(rng.random()), "speed": int(rng.integers(5))}
        if rng.random() < 0.9:
            params["share"] = Fraction(int(rng.integers(1, 9)), 10)
            params["layer"] = layers[rng.integers(3)]
            params["shape"] = SHAPES[rng.integers(3)]
        if rng.random() < 0.5:
            params["phase"] = [1j, -1j][rng.integers(2)]
        drawn.append(params)
    return drawn


PROPOSED = {"budget": 150, "max_epochs": 5, "deterministic": False}


def proposed(folder, **options):
    return a_search(folder, candidates=candidates(90), **PROPOSED | options)


def stopped(search, at):
    """Run a search for so many epochs, or a few more."""

    search.callbacks = [lambda epoch: epoch.number >= at and epoch.stop()]
    search.run()
    return search


def decisions(result):
    """Return what was decided and found, without the values of the candidates."""
    rows = [{k: repr(v) for k, v in row.items()} for row in result.history]
    ends = [result.best_arm, result.best_epoch, result.n_epochs, result.stop_reason]
    arms = [replace(arm, params={}) for arm in result.arms]
    return rows, repr(arms), ends


class TestCandidatesThatJsonCannotHold:
    def test_are_text(self, folder):
        crashed(folder, candidates=candidates(6))
        result = RisingSearch.saved_result(folder)
        shown = [params.get("as_text") for params in result.candidates]
        assert "'share': Fraction(" in result.best_params["as_text"]
        assert "<" in result.best_params["as_text"]
        assert " at 0x" not in str(result.candidates)
        n_texts = sum(text is not None for text in shown)
        assert f"the values of {n_texts} of 6 candidates" in result.left_out

    @pytest.mark.parametrize("with_state", [True, False])
    @pytest.mark.parametrize("at", [3, 110])
    def test_are_shown_with_what_was_decided(self, folder, at, with_state):
        search = stopped(proposed(folder), at)
        if not with_state:
            (folder / STATE).unlink()
        shown = RisingSearch.saved_result(folder)
        assert decisions(shown) == decisions(search.result())


class Last(Proposer):
    def propose(self, opened, unopened, rng):
        return int(unopened[-1])


class TestAnObject:
    @pytest.mark.parametrize(
        "options",
        [
            {"policy": UCB1},
            {"policy": UCB1.create, "max_epochs": 5},
            {"policy": factory, "policy_params": {"delta": 0.1}},
            {"proposer": Last()},
        ],
    )
    @pytest.mark.parametrize("with_state", [True, False])
    def test_as_policy_or_proposer_need_not_be_given_to_look(
        self, folder, options, with_state, capsys
    ):
        expected = a_search(folder, **options).run()
        if not with_state:
            (folder / STATE).unlink()
        shown = RisingSearch.saved_result(folder)
        assert shown.history == expected.history
        assert shown.best_params == expected.best_params
        assert [arm.status for arm in shown.arms] == [a.status for a in expected.arms]
        assert shown.stop_reason == expected.stop_reason
        for command in ("status", "export", "report"):
            assert main([command, str(folder)]) == 0
        capsys.readouterr()


# ------------------------------------------------------- directories of somebody else
class Bomb:
    """Leaves a file where it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def forge(folder, change, change_event=lambda event: None):
    """Change the header of a search, and write a journal that is whole."""
    path = folder / JOURNAL
    recorded = read(path)
    change(recorded.header)
    create(path, recorded.header)
    journal = Journal(path, read(path))
    for event in recorded.events:
        change_event(event)
        journal.append(event)


def write_state(folder, content):
    head = hashlib.sha256(content).hexdigest().encode() + b"\n"
    (folder / STATE).write_bytes(head + content)


@pytest.fixture
def mark(tmp_path):
    return tmp_path / "was here"


@pytest.fixture
def forged(folder, mark):
    """Return a directory in which all that can be pickled leaves a mark."""
    crashed(folder, candidates=candidates(30), at=20)
    pickled = base64.b64encode(pickle.dumps(Bomb(mark))).decode()
    forge(folder, lambda header: header.update(candidates=pickled))
    store = Store(Folder(folder / CHECKPOINTS))
    for key in [*store.keys(), *(Key(arm, 3) for arm in range(30))]:
        store.save(key, pickle.dumps(Bomb(mark)))
    assert not mark.exists()
    return folder


EXPORTS = [["--format", kind] for kind in ("csv", "json", "parquet")]
LOOKS = [
    ["status"],
    ["status", "--json"],
    ["report"],
    *(["export", *kind, "--out", "out"] for kind in EXPORTS),
]


@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
def test_no_look_unpickles(forged, mark, look, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    command, *options = look
    assert main([command, str(forged), *options]) == 0
    assert not mark.exists()


def test_a_saved_result_unpickles_nothing(forged, mark):
    result = RisingSearch.saved_result(forged)
    assert len(result.history) == 20
    assert result.best_arm is not None
    assert not mark.exists()
    with pytest.raises(InvalidParameterError):  # the forgery is no list
        RisingSearch.resume(forged, Rising())
    assert mark.exists()


def test_what_a_header_names_is_not_imported(folder, monkeypatch):
    module = folder.with_name("evil.py")
    module.write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(module.parent)
    crashed(folder)
    expected = RisingSearch.saved_result(folder).history
    object_named = {"$object": "evil.Policy"}
    forge(folder, lambda header: header["settings"].update(policy=object_named))
    assert RisingSearch.saved_result(folder).history == expected
    forge(folder, lambda header: header["settings"].update(policy="evil.Policy"))
    with pytest.raises(InvalidParameterError):
        RisingSearch.saved_result(folder)
    assert "evil" not in sys.modules


@pytest.mark.parametrize("name", [*PER_PROCESS, "of a later release"])
def test_a_header_gives_no_argument_that_is_never_saved(folder, name):
    elsewhere = folder.with_name("elsewhere")
    crashed(folder)
    forge(folder, lambda header: header["settings"].update({name: str(elsewhere)}))
    with pytest.raises(RunDirError, match=f"{name!r} among the arguments"):
        RisingSearch.saved_result(folder)
    with pytest.raises(RunDirError, match=f"{name!r} among the arguments"):
        RisingSearch.resume(folder, Rising())
    assert not elsewhere.exists()


def test_all_that_is_left_out_is_said_wherever_it_is_shown(forged, capsys):
    left_out = RisingSearch.saved_result(forged).left_out
    assert main(["status", str(forged)]) == 0
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if left_out in line]
    assert main(["status", str(forged), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["left_out"] == left_out
    assert main(["export", str(forged)]) == 0
    assert capsys.readouterr().err == f"risingsearch: left out: {left_out}\n"
    assert main(["report", str(forged)]) == 0
    assert left_out in (forged / "report.html").read_text()


@pytest.mark.parametrize("content", [b"[]", b'{"events": 3', b"\xff"])
def test_a_state_that_no_release_has_written_is_a_damaged_one(folder, content):
    crashed(folder)
    write_state(folder, content)
    with pytest.warns(RuntimeWarning, match="is damaged"):
        assert len(RisingSearch.saved_result(folder).history) == 11
