"""What happens to a scheduler, as events of JSON values, and how that is replayed.

Each event names itself (``event``) and how many jobs had been asked for (``asked``):

``told``
    A ``job`` came back with its ``scores``; what it ``cost``, in the unit of the
    budget, or else the seconds that it took (``elapsed``), if that is known; that the
    arm has ``ended``, or the text of its ``failure``.
``started``
    A ``job`` began that was decided elsewhere.
``ended``
    These ``arms`` train no more, though no job said so.
``extended``
    So much was added to the ``budget``.
``advanced``
    The clock stands at ``now``, though no job came back.
``resized``
    So many jobs (``n_jobs``) may be in flight from here on.
``flushed``
    All results that were waiting were recorded.
``stopped``
    Nothing more was started for this ``reason``, though there was budget left; what
    comes next may have been decided under other rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from risingsearch.arms import Job
from risingsearch.budget import Budget
from risingsearch.errors import StateError
from risingsearch.json_values import as_json, from_json
from risingsearch.scheduling.scheduler import Scheduler

Event = dict[str, Any]


def told(job: Job, scores: Sequence[float], n_asked: int) -> Event:
    """Return the event of a job that came back."""
    return {
        "event": "told",
        "asked": n_asked,
        "job": job.to_json(),
        "scores": as_json(list(scores)),
    }


def started(job: Job, n_asked: int) -> Event:
    """Return the event of a job that ``Scheduler.start`` gave."""
    return {"event": "started", "asked": n_asked, "job": job.to_json()}


def ended(arms: Sequence[int], n_asked: int) -> Event:
    """Return the event of arms that ``Scheduler.end`` was told of."""
    return {"event": "ended", "asked": n_asked, "arms": list(arms)}


def extended(budget: int | Budget, n_asked: int) -> Event:
    """Return the event of a larger budget."""
    added = Budget.of(budget).to_json()
    return {"event": "extended", "asked": n_asked, "budget": added}


def advanced(now: float, n_asked: int) -> Event:
    """Return the event of time that passed without a job."""
    return {"event": "advanced", "asked": n_asked, "now": now}


def resized(n_jobs: int, n_asked: int) -> Event:
    """Return the event of another number of jobs in flight."""
    return {"event": "resized", "asked": n_asked, "n_jobs": n_jobs}


def flushed(n_asked: int) -> Event:
    """Return the event of results that no longer waited."""
    return {"event": "flushed", "asked": n_asked}


def stopped(reason: str, n_asked: int) -> Event:
    """Return the event of a search that has found enough."""
    return {"event": "stopped", "asked": n_asked, "reason": reason}


def replay(scheduler: Scheduler, events: Iterable[Mapping[str, Any]]) -> None:
    """Bring a scheduler to where another one was after the last of these events.

    It was made with the same arguments, and is as far as the other was before the first
    event. If it decides otherwise, that is a StateError.

    Examples
    --------
    >>> arguments = {"n_arms": 3, "budget": 8, "max_epochs": 5, "seed": 0}
    >>> live, again = Scheduler(**arguments), Scheduler(**arguments)
    >>> events = []
    >>> for score in (0.1, 0.3, 0.2):
    ...     job = live.ask()
    ...     events.append(told(job, [score], live.n_asked))
    ...     live.tell(job, [score], ended=False)
    >>> replay(again, events)
    >>> again.state_dict() == live.state_dict()
    True
    """
    with scheduler.never_stopping():
        for event in events:
            while scheduler.n_asked < event["asked"]:
                if scheduler.ask() is None:
                    raise not_reproduced("no job can start")
            _repeat(scheduler, event)


def _repeat(scheduler: Scheduler, event: Mapping[str, Any]) -> None:
    match event["event"]:
        case "told":
            _tell_again(scheduler, event)
        case "started":
            arm, _, n_epochs, _ = event["job"]
            scheduler.start(arm, n_epochs)
        case "ended":
            for arm in event["arms"]:
                scheduler.end(arm)
        case "extended":
            scheduler.extend(Budget.from_json(event["budget"]))
        case "advanced":
            scheduler.advance(event["now"])
        case "resized":
            scheduler.resize(event["n_jobs"])
        case "flushed":
            scheduler.flush()


def _tell_again(scheduler: Scheduler, event: Mapping[str, Any]) -> None:
    job, scores = Job.from_json(event["job"]), from_json(event["scores"])
    if job not in scheduler.in_flight:
        raise not_reproduced(f"{job} is not asked for")
    cost, now = event.get("cost", event.get("elapsed")), event.get("now")
    if "failure" in event:
        scheduler.fail(job, event["failure"], scores, cost, now=now)
        return
    scheduler.tell(job, scores, cost, ended=event.get("ended", False), now=now)


def not_reproduced(what: str) -> StateError:
    """Return the error for a journal that leads to other decisions now."""
    return StateError(
        f"the journal cannot be replayed: when its decisions are made again, {what}; "
        "use the release, policy and proposer that it was written with"
    )
