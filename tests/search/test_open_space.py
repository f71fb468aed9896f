"""Searches of a space whose configurations are proposed while they run."""

import shutil

import pytest
from kept_search import CrashError, Rising, crashing, facts

from risingsearch.parameters import Interval
from risingsearch.search.search import RisingSearch

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
    assert late <= {arm.arm for arm in proposed}
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


@pytest.mark.parametrize(("budget", "shares"), [(24, (0.3, 0.2)), (25, (0.2, 0.4))])
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
