"""What a trainable is, how its states are kept, and how one job of it runs."""

import math

import pytest

from risingsearch.arms import COLUMNS, Job
from risingsearch.errors import InvalidParameterError, NotTrainableError
from risingsearch.search import training
from risingsearch.search.trainable import (
    Functions,
    checked_trainable,
    dump,
    restore,
    temporary_folder,
)


def start(params, seed):
    return {"params": params, "seed": seed, "epochs": 0}


def train(state):
    state["epochs"] += 1
    return 1 - 1 / (state["epochs"] + 1)


COUNTING = Functions(start, train)


def save(state, path):
    with open(path, "w") as file:
        file.write(str(state))


def load(path):
    with open(path) as file:
        return int(file.read())


NUMBERS = Functions(start, train, save, load)


def scores_of(scores):
    """Return a trainable whose states are the number of epochs, with these scores."""

    def train(state):
        state[0] += 1
        score = scores[state[0] - 1]
        if isinstance(score, BaseException):
            raise score
        return score

    return Functions(lambda params, seed: [0], train)


def a_task(n_epochs=1, from_epoch=0, **options):
    task = training.Task(
        job=Job(arm=0, from_epoch=from_epoch, n_epochs=n_epochs, id=0),
        params={"rate": 0.1},
        seed=5,
        state=None,
        as_bytes=False,
        may_retry=False,
        sign=1.0,
        best_reward=-math.inf,
    )
    return task._replace(**options)


class TestChecked:
    @pytest.mark.parametrize(
        ("trainable", "message"),
        [
            (None, "None has no start"),
            (Functions(start, None), "has no train"),
            (Functions("start", train), "has no start"),
            (Functions(start, train, save=save), "one of save and load"),
            (Functions(start, train, load=load), "one of save and load"),
            (Functions(lambda: 0, train), r"start of Functions must take \(params, se"),
            (Functions(start, train, train, load), r"save .* must take \(state, pa"),
        ],
    )
    def test_what_is_missing_is_named(self, trainable, message):
        with pytest.raises(NotTrainableError, match=message):
            checked_trainable(trainable)


class TestStates:
    def test_are_pickled(self):
        state = {"weights": [0.1, 0.2]}
        assert restore(COUNTING, dump(COUNTING, state)) == state

    def test_or_kept_by_the_hooks_of_the_trainable(self):
        assert dump(NUMBERS, 7) == b"7"
        assert restore(NUMBERS, b"12") == 12


class TestScores:
    @pytest.mark.parametrize("score", [1e200, -1e308, 10**400])
    def test_scores_that_policies_cannot_square_are_refused(self, score):
        for result in (score, {"score": score}):
            with pytest.raises(InvalidParameterError, match="score that train returns"):
                training.checked_score(result)

    def test_columns_of_the_history_are_no_metrics(self):
        assert {*COLUMNS, "seconds"} - {"cost"} == training.RESERVED
        for name in training.RESERVED - {"score"}:
            with pytest.raises(InvalidParameterError, match=name):
                training.checked_score({"score": 0.5, name: 1})


class TestJobs:
    @pytest.mark.parametrize(
        ("sign", "best_reward", "epoch"),
        [(1, -math.inf, 2), (1, 0.8, 2), (1, 0.9, None), (-1, -math.inf, 3)],
    )
    @pytest.mark.parametrize("as_bytes", [False, True])
    def test_the_best_state_that_beats_the_best_so_far_is_kept(
        self, sign, best_reward, epoch, as_bytes
    ):
        trainable = scores_of([0.5, 0.9, 0.2, 0.9, math.inf * sign])
        task = a_task(5, sign=sign, best_reward=best_reward, as_bytes=as_bytes)
        snapshot = training.run_task(trainable, task).snapshot
        if epoch is None:
            assert snapshot is None
        else:
            assert snapshot[0] == epoch
            assert restore(trainable, snapshot[1]) == [epoch]

    def test_a_state_is_saved_no_more_than_needed(self):
        saved = []
        hooks = Functions(
            lambda params, seed: [0],
            scores_of([0.5, 0.4, 0.6, 0.3, 0.2]).train,
            lambda state, path: (saved.append(state[0]), save(state[0], path)),
            lambda path: [load(path)],
        )
        for options, expected in [
            ({}, [1, 3]),
            ({"best_reward": 1.0}, []),
            ({"as_bytes": True}, [1, 3, 5]),
            ({"as_bytes": True, "may_retry": True}, [1, 2, 3, 4, 5]),
        ]:
            saved.clear()
            training.run_task(hooks, a_task(5, **options))
            assert saved == expected

    @pytest.mark.parametrize("as_bytes", [False, True])
    def test_a_failure_comes_back_in_the_report(self, as_bytes):
        trainable = scores_of([0.5, ZeroDivisionError("x"), 0.7])
        outcome = training.run_task(trainable, a_task(3, as_bytes=as_bytes))
        assert outcome.report.scores == (0.5,)
        assert isinstance(outcome.report.failure, ZeroDivisionError)
        assert outcome.resume_from is None
        assert outcome.snapshot[0] == 1
        assert outcome.n_calls == 2

    def test_with_retries_a_job_that_failed_at_once_comes_back_as_it_was(self):
        trainable = scores_of([0.5, ZeroDivisionError("x")])
        given = dump(trainable, [1])
        task = a_task(1, 1, state=given, as_bytes=True, may_retry=True)
        assert training.run_task(trainable, task).resume_from == given


class TestTheClock:
    def test_runs_while_an_arm_starts_and_trains_not_while_it_is_saved(self, clock):
        def passing(seconds, result):
            def wait(*args):
                clock.now += seconds
                return result() if result else None

            return wait

        def slow_save(state, path):
            clock.now += 1000
            save(state, path)

        trainable = Functions(
            passing(100, int), passing(1, float), slow_save, passing(10, int)
        )
        report = training.run_task(
            trainable, a_task(2, may_retry=True, as_bytes=True)
        ).report
        assert report.seconds == (101.0, 1.0)
        task = a_task(2, 2, state=b"2", may_retry=True, as_bytes=True)
        outcome = training.run_task(trainable, task)
        assert outcome.report.seconds == (11.0, 1.0)
        assert (outcome.elapsed, outcome.startup) == (12.0, 10.0)

    @pytest.mark.parametrize(("given", "startup"), [(5.0, 8.0), (math.nan, math.nan)])
    def test_a_call_that_trains_several_epochs_can_say_how_long_it_has_started(
        self, clock, given, startup
    ):
        class Slow:
            def start(self, params, seed):
                clock.now += 3

            def train(self, state):
                raise AssertionError

            def train_epochs(self, state, n_epochs):
                clock.now += 5 + n_epochs
                return training.StartedEpochs([0.5] * n_epochs, given)

        outcome = training.run_task(Slow(), a_task(4))
        assert outcome.elapsed == 12.0
        assert outcome.startup == pytest.approx(startup, nan_ok=True)


@pytest.mark.parametrize(
    "error", [ConnectionResetError("reset"), FileNotFoundError("images"), OSError()]
)
def test_an_error_of_the_system_in_code_of_the_user_is_not_blamed_on_the_disk(error):
    with pytest.raises(type(error)) as raised, temporary_folder():
        raise error
    assert raised.value is error
