"""Events are what a journal holds, and come back from it as they were."""

import json
import math

import numpy as np
import pytest

from risingsearch.arms import Job
from risingsearch.budget import Budget
from risingsearch.errors import RunDirError
from risingsearch.scheduling.events import (
    KINDS,
    Advanced,
    Died,
    Ended,
    Extended,
    Failed,
    Released,
    Repeated,
    Resized,
    Returned,
    Started,
    Stopped,
    TrialOpened,
    TrialReported,
    event_of,
)

JOB = Job(arm=3, from_epoch=1, n_epochs=4, id=7)
FACTS = {"job": JOB, "scores": (0.5, -0.25), "seconds": (1.0, 2.0)}
FACTS |= {"metrics": ({"loss": 0.1}, {"loss": [1, 2]}), "elapsed": 4.0, "cost": 4.0}
EVENTS = [
    Started(job=JOB, reason="continued", parts={"mean": 0.5}, seen=6, here=False),
    Started(job=JOB, reason="x", parts={}, params={"lr": 0.1}, like=(1, 2)),
    Returned(**FACTS, calls=2, ended="no more data", best=3),
    Returned(**FACTS, now=0.5, clock=1800.0, startup=0.25),
    Returned(job=JOB, scores=(0.1,)),
    Failed(**FACTS, failure="no room", failure_type="MemoryError", charged=3),
    Failed(**FACTS | {"cost": None}, failure="?", charged=4, attempts=2),
    Returned(job=JOB, scores=(0.5,), metrics=({"a": 1},), checkpoint="saved_3"),
    TrialOpened(arm=3, trial="a1", params={"net/width": 8, "$x": np.float32(0.5)}),
    TrialReported(
        trial="a1",
        epoch=2,
        score=math.inf,
        result={"loss": math.inf, "name": "b"},
        number=None,
        safe=False,
    ),
    Ended(arms=[1, 2]),
    Extended(budget=Budget(hours=2)),
    Advanced(now=5.0, keeps_rest=True),
    Resized(n_jobs=3),
    Died(jobs=[1]),
    Released(),
    Stopped(reason="the patience is exhausted"),
    Repeated(arm=3, number=1, scores=(0.5, 0.75), elapsed=0.25, cost=2.0, failure="x"),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.name)
def test_an_event_comes_back_from_json_as_it_was(event):
    line = json.dumps(event.to_json(), allow_nan=False)
    assert json.loads(line)["event"] == event.name
    assert event_of(json.loads(line)) == event


def test_scores_that_are_not_finite_come_back():
    event = Returned(job=JOB, scores=(0.5, math.nan, -math.inf), startup=math.nan)
    again = event_of(json.loads(json.dumps(event.to_json(), allow_nan=False)))
    assert repr(again) == repr(event)


def test_every_kind_of_event_is_tested_here():
    assert {event.name for event in EVENTS} == KINDS.keys()


def test_what_a_journal_leaves_out_has_a_default():
    values = {"event": "failed", "job": [3, 1, 4, 7], "scores": [0.5], "failure": "x"}
    event = event_of(values | {"elapsed": 2.0, "now": 9.0})
    assert (event.charged, event.cost, event.clock, event.attempts) == (4, 2.0, 9.0, 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"event": "melted"}, "has an event 'melted', which is unknown here: use the"),
        ({"event": "resized", "n_jobs": 2, "gpus": 1}, "has 'gpus' in an event 'resiz"),
        ({"event": "released", "why": None}, "has 'why' in an event 'released'"),
    ],
)
def test_what_is_unknown_is_an_error_that_names_it(values, message):
    with pytest.raises(RunDirError, match=message):
        event_of(values)
