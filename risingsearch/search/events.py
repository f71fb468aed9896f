"""What jobs bring back, as events of a journal."""

from __future__ import annotations

from risingsearch.arms import Job, Report
from risingsearch.errors import EarlierFailureError, InvalidParameterError
from risingsearch.json_values import as_json, from_json
from risingsearch.scheduling.replay import Event, told
from risingsearch.search.trainable import Outcome


def as_event(job: Job, outcome: Outcome) -> Event:
    """Return what a job brought back as JSON values, without its states."""
    report, failure = outcome.report, outcome.report.failure
    text = None if failure is None else str(failure) or type(failure).__name__
    try:
        metrics = as_json(list(report.metrics))
    except TypeError as error:
        msg = (
            f"with a run_dir the metrics that train returns are saved as JSON: {error}"
        )
        raise InvalidParameterError(msg) from error
    event = told(job, report.scores, text) | {
        "seconds": list(report.seconds),
        "metrics": metrics,
        "elapsed": outcome.elapsed,
        "calls": outcome.n_calls,
    }
    if outcome.cost != outcome.elapsed:
        event["cost"] = outcome.cost
    if outcome.startup is not None:
        event["startup"] = as_json(outcome.startup)
    if outcome.now is not None:
        event["now"] = outcome.now
    if outcome.clock not in (None, outcome.now):
        event["clock"] = outcome.clock
    if outcome.ended:
        event["ended"] = True
    if outcome.snapshot is not None:
        event["best"] = outcome.snapshot[0]
    if failure is not None:
        event["failure_type"] = type(failure).__name__
        if outcome.attempts > 1:
            event["attempts"] = outcome.attempts
    return event


def outcome_of(event: Event) -> Outcome:
    """Return what ``as_event`` wrote; a failure is an ``EarlierFailureError``."""
    failure = event.get("failure")
    report = Report(
        Job(*event["job"]),
        tuple(from_json(event["scores"])),
        tuple(event["seconds"]),
        tuple(from_json(event["metrics"])),
        failure and EarlierFailureError(failure, event.get("failure_type", "")),
    )
    best = event.get("best")
    return Outcome(
        report,
        ended="ended" in event,
        resume_from=None,
        snapshot=None if best is None else (best, b""),
        n_calls=event["calls"],
        elapsed=event["elapsed"],
        cost=event.get("cost", event["elapsed"]),
        attempts=event.get("attempts", 1),
        startup=from_json(event.get("startup")),
        now=event.get("now"),
        clock=event.get("clock", event.get("now")),
    )
