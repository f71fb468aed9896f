"""Searches of a space whose configurations are proposed while they run."""

import shutil

import pytest
from kept_search import CrashError, Rising, crashing, facts

from risingsearch.budget import Budget
from risingsearch.errors import RunDirError
from risingsearch.search.search import RisingSearch
from risingsearch.search.trainable import Functions
from risingsearch.space import Interval

SPACE = {"top": Interval(0.3, 0.9), "speed": [1, 2, 3], "arm": Interval(0.0, 1.0)}


def the_search(folder, **options):
    defaults = {"budget": 60, "max_epochs": 5, "seed": 3, "deterministic": True}
    return RisingSearch(Rising(), SPACE, run_dir=folder, **defaults | options)


def test_arms_are_opened_during_the_whole_search_and_resemble_others():
    result = the_search(None).run()
    proposed = [arm for arm in result.arms if arm.like]
    assert len(proposed) > 5
    assert all("resembles arms" in arm.reason for arm in proposed)
    late = {row["arm"] for row in result.history[40:]}
    late -= {row["arm"] for row in result.history[:40]}
    assert len(late) > 2
    assert 0.5 * len(late) < len(late & {arm.arm for arm in proposed}) < len(late)
    tops = [result.candidates[arm.arm]["top"] for arm in proposed]
    assert sum(tops) / len(tops) > 0.7
    assert result.n_epochs == 60
    assert result.best_params["top"] > 0.8


@pytest.mark.parametrize("n_jobs", [None, 8])
def test_a_search_killed_with_proposals_in_flight_resumes_bit_for_bit(
    tmp_path, folder, threads, n_jobs
):
    options = {} if n_jobs is None else {"executor": threads, "n_jobs": n_jobs}

    def said(result):
        return [facts(result), repr(result.candidates)]

    expected = said(the_search(tmp_path / "whole", **options).run())
    with pytest.raises(CrashError):
        the_search(folder, callbacks=crashing(38), **options).run()
    for keep_state in (True, False):
        copy = tmp_path / f"copy {keep_state}"
        shutil.copytree(folder, copy)
        if not keep_state:
            (copy / "state.json").unlink(missing_ok=True)
        executor = {"executor": threads} if n_jobs else {}
        search = RisingSearch.resume(copy, Rising(), **executor)
        assert said(search.run()) == expected


@pytest.mark.parametrize(("budget", "shares"), [(25, (0.3, 0.2)), (26, (0.1, 0.4))])
def test_a_budget_of_few_trainings_is_shared_as_over_a_list(budget, shares):
    def epochs(**options):
        history = the_search(None, budget=budget, **options).run().history
        return [(row["arm"], row["epoch"]) for row in history]

    params = dict(zip(("opening_share", "later_share"), shares, strict=True))
    assert epochs() == epochs(policy_params=params)


def test_proposals_need_some_opened_arms_but_no_large_budget():
    for budget, proposes in ((15, False), (24, True)):
        result = the_search(None, budget=budget).run()
        assert any(arm.like for arm in result.arms) == proposes


def opened(result):
    return [arm.arm for arm in result.arms if arm.charged]


def test_an_extended_search_opens_arms_that_were_not_drawn_at_first(tmp_path):
    search = the_search(None, budget=20)
    assert len(search.run().candidates) == 20
    search.extend(100)
    whole = search.run()
    assert len(whole.candidates) == len(whole.arms) == 80
    assert opened(whole) == list(range(len(opened(whole))))
    assert len(opened(whole)) > 40
    assert any(arm.like for arm in whole.arms[40:])

    the_search(tmp_path, budget=20).run()
    RisingSearch.resume(tmp_path, Rising()).extend(100)
    for at, keep_state in ((45, True), (70, False), (95, True)):
        if not keep_state:
            (tmp_path / "state.json").unlink()
        part = RisingSearch.resume(tmp_path, Rising(), callbacks=crashing(at))
        with pytest.raises(CrashError):
            part.run()
        part._log.save_state()
    shown = RisingSearch.saved_result(tmp_path)
    for arm in opened(shown):
        assert shown.candidates[arm] == whole.candidates[arm]
    result = RisingSearch.resume(tmp_path, Rising()).run()
    assert facts(result) == facts(whole)
    assert result.candidates == whole.candidates


def test_a_state_of_more_arms_is_loaded_as_a_whole_or_not_at_all():
    extended = the_search(None, budget=20)
    extended.run()
    extended.extend(40)
    extended.run()
    state = extended.scheduler.state_dict()
    search = the_search(None, budget=20)
    ledger = state["ledger"] | {"paid": [1.0, 2.0]}
    with pytest.raises(RunDirError, match="damaged"):
        search.scheduler.load_state_dict(state | {"ledger": ledger})
    assert search.scheduler.n_arms == 20
    search.scheduler.load_state_dict(state)
    assert search.scheduler.state_dict() == state
    assert search.scheduler.n_arms == 40


class Costly(Rising):
    def train(self, state):
        return super().train(state) | {"cost": 2.0}


def test_arms_are_proposed_under_any_budget_and_for_arms_of_one_epoch():
    budget = Budget(cost=120)
    costly = RisingSearch(Costly(), SPACE, budget=budget, max_epochs=5, seed=3).run()
    in_full = the_search(None, budget=30, max_epochs=1).run()
    for result in (costly, in_full):
        assert sum(bool(arm.like) for arm in result.arms) > 5


def test_a_number_of_candidates_is_the_most_that_are_tried():
    result = the_search(None, n_candidates=16).run()
    assert opened(result) == list(range(16))
    assert sum(bool(arm.like) for arm in result.arms) == 6  # of the last eight


def test_no_configuration_is_tried_twice():
    trainable = Functions(lambda params, seed: params, lambda state: state["top"])
    whole, few = Interval(1, 20, whole=True), Interval(1, 5, whole=True)
    same, steps = Interval(2.0, 2.0), Interval(0.5, 10.0, step=0.5)
    options = {"budget": 50, "max_epochs": 5, "seed": 0, "n_candidates": 30}
    for other in ({"same": same}, {"top": whole, "of": few}, {"top": steps, "lr": few}):
        result = RisingSearch(
            trainable, {"top": SPACE["top"], **other}, **options
        ).run()
        tried = {repr(result.candidates[arm]) for arm in opened(result)}
        assert len(tried) == len(opened(result)) > 15


def test_functions_are_values_of_a_space_in_a_directory(tmp_path):
    space = SPACE | {"loss": [min, max, the_search]}
    options = {"budget": 20, "max_epochs": 5, "seed": 0, "run_dir": tmp_path}
    result = RisingSearch(Rising(), space, **options).run()
    assert RisingSearch(Rising(), space, **options).result().history == result.history
