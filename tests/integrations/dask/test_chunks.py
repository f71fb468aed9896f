"""A job in chunks brings back what it would have brought back as a whole."""

import math

import pytest

from risingsearch.arms import Job
from risingsearch.integrations.dask.chunks import Chunks
from risingsearch.search.trainable import Functions, Task, run_task

RISING = [0.3, 0.5, 0.6, 0.65, 0.68, 0.7]


def start(params, seed):
    return {"epochs": 0, **params}


def train(state):
    if state["epochs"] == len(state["curve"]):
        raise StopIteration
    score = state["curve"][state["epochs"]]
    if score is None:
        raise ValueError("diverged")
    state["epochs"] += 1
    return {"score": score, "own_epoch": state["epochs"]}


LEARNER = Functions(start, train)


def a_task(curve, n_epochs=6, **options):
    defaults = {
        "params": {"curve": curve},
        "seed": 0,
        "state": None,
        "as_bytes": True,
        "may_retry": False,
        "sign": 1.0,
        "best_reward": -math.inf,
    }
    return Task(job=Job(3, 0, n_epochs, 7), **defaults | options)


def in_chunks(task, seconds):
    chunks = Chunks(task)
    lengths = []
    while not chunks.done:
        chunk = chunks.next(seconds)
        lengths.append(chunk.job.n_epochs)
        chunks.add(chunk, run_task(LEARNER, chunk))
    return chunks.outcome(), lengths


def facts(outcome):
    failure = outcome.report.failure
    report = outcome.report
    return (
        report.job,
        report.scores,
        len(report.seconds),
        report.metrics,
        None if failure is None else str(failure),
        outcome._replace(report=None, elapsed=None, startup=None),
    )


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("protected", [False, True])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    "curve",
    [
        RISING,
        RISING[::-1],
        [0.3, math.nan, 0.5, 0.4, 0.4, 0.4],
        [0.3, 0.5],
        [0.3, 0.5, None],
        [None],
        [],
    ],
)
@pytest.mark.parametrize(("seconds", "most"), [(1.0, 1), (0.03, 4), (None, 1)])
def test_the_outcome_is_that_of_the_whole(kept, protected, sign, curve, seconds, most):
    task = a_task(curve, wants_checkpoint=kept, may_retry=protected, sign=sign)
    outcome, lengths = in_chunks(task, seconds)
    assert repr(facts(outcome)) == repr(facts(run_task(LEARNER, task)))
    assert max(lengths) == most


def test_goes_on_from_a_checkpoint():
    first = run_task(LEARNER, a_task(RISING, 3))
    task = a_task(RISING, best_reward=0.6, state=first.resume_from)
    task = task._replace(job=Job(3, 3, 2, 8))
    outcome, lengths = in_chunks(task, 1.0)
    assert outcome.report.scores == (0.65, 0.68)
    assert outcome.snapshot[0] == 5
    assert lengths == [1, 1]


def test_what_fails_at_once_is_retried_from_what_the_driver_has():
    chunk = a_task([None], state=b"the last good one", may_retry=True)
    failed = run_task(LEARNER, chunk._replace(state=None))  # a live state was there
    assert failed.resume_from is None
    chunks = Chunks(chunk)
    chunks.add(chunk, failed)
    assert chunks.outcome().resume_from == b"the last good one"


def test_what_trains_several_epochs_in_one_call_is_not_cut():
    chunks = Chunks(a_task(RISING), whole=True)
    assert chunks.next(1.0).job.n_epochs == 6
