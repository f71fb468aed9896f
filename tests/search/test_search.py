"""A search trains what it should, wherever and in whatever order."""

import math
import threading
import time
from collections import Counter
from functools import partial

import numpy as np
import pytest
from curve_search import FLAT, PEAKED, RISING, Recorded, State, a_search, facts

from risingsearch.budget import Budget
from risingsearch.errors import (
    InvalidParameterError,
    NotTrainableError,
    SearchFailedError,
    SetupError,
)
from risingsearch.proposers import Proposer
from risingsearch.search.search import RisingSearch
from risingsearch.search.trainable import Functions


class TestTrainables:
    def test_an_object_with_two_methods(self):
        result = a_search(RISING, FLAT).run()
        assert (result.best_score, result.best_epoch, result.best_arm) == (0.7, 6, 0)
        assert result.best_params == {"arm": 0, "curve": RISING}

    def test_what_cannot_train_is_refused(self):
        with pytest.raises(NotTrainableError, match="has no start"):
            a_search(RISING, trainable=object())

    def test_the_parameters_belong_to_the_search(self):
        def start(params, seed):
            return params.pop("curve")

        trainable = Functions(start, lambda curve: curve[0])
        result = a_search(RISING, trainable=trainable, budget=2).run()
        assert result.best_params == {"arm": 0, "curve": RISING}
        result.best_params.clear()
        assert result.candidates[0]["curve"] == RISING

    @pytest.mark.parametrize(
        "score",
        [
            *(0.5, 1, np.float32(0.5), np.int64(2), np.array(0.5), np.array(2)),
            {"score": 0.5, "loss": [1, 2]},
            {"score": np.array(0.5), "loss": np.array(1.5)},
        ],
    )
    def test_a_score_is_any_number(self, score):
        trainable = Functions(lambda params, seed: None, lambda state: score)
        result = a_search(FLAT, trainable=trainable, budget=1).run()
        number = score["score"] if isinstance(score, dict) else score
        assert result.best_score == number
        assert type(result.history[0]["score"]) is float

    @pytest.mark.parametrize(
        "returned", [None, "0.5", True, [0.5], {"loss": 0.5}, {"score": None}, 1j]
    )
    def test_other_returns_fail_and_are_named(self, returned):
        trainable = Functions(lambda params, seed: None, lambda state: returned)
        search = a_search(FLAT, trainable=trainable, budget=1)
        with pytest.raises(SearchFailedError, match="must return a number") as caught:
            search.run()
        assert isinstance(caught.value.__cause__, InvalidParameterError)

    @pytest.mark.parametrize(
        ("returned", "score"),
        [
            ({"loss": 0.25}, 0.25),
            ({"loss": np.array(0.25), "accuracy": 0.75}, 0.25),
            ({"score": 0.25, "loss": np.float32(0.25)}, 0.25),
            ({"score": 0.25, "loss": "small"}, 0.25),
            ({"score": 0.75, "losses": 0.25}, 0.75),
            ({"score": 0.75, "loss": 0.25}, None),
            ({"score": 0.75, "loss": np.float64(0.25)}, None),
            ({"score": 1, "loss": math.nan}, None),
        ],
    )
    def test_a_score_under_its_own_name_is_the_score(self, returned, score):
        trainable = Functions(lambda params, seed: None, lambda state: returned)
        named = {"metric": "loss", "direction": "minimize", "budget": 1}
        search = a_search(FLAT, trainable=trainable, **named)
        if score is None:
            with pytest.raises(SetupError, match="metric='loss' is the name of the"):
                search.run()
            assert search.result().n_epochs == 0
        else:
            assert search.run().best_score == score

    def test_metrics_may_not_take_a_column_of_the_history(self):
        trainable = Functions(
            lambda params, seed: None, lambda state: {"score": 0.5, "epoch": 1}
        )
        with pytest.raises(SearchFailedError, match=r"metrics named \['epoch'\]"):
            a_search(FLAT, trainable=trainable).run()


class TestArguments:
    @pytest.mark.parametrize(
        ("candidates", "message"),
        [
            ([], "no candidates"),
            ([3], "got 3"),
            ({"rate": 0.1}, "must give 'rate' a list of values"),
        ],
    )
    def test_candidates_are_dicts(self, candidates, message):
        with pytest.raises(InvalidParameterError, match=message):
            RisingSearch(Recorded(), candidates, budget=3)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"run_dir": 3}, "run_dir must be a path"),
            ({"run_dir": ""}, "run_dir must be a path"),
            ({"max_checkpoint_bytes": "1MB"}, "max_checkpoint_bytes must be a whole"),
            ({"max_checkpoint_bytes": 0}, "max_checkpoint_bytes must be a whole"),
            ({"max_checkpoint_bytes": -1, "run_dir": None}, "must be a whole number"),
            ({"progress": "yes"}, "progress must be True or False; got 'yes'"),
        ],
    )
    def test_other_arguments(self, tmp_path, given, message):
        with pytest.raises(InvalidParameterError, match=message):
            a_search(FLAT, **{"run_dir": tmp_path} | given)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        "opened",
        [RisingSearch.saved_result, partial(RisingSearch.resume, trainable=Recorded())],
    )
    def test_a_directory_to_read(self, opened):
        with pytest.raises(InvalidParameterError, match="run_dir must be a path"):
            opened(3)


class TestPolicies:
    def test_slices(self):
        result = a_search(RISING, FLAT, epochs_per_job=3).run()
        assert Counter(result.history["job"]) == {0: 3, 1: 3, 2: 3, 3: 3}

    def test_minimise(self):
        result = a_search(RISING, PEAKED, direction="minimize").run()
        assert (result.best_score, result.best_arm, result.best_epoch) == (0.1, 1, 6)
        assert result.best_state().epochs == 6
        assert result.direction == "minimize"


class TestProposers:
    """Candidates that ``encode`` tells apart, more than the budget opens."""

    def searched(self, **options):
        def start(params, seed):
            return {**params, "epochs": 0}

        def train(state):
            state["epochs"] += 1
            return state["top"] * (1 - 1 / (state["epochs"] + 2))

        candidates = [{"top": 0.5 + 0.002 * k} for k in range(150)]
        search = RisingSearch(
            Functions(start, train),
            candidates,
            budget=200,
            max_epochs=20,
            seed=0,
            **options,
        )
        return search.run().history

    @pytest.mark.parametrize(
        "options", [{"policy": "cure-ucb"}, {"policy": "looks-then-slope"}]
    )
    def test_only_a_default_that_keeps_arms_for_it_asks_a_model(self, options):
        asked = [self.searched(**options)["arm"], self.searched()["arm"]]
        alone = [self.searched(proposer=None, **more)["arm"] for more in (options, {})]
        assert asked[0] == alone[0]
        assert asked[1] != alone[1]

    @pytest.mark.parametrize(
        "options",
        [
            {"policy": "cure-ucb"},
            {"policy": "looks-then-slope"},
            {"policy_params": {"kept_share": 0.1}},
        ],
    )
    def test_a_given_one_is_asked_whatever_else_is_given(self, options):
        class Last(Proposer):
            asked = 0

            def propose(self, opened, unopened, rng):
                self.asked += 1
                return int(unopened[-1])

        last = Last()
        self.searched(proposer=last, **options)
        assert last.asked > 0


class TestSeeds:
    def test_same_seed_same_run(self):
        curves = [RISING, PEAKED, FLAT] * 3
        runs = [facts(a_search(*curves, policy="random").run()) for _ in range(2)]
        assert runs[0] == runs[1]
        assert facts(a_search(*curves, policy="random", seed=1).run()) != runs[0]

    def test_every_arm_has_a_seed_of_its_own(self):
        search = a_search(*[RISING] * 30, budget=30)
        seeds = set(search.run().history["seed"])
        assert len(seeds) == 30
        assert seeds == {search.seed_of(arm) for arm in range(30)}

    def test_a_seed_does_not_depend_on_when_the_arm_is_opened(self):
        few, many = (a_search(*[RISING] * n) for n in (3, 9))
        assert [few.seed_of(arm) for arm in range(3)] == [
            many.seed_of(arm) for arm in range(3)
        ]

    def test_candidates_open_in_random_order_or_in_theirs(self):
        def opened(**options):
            return a_search(*[FLAT] * 8, budget=8, **options).run().history["arm"]

        assert opened(shuffle=False) == list(range(8))
        assert sorted(opened()) == list(range(8))
        assert opened() != list(range(8))
        assert opened() != opened(seed=1)


class TestExecutors:
    def test_everywhere_the_same_result(self, executor):
        curves = [RISING, PEAKED, [0.1, ValueError("x")], [0.2, math.nan], [0.8]]
        here = a_search(*curves, budget=16).run()
        there = a_search(*curves, budget=16, executor=executor, n_jobs=1).run()
        assert facts(there) == facts(here)
        assert there.arms == here.arms
        assert there.stop_reason == here.stop_reason
        assert (there.n_calls, there.n_epochs) == (here.n_calls, here.n_epochs)
        assert vars(there.best_state()) == vars(here.best_state())

    @pytest.mark.parametrize("n_jobs", [1, 2, None])
    def test_no_more_in_flight_than_n_jobs(self, threads, n_jobs):
        busy, most = Counter(), Counter()
        meet = threading.Barrier(n_jobs or 3)

        def train(state):
            busy["now"] += 1
            most["now"] = max(most["now"], busy["now"])
            meet.wait(timeout=3600)  # all of them at once, or never
            busy["now"] -= 1
            meet.wait(timeout=3600)
            return 0.5

        search = a_search(
            *[FLAT] * 6,
            trainable=Functions(lambda params, seed: None, train),
            budget=6,
            executor=threads,
            n_jobs=n_jobs,
            deterministic=True,
        )
        search.run()
        assert most["now"] == (n_jobs or 3)

    def test_the_executor_stays_open(self, threads):
        a_search(RISING, executor=threads).run()
        assert threads.submit(int, "3").result() == 3

    @pytest.mark.parametrize("policy", ["auto", "cure-ucb", "random"])
    def test_asking_in_order_makes_what_finishes_first_irrelevant(
        self, threads, policy
    ):
        class Late(Recorded):
            def __init__(self, late):
                super().__init__()
                self.late = late

            def train(self, state):
                time.sleep(0.002 * (state.seed % 3 == self.late))
                return super().train(state)

        curves = [RISING, PEAKED, FLAT, [0.1, ValueError("x")], [0.9, 0.9], [0.9]]
        runs = []
        for late in range(3):
            result = a_search(
                *curves,
                trainable=Late(late),
                policy=policy,
                budget=20,
                max_epochs=6,
                executor=threads,
                deterministic=True,
            ).run()
            runs.append([facts(result), result.arms, vars(result.best_state())])
        assert runs[0] == runs[1] == runs[2]

    def test_in_order_of_completion_no_worker_waits(self, threads):
        release = threading.Event()

        def start(params, seed):
            assert params["arm"] == 1 or release.wait(timeout=3600)
            return State(params["curve"], seed)

        def note(epoch):
            if epoch.number == 6:
                release.set()

        result = a_search(
            PEAKED,
            RISING,
            trainable=Functions(start, Recorded().train),
            budget=7,
            shuffle=False,
            executor=threads,
            callbacks=[note],
        ).run()
        assert result.history["arm"] == [1] * 6 + [0]


class TestGoingOn:
    @pytest.mark.parametrize("policy", ["auto", "cure-ucb", "round-robin", "asha"])
    def test_nothing_is_trained_again(self, executor, policy):
        trainable = Recorded()
        search = a_search(
            RISING,
            PEAKED,
            FLAT,
            trainable=trainable,
            policy=policy,
            budget=6,
            max_epochs=6,
            executor=executor,
        )
        first = search.run()
        search.extend(6)
        second = search.run()
        assert facts(second)[: len(first.history)] == facts(first)
        assert second.n_calls == second.n_epochs
        assert second.n_epochs > first.n_epochs
        assert second.history["own_epoch"] == second.history["epoch"]
        if executor is None:
            assert set(trainable.started.values()) == {1}
            assert set(trainable.trained.values()) == {1}

    def test_an_arm_that_had_the_whole_budget_goes_on(self, executor):
        trainable = Recorded()
        search = a_search(
            RISING, trainable=trainable, budget=3, max_epochs=None, executor=executor
        )
        search.run()
        search.extend(3)
        assert search.run().curves == {0: RISING}

    def test_running_a_finished_search_changes_nothing(self):
        search = a_search(RISING, FLAT)
        first = search.run()
        assert facts(search.run()) == facts(first)

    def test_a_callback_may_extend(self):
        def more(epoch):
            if epoch.number == 4:
                search.extend(2)

        search = a_search(RISING, callbacks=[more], budget=4)
        assert search.run().n_epochs == 6


class TestSeconds:
    def test_it_can_be_extended(self):
        search = a_search(
            RISING, FLAT, budget=Budget(seconds=1e-9), max_epochs=6, shuffle=False
        )
        first = search.run()
        assert first.n_epochs < 12
        search.extend(Budget(seconds=60))
        assert search.run().curves == {0: RISING, 1: FLAT}
        with pytest.raises(InvalidParameterError, match="seconds"):
            search.extend(3)
