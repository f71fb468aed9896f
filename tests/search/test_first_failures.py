"""A mistake that every arm shares is not paid for arm after arm."""

from collections import Counter

import pytest
from curve_search import FLAT, Recorded, a_search

from risingsearch.errors import SearchFailedError
from risingsearch.search.first_failures import ENOUGH
from risingsearch.search.search import RisingSearch


class Setup(Recorded):
    """What no arm can do without, and what it says of each."""

    def __init__(self):
        super().__init__()
        self.is_right = False

    def start(self, params, seed):
        if not self.is_right:
            raise LookupError(f"arm {params['arm']} finds no rows")
        return super().start(params, seed)


def a_large_search(trainable, **options):
    defaults = {"trainable": trainable, "budget": 100, "shuffle": False}
    return a_search(*[FLAT] * 40, **defaults | options)


def failing(n_arms):
    return [[ValueError(f"arm {arm}")] for arm in range(n_arms)]


@pytest.mark.parametrize("deterministic", [True, False])
def test_the_search_stops_with_the_first_cause(threads, deterministic):
    search = a_large_search(
        Setup(), executor=threads, n_jobs=2, deterministic=deterministic
    )
    with pytest.raises(SearchFailedError, match=r"arm 0.*has stopped") as caught:
        search.run()
    assert isinstance(caught.value.__cause__, LookupError)
    assert search.result().n_epochs <= ENOUGH + 1
    assert not search.scheduler.in_flight


def test_one_arm_that_trains_lets_the_search_go_on():
    curves = [*failing(ENOUGH - 1), FLAT, *failing(20)]
    result = a_search(*curves, shuffle=False, budget=60).run()
    assert [arm.status for arm in result.arms].count("failed") == len(curves) - 1


def test_a_run_without_a_score_stops_whatever_an_earlier_one_has_found():
    trainable = Setup()
    trainable.is_right = True
    search = a_large_search(trainable, budget=20)
    found = search.run()
    trainable.is_right = False
    search.extend(100)
    with pytest.raises(SearchFailedError, match="of the 10 arms trained by this"):
        search.run()
    result = search.result()
    assert result.n_epochs == 20 + ENOUGH
    assert result.best_score == found.best_score


class Fourth:
    """Fails in the fourth epoch of some arms, and counts the epochs it has trained."""

    def __init__(self):
        self.fails = True
        self.trained = Counter()

    def start(self, params, seed):
        return {"x": params["x"], "epoch": 0}

    def train(self, state):
        state["epoch"] += 1
        self.trained[state["x"], state["epoch"]] += 1
        if self.fails and state["epoch"] == 4 and state["x"] < 3:
            msg = "disk full"
            raise OSError(msg)
        return state["x"] - 1 / state["epoch"]


@pytest.mark.parametrize("saved", [True, False], ids=["in run_dir", "in memory"])
def test_what_had_scores_goes_on_from_where_it_was_saved(tmp_path, saved):
    trainable = Fourth()
    search = RisingSearch(
        trainable,
        [{"x": x} for x in range(6)],
        budget=24,
        max_epochs=8,
        policy="round-robin",
        run_dir=tmp_path / "run" if saved else None,
    )
    search.run()
    trainable.fails = False
    assert search.retry_failed() == 3
    search.extend(12)
    result = search.run()
    assert [arm.epochs for arm in result.arms if arm.arm < 3] == [5, 5, 5]
    assert not [arm for arm in result.arms if arm.status == "failed"]
    again = {key for key, times in trainable.trained.items() if times > 1}
    lost = [4] if saved else [1, 2, 3, 4]
    assert again == {(x, epoch) for x in range(3) for epoch in lost}


@pytest.mark.filterwarnings("ignore:the code has changed")
def test_mended_what_has_failed_is_tried_again(tmp_path):
    trainable = Setup()
    search = a_large_search(trainable, run_dir=tmp_path / "run")
    assert search.retry_failed() == 0
    with pytest.raises(SearchFailedError):
        search.run()
    trainable.is_right = True
    search = RisingSearch.resume(tmp_path / "run", trainable)
    assert search.retry_failed() == ENOUGH
    result = search.run()
    assert result.n_epochs == 100
    assert not [arm for arm in result.arms if arm.status == "failed"]
    again = RisingSearch.resume(tmp_path / "run", trainable)
    assert again.scheduler.state_dict() == search.scheduler.state_dict()
