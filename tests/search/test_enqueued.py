"""Known configurations that a search opens first, among its candidates."""

import re

import pytest
from kept_search import CANDIDATES, Rising, a_search, crashed, facts, whole

from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.search.search import RisingSearch

NEW = {"arm": 8, "top": 0.99, "speed": 1}


def opened(result):
    return list(dict.fromkeys(result.history["arm"]))


def test_what_is_enqueued_joins_the_candidates_and_is_opened_first():
    search = RisingSearch(
        Rising(),
        CANDIDATES,
        budget=24,
        max_epochs=6,
        enqueue=[NEW, CANDIDATES[5]],
        min_epochs=2,
        seed=0,
    )
    result = search.run()
    assert opened(result)[:2] == [8, 5]
    assert result.candidates == [*CANDIDATES, NEW]
    assert result.history["reason"][:4] == ["opened as enqueued"] * 4
    assert all("; opened as enqueued" in result.arms[arm].reason for arm in (8, 5))
    assert min(len(result.curves[arm]) for arm in (8, 5)) >= 2


@pytest.mark.parametrize(("seed", "shuffle"), [(0, True), (1, True), (2, False)])
def test_a_known_good_one_is_opened_whatever_the_seed(seed, shuffle):
    result = RisingSearch(
        Rising(), CANDIDATES, budget=3, seed=seed, shuffle=shuffle, enqueue=[NEW]
    ).run()
    assert opened(result)[0] == 8


def test_an_earlier_search_comes_after_what_is_enqueued():
    earlier = RisingSearch(Rising(), CANDIDATES, budget=24, seed=1).run()
    result = RisingSearch(
        Rising(), CANDIDATES, budget=24, seed=0, prior=earlier, enqueue=[NEW]
    ).run()
    assert opened(result)[0] == 8
    assert result.opened_by_prior


@pytest.mark.parametrize("at", [1, 3, 11])
def test_a_search_goes_on_with_what_was_enqueued(tmp_path, at):
    options = {"enqueue": [NEW, CANDIDATES[2]], "min_epochs": 3}
    expected = whole(tmp_path, **options)
    crashed(tmp_path / "run", at=at, **options)
    with pytest.raises(RunDirError, match=r"enqueue\[0\]=8, .* with enqueue\[0\]=2"):
        a_search(
            tmp_path / "run",
            candidates=[*CANDIDATES, NEW],
            enqueue=[CANDIDATES[2], NEW],
            min_epochs=3,
        )
    with pytest.raises(RunDirError, match=r"min_epochs=3"):
        a_search(tmp_path / "run", enqueue=options["enqueue"])
    assert RisingSearch.saved_result(tmp_path / "run").candidates[8] == NEW
    resumed = RisingSearch.resume(tmp_path / "run", Rising())
    assert facts(resumed.run()) == facts(expected)


@pytest.mark.parametrize(
    ("enqueue", "message"),
    [
        (NEW, "enqueue is a list of dicts of parameters; got {'"),
        ([3.5], "enqueue is a list of dicts of parameters; got"),
        ([NEW | {"sped": 1}], "}: 'sped' is not one of arm, speed, top"),
        ([NEW, dict(NEW)], "twice: name each configuration once"),
    ],
)
def test_what_cannot_be_enqueued_is_refused(enqueue, message):
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        RisingSearch(Rising(), CANDIDATES, budget=9, enqueue=enqueue, min_epochs=2)


def test_what_is_enqueued_has_all_parameters_of_a_space():
    space = {"top": [0.2, 0.4], "speed": [0.1, 0.2]}
    RisingSearch(Rising(), space, budget=9, enqueue=[{"top": 0.9, "speed": 0.3}])
    with pytest.raises(InvalidParameterError, match=": 'speed' is missing"):
        RisingSearch(Rising(), space, budget=9, enqueue=[{"top": 0.9}])
