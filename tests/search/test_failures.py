"""Arms, epochs and executors that fail cost what they should, and no more."""

import contextlib
import itertools
import math
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from curve_search import (
    FLAT,
    PEAKED,
    RISING,
    AtOnce,
    Dies,
    Flaky,
    Hooks,
    Recorded,
    State,
    a_search,
    make_nothing,
)

from risingsearch.errors import InvalidParameterError, PolicyError, SearchFailedError
from risingsearch.policies.stationary.baselines import RoundRobin
from risingsearch.search.search import RisingSearch
from risingsearch.search.trainable import Functions
from risingsearch.storage.journal import read
from risingsearch.storage.run_directory import JOURNAL


class TestFailures:
    def test_one_arm_fails_and_the_search_goes_on(self, executor):
        result = a_search(
            RISING, [0.9, ValueError("diverged")], executor=executor, budget=8
        ).run()
        assert [arm.status for arm in result.arms] == ["finished", "failed"]
        assert result.n_epochs == result.n_calls == 8
        [failed] = result.failures
        assert failed.job.arm == 1
        assert isinstance(failed.failure, ValueError)
        [row] = [row for row in result.history if "failure" in row]
        assert row["failure"] == "diverged"
        assert math.isnan(row["score"])
        assert math.isnan(row["seconds"])

    @pytest.mark.parametrize("lost", [ValueError("x"), math.nan, -math.inf])
    def test_the_rest_of_the_job_is_neither_trained_nor_charged(self, executor, lost):
        search = a_search(
            [0.5, lost, 0.6, 0.7], FLAT, executor=executor, epochs_per_job=4, budget=6
        )
        result = search.run()
        assert result.n_epochs == result.n_calls == 2 + 4
        assert result.arms[0].charged == 2
        assert result.arms[0].status == "failed"
        rows = [row for row in result.history if row["arm"] == 0]
        assert [math.isfinite(row["score"]) for row in rows] == [True, False]

    @pytest.mark.parametrize(
        ("result", "n_charged"), [(ValueError("x"), 3), ([0.5, math.nan, 0.6], 3)]
    )
    def test_epochs_that_were_trained_at_once_are_charged(self, result, n_charged):
        class InOneCall(Hooks):
            def train_epochs(self, state, n_epochs):
                if isinstance(result, Exception):
                    raise result
                return result

        search = a_search(
            FLAT, trainable=InOneCall(), epochs_per_job=3, max_epochs=6, budget=6
        )
        with contextlib.suppress(SearchFailedError):
            search.run()
        assert search.result().n_epochs == n_charged
        assert search.result().arms[0].status == "failed"

    def test_start_may_fail(self):
        def start(params, seed):
            if params["arm"] == 1:
                raise MemoryError("too big")
            return State(params["curve"], seed)

        trainable = Functions(start, Recorded().train)
        result = a_search(RISING, PEAKED, trainable=trainable, budget=7).run()
        assert [arm.epochs for arm in result.arms] == [6, 0]
        assert result.n_calls == 6
        assert result.failures[0].failure.args == ("too big",)

    def test_stop_iteration_ends_an_arm_by_itself(self, executor):
        result = a_search(
            [0.4, 0.8], RISING, executor=executor, policy="round-robin", budget=9
        ).run()
        assert result.arms[0].status == "finished"
        assert result.arms[0].reason == "ended before its last epoch: no more points"
        assert result.n_epochs == result.n_calls == 8
        assert not result.failures

    @pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
    def test_scores_that_are_not_finite_retire_the_arm(self, executor, score):
        result = a_search([0.9, score, 0.95], FLAT, executor=executor, budget=8).run()
        assert [arm.status for arm in result.arms] == ["failed", "finished"]
        assert (result.best_score, result.best_epoch) == (0.9, 1)
        assert result.best_state().epochs == 1
        assert not result.failures

    def test_raise_stops_at_the_first(self, executor):
        search = a_search(
            FLAT, [0.9, ValueError("diverged")], error_score="raise", executor=executor
        )
        with pytest.raises(ValueError, match="diverged"):
            search.run()
        assert search.result().best_score == 0.9
        assert search.run().n_epochs == 12 - 4

    def test_the_traceback_shows_the_line_in_train(self, executor):
        result = a_search(FLAT, [KeyError("x")], executor=executor).run()
        [note] = result.failures[0].failure.__notes__
        assert "raise score" in note

    def test_an_exception_that_cannot_travel_comes_as_text(self, processes):
        trainable = Functions(make_nothing, raises_what_pickle_cannot_load)
        search = a_search(FLAT, trainable=trainable, executor=processes)
        with pytest.raises(SearchFailedError, match="TwoWordsError: a b"):
            search.run()

    def test_all_failed(self, executor):
        curves = [[ValueError("x")], [OSError("y")]]
        search = a_search(*curves, executor=executor, n_jobs=1)
        with pytest.raises(
            SearchFailedError, match="none of the 2 arms opened"
        ) as caught:
            search.run()
        first = search.result().history[0]["arm"]
        assert caught.value.__cause__.args == (["x", "y"][first],)
        assert search.result().best_params == {}
        assert search.result().best_arm is None

    def test_all_scores_nan(self):
        with pytest.raises(SearchFailedError, match="none has raised an error"):
            a_search([math.nan], [math.inf]).run()


class TwoWordsError(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


def raises_what_pickle_cannot_load(state):
    raise TwoWordsError("a", "b")


class TestRetries:
    @pytest.mark.parametrize("slice_", [1, 2, 3])
    def test_resume_from_the_last_good_epoch(self, slice_):
        trainable = Flaky()
        search = a_search(
            [0.3, 0.4, ValueError("x"), 0.6, 0.7],
            trainable=trainable,
            max_failures=1,
            epochs_per_job=slice_,
            max_epochs=9,
        )
        result = search.run()
        assert trainable.started == {0: 1}
        good = [row for row in result.history if "failure" not in row]
        assert [row["epoch"] for row in good][:5] == [1, 2, 3, 4, 5]
        assert [row["own_epoch"] for row in good] == [row["epoch"] for row in good]
        assert result.best_state().epochs == 5

    def test_start_is_tried_again(self):
        calls = itertools.count()

        def start(params, seed):
            if next(calls) == 0:
                raise OSError("busy")
            return State(params["curve"], seed)

        trainable = Functions(start, Recorded().train)
        result = a_search(RISING, trainable=trainable, max_failures=1, budget=3).run()
        assert result.history["own_epoch"][1:] == [1, 2]

    def test_an_epoch_that_could_not_be_saved_is_trained_again(self):
        class NotSaved(Hooks):
            n_saved = 0

            def save(self, state, path):
                self.n_saved += 1
                if self.n_saved == 3:
                    raise ValueError("a layer has no name")
                super().save(state, path)

        result = a_search(
            RISING, trainable=NotSaved(), max_failures=1, epochs_per_job=2, budget=6
        ).run()
        good = [row for row in result.history if "failure" not in row]
        assert [row["own_epoch"] for row in good] == [row["epoch"] for row in good]
        assert result.n_calls == result.n_epochs == 6
        assert result.arms[0].epochs == 5

    def test_after_nan_the_arm_goes_on(self):
        result = a_search(
            [0.3, math.nan, 0.6], max_failures=1, max_epochs=3, budget=3
        ).run()
        assert result.history["own_epoch"] == [1, 2, 3]
        assert result.best_epoch == 3


class TestExecutorsThatFail:
    def test_a_process_that_dies(self):
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(Path(__file__).parents[__name__.count(".")])
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
                search = a_search(RISING, FLAT, trainable=Dies(), executor=executor)
                with pytest.raises(SearchFailedError, match="terminated") as caught:
                    search.run()
        result = caught.value.result
        assert isinstance(caught.value.__cause__, BrokenExecutor)
        assert result.best_score == 0.5
        assert result.best_state().epochs == 2
        assert not [arm for arm in result.arms if arm.status == "running"]

    @pytest.mark.parametrize("trainable", ["lambda", "score"])
    def test_what_cannot_be_pickled(self, processes, trainable):
        train = {"lambda": lambda state: 0.5, "score": returns_a_lambda}[trainable]
        search = a_search(
            RISING, trainable=Functions(make_nothing, train), executor=processes
        )
        with pytest.raises(SearchFailedError, match="must be picklable"):
            search.run()

    def test_an_executor_that_was_shut_down(self):
        executor = ThreadPoolExecutor(1)
        executor.shutdown()
        with pytest.raises(SearchFailedError, match="after shutdown") as caught:
            a_search(RISING, executor=executor).run()
        assert caught.value.result.n_calls == 0

    def test_an_executor_that_does_not_say_how_many_workers_it_has(self):
        with pytest.raises(InvalidParameterError, match=r"how many workers .* n_jobs"):
            a_search(RISING, executor=AtOnce())
        search = a_search(*[RISING] * 30, executor=AtOnce(), n_jobs=30, budget=60)
        assert search.run().history["job"] == list(range(60))


def returns_a_lambda(state):
    return {"score": 0.5, "model": lambda: None}


@pytest.mark.parametrize("method", ["select", "update"])
def test_what_was_found_before_a_policy_raised_is_not_lost(tmp_path, method):
    class Broken(RoundRobin):
        def select(self, t, rng):
            return self.raised("select") or super().select(t, rng)

        def update(self, t, arm, reward, rng):
            self.raised("update")
            super().update(t, arm, reward, rng)

        def raised(self, name):
            if name == method and self.pulls.sum() >= 5:
                raise ZeroDivisionError

    def search(policy):
        return RisingSearch(
            Functions(lambda params, seed: 0, lambda state: 0.5),
            [{"a": 1}, {"a": 2}],
            policy=policy,
            budget=9,
            run_dir=tmp_path / "run",
            shuffle=False,
        )

    broken = search(Broken.create)
    with pytest.raises(PolicyError, match=f"{method} of the policy Broken raised Zero"):
        broken.run()
    n_epochs = {"select": 5, "update": 6}[method]
    assert broken.result().n_epochs == n_epochs
    with pytest.raises(PolicyError):
        broken.run()
    assert broken.result().n_epochs == n_epochs
    events = read(tmp_path / "run" / JOURNAL).events
    told = [event for event in events if event["event"] == "result"]
    assert len(told) == n_epochs
    with pytest.warns(RuntimeWarning, match="continues with another policy"):
        mended = RisingSearch.resume(
            tmp_path / "run",
            Functions(lambda params, seed: 0, lambda state: 0.5),
            policy=RoundRobin.create,
        )
    assert mended.run().n_epochs == 9


def test_a_result_is_recorded_once_if_the_policy_raises_on_it(tmp_path):
    class Broken(RoundRobin):
        def update(self, t, arm, reward, rng):
            if self.pulls.sum() >= 2:
                raise ZeroDivisionError
            super().update(t, arm, reward, rng)

    search = a_search(RISING, policy=Broken.create, budget=3, run_dir=tmp_path)
    with pytest.raises(PolicyError):
        search.run()
    assert search.run().n_epochs == 3
    told = [event["event"] for event in read(tmp_path / JOURNAL).events]
    assert told.count("result") == 3


def test_a_failure_is_logged_when_it_happens_and_once(caplog):
    logged = []

    def see(epoch):
        logged.append(len(caplog.records))

    bad = [[0.1, ValueError("no room")], [0.2, ValueError("no room")], [math.nan]]
    a_search(RISING, *bad, callbacks=[see]).run()
    *first, count = (record.getMessage() for record in caplog.records)
    texts = {message.split(": ", 1)[1] for message in first}
    assert texts == {"ValueError: no room", "its score is nan"}
    assert len(first) == logged[-1] == 2
    assert 1 in logged
    assert count == "2 jobs have failed alike: ValueError: no room"
