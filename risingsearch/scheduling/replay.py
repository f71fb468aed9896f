"""A search is a fold over its events: how each of them is applied again."""

from collections.abc import Iterable

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


def replay(scheduler: Scheduler, events: Iterable[Event]) -> None:
    """Bring a new scheduler to where another one was after the last of these events."""
    for event in events:
        if isinstance(event, Started | Returned):
            # A start says which results it had seen: no decision is needed to know.
            scheduler.wait_for_starts()
        elif event.changes_scheduler:
            scheduler.wait_no_longer()
        apply(scheduler, event)
    scheduler.wait_no_longer()


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
    if job not in scheduler.in_flight:
        raise RunDirError(f"{job} has a result in the journal, and no start before it")
    if isinstance(event, Failed):
        scheduler.fail(
            job,
            event.failure,
            event.scores,
            event.cost,
            now=event.now,
            attempts=event.attempts,
            charged=event.charged,
        )
    else:
        scheduler.tell(
            job,
            event.scores,
            event.cost,
            ended=event.ended,
            now=event.now,
        )
