import concurrent.futures
import math

import pytest
from curve_search import Listener
from example_search import start

from risingsearch import (
    Budget,
    Callback,
    Functions,
    InvalidParameterError,
    RisingSearch,
    SearchFailedError,
)


def train(state):
    state["epochs"] += 1
    if state["top"] > 1:
        raise ValueError("no top is above 1")
    return {"score": state["top"] * (1 - 0.5 ** state["epochs"]), "loss": 0.1}


def a_search(*callbacks, tops=(0.5, 0.9, 0.7), **options):
    return RisingSearch(
        Functions(start, train),
        [{"top": top} for top in tops],
        **{"budget": 12, "max_epochs": 6, "seed": 0} | options,
        callbacks=callbacks,
    )


def test_every_epoch_is_told_with_its_facts():
    listener = Listener()
    result = a_search(listener).run()
    rows = [
        (epoch.arm, epoch.epoch, epoch.score, epoch.seconds, epoch.reason)
        for epoch in listener.epochs
    ]
    names = ("arm", "epoch", "score", "seconds", "reason")
    assert rows == [tuple(row[name] for name in names) for row in result.history]
    best = -math.inf
    for number, epoch in enumerate(listener.epochs, start=1):
        best = max(best, epoch.score)
        assert epoch.number == number
        assert epoch.params == result.candidates[epoch.arm]
        assert epoch.metrics == {"loss": 0.1}
        assert epoch.best_score == best
        assert epoch.is_best == (epoch.score == best)
        assert epoch.budget_left == 12 - number
        assert epoch.failure is None


def test_beginning_and_end_are_told(tmp_path):
    listener = Listener()
    result = a_search(listener, metric="accuracy").run()
    [begun], [ended] = listener.begun, listener.ended
    told = begun.metric, begun.direction, begun.unit
    assert told == ("accuracy", "maximize", "epochs")
    assert (begun.earlier, begun.best_arm) == ((), None)
    assert ended.search == begun.search == listener.epochs[0].search
    assert ended.best_params == result.best_params
    assert ended.best_score == result.best_score
    assert ended.stop_reason == result.stop_reason
    ended.save_best(tmp_path)
    assert (tmp_path / "checkpoint").stat().st_size > 0


def test_a_failure_is_told():
    listener = Listener()
    a_search(listener, tops=(0.5, 1.5)).run()
    [lost] = [epoch for epoch in listener.epochs if epoch.failure]
    assert lost.params == {"top": 1.5}
    assert lost.failure == "no top is above 1"
    assert lost.is_lost
    assert math.isnan(lost.score)


def test_an_epoch_that_is_lost_twice_is_charged_twice():
    listener = Listener()
    options = {"budget": 5, "max_failures": 2}
    with pytest.raises(SearchFailedError):
        a_search(listener, tops=(1.5,), **options).run()
    told = [(epoch.number, epoch.budget_left) for epoch in listener.epochs]
    assert told == [(1, 4), (2, 3), (3, 2)]


def test_a_rule_that_stops_a_search_leaves_no_epoch_untold():
    listener = Listener()
    with concurrent.futures.ThreadPoolExecutor(3) as executor:
        search = a_search(
            listener,
            tops=(0.5, 0.9, 0.7),
            executor=executor,
            deterministic=True,
            target_score=0.2,
        )
        result = search.run()
        assert len(listener.epochs) == result.n_epochs < 12
        assert listener.ended[0].best_score == result.best_score
        search.stop_when()
        search.run()
    told = [(epoch.number, epoch.epoch) for epoch in listener.epochs]
    assert [number for number, _ in told] == list(range(1, 13))


def test_a_search_that_is_resumed_tells_what_was_before(tmp_path):
    def stop(epoch):
        if epoch.number == 3:
            epoch.stop()

    before, later = Listener(), Listener()
    a_search(before, stop, run_dir=tmp_path / "run").run()
    a_search(later, run_dir=tmp_path / "run").run()
    [begun] = later.begun
    assert begun.search == before.begun[0].search
    assert list(begun.earlier) == before.epochs
    numbers = [epoch.number for epoch in (*begun.earlier, *later.epochs)]
    assert numbers == list(range(1, 13))


def test_a_search_that_is_extended_tells_of_every_epoch_once():
    listener = Listener()
    search = a_search(listener)
    search.run()
    search.extend(4)
    search.run()
    assert [epoch.number for epoch in listener.epochs] == list(range(1, 17))
    assert len(listener.begun) == len(listener.ended) == 2


def test_what_is_left_of_a_budget_in_seconds():
    listener = Listener()
    a_search(listener, budget=Budget(seconds=1e-4)).run()
    left = [epoch.budget_left for epoch in listener.epochs]
    assert left == sorted(left, reverse=True)
    assert 0 <= left[-1] < 1e-4


def test_the_end_is_told_to_all_whatever_one_of_them_raises():
    class Failing(Callback):
        def on_end(self, search):
            raise RuntimeError("no more")

    listener = Listener()
    with pytest.raises(RuntimeError, match="no more"):
        a_search(Failing(), listener).run()
    assert listener.ended


@pytest.mark.parametrize("given", [None, Listener(), 3])
def test_what_is_no_list_of_callbacks(given):
    with pytest.raises(InvalidParameterError, match="callbacks must be a list"):
        RisingSearch(Functions(start, train), [{"top": 1}], budget=1, callbacks=given)


@pytest.mark.parametrize("given", ["mlflow", Listener])
def test_what_is_no_callback(given):
    with pytest.raises(InvalidParameterError, match=r"Callbacks or functions .*; got"):
        a_search(given)


def test_a_function_hears_of_every_epoch_and_may_stop_the_search():
    seen = []

    def stop_at_4(epoch):
        seen.append(epoch)
        if epoch.number == 4:
            epoch.stop()

    listener = Listener()
    result = a_search(stop_at_4, listener).run()
    assert seen == listener.epochs
    assert result.n_epochs == 4
    assert result.stop_reason == "stopped before its end"
