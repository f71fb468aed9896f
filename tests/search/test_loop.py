"""The loop goes on or stops as it should, whatever interrupts it."""

import contextlib
import math
import signal

import numpy as np
import pytest
from curve_search import FLAT, PEAKED, RISING, Interrupted, Recorded, a_search, facts

from risingsearch.errors import SearchFailedError
from risingsearch.search.search import RisingSearch
from risingsearch.search.trainable import Functions


class TestCallbacks:
    def test_may_stop_the_search(self, executor):
        def enough(epoch):
            if epoch.best_score >= 0.6:
                epoch.stop()

        search = a_search(
            RISING, FLAT, executor=executor, callbacks=[enough], budget=12
        )
        result = search.run()
        assert 0.6 <= result.best_score < 0.7
        assert result.n_epochs < 12
        assert result.stop_reason == "stopped before its end"
        assert not search.scheduler.in_flight
        search.callbacks = ()
        assert search.run().n_epochs == 12

    def test_after_a_stop_the_result_holds_all_that_was_trained(self, threads):
        def enough(epoch):
            if epoch.number == 5:
                epoch.stop()

        result = a_search(
            *[RISING, PEAKED, FLAT] * 2,
            executor=threads,
            deterministic=True,
            callbacks=[enough],
            budget=30,
        ).run()
        assert 5 < len(result.history) == result.n_calls < 30

    def test_after_an_exception_the_run_is_the_uninterrupted_one(self, in_process):
        options = {"policy": "random", "executor": in_process, "deterministic": True}
        curves = [RISING, PEAKED, FLAT]

        def trip(epoch):
            if epoch.number in (3, 8):
                raise LookupError("tripped")

        search = a_search(*curves, callbacks=[trip], **options)
        for _ in range(2):
            with pytest.raises(LookupError, match="tripped"):
                search.run()
            assert search.result().best_state() is not None
        assert facts(search.run()) == facts(a_search(*curves, **options).run())


class TestInterruptions:
    @pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
    def test_in_training(self, in_process, interruption):
        search = a_search(
            *[RISING, [0.2, 0.4, interruption()], FLAT, PEAKED],
            trainable=Interrupted(),
            executor=in_process,
        )
        with pytest.raises(interruption):
            search.run()
        broken = search.result()
        assert broken.n_epochs == broken.n_calls < 12
        assert broken.arms[1].status == "paused"
        assert broken.arms[1].reason.startswith("interrupted: it trains on")
        result = search.run()
        assert result.n_epochs == result.n_calls == 12
        assert all(row["own_epoch"] == row["epoch"] for row in result.history)
        assert not result.failures

    def test_an_arm_with_retries_left_goes_on_from_where_it_was(self):
        interrupted = []

        class Once(Recorded):
            def train(self, state):
                if state.epochs == 2 and not interrupted:
                    state.epochs += 1  # halfway through the epoch
                    interrupted.append(state)
                    raise KeyboardInterrupt
                return super().train(state)

        search = a_search(
            RISING, trainable=Once(), max_failures=1, max_epochs=7, budget=7
        )
        with pytest.raises(KeyboardInterrupt):
            search.run()
        result = search.run()
        assert result.n_epochs == result.n_calls == 6
        assert result.curves == {0: RISING}


class TestWhateverHappens:
    """Invariants of all runs, on curves with everything in them."""

    @pytest.mark.parametrize("seed", range(40))
    def test_nothing_is_lost_or_trained_twice(self, seed, threads):
        rng = np.random.default_rng(seed)
        kinds = [math.nan, math.inf, ValueError("x"), KeyboardInterrupt()]
        curves = []
        for _ in range(rng.integers(1, 6)):
            curve = np.round(rng.random(rng.integers(1, 8)), 1).tolist()
            if rng.random() < 0.5:
                curve[rng.integers(len(curve))] = kinds[rng.integers(len(kinds))]
            curves.append(curve)
        maximize = bool(rng.random() < 0.5)
        search = a_search(
            *curves,
            trainable=Interrupted(),
            policy=["auto", "random", "asha", "cure-ucb"][seed % 4],
            budget=int(rng.integers(1, 25)),
            max_epochs=[None, 5][int(rng.integers(2))],
            epochs_per_job=[None, 1, 3][int(rng.integers(3))],
            direction="maximize" if maximize else "minimize",
            max_failures=int(rng.integers(3)),
            executor=threads if seed % 2 else None,
            deterministic=bool(rng.integers(2)),
            seed=seed,
        )
        for extra in (0, 5):
            if extra:
                search.extend(extra)
            while True:
                try:
                    with contextlib.suppress(SearchFailedError):
                        search.run()
                    break
                except KeyboardInterrupt:
                    assert search.result().n_calls <= search.result().n_epochs
        result = search.result()
        assert result.n_calls <= result.n_epochs <= search.scheduler.budget
        assert result.n_epochs == len(result.history)
        trained = [row for row in result.history if "own_epoch" in row]
        assert all(row["own_epoch"] == row["epoch"] for row in trained)
        finite = [row for row in trained if math.isfinite(row["score"])]
        if finite:
            best = (max if maximize else min)(row["score"] for row in finite)
            assert result.best_score == best
            state = result.best_state()
            assert state.epochs == result.best_epoch
            assert str(state.curve) == str(curves[result.best_arm])
            assert str(state.curve[state.epochs - 1]) in (str(best), "")


class TestCtrlC:
    def test_a_second_one_does_not_wait(self):
        def train(state):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            raise AssertionError

        search = RisingSearch(Functions(lambda p, s: {}, train), [{}], budget=3)
        with pytest.raises(KeyboardInterrupt):
            search.run()
        assert search.result().arms[0].status == "unopened"
        assert search.result().n_epochs == 0
