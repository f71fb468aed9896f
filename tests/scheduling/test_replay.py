"""A scheduler that replays the events of another one ends where that one is."""

import json
import random
from dataclasses import replace

import pytest

from risingsearch.budget import Budget
from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.policies.stationary.baselines import RoundRobin
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
    Stopped,
    TrialOpened,
    TrialReported,
    event_of,
)
from risingsearch.scheduling.replay import apply, replay
from risingsearch.scheduling.scheduler import Scheduler

ARGUMENTS = {"n_arms": 12, "budget": 40, "max_epochs": 9, "seed": 1}


def live(scheduler, seed, more=2):
    """Play a scheduler to its end, with all that can happen; return the events."""
    draw, jobs, events = random.Random(seed), [], []

    def happen(event):
        apply(scheduler, event)
        events.append(event)

    while True:
        while len(jobs) < 3 and (job := scheduler.ask()) is not None:
            jobs.append(job)
            events.append(scheduler.why(job))
        if draw.random() < 0.2:
            arm = draw.randrange(scheduler.n_arms)
            scheduler.peek()
            try:
                jobs.append(scheduler.start(arm, draw.choice([None, 1])))
                events.append(scheduler.why(jobs[-1]))
            except InvalidParameterError:
                if scheduler.status(arm) != "running" and draw.random() < 0.3:
                    happen(Ended(arms=[arm]))
        elif jobs:
            job = jobs.pop(draw.randrange(len(jobs)))
            n_scores = job.n_epochs - (draw.random() < 0.3)
            scores = [draw.random() + 0.1 * job.arm for _ in range(n_scores)]
            event = Returned(job=job, scores=tuple(scores), elapsed=0.5, cost=0.5)
            if draw.random() < 0.2:
                charged = min(len(scores) + 1, job.n_epochs)
                failed = Failed(
                    **vars(event) | {"failure": "broken", "charged": charged}
                )
                events.append(failed)
                scheduler.fail(job, "broken", scores, 0.5)
            else:
                is_over = draw.random() < 0.5
                events.append(replace(event, ended=is_over))
                scheduler.tell(job, scores, 0.5, ended=is_over)
        elif more:
            more -= 1
            if scheduler.n_jobs is not None:
                happen(Resized(n_jobs=scheduler.n_jobs - 2))
            added = {"seconds": 3.0} if scheduler.unit != "epochs" else {"epochs": 5}
            happen(Extended(budget=Budget(**added)))
        else:
            return events


def travelled(events):
    """Return the events after a trip through JSON."""
    lines = [json.dumps(event.to_json(), allow_nan=False) for event in events]
    found = [event_of(json.loads(line)) for line in lines]
    assert [replace(event, round=0) for event in events if event.name == "started"] == [
        event for event in found if event.name == "started"
    ]
    return found


def elsewhere(event):
    """Return the start of a job of an arm that there is not."""
    return replace(event, job=replace(event.job, arm=99))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"deterministic": True, "n_jobs": 5},
        {"policy": "asha", "max_failures": 1},
        {"policy": "epsilon-greedy", "direction": "minimize"},
        {"budget": Budget(seconds=12.0)},
    ],
)
def test_it_ends_where_the_live_one_is(seed, changes):
    scheduler, again = (Scheduler(**ARGUMENTS | changes) for _ in range(2))
    events = live(scheduler, seed)
    replay(again, travelled(events))
    assert again.state_dict() == scheduler.state_dict()
    assert repr(again.history) == repr(scheduler.history)
    names = {event.name for event in events}
    assert {"result", "failed", "started", "extended"} <= names


def test_it_goes_on_from_a_state():
    scheduler, half, again = (Scheduler(**ARGUMENTS) for _ in range(3))
    events = live(scheduler, seed=0)
    replay(half, events[:7])
    again.load_state_dict(half.state_dict())
    replay(again, events[7:])
    assert again.state_dict() == scheduler.state_dict()


@pytest.mark.parametrize("deterministic", [True, False])
def test_another_number_of_jobs_is_in_flight_from_then_on(deterministic):
    scheduler, again = (
        Scheduler(**ARGUMENTS, deterministic=deterministic, n_jobs=2) for _ in range(2)
    )
    jobs = [scheduler.ask(), scheduler.ask()]
    assert scheduler.ask() is None
    scheduler.resize(3)
    jobs.append(scheduler.ask())
    assert None not in jobs
    scheduler.resize(1)
    again.load_state_dict(scheduler.state_dict())
    for one in (scheduler, again):
        for job in jobs[:2]:
            one.tell(job, [0.5] * job.n_epochs)
            assert one.ask() is None
        one.tell(jobs[2], [0.5] * jobs[2].n_epochs)
        assert one.ask() is not None
        assert one.ask() is None
    assert again.state_dict() == scheduler.state_dict()
    with pytest.raises(InvalidParameterError, match="n_jobs must be"):
        scheduler.resize(0)


def test_time_passes_without_a_job():
    arguments = ARGUMENTS | {"budget": Budget(wall_seconds=9.0)}
    scheduler, again = (Scheduler(**arguments) for _ in range(2))
    scheduler.advance(9.0)
    replay(again, [Advanced(now=9.0)])
    assert again.ask() is None
    assert again.state_dict() == scheduler.state_dict()
    scheduler.advance(5.0)
    assert scheduler.spent == 9.0
    with pytest.raises(InvalidParameterError, match="now is for a budget of wall"):
        Scheduler(**ARGUMENTS).advance(1.0)


@pytest.mark.parametrize(
    ("decided", "asked"),
    [
        ("cure-ucb", {"policy": "asha"}),
        ("asha", {"policy": "round-robin", "deterministic": True, "n_jobs": 5}),
        ("looks-then-slope", {"policy": "epsilon-greedy"}),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_recorded_decisions_win_over_those_of_another_policy(decided, asked, seed):
    made = ARGUMENTS | asked
    scheduler = Scheduler(**made | {"policy": decided})
    events = live(scheduler, seed)
    again = Scheduler(**made)
    replay(again, travelled(events))
    assert again.in_flight == scheduler.in_flight
    assert again.spent == scheduler.spent
    assert repr(again.history) == repr(scheduler.history)


OTHER_EVENTS = [
    Ended(arms=[5]),
    Extended(budget=Budget(wall_seconds=3.0)),
    Advanced(now=1.0),
    Resized(n_jobs=2),
    TrialOpened(arm=3, trial="a1", params={}),
    TrialReported(trial="a1", epoch=1, score=0.5, result={}, number=None, safe=True),
    Died(jobs=[0]),
    Released(),
    Stopped(reason="the patience is exhausted"),
    Repeated(arm=3, number=0, scores=(0.5,), elapsed=0.25, cost=1.0),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_event_says_whether_it_changes_a_scheduler(kind):
    budget = Budget(wall_seconds=40.0)
    scheduler = Scheduler(**ARGUMENTS | {"budget": budget, "n_jobs": 3})
    job = scheduler.ask()
    returned = Returned(job=job, scores=(0.5,) * job.n_epochs, now=1.0)
    events = {event.name: event for event in OTHER_EVENTS} | {
        "started": replace(scheduler.why(job), job=scheduler.peek()),
        "result": returned,
        "failed": Failed(**vars(returned), failure="broken", charged=job.n_epochs),
    }
    before = scheduler.state_dict()
    apply(scheduler, events[kind])
    assert (scheduler.state_dict() != before) == KINDS[kind].changes_scheduler


@pytest.mark.parametrize("asked", ["hyperband", "successive-halving"])
@pytest.mark.parametrize("seed", range(3))
def test_an_event_that_changes_no_scheduler_may_come_at_any_time(asked, seed):
    made = ARGUMENTS | {"policy": asked, "deterministic": True, "n_jobs": 5}
    events = live(Scheduler(**made | {"policy": "cure-ucb"}), seed)
    without, among = Scheduler(**made), Scheduler(**made)
    replay(without, events)
    notes = [event for event in OTHER_EVENTS if not event.changes_scheduler]
    replay(among, [each for event in events for each in [*notes, event]])
    assert among.state_dict() == without.state_dict()
    assert repr(among.history) == repr(without.history)


@pytest.mark.parametrize(
    "damage",
    [
        lambda events: events.pop(0),
        lambda events: events.insert(0, events[1]),
        lambda events: events.insert(0, elsewhere(events.pop(0))),
    ],
)
def test_events_that_do_not_follow_each_other_are_damage(damage):
    events = live(Scheduler(**ARGUMENTS), seed=0)
    damage(events)
    with pytest.raises(RunDirError, match="journal"):
        replay(Scheduler(**ARGUMENTS), events)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_replay_in_order_asks_the_policy_nothing(n_jobs):
    class Asked(RoundRobin):
        n_selected = 0

        def select(self, t, rng):
            Asked.n_selected += 1
            return super().select(t, rng)

    arguments = {
        "n_arms": 9,
        "budget": 40,
        "seed": 0,
        "deterministic": True,
        "n_jobs": n_jobs,
    }
    scheduler, again = (Scheduler(Asked.create, **arguments) for _ in range(2))
    events, jobs = [], []
    while (job := scheduler.ask()) is not None or jobs:
        if job is not None:
            jobs.append(job)
            events.append(scheduler.why(job))
            continue
        job = jobs.pop()
        scores = (0.1 * job.arm,) * job.n_epochs
        events.append(Returned(job=job, scores=scores))
        scheduler.tell(job, scores)
    Asked.n_selected = 0
    replay(again, events)
    assert Asked.n_selected == 0
    assert again.state_dict() == scheduler.state_dict()
