"""What no search can show or save: refused as a candidate, a failure as a result."""

import math

import pytest
from kept_search import CANDIDATES, Rising, a_search

from risingsearch.errors import InvalidParameterError
from risingsearch.search.search import RisingSearch

HUGE = 10**5000


def kind(value):
    """Name a value that has too many digits to be a test's name."""
    return type(value).__name__


def deep(n_levels):
    value = []
    for _ in range(n_levels):
        value = [value]
    return value


def holding_itself():
    value = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("params", "wrong"),
    [
        ({"a": deep(1_000)}, "candidate 1 must be nested at most 100 levels"),
        ({"a": holding_itself()}, "or what holds itself"),
        ({"a": [HUGE]}, "numbers of at most 4300 digits"),
        ({1: 2}, "as dicts with text as keys; got {1: 2}"),
    ],
    ids=kind,
)
def test_candidates_are_refused_in_one_sentence(params, wrong, folder):
    with pytest.raises(InvalidParameterError) as raised:
        RisingSearch(Rising(), [{"a": 1}, params], budget=9, run_dir=folder)
    assert wrong in str(raised.value)
    assert len(str(raised.value)) < 400
    assert not folder.exists()


@pytest.mark.parametrize(
    "result",
    [
        {"score": 0.5, "own": HUGE},
        {"score": 0.5, "own": holding_itself()},
        {"score": 0.5, "own": {3}},
        {"score": 0.5, 1: 2},
        {"score": HUGE},
        {"score": 1e308},
        b"1",
    ],
    ids=kind,
)
def test_what_cannot_be_saved_is_the_arms_failure(result, folder):
    search = a_search(folder, Rising(arm_2_epoch_2=result), budget=40)
    done = search.run()
    [failed] = done.failures
    assert failed.job.arm == 2
    assert isinstance(failed.failure, InvalidParameterError)
    assert len(str(failed.failure)) < 500
    assert done.arms[2].status == "failed"
    assert math.isfinite(done.best_score)
    again = RisingSearch.resume(folder, Rising()).result()
    assert repr(again.arms) == repr(done.arms)
    assert again.n_epochs == done.n_epochs == 40


def test_without_a_directory_metrics_may_be_anything():
    trainable = Rising(arm_2_epoch_2={"score": 0.5, "own": {HUGE}})
    search = RisingSearch(
        trainable, CANDIDATES, policy="round-robin", budget=40, max_epochs=6, seed=3
    )
    result = search.run()
    assert not result.failures
    assert any(row.get("own") == {HUGE} for row in result.history)
