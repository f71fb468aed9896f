"""A search trains what it should, keeps what is needed, and survives what happens."""

import contextlib
import itertools
import math
import os
import pickle
import signal
import sys
import threading
import time
import weakref
from collections import Counter
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from multiprocessing import get_context
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from risingsearch.arms import Budget
from risingsearch.errors import (
    ExecutorFailedError,
    InvalidParameterError,
    MissingDependencyError,
    NotTrainableError,
    SearchFailedError,
    UnknownNameError,
)
from risingsearch.policies.stationary.baselines import RoundRobin
from risingsearch.search.results import History
from risingsearch.search.search import RisingSearch
from risingsearch.search.trainable import Functions

RISING = [0.3, 0.5, 0.6, 0.65, 0.68, 0.7]
PEAKED = [0.2, 0.6, 0.9, 0.4, 0.3, 0.1]
FLAT = [0.4, 0.4, 0.4, 0.4, 0.4, 0.4]


class State:
    def __init__(self, curve, seed):
        self.curve = curve
        self.seed = seed
        self.epochs = 0


class Recorded:
    """Every arm follows its curve, raises the exceptions in it, and ends after it."""

    def __init__(self):
        self.started = Counter()
        self.trained = Counter()
        self.states = []

    def start(self, params, seed):
        self.started[params["arm"]] += 1
        state = State(params["curve"], seed)
        self.states.append(weakref.ref(state))
        return state

    def train(self, state):
        if state.epochs == len(state.curve):
            raise StopIteration
        score = state.curve[state.epochs]
        state.epochs += 1
        self.trained[tuple(map(str, state.curve)), state.epochs] += 1
        if isinstance(score, BaseException):
            raise score
        return {"score": score, "own_epoch": state.epochs, "seed": state.seed}

    def n_alive(self):
        return sum(state() is not None for state in self.states)


class Flaky(Recorded):
    """The same, but an exception in a curve is raised once only, then it is 0.5."""

    def train(self, state):
        try:
            return super().train(state)
        except ValueError:
            if self.trained[tuple(map(str, state.curve)), state.epochs] == 1:
                raise
            return {"score": 0.5, "own_epoch": state.epochs}


class Dies(Recorded):
    def train(self, state):
        if state.epochs == 2:
            os._exit(1)
        return super().train(state)


def arms(*curves):
    return [{"arm": i, "curve": curve} for i, curve in enumerate(curves)]


def a_search(*curves, trainable=None, **options):
    defaults = {"policy": "round-robin", "seed": 0, "budget": 12, "max_epochs": 6}
    return RisingSearch(trainable or Recorded(), arms(*curves), **defaults | options)


def facts(result):
    """Return the history without what differs between any two runs."""
    return [
        {key: repr(value) for key, value in row.items() if key != "seconds"}
        for row in result.history
    ]


@pytest.fixture
def threads():
    with ThreadPoolExecutor(3) as executor:
        yield executor


@pytest.fixture(scope="module")
def processes():
    # A spawned process imports this module by the name that pytest gave it.
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[__name__.count(".")])
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
            yield executor


@pytest.fixture(params=["here", "threads", "processes"])
def executor(request):
    return None if request.param == "here" else request.getfixturevalue(request.param)


class TestTrainables:
    def test_an_object_with_two_methods(self):
        result = a_search(RISING, FLAT).run()
        assert (result.best_score, result.best_epoch, result.best_arm) == (0.7, 6, 0)
        assert result.best_params == {"arm": 0, "curve": RISING}

    def test_plain_functions(self):
        trainable = Recorded()
        search = a_search(
            RISING, trainable=Functions(trainable.start, trainable.train), budget=3
        )
        assert search.run().curves == {0: RISING[:3]}

    def test_a_module_will_do(self, tmp_path, monkeypatch):
        (tmp_path / "counting.py").write_text(
            "def start(params, seed): return [0]\n"
            "def train(state): state[0] += 1; return state[0]\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        import counting

        assert a_search(RISING, trainable=counting, budget=3).run().best_score == 3.0

    @pytest.mark.parametrize("state", [None, 0, ()])
    def test_a_state_may_be_anything(self, state):
        calls = Counter()

        def start(params, seed):
            calls["start"] += 1
            return state

        def train(given):
            assert given is state
            calls["train"] += 1
            return 0.5

        a_search(FLAT, trainable=Functions(start, train), budget=4).run()
        assert calls == {"start": 1, "train": 4}

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
        "score", [0.5, 1, np.float32(0.5), np.int64(2), {"score": 0.5, "loss": [1, 2]}]
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
            ({"rate": [0.1, 0.2]}, "got 'rate'"),
        ],
    )
    def test_candidates_are_dicts(self, candidates, message):
        with pytest.raises(InvalidParameterError, match=message):
            RisingSearch(Recorded(), candidates, budget=3)

    def test_candidates_may_come_one_by_one(self):
        search = RisingSearch(Recorded(), (arm for arm in arms(RISING, FLAT)), budget=3)
        assert len(search.candidates) == 2

    def test_more_candidates_than_epochs(self):
        result = a_search(*[RISING] * 20, budget=5).run()
        assert result.n_epochs == 5
        assert len(result.candidates) == len(result.arms) == 20

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            ({"budget": 0}, "budget must be"),
            ({"budget": Budget(cost=3.0), "max_epochs": 2}, "measures seconds"),
            ({"budget": Budget(seconds=3.0), "max_epochs": None}, "max_epochs"),
            ({"max_epochs": 0}, "max_epochs must be"),
            ({"seed": -1}, "seed must be"),
            ({"seed": 1.5}, "seed must be"),
            ({"error_score": "nan"}, "error_score must be"),
            ({"error_score": math.nan}, "error_score must be"),
            ({"n_jobs": 2}, "needs an executor"),
            ({"n_jobs": 0}, "n_jobs"),
            ({"order": "random"}, "order must be"),
            ({"direction": "up"}, "direction must be"),
            ({"max_failures": -1}, "max_failures must be"),
        ],
    )
    def test_what_is_refused(self, option, message):
        with pytest.raises(InvalidParameterError, match=message):
            a_search(RISING, **option)

    def test_unknown_policies_are_named(self):
        with pytest.raises(UnknownNameError, match="round-robin"):
            a_search(RISING, policy="round-robbing")


class TestPolicies:
    @pytest.mark.parametrize(
        "policy", ["auto", "cure-ucb", "asha", "random", RoundRobin.create]
    )
    def test_names_and_factories(self, policy):
        result = a_search(RISING, FLAT, PEAKED, policy=policy, max_epochs=6).run()
        assert result.n_epochs <= 12
        assert result.best_score == max(result.history["score"])

    def test_a_ready_made_policy(self):
        policy = RoundRobin.create(2, 12, 12)
        result = a_search(RISING, FLAT, policy=policy, max_epochs=12).run()
        assert result.n_epochs == 12
        assert policy.pulls.tolist() == [0, 0]

    def test_parameters_of_the_policy(self):
        def rows(**params):
            search = a_search(RISING, PEAKED, policy="random", policy_params=params)
            return search.run().n_epochs

        assert rows() == 12
        with pytest.raises(UnknownNameError, match="window"):
            rows(window=3)

    def test_slices(self):
        result = a_search(RISING, FLAT, slice=3).run()
        assert Counter(result.history["job"]) == {0: 3, 1: 3, 2: 3, 3: 3}

    def test_minimise(self):
        result = a_search(RISING, PEAKED, direction="minimize").run()
        assert (result.best_score, result.best_arm, result.best_epoch) == (0.1, 1, 6)
        assert result.best_state().epochs == 6
        assert result.direction == "minimize"


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

    def test_without_a_seed_runs_differ(self):
        assert a_search(RISING, seed=None).seed_of(0) != a_search(
            RISING, seed=None
        ).seed_of(0)

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

    def test_several_jobs_in_flight(self, processes):
        result = a_search(
            *[RISING, PEAKED, FLAT] * 2, budget=30, executor=processes
        ).run()
        assert result.n_epochs == result.n_calls == 30
        assert result.best_score == 0.9
        assert result.best_state().epochs == 3
        assert result.history["own_epoch"] == result.history["epoch"]

    @pytest.mark.parametrize("n_jobs", [1, 2, None])
    def test_no_more_in_flight_than_n_jobs(self, threads, n_jobs):
        busy, most = Counter(), Counter()
        meet = threading.Barrier(n_jobs or 3)

        def train(state):
            busy["now"] += 1
            most["now"] = max(most["now"], busy["now"])
            meet.wait(timeout=10)  # all of them at once, or never
            busy["now"] -= 1
            meet.wait(timeout=10)
            return 0.5

        search = a_search(
            *[FLAT] * 6,
            trainable=Functions(lambda params, seed: None, train),
            budget=6,
            executor=threads,
            n_jobs=n_jobs,
            order="ask",
        )
        search.run()
        assert most["now"] == (n_jobs or 3)

    def test_an_arm_never_trains_twice_at_once(self, threads):
        result = a_search(RISING, budget=6, executor=threads).run()
        assert result.curves == {0: RISING}

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

        runs = []
        for late in range(3):
            result = a_search(
                *[RISING, PEAKED, FLAT, [0.1, ValueError("x")], [0.9, 0.9], [0.9]],
                trainable=Late(late),
                policy=policy,
                budget=20,
                max_epochs=6,
                executor=threads,
                order="ask",
            ).run()
            runs.append([facts(result), result.arms, vars(result.best_state())])
        assert runs[0] == runs[1] == runs[2]

    def test_in_order_of_completion_no_worker_waits(self, threads):
        release = threading.Event()

        def start(params, seed):
            assert params["arm"] == 1 or release.wait(timeout=10)
            return State(params["curve"], seed)

        def note(search, report):
            if search.scheduler.n_epochs == 6:
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


class TestBestState:
    def test_is_that_of_the_best_epoch_though_training_went_on(self, executor):
        result = a_search(PEAKED, FLAT, executor=executor).run()
        assert [arm.epochs for arm in result.arms] == [6, 6]
        assert result.best_epoch == result.best_state().epochs == 3
        assert result.best_state().curve == PEAKED

    def test_within_a_slice(self):
        result = a_search(PEAKED, slice=6, budget=6).run()
        assert result.best_epoch == result.best_state().epochs == 3

    @pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
    def test_after_a_score_that_is_not_finite(self, odd):
        result = a_search([odd, 0.9, 0.8], slice=3, budget=3).run()
        assert result.best_score == 0.9
        assert result.best_state().epochs == 2

    def test_of_an_arm_that_failed_later(self, executor):
        result = a_search([0.9, ValueError("x")], FLAT, executor=executor).run()
        assert result.arms[0].status == "failed"
        assert result.best_state().epochs == 1

    @pytest.mark.parametrize("order", ["ask", "completion"])
    def test_with_ties(self, threads, order):
        curves = [[0.5, 0.9, 0.2], [0.9, 0.9, 0.9], [0.1, 0.9, 0.9], [0.9]]
        for seed in range(5):
            result = a_search(
                *curves, seed=seed, executor=threads, order=order, budget=10
            ).run()
            state = result.best_state()
            assert state.epochs == result.best_epoch
            assert state.curve == curves[result.best_arm]

    def test_each_call_gives_a_state_of_its_own(self):
        result = a_search(PEAKED).run()
        result.best_state().epochs = 99
        assert result.best_state().epochs == 3

    def test_by_the_hooks_of_the_trainable(self, executor):
        result = a_search(PEAKED, trainable=Hooks(), executor=executor, budget=6).run()
        assert result.best_state().epochs == 3

    def test_by_the_hooks_and_never_by_pickle(self):
        result = a_search(
            PEAKED, trainable=Hooks(), max_failures=1, slice=2, budget=6
        ).run()
        assert result.history["own_epoch"] == [1, 2, 3, 4, 5, 6]
        assert result.best_state().lock is not None

    def test_there_is_none_without_a_score(self):
        search = a_search(FLAT)
        with pytest.raises(SearchFailedError, match="no best state"):
            search.result().best_state()

    def test_a_state_that_cannot_be_kept_is_a_failure_that_says_what_to_do(self):
        class Locked(Recorded):
            def start(self, params, seed):
                state = super().start(params, seed)
                state.lock = threading.Lock()
                return state

        with pytest.raises(SearchFailedError, match=r"cannot be pickled.*give.*save"):
            a_search(RISING, FLAT, trainable=Locked()).run()


class Hooks(Recorded):
    """Its states hold a lock, which pickle refuses."""

    def start(self, params, seed):
        state = super().start(params, seed)
        state.lock = threading.Lock()
        return state

    def save(self, state, path):
        with open(path, "wb") as file:
            pickle.dump([state.curve, state.seed, state.epochs], file)

    def load(self, path):
        with open(path, "rb") as file:
            curve, seed, epochs = pickle.load(file)
        state = self.start({"arm": "loaded", "curve": curve}, seed)
        state.epochs = epochs
        return state


class TestCallbacks:
    def test_are_called_after_every_job(self, executor):
        seen = []

        def note(search, report):
            seen.append((report.job.id, report.scores))

        result = a_search(
            RISING, FLAT, slice=2, executor=executor, callbacks=[note, note]
        ).run()
        assert len(seen) == 12
        assert seen[0] == seen[1]
        told = {row["job"]: row["score"] for row in result.history}
        assert {job: scores[-1] for job, scores in seen} == told

    def test_see_the_search_up_to_date(self):
        epochs = []
        a_search(
            RISING,
            callbacks=[lambda search, report: epochs.append(search.result().n_epochs)],
            budget=3,
        ).run()
        assert epochs == [1, 2, 3]

    def test_looking_changes_nothing(self):
        curves = [RISING, PEAKED, FLAT]
        looked = a_search(
            *curves,
            policy="random",
            callbacks=[lambda search, report: (search.result(), search.scheduler.done)],
        )
        assert facts(looked.run()) == facts(a_search(*curves, policy="random").run())

    def test_may_stop_the_search(self, executor):
        def enough(search, report):
            if search.scheduler.best_score >= 0.6:
                search.stop()

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
        def enough(search, report):
            if report.job.id == 5:
                search.stop()

        result = a_search(
            *[RISING, PEAKED, FLAT] * 2,
            executor=threads,
            order="ask",
            callbacks=[enough],
            budget=30,
        ).run()
        assert 5 < len(result.history) == result.n_calls < 30

    @pytest.mark.parametrize("where", ["here", "threads"])
    def test_an_exception_goes_through_and_the_search_goes_on(self, where, request):
        executor = None if where == "here" else request.getfixturevalue(where)
        options = {"policy": "random", "executor": executor, "order": "ask"}
        curves = [RISING, PEAKED, FLAT]

        def trip(search, report):
            if report.job.id == 4:
                raise LookupError("tripped")

        search = a_search(*curves, callbacks=[trip], **options)
        with pytest.raises(LookupError, match="tripped"):
            search.run()
        assert search.result().n_epochs <= 5
        assert search.result().best_state() is not None
        search.extend(3)
        result = search.run()
        assert result.n_epochs == result.n_calls == 15
        assert result.history["own_epoch"] == result.history["epoch"]
        assert not result.failures
        whole = a_search(*curves, **options)
        whole.run()
        whole.extend(3)
        assert {arm.status for arm in result.arms} == {
            arm.status for arm in whole.run().arms
        }

    def test_after_an_exception_the_run_is_the_uninterrupted_one(self, threads):
        options = {"policy": "random", "executor": threads, "order": "ask"}
        curves = [RISING, PEAKED, FLAT]

        def trip(search, report):
            if report.job.id in (2, 7):
                raise LookupError

        search = a_search(*curves, callbacks=[trip], **options)
        for _ in range(2):
            with pytest.raises(LookupError):
                search.run()
        assert facts(search.run()) == facts(a_search(*curves, **options).run())


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

    def test_the_rest_of_the_job_is_charged_and_not_trained(self):
        result = a_search([0.5, ValueError("x")], FLAT, slice=4, budget=8).run()
        assert result.n_epochs == 8
        assert result.n_calls == 2 + 4
        assert result.arms[0].epochs == 1
        assert result.arms[0].charged == 4

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
        assert result.arms[0].reason == "ended by itself"
        assert result.n_epochs == result.n_calls == 8
        assert not result.failures

    def test_stop_iteration_within_a_slice(self):
        result = a_search([0.4, 0.8], RISING, slice=4, budget=8).run()
        assert result.curves == {0: [0.4, 0.8], 1: RISING}
        assert result.n_epochs == result.n_calls == 8

    def test_stop_iteration_from_start_is_a_failure(self):
        def start(params, seed):
            return next(iter(()))

        search = a_search(FLAT, trainable=Functions(start, len))
        with pytest.raises(SearchFailedError, match="start raised StopIteration"):
            search.run()
        assert search.result().n_calls == 0

    @pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
    def test_scores_that_are_not_finite_retire_the_arm(self, executor, score):
        result = a_search([0.9, score, 0.95], FLAT, executor=executor, budget=8).run()
        assert [arm.status for arm in result.arms] == ["failed", "finished"]
        assert (result.best_score, result.best_epoch) == (0.9, 1)
        assert result.best_state().epochs == 1
        assert not result.failures

    @pytest.mark.parametrize(("error_score", "worst"), [(0.05, 0.05), (None, 0.4)])
    def test_what_a_failure_counts_as(self, error_score, worst):
        told = []

        class Spy(RoundRobin):
            def update(self, t, arm, reward, rng):
                told.append(reward)
                super().update(t, arm, reward, rng)

        a_search(
            FLAT,
            [0.8, ValueError("x")],
            policy=Spy.create,
            error_score=error_score,
            budget=4,
            shuffle=False,
        ).run()
        assert told == [0.4, 0.8, 0.4, worst]

    def test_an_error_score_is_for_the_policy_alone(self):
        result = a_search(FLAT, [ValueError("x")], error_score=0.99, budget=4).run()
        assert result.best_score == 0.4

    def test_raise_stops_at_the_first(self, executor):
        search = a_search(
            FLAT, [0.9, ValueError("diverged")], error_score="raise", executor=executor
        )
        with pytest.raises(ValueError, match="diverged"):
            search.run()
        assert search.result().best_score == 0.9
        assert search.run().n_epochs == 12 - 4

    def test_raise_stops_at_a_score_that_is_not_finite(self):
        with pytest.raises(SearchFailedError, match="scored nan at epoch 2"):
            a_search([0.9, math.nan], error_score="raise").run()

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
        with pytest.raises(SearchFailedError, match="of the 2 opened") as caught:
            search.run()
        first = search.result().history[0]["arm"]
        assert caught.value.__cause__.args == (["x", "y"][first],)
        assert search.result().best_params == {}
        assert search.result().best_arm is None

    def test_the_first_failure_is_that_of_the_first_job(self, threads):
        release = threading.Event()

        def start(params, seed):
            if params["arm"] == 1:
                raise OSError("first to come back")
            assert release.wait(timeout=10)
            raise OSError("first to be asked for")

        search = a_search(
            FLAT,
            FLAT,
            trainable=Functions(start, len),
            shuffle=False,
            executor=threads,
            callbacks=[lambda search, report: release.set()],
        )
        with pytest.raises(SearchFailedError, match="first to be asked for"):
            search.run()

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
            slice=slice_,
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

    def test_until_there_were_too_many(self):
        trainable = Recorded()
        result = a_search(
            [0.5, ValueError("x")], FLAT, trainable=trainable, max_failures=2
        ).run()
        assert result.arms[0].status == "failed"
        assert result.arms[0].failures == 3
        assert len(result.failures) == 3
        assert trainable.started[0] == 1

    def test_an_epoch_that_could_not_be_saved_is_trained_again(self):
        class FullDisk(Hooks):
            n_saved = 0

            def save(self, state, path):
                self.n_saved += 1
                if self.n_saved == 3:
                    raise OSError("no space left")
                super().save(state, path)

        result = a_search(
            RISING, trainable=FullDisk(), max_failures=1, slice=2, budget=6
        ).run()
        good = [row for row in result.history if "failure" not in row]
        assert [row["own_epoch"] for row in good] == [row["epoch"] for row in good]
        assert result.n_calls == 5
        assert result.arms[0].epochs == 4

    def test_after_nan_the_arm_goes_on(self):
        result = a_search(
            [0.3, math.nan, 0.6], max_failures=1, max_epochs=3, budget=3
        ).run()
        assert result.history["own_epoch"] == [1, 2, 3]
        assert result.best_epoch == 3

    def test_in_other_processes(self, processes):
        result = a_search(
            RISING,
            [0.1, ValueError("x")],
            max_failures=1,
            executor=processes,
            budget=10,
        ).run()
        assert [arm.failures for arm in result.arms] == [0, 2]
        assert result.arms[1].epochs == 1
        assert result.curves[1] == pytest.approx([0.1, math.nan], nan_ok=True)


class TestExecutorsThatFail:
    def test_a_process_that_dies(self):
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(Path(__file__).parents[__name__.count(".")])
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
                search = a_search(RISING, FLAT, trainable=Dies(), executor=executor)
                with pytest.raises(ExecutorFailedError, match="terminated") as caught:
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
        with pytest.raises(ExecutorFailedError, match="must be picklable"):
            search.run()

    def test_an_executor_that_was_shut_down(self):
        executor = ThreadPoolExecutor(1)
        executor.shutdown()
        with pytest.raises(ExecutorFailedError, match="after shutdown") as caught:
            a_search(RISING, executor=executor).run()
        assert caught.value.result.n_calls == 0

    def test_jobs_that_the_executor_cancels(self):
        class Cancels(Executor):
            def submit(self, fn, /, *args, **kwargs):
                future = Future()
                future.cancel()
                future.set_running_or_notify_cancel()
                return future

        search = a_search(RISING, executor=Cancels(), n_jobs=1)
        with pytest.raises(ExecutorFailedError, match="CancelledError"):
            search.run()

    def test_an_executor_that_does_not_say_how_many_workers_it_has(self):
        with pytest.raises(InvalidParameterError, match=r"how many workers .* n_jobs"):
            a_search(RISING, executor=AtOnce())
        search = a_search(*[RISING] * 30, executor=AtOnce(), n_jobs=30, budget=60)
        assert search.run().history["job"] == list(range(60))


class AtOnce(Executor):
    """Any number of jobs are done as soon as they are submitted."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def make_nothing(params, seed):
    return None


def returns_a_lambda(state):
    return {"score": 0.5, "model": lambda: None}


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

    def test_as_if_the_larger_budget_had_come_later(self):
        curves = [RISING, PEAKED, FLAT]
        search = a_search(*curves, budget=5)
        search.run()
        search.extend(7)
        assert facts(search.run()) == facts(a_search(*curves).run())

    def test_running_a_finished_search_changes_nothing(self):
        search = a_search(RISING, FLAT)
        first = search.run()
        assert facts(search.run()) == facts(first)

    def test_a_callback_may_extend(self):
        def more(search, report):
            if search.scheduler.n_epochs == 4:
                search.extend(2)

        assert a_search(RISING, callbacks=[more], budget=4).run().n_epochs == 6


class TestInterruptions:
    @pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
    @pytest.mark.parametrize("where", ["here", "threads"])
    def test_in_training(self, request, where, interruption):
        executor = None if where == "here" else request.getfixturevalue(where)
        search = a_search(
            RISING, [0.2, 0.4, interruption()], FLAT, PEAKED, executor=executor
        )
        with pytest.raises(interruption):
            search.run()
        broken = search.result()
        assert broken.n_epochs <= 12
        assert not search.scheduler.in_flight
        assert broken.arms[1].reason == "retired: interrupted"
        result = search.run()
        assert result.n_epochs == 12
        assert result.n_calls < 12
        trained = [row for row in result.history if "failure" not in row]
        assert all(row["own_epoch"] == row["epoch"] for row in trained)
        assert not result.failures

    def test_of_a_callback_with_jobs_in_flight(self, threads):
        def interrupt(search, report):
            if report.job.id == 4:
                raise KeyboardInterrupt

        search = a_search(
            *[RISING, PEAKED, FLAT] * 3, callbacks=[interrupt], executor=threads
        )
        with pytest.raises(KeyboardInterrupt):
            search.run()
        assert not search.scheduler.in_flight
        search.extend(8)
        assert search.run().n_epochs == 20

    def test_jobs_that_have_not_begun_never_do(self):
        class OnlyTheFirst(AtOnce):
            waiting = ()

            def submit(self, fn, /, *args, **kwargs):
                if not self.waiting:
                    self.waiting = [Future(), Future()]
                    return super().submit(fn, *args, **kwargs)
                return self.waiting[args[1].job.id - 1]

        def interrupt(search, report):
            raise KeyboardInterrupt

        executor = OnlyTheFirst()
        search = a_search(
            *[FLAT] * 3, executor=executor, n_jobs=3, callbacks=[interrupt]
        )
        with pytest.raises(KeyboardInterrupt):
            search.run()
        assert [future.cancelled() for future in executor.waiting] == [True, True]
        assert search.result().n_epochs == 3

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
        assert result.n_epochs == 7
        assert result.n_calls == 6
        assert result.curves == {0: RISING}

    def test_under_a_budget_in_seconds(self):
        search = a_search(
            RISING,
            [KeyboardInterrupt()],
            budget=Budget(seconds=60),
            max_epochs=6,
        )
        with pytest.raises(KeyboardInterrupt):
            search.run()
        assert search.run().curves[0] == RISING


class TestSeconds:
    def test_a_budget_in_seconds_ends_the_search(self):
        def train(state):
            time.sleep(0.002)
            return 0.5

        result = a_search(
            *[FLAT] * 200,
            trainable=Functions(make_nothing, train),
            budget=Budget(seconds=0.05),
            max_epochs=20,
        ).run()
        assert 0 < result.n_epochs == result.n_calls < 200
        assert result.stop_reason == "the budget of 0.05 seconds is spent"

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

    def test_every_second_of_training_is_measured(self, executor):
        result = a_search(RISING, FLAT, executor=executor).run()
        assert all(seconds > 0 for seconds in result.history["seconds"])

    def test_failed_epochs_cost_what_they_have_taken(self):
        def train(state):
            time.sleep(0.002)
            raise ValueError("x")

        search = a_search(
            *[FLAT] * 3,
            trainable=Functions(make_nothing, train),
            budget=Budget(seconds=60),
            max_epochs=3,
        )
        with pytest.raises(SearchFailedError):
            search.run()
        assert search.scheduler.spent >= 0.006


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

    def test_columns_of_the_history(self):
        history = History([{"score": 0.5}, {"score": 0.7, "loss": 1.0}])
        assert history["score"] == [0.5, 0.7]
        assert history["loss"] == pytest.approx([math.nan, 1.0], nan_ok=True)
        assert history[-1]["loss"] == 1.0
        assert history[:1] == [{"score": 0.5}]

    def test_a_metric_may_be_called_cost(self):
        trainable = Functions(make_nothing, lambda state: {"score": 0.5, "cost": 3.0})
        result = a_search(FLAT, trainable=trainable, budget=2).run()
        assert result.history["cost"] == [3.0, 3.0]

    def test_curves_hold_the_scores_by_epoch(self):
        result = a_search(
            RISING,
            FLAT,
            [0.4, 0.5, ValueError("x"), 0.7],
            trainable=Flaky(),
            max_failures=1,
            slice=2,
            budget=18,
        ).run()
        assert result.curves == {0: RISING, 1: FLAT, 2: [0.4, 0.5, 0.5, 0.7]}

    def test_a_curve_ends_with_nan_where_the_arm_has_failed(self):
        result = a_search([0.4, ValueError("x")], FLAT, slice=3).run()
        assert result.curves[0] == pytest.approx([0.4, math.nan], nan_ok=True)

    def test_as_a_table(self):
        frame = a_search(RISING, [0.2, ValueError("x")]).run().to_frame()
        assert len(frame) == 8
        assert frame["score"].max() == 0.7
        assert frame["failure"].notna().sum() == 1

    def test_a_table_needs_pandas(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(MissingDependencyError, match="pip install pandas"):
            a_search(RISING).run().to_frame()

    def test_figures(self):
        mpl.use("Agg")
        from matplotlib import pyplot as plt

        result = a_search(RISING, PEAKED).run()
        for plot in (result.plot_allocation, result.plot_curves):
            assert plot().has_data()
        plt.close("all")

    def test_prints_what_matters(self):
        text = repr(a_search(PEAKED).run())
        assert "best_score=0.9, best_epoch=3, best_arm=0" in text
        assert "history" not in text


class TestMemory:
    def test_arms_that_are_over_let_go_of_their_state(self):
        trainable = Recorded()
        alive = []
        a_search(
            RISING,
            FLAT[:2],
            [0.2, ValueError("x")],
            [0.1, math.nan],
            trainable=trainable,
            callbacks=[lambda search, report: alive.append(trainable.n_alive())],
            max_epochs=4,
            budget=11,
        ).run()
        assert max(alive) == 4
        assert trainable.n_alive() == 0

    def test_of_a_failure_no_frame_is_kept(self):
        trainable = Recorded()
        error = ValueError("x")
        error.__cause__ = OSError("y")
        result = a_search(FLAT, [0.1, error], trainable=trainable, max_epochs=6).run()
        assert result.failures[0].failure is error
        assert trainable.n_alive() == 0

    @pytest.mark.parametrize("order", ["ask", "completion"])
    def test_wherever_they_train(self, threads, order):
        kept = []

        def look(search, report):
            kept.append(len(search._states))

        search = a_search(
            *[RISING, PEAKED, FLAT, [0.1, ValueError("x")], [0.9], [0.9]],
            executor=threads,
            order=order,
            max_epochs=4,
            budget=99,
            callbacks=[look],
        )
        search.run()
        assert max(kept) <= 6 + 4  # states, and snapshots: one, and three in flight
        assert kept[-1] <= 3 + 4
        assert len(search._states) == 1

    def test_a_better_score_replaces_the_snapshot(self):
        saved = []

        class Counts(Hooks):
            def save(self, state, path):
                saved.append(state.epochs)
                super().save(state, path)

        search = a_search(PEAKED, trainable=Counts(), budget=6)
        search.run()
        assert saved == [1, 2, 3]
        assert len(search._states) == 1


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
            policy=["auto", "random", "asha", "cure-ucb"][seed % 4],
            budget=int(rng.integers(1, 25)),
            max_epochs=[None, 5][int(rng.integers(2))],
            slice=[None, 1, 3][int(rng.integers(3))],
            direction="maximize" if maximize else "minimize",
            max_failures=int(rng.integers(3)),
            executor=threads if seed % 2 else None,
            order=["ask", "completion"][int(rng.integers(2))],
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
                    assert not search.scheduler.in_flight
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
            assert state.curve[state.epochs - 1] == best


def test_a_column_goes_by_its_name():
    history = History([{"arm": 0, "score": 0.5}, {"arm": 1, "score": 0.7}])
    assert history[:1]["score"] == [0.5]
    assert math.isnan(history["seconds"][0])
    with pytest.raises(UnknownNameError, match="did you mean 'score'"):
        history["scroe"]


class TestCtrlC:
    """What a person at the terminal does, in the middle of a job of several epochs."""

    def search(self, at):
        calls = []

        def train(state):
            calls.append(state["top"])
            state["epochs"] += 1
            if len(calls) == at:
                signal.raise_signal(signal.SIGINT)
            return state["top"] * (1 - 1 / (state["epochs"] + 1))

        start = Functions(lambda params, seed: {"epochs": 0, **params}, train)
        tops = [{"top": top} for top in (0.5, 0.9, 0.7)]
        search = RisingSearch(start, tops, budget=20, max_epochs=9, slice=3, seed=0)
        return search, calls

    @pytest.mark.parametrize("at", [1, 2, 3, 8, 20])
    def test_it_stops_after_the_epoch_and_loses_nothing(self, at):
        whole, all_calls = self.search(at=None)
        expected = whole.run()
        search, calls = self.search(at)
        with pytest.raises(KeyboardInterrupt):
            search.run()
        assert len(calls) == at == search.scheduler.n_epochs
        assert "failed" not in search.scheduler.statuses()
        assert len(search.result().history) == at
        result = search.run()
        assert result.n_epochs == len(calls) == len(all_calls) == 20
        assert result.best_params == expected.best_params
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_a_second_one_does_not_wait(self):
        def train(state):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            raise AssertionError

        search = RisingSearch(Functions(lambda p, s: {}, train), [{}], budget=3)
        with pytest.raises(KeyboardInterrupt):
            search.run()
        assert search.scheduler.statuses() == ["failed"]
