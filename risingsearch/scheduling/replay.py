"""Scheduler events as JSON values, and how to apply them again.

A search is a list of events, each named by its ``event``:

``started``
    A ``job`` began, for this ``reason`` and with these ``parts`` of its arm's index.
    It had ``seen`` so many results, if those are applied in the order of the
    decisions; ``instead_of`` is the arm that the policy had selected, if another was
    proposed for it, ``params`` are those proposed for the arm, and ``like`` the arms
    that these resemble. A job that is tried again is started again.
``result``, ``failed``
    A ``job`` came back with its ``scores``; its ``cost``, in the unit of the
    budget, or else the seconds that it took (``elapsed``), if known; that the arm has
    ``ended``, or the text of its ``failure``, for how many ``attempts`` it stands, and
    how many epochs are ``charged``: all of the job if that is missing.
``ended``
    These ``arms`` train no more, though no job said so.
``extended``
    So much was added to the ``budget``.
``advanced``
    The clock stands at ``now``, though no job came back (``keeps_rest``: for a refit).
``resized``
    So many jobs (``n_jobs``) may be in flight from here on.

Other events do not change a scheduler:

``died``
    The process ended in which these ``jobs`` trained: an attempt of each, which counts
    towards ``max_failures``. ``started`` says with ``here`` that the job trains in the
    process that searches.
``released``
    The jobs in flight were interrupted, which is no attempt.
``stopped``
    The search has ended early, for this ``reason``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from risingsearch.arms import Job
from risingsearch.budget import Budget
from risingsearch.errors import RunDirError
from risingsearch.json_values import as_json, from_json
from risingsearch.scheduling.arm_table import Decision
from risingsearch.scheduling.scheduler import Scheduler

Event = dict[str, Any]

RESULTS = ("result", "failed")  # events of a job that came back
DECISIVE = ("started", *RESULTS, "ended", "extended", "advanced", "resized")
OTHERS = ("died", "released", "stopped")


def started(scheduler: Scheduler, job: Job) -> Event:
    """Return the event of a job in flight, with the decision to start it."""
    return {"event": "started"} | scheduler.why(job).to_json()


def result(
    job: Job,
    scores: Sequence[float],
    failure: str | None = None,
    charged: int | None = None,
) -> Event:
    """Return the event of a job that came back."""
    event: Event = {"event": "result", "job": job.to_json()}
    if failure is not None:
        event |= {"event": "failed", "failure": failure, "charged": charged}
    return event | {"scores": as_json(list(scores))}


def replay(scheduler: Scheduler, events: Iterable[Mapping[str, Any]]) -> None:
    """Bring a new scheduler to where another one was after the last of these events."""
    for event in events:
        # A start says which results it had seen: no decision is needed to know.
        scheduler.wait_for_starts(event["event"] in ("started", *RESULTS))
        apply(scheduler, event)
    scheduler.wait_for_starts(False)


def check_events(events: Iterable[Mapping[str, Any]]) -> None:
    """Raise an error that names the first event that this release does not know."""
    for event in events:
        if event["event"] not in (*DECISIVE, *OTHERS):
            raise RunDirError(
                f"the journal has an event {event['event']!r}, which is unknown here: "
                "use the release that wrote it"
            )


def apply(scheduler: Scheduler, event: Mapping[str, Any]) -> None:
    """Let an event happen to a scheduler."""
    match event["event"]:
        case "started":
            scheduler.repeat(Decision.from_json(event))
        case "result" | "failed":
            _apply_result(scheduler, event)
        case "ended":
            for arm in event["arms"]:
                scheduler.end(arm)
        case "extended":
            scheduler.extend(Budget.from_json(event["budget"]))
        case "advanced":
            scheduler.advance(event["now"], keeps_rest="keeps_rest" in event)
        case "resized":
            scheduler.resize(event["n_jobs"])
        case _:
            check_events([event])


def _apply_result(scheduler: Scheduler, event: Mapping[str, Any]) -> None:
    job, scores = Job.from_json(event["job"]), from_json(event["scores"])
    if job not in scheduler.in_flight:
        raise RunDirError(f"{job} has a result in the journal, and no start before it")
    cost, now = event.get("cost", event.get("elapsed")), event.get("now")
    if "failure" in event:
        scheduler.fail(
            job,
            event["failure"],
            scores,
            cost,
            now=now,
            attempts=event.get("attempts", 1),
            charged=event.get("charged", job.n_epochs),  # as earlier releases did
        )
        return
    scheduler.tell(job, scores, cost, ended=event.get("ended", False), now=now)
