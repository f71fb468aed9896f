"""What a job brought back is on disk as JSON values, and comes back from there."""

import json
import math

import pytest

from risingsearch.arms import Job, Report
from risingsearch.errors import EarlierFailureError, InvalidParameterError
from risingsearch.search.run import as_event, outcome_of
from risingsearch.search.trainable import Outcome


def an_outcome(**changes):
    report = Report(
        Job(3, 1, 3, 7), (0.5, math.nan), (0.1, 0.2), ({"own": (1, 2)}, {"own": None})
    )
    facts = {"ended": False, "resume_from": None, "snapshot": None, "n_calls": 2}
    return Outcome(**{"report": report, "elapsed": 0.4, **facts, **changes})


class TestEvents:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"ended": True},
            {"snapshot": (2, b"")},
            {"startup": 0.25},
            {"startup": math.nan},
            {"report": Report(Job(0, 0, 1, 0), (math.inf,), (0.1,), ({},))},
            {"report": Report(Job(0, 0, 1, 0))},
        ],
    )
    def test_an_outcome_comes_back_without_its_states(self, changes):
        outcome = an_outcome(**changes)
        event = json.loads(json.dumps(as_event(outcome.report.job, outcome)))
        assert repr(outcome_of(event)) == repr(outcome)

    @pytest.mark.parametrize(
        ("failure", "text"),
        [(ValueError("too hot"), "too hot"), (ValueError(), "ValueError")],
    )
    def test_of_a_failure_the_text_is_left(self, failure, text):
        report = Report(Job(0, 0, 1, 0), failure=failure)
        back = outcome_of(as_event(report.job, an_outcome(report=report)))
        assert isinstance(back.report.failure, EarlierFailureError)
        assert str(back.report.failure) == text

    @pytest.mark.parametrize("metric", [object(), {1: 2}, {3}])
    def test_metrics_that_are_no_json_are_refused(self, metric):
        report = Report(Job(0, 0, 1, 0), (0.5,), (0.1,), ({"own": metric},))
        with pytest.raises(InvalidParameterError, match=r"run_dir.*metrics.*JSON"):
            as_event(report.job, an_outcome(report=report))
