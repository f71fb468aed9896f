"""Arguments go to disk and come back, or can at least be told apart."""

import importlib
import json
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from risingsearch import Functions, InvalidParameterError, RisingSearch, RunDirError
from risingsearch.budget import Budget
from risingsearch.identity.comparison import first_difference
from risingsearch.policies.stationary.baselines import RoundRobin
from risingsearch.search.arguments import pickled_candidates, settings_of
from risingsearch.search.run import Run
from risingsearch.storage.journal import Recorded, create, read
from risingsearch.storage.run_directory import Saved

PLAIN = [{"rate": 0.1, "sizes": (64, 32), "n": np.int64(3), "name": None}]


class Plain:
    pass


def on_disk(candidates, **arguments):
    """Return the options, and the candidates, after a trip through JSON."""
    settings = settings_of(candidates, {"budget": Budget(epochs=9)} | arguments)
    header = {
        "entropy": 0,
        "settings": settings,
        "candidates": pickled_candidates(settings, candidates),
    }
    header = json.loads(json.dumps(header, allow_nan=False))
    run = Run.of_saved(Path("run"), Saved(Recorded(header, [], 0), 0, None))
    return run.options({}, unpickle=True), run.candidates(unpickle=True)


@pytest.mark.parametrize(
    "arguments",
    [
        {
            "budget": Budget(epochs=30),
            "seed": None,
            "deterministic": True,
            "shuffle": True,
        },
        {"budget": Budget(seconds=3.5)},
        {"policy": "asha", "policy_params": {"eta": 3, "bound": float("inf")}},
        {
            "policy_params": {"reward_range": (0.0, 1.0)},
            "proposer": None,
            "error_score": "raise",
        },
        {"fingerprint": {"data": "ab12", "folds": [1, 2], "rate": np.float32(0.1)}},
    ],
)
def test_arguments_come_back_as_they_were(arguments):
    options, candidates = on_disk(PLAIN, **arguments)
    back = {name: getattr(options, name) for name in arguments}
    assert back == arguments
    assert repr(back) == repr(arguments)
    assert repr(candidates) == repr(PLAIN)


def test_candidates_of_plain_values_are_not_pickled():
    assert pickled_candidates(settings_of(PLAIN, {}), PLAIN) is None


def test_objects_are_compared_by_what_they_show_without_their_address():
    one, other = ([{"layer": Plain(), "n": 1}] for _ in range(2))
    assert settings_of(one, {}) == settings_of(other, {})
    assert settings_of(one, {}) != settings_of([{"layer": Plain(), "n": 2}], {})
    thirds, halves = ([{"rate": Fraction(1, n)}] for n in (3, 2))
    assert settings_of(thirds, {}) != settings_of(halves, {})


SETTINGS = {"budget": 9, "candidates": [{"rate": 0.1}, {"rate": 0.2}], "seed": None}


OTHERS = "; others differ too:"


class TestFirstDifference:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"seed": 0, "budget": 10}, ("budget", "9", "10", f"{OTHERS} seed")),
            (
                {"budget": 10, "space": {"a": 1}, "candidates": []},
                ("space", "None", "{'a': 1}", f"{OTHERS} budget"),
            ),
            (
                {"candidates": [{"rate": 0.1}, {"rate": 0.3}]},
                ("candidates[1].rate", "0.2", "0.3", ""),
            ),
            ({"candidates": [{"rate": 0.1}]}, ("len(candidates)", "2", "1", "")),
        ],
    )
    def test_it_is_named_and_others_with_it(self, changes, expected):
        assert first_difference(SETTINGS, SETTINGS | changes) == expected

    def test_a_setting_that_is_long_is_cut(self):
        was, given = ({"fingerprint": {"data": 5000 * letter}} for letter in "xy")
        name, *shown = first_difference(was, given)
        assert name == "data"
        assert all(len(text) < 400 for text in shown)

    @pytest.mark.parametrize("policy", [RoundRobin, RoundRobin.create(2, 9, 3)])
    def test_modules_of_this_package_may_move(self, policy):
        given = settings_of([], {"policy": policy})
        same = given["policy"] | {"$object": "risingsearch.elsewhere.RoundRobin"}
        other = given["policy"] | {"$object": "risingsearch.elsewhere.Uniform"}
        assert first_difference(given | {"policy": same}, given) is None
        assert first_difference(given | {"policy": other}, given) is not None


def counting(top):
    trained = []

    def train(state):
        trained.append(state)
        return top * len(trained)

    return Functions(lambda params, seed: 0, train)


def named_policy(name):
    return type(name, (RoundRobin,), {}).create


def search_in(folder, trainable, **options):
    return RisingSearch(trainable, [{}], budget=3, seed=0, run_dir=folder, **options)


def test_other_code_is_said_by_the_file_and_keeps_the_scores(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    helper, run_dir = tmp_path / "helper_of_mine.py", tmp_path / "run"
    helper.write_text("TOP = 1.0\n\ndef top():\n    return TOP\n")
    helper_of_mine = importlib.import_module("helper_of_mine")

    class Rising:
        def start(self, params, seed):
            return {}

        def train(self, state):
            return helper_of_mine.top()

    result = search_in(run_dir, Rising()).run()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search_in(run_dir, Rising(), callbacks=[print])
        RisingSearch.resume(run_dir, Rising())
    helper.write_text("TOP = 2.0\n\ndef top():\n    return TOP\n")
    for again in (search_in, RisingSearch.resume):
        with pytest.warns(RuntimeWarning, match=r"in helper_of_mine.py \(1 line\)"):
            search = again(run_dir, Rising())
    assert search.run().history == result.history


def test_code_that_an_earlier_release_compared_is_not_said_to_have_changed(tmp_path):
    policy = named_policy("Mine")
    search_in(tmp_path, counting(1.0), policy=policy, fingerprint={"data": "1"})
    journal = tmp_path / "journal.jsonl"
    recorded = read(journal)
    header = recorded.header | {"code": "0123456789abcdef0123456789abcdef"}
    own = header["settings"]["policy"]
    own["$digest"] = own.pop("$content").replace("+", "")[::-1]
    journal.unlink()
    create(journal, header)
    search_in(tmp_path, counting(1.0), policy=policy, fingerprint={"data": "1"})
    RisingSearch.resume(tmp_path, counting(1.0), policy=policy)


@pytest.mark.parametrize("wrong", [3, "ab12", [("data", "ab12")]])
def test_a_fingerprint_is_a_dict(wrong):
    with pytest.raises(InvalidParameterError, match="fingerprint must be a dict of"):
        RisingSearch(Functions(dict, len), [{}], budget=1, fingerprint=wrong)


@pytest.mark.parametrize(
    ("fingerprint", "whose"),
    [
        ({"sweep": "", "cwd": ""}, "risingsearch run"),
        ({"estimator": "", "steps_per_epoch": 1}, "RisingSearchCV"),
    ],
)
def test_a_search_of_another_interface_is_refused(tmp_path, fingerprint, whose):
    search_in(tmp_path / "run", counting(1.0), fingerprint=fingerprint)
    refused = pytest.raises(RunDirError, match=f"holds a search of {whose}, and it was")
    with refused:
        RisingSearch.resume(tmp_path / "run", counting(1.0))
    with refused:
        search_in(tmp_path / "run", counting(1.0))
    for name in fingerprint:  # one of these may be the user's own
        search_in(tmp_path / name, counting(1.0), fingerprint={name: "1"})
        RisingSearch.resume(tmp_path / name, counting(1.0))
