"""Searches that end early: what they say, and how they go on."""

import pytest
from kept_search import Rising, a_search, facts, whole

from risingsearch.search.search import RisingSearch
from risingsearch.storage.journal import read

PATIENCE = "the patience of 4 epochs without a new best is exhausted"


def n_stops(folder):
    events = read(folder / "journal.jsonl").events
    return sum(event["event"] == "stopped" for event in events)


def test_the_result_says_why_it_ended_and_what_is_left(tmp_path):
    search = a_search(tmp_path, patience=4)
    result = search.run()
    left = 24 - result.n_epochs
    assert left > 0
    assert result.stop_reason == f"{PATIENCE}, {left} of 24 epochs left"
    assert RisingSearch.saved_result(tmp_path).stop_reason == result.stop_reason
    assert search.run().n_epochs == result.n_epochs
    assert n_stops(tmp_path) == 1


def test_the_reason_holds_until_more_may_be_trained(tmp_path):
    search = a_search(tmp_path, patience=4)
    reason = search.run().stop_reason
    with search._log.held():
        search._log.died([])
    assert RisingSearch.saved_result(tmp_path).stop_reason == reason
    search.extend(5)
    assert RisingSearch.saved_result(tmp_path).stop_reason == "stopped before its end"
    assert search.result().stop_reason == "stopped before its end"


def test_a_result_ends_the_reason_of_an_earlier_stop(tmp_path):
    search = a_search(
        tmp_path, target_score=0.0, callbacks=[lambda epoch: epoch.stop()]
    )
    assert search.run().stop_reason.startswith("the target_score of 0 is reached")
    search.stop_when()
    assert search.run().stop_reason == "stopped before its end"
    assert RisingSearch.saved_result(tmp_path).stop_reason == "stopped before its end"


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_search_goes_on_under_other_rules_as_if_there_had_been_none(
    tmp_path, deterministic
):
    expected = whole(tmp_path, deterministic=deterministic)
    run_dir = tmp_path / "run"
    a_search(run_dir, deterministic=deterministic, patience=4).run()
    a_search(run_dir, deterministic=deterministic, target_score=0.0).run()
    resumed = RisingSearch.resume(run_dir, Rising(), patience=5)
    assert resumed.run().stop_reason.startswith("the patience of 5")
    assert facts(RisingSearch.resume(run_dir, Rising()).run()) == facts(expected)
    saved = RisingSearch.saved_result(run_dir)
    assert saved.stop_reason == "the budget of 24 epochs is spent"


def test_the_target_can_be_moved_between_runs():
    search = RisingSearch(
        Rising(),
        [{"arm": 0, "top": 0.8, "speed": 1}],
        budget=9,
        target_score=0.5,
        seed=0,
    )
    first = search.run()
    assert first.best_score >= 0.5
    assert first.stop_reason.startswith("the target_score of 0.5 is reached, ")
    search.stop_when(target_score=0.7)
    second = search.run()
    assert second.n_epochs > first.n_epochs
    assert second.best_score >= 0.7
