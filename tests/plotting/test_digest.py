"""What a report shows of a search grows with it, and comes to the same."""

import math

import pytest

from risingsearch import Functions, RisingSearch
from risingsearch.plotting.digest import Digest


def start(params, seed):
    return {"epochs": 0, **params}


def train(state):
    state["epochs"] += 1
    if state["top"] == 0.4 and state["epochs"] == 2:
        raise ArithmeticError("diverged")
    if state["top"] == 0.2:
        return math.nan
    score = state["top"] * (1 - 0.7 ** state["epochs"])
    if state["epochs"] < 3:
        return score
    return {"score": score, "late": state["epochs"]}


def a_search(**options):
    candidates = [{"top": k / 10, "kind": "ab"[k % 2]} for k in range(1, 9)]
    trainable = Functions(start, train)
    given = {"budget": 60, "max_epochs": 12, "seed": 0, **options}
    return RisingSearch(trainable, candidates, **given)


def facts(digest, result):
    spending = digest.spending
    return (
        (digest.params, digest.scales, digest.space),
        (digest.arm, digest.epoch, digest.score, digest.marks),
        (digest.projections, digest.all_lost(result), list(digest.others())),
        (spending.seconds, spending.progress()),
    )


@pytest.mark.parametrize("options", [{}, {"order": "ask"}, {"epochs_per_job": 3}])
def test_grown_with_a_search_it_is_what_it_is_of_the_whole(options):
    grown = []

    def look(search, report):
        result = search.result()
        if not grown:
            grown.append(Digest(result))
        assert grown[0].goes_on_with(result)
        grown[0].add(result)
        assert facts(grown[0], result) == facts(Digest(result), result)

    search = a_search(**options)
    search.callbacks = [look]
    result = search.run()
    (digest,) = grown
    assert facts(digest, result) == facts(Digest(result), result)
    assert len(digest.arm) == result.n_epochs == 60
    assert [lost.text for lost in digest.lost].count("ArithmeticError: diverged") == 1
    assert [other["name"] for other in digest.others()] == ["late"]


def test_another_search_is_not_taken_for_the_same_one():
    digest = Digest(a_search().run())
    assert not digest.goes_on_with(a_search().run())
    assert not digest.goes_on_with(a_search(budget=10).run())
