"""What a search has found: the best state, the history, the arms."""

import math
import sys
import threading
from datetime import datetime

import numpy as np
import pytest
from curve_search import FLAT, PEAKED, RISING, Flaky, Hooks, Recorded, a_search

from risingsearch import Budget, RisingSearch, errors
from risingsearch.search.results import History
from risingsearch.search.trainable import Functions


class TestBestState:
    def test_is_that_of_the_best_epoch_though_training_went_on(self, executor):
        result = a_search(PEAKED, FLAT, executor=executor).run()
        assert [arm.epochs for arm in result.arms] == [6, 6]
        assert result.best_epoch == result.best_state().epochs == 3
        assert result.best_state().curve == PEAKED

    def test_of_an_arm_that_failed_later(self, executor):
        result = a_search([0.9, ValueError("x")], FLAT, executor=executor).run()
        assert result.arms[0].status == "failed"
        assert result.best_state().epochs == 1

    @pytest.mark.parametrize("deterministic", [True, False])
    def test_with_ties(self, threads, deterministic):
        curves = [[0.5, 0.9, 0.2], [0.9, 0.9, 0.9], [0.1, 0.9, 0.9], [0.9]]
        for seed in range(5):
            result = a_search(
                *curves,
                seed=seed,
                executor=threads,
                deterministic=deterministic,
                budget=10,
            ).run()
            state = result.best_state()
            assert state.epochs == result.best_epoch
            assert state.curve == curves[result.best_arm]

    def test_by_the_hooks_of_the_trainable(self, executor):
        result = a_search(PEAKED, trainable=Hooks(), executor=executor, budget=6).run()
        assert result.best_state().epochs == 3

    def test_there_is_none_without_a_score(self):
        search = a_search(FLAT)
        with pytest.raises(errors.SearchFailedError, match="no best state"):
            search.result().best_state()

    def test_a_state_that_cannot_be_kept_is_a_failure_that_says_what_to_do(self):
        class Locked(Recorded):
            def start(self, params, seed):
                state = super().start(params, seed)
                state.lock = threading.Lock()
                return state

        with pytest.raises(
            errors.SearchFailedError, match=r"cannot be pickled.*give.*save"
        ):
            a_search(RISING, FLAT, trainable=Locked()).run()


class TestResult:
    def test_why_it_ended(self):
        assert a_search(RISING).run().stop_reason == (
            "no arm can train any more, 6 of 12 epochs left"
        )
        assert a_search(RISING, FLAT, budget=7).run().stop_reason == (
            "the budget of 7 epochs is spent"
        )
        halving = a_search(*[RISING] * 4, policy="successive-halving", max_epochs=4)
        assert "by its own rule" in halving.run().stop_reason

    def test_the_columns_of_the_history(self):
        result = a_search(RISING, [0.2, ValueError("x")], policy="cure-ucb").run()
        first, *_, last = result.history
        columns = ["arm", "epoch", "score", "seconds", "round", "job", "reason"]
        assert list(first) == [*columns, "own_epoch", "seed"]
        parts = ["recent_average", "expected_gain", "bonus"]
        assert list(last) == [*columns, *parts, "own_epoch", "seed"]
        [failed] = [row for row in result.history if "failure" in row]
        assert list(failed) == [*columns, *parts, "failure"]
        assert [row["round"] for row in result.history] == list(range(1, 9))
        assert result.history["reason"][:2] == ["opened", "opened"]

    def test_curves_hold_the_scores_by_epoch(self):
        result = a_search(
            RISING,
            FLAT,
            [0.4, 0.5, ValueError("x"), 0.7],
            trainable=Flaky(),
            max_failures=1,
            epochs_per_job=2,
            budget=18,
        ).run()
        assert result.curves == {0: RISING, 1: FLAT, 2: [0.4, 0.5, 0.5, 0.7]}

    def test_a_curve_ends_with_nan_where_the_arm_has_failed(self):
        result = a_search([0.4, ValueError("x")], FLAT, epochs_per_job=3).run()
        assert result.curves[0] == pytest.approx([0.4, math.nan], nan_ok=True)

    def test_as_a_table(self):
        frame = a_search(RISING, [0.2, ValueError("x")]).run().to_frame()
        assert len(frame) == 8
        assert frame["score"].max() == 0.7
        assert frame["failure"].notna().sum() == 1

    def test_a_table_needs_pandas(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(errors.MissingDependencyError, match="pip install pandas"):
            a_search(RISING).run().to_frame()

    def test_prints_what_matters(self):
        text = repr(a_search(PEAKED).run())
        assert "best_score=0.9, best_epoch=3, best_arm=0" in text
        assert "history" not in text


class TestFacts:
    def test_are_the_same_in_a_directory(self, tmp_path):
        kept = {"metric": "accuracy", "run_dir": tmp_path / "run"}
        search = a_search(RISING, FLAT, **kept)
        search.run()
        search.extend(3)
        result, saved = search.run(), RisingSearch.saved_result(tmp_path / "run")
        for name in ("metric", "begun", "budget", "training_seconds", "max_epochs"):
            assert getattr(saved, name) == getattr(result, name)
        assert result.metric == "accuracy"
        assert result.budget == Budget(epochs=12 + 3)
        assert datetime.fromisoformat(result.begun).tzinfo is not None
        again = a_search(RISING, FLAT, run_dir=tmp_path / "run")
        assert again.result().metric == "accuracy"
        assert again.result().begun == result.begun

    def test_only_numbers_are_other_metrics(self):
        def train(state):
            state["epochs"] += 1
            told = {"score": 0.5, "loss": 1, "note": "slow", "best": True}
            return told | ({"late": 0.1} if state["epochs"] > 1 else {})

        trainable = Functions(lambda params, seed: {"epochs": 0}, train)
        result = RisingSearch(trainable, [{}], budget=2).run()
        assert result.other_metrics == ["loss", "late"]


def test_a_column_goes_by_its_name():
    history = History([{"arm": 0, "score": 0.5}, {"arm": 1, "score": 0.7}])
    assert history[:1]["score"] == [0.5]
    assert math.isnan(history["seconds"][0])
    with pytest.raises(errors.InvalidParameterError, match="did you mean 'score'"):
        history["scroe"]


def test_the_best_parameters_are_plain_values():
    candidates = [{"top": np.float64(0.5), "kind": np.str_("a"), "n": np.int64(3)}]
    best = RisingSearch(
        Functions(lambda params, seed: dict(params), lambda state: state["top"]),
        candidates,
        budget=2,
    ).run()
    assert repr(best.best_params) == "{'top': 0.5, 'kind': 'a', 'n': 3}"
