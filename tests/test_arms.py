"""The small facts keep their shape: frozen, comparable, printed in full."""

from __future__ import annotations

import dataclasses
import math
import pickle

import pytest

from risingsearch.arms import Arm, Job, Report
from risingsearch.budget import Budget

FACTS = [
    Budget(epochs=10),
    Job(arm=1, from_epoch=2, n_epochs=3, id=4),
    Report(Job(1, 2, 3, 4), scores=(0.5,), seconds=(1.0,), metrics=({"loss": 0.7},)),
    Arm(0, "paused", 3, 4, 0.5, 0.6, 2, 1, "trained last", {"bonus": 0.1}),
]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: type(fact).__name__)
def test_facts_cannot_be_changed(fact: object) -> None:
    field = dataclasses.fields(fact)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(fact, field, 0)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: type(fact).__name__)
def test_facts_travel_between_processes(fact: object) -> None:
    assert pickle.loads(pickle.dumps(fact)) == fact


def test_jobs_are_equal_by_what_they_say() -> None:
    assert Job(1, 2, 3, 4) == Job(arm=1, from_epoch=2, n_epochs=3, id=4)
    assert Job(1, 2, 3, 4) != Job(1, 2, 3, 5)
    assert len({Job(1, 2, 3, 4), Job(1, 2, 3, 4)}) == 1


def test_a_report_of_nothing_has_no_scores_and_no_failure() -> None:
    report = Report(Job(0, 0, 1, 0))
    assert (report.scores, report.seconds, report.metrics) == ((), (), ())
    assert report.failure is None


def test_every_arm_has_its_own_index() -> None:
    arms = [Arm(k, "unopened", 0, 0, math.nan, math.nan, 0, 0) for k in range(2)]
    assert arms[0].index == {}
    assert arms[0].index is not arms[1].index
