"""A search is a fold over its events: how each of them is applied again."""

from collections.abc import Iterable, Sequence

from risingsearch.arms import Job
from risingsearch.errors import RunDirError
from risingsearch.scheduling.events import (
    Advanced,
    Ended,
    Event,
    Extended,
    Failed,
    Resized,
    Returned,
    Started,
)
from risingsearch.scheduling.scheduler import Scheduler


def result(
    job: Job,
    scores: Sequence[float],
    failure: str | None = None,
    charged: int | None = None,
) -> Returned:
    """Return the event of a job that came back, as ``tell`` or ``fail`` takes it."""
    told = tuple(scores)
    if failure is None:
        return Returned(job=job, scores=told)
    if charged is None:
        charged = min(len(told) + 1, job.n_epochs)
    return Failed(job=job, scores=told, failure=failure, charged=charged)


def replay(scheduler: Scheduler, events: Iterable[Event]) -> None:
    """Bring a new scheduler to where another one was after the last of these events."""
    for event in events:
        # A start says which results it had seen: no decision is needed to know.
        scheduler.wait_for_starts(isinstance(event, Started | Returned))
        apply(scheduler, event)
    scheduler.wait_for_starts(False)


def apply(scheduler: Scheduler, event: Event) -> None:
    """Let an event happen to a scheduler, if it changes one."""
    match event:
        case Started():
            scheduler.repeat(event)
        case Returned():
            _apply_result(scheduler, event)
        case Ended():
            for arm in event.arms:
                scheduler.end(arm)
        case Extended():
            scheduler.extend(event.budget)
        case Advanced():
            scheduler.advance(event.now, keeps_rest=event.keeps_rest)
        case Resized():
            scheduler.resize(event.n_jobs)


def _apply_result(scheduler: Scheduler, event: Returned) -> None:
    job = event.job
    scores = event.scores
    cost = event.cost
    now = event.now
    if job not in scheduler.in_flight:
        raise RunDirError(f"{job} has a result in the journal, and no start before it")
    if isinstance(event, Failed):
        scheduler.fail(
            job,
            event.failure,
            scores,
            cost,
            now=now,
            attempts=event.attempts,
            charged=event.charged,
        )
    else:
        scheduler.tell(
            job,
            scores,
            cost,
            ended=event.ended,
            now=now,
        )
