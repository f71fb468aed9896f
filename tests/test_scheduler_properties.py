"""Whatever happens, in whatever order: what a search may rely on."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from risingsearch.arms import Budget, Job
from risingsearch.policies import list_policies
from risingsearch.scheduler import Scheduler

INFOS = {info.name: info for info in list_policies()}
NEVER_WAIT = sorted(
    name
    for name, info in INFOS.items()
    if info.adaptive and name not in ("be", "hyperband")
)


def profile(max_examples: int) -> settings:
    return settings(
        max_examples=max_examples, deadline=None, derandomize=True, database=None
    )


# ---------------------------------------------------------------------- what is drawn

scores = st.one_of(
    st.floats(-1.0, 1.0),
    st.sampled_from([0.5, -1e300, 1e300, math.nan, math.inf, -math.inf]),
)


arguments = st.integers(1, 7).flatmap(
    lambda n_arms: st.fixed_dictionaries(
        {
            "n_arms": st.just(n_arms),
            "budget": st.integers(1, 30),
            "max_epochs": st.one_of(st.none(), st.integers(1, 9)),
            "slice": st.one_of(st.none(), st.integers(1, 5)),
            "direction": st.sampled_from(["maximize", "minimize"]),
            "order": st.sampled_from(["completion", "ask"]),
            "n_jobs": st.one_of(st.none(), st.integers(1, 4)),
            "error_score": st.one_of(st.none(), st.just(0.25)),
            "max_failures": st.integers(0, 2),
            "opening_order": st.permutations(range(n_arms)),
            "seed": st.integers(0, 3),
        }
    )
)


class Event(NamedTuple):
    kind: str
    pick: int  # which of the jobs in flight
    share: float  # of its epochs
    scores: list[float]


events = st.lists(
    st.builds(
        Event,
        kind=st.sampled_from(
            ["ask", "ask", "ask", "tell", "tell", "tell", "end", "fail"]
            + ["extend", "reload", "look"]
        ),
        pick=st.integers(0, 5),
        share=st.floats(0.0, 1.0, exclude_max=True),
        scores=st.lists(scores, min_size=1, max_size=6),
    ),
    max_size=50,
)


# ---------------------------------------------------------------------- what is driven


class Drive:
    """A search beside what must hold of it, counted independently.

    ``plain`` lives through the same asks and tells; it is never looked at, never saved.
    """

    def __init__(self, policy: str, arguments: dict[str, Any]) -> None:
        self.policy, self.arguments = policy, arguments
        self.search = Scheduler(policy, **arguments)
        self.plain = Scheduler(policy, **arguments)
        self.budget = arguments["budget"]
        self.charged = [0] * arguments["n_arms"]
        self.trained = [0] * arguments["n_arms"]
        self.failures = [0] * arguments["n_arms"]
        self.ended: set[int] = set()
        self.in_flight: list[Job] = []
        self.n_asked = 0

    @property
    def limit(self) -> int:
        return self.arguments["max_epochs"] or self.budget

    @property
    def reserved(self) -> int:
        return sum(job.n_epochs for job in self.in_flight)

    def free_arms(self) -> list[int]:
        busy = {job.arm for job in self.in_flight}
        return [
            arm
            for arm in range(self.arguments["n_arms"])
            if arm not in busy | self.ended
            and self.charged[arm] < self.limit
            and self.failures[arm] <= self.arguments["max_failures"]
        ]

    def play(self, event: Event) -> None:
        if event.kind == "ask":
            self.ask()
        elif event.kind == "extend":
            self.budget += 1 + event.pick
            self.search.extend(1 + event.pick)
            self.plain.extend(1 + event.pick)
        elif event.kind == "reload":
            self.reload()
        elif event.kind == "look":
            look_at(self.search)
        elif self.in_flight:
            self.bring_back(event)

    def ask(self) -> Job | None:
        job = self.search.ask()
        assert self.plain.ask() == job
        if job is None:
            return None
        assert job.id == self.n_asked
        assert job.arm in self.free_arms()
        assert job.from_epoch == self.trained[job.arm]
        assert 1 <= job.n_epochs <= self.limit - self.charged[job.arm]
        assert sum(self.charged) + self.reserved + job.n_epochs <= self.budget
        self.n_asked += 1
        self.in_flight.append(job)
        assert len(self.in_flight) <= (self.search.n_jobs or math.inf)
        return job

    def bring_back(self, event: Event) -> None:
        job = self.in_flight.pop(event.pick % len(self.in_flight))
        n = job.n_epochs if event.kind == "tell" else int(event.share * job.n_epochs)
        given = [event.scores[k % len(event.scores)] for k in range(n)]
        for search in (self.search, self.plain):
            if event.kind == "fail":
                search.fail(job, "out of memory", given)
            else:
                search.tell(job, given)
        failed = event.kind == "fail"
        self.trained[job.arm] += n
        self.charged[job.arm] += job.n_epochs if failed else n
        self.failures[job.arm] += failed + sum(not math.isfinite(x) for x in given)
        if event.kind == "end":
            self.ended.add(job.arm)

    def reload(self) -> None:
        state = json.loads(json.dumps(self.search.state_dict(), allow_nan=False))
        before = self.search
        self.search = Scheduler(self.policy, **self.arguments)
        self.search.load_state_dict(state)
        assert self.search.state_dict() == before.state_dict() == state
        assert repr(self.search.history) == repr(before.history)

    def finish(self) -> None:
        """Ask and tell until nothing starts any more."""
        while self.ask() is not None or self.in_flight:
            if self.in_flight:
                self.bring_back(Event("tell", 0, 0.0, [0.5]))


def look_at(search: Scheduler) -> None:
    assert search.done == (search.stop_reason is not None)
    assert len(search.explain()) == len(search.statuses()) == search.n_arms
    search.state_dict()
    _ = search.best_arm, search.best_score, search.best_epoch, search.history
    _ = search.spent, search.n_epochs, search.in_flight


# ------------------------------------------------------------------------- what holds


@pytest.mark.parametrize("policy", INFOS)
@profile(max_examples=600)
@given(arguments=arguments, events=events)
def test_promises_hold_whatever_happens(
    policy: str, arguments: dict[str, Any], events: list[Event]
) -> None:
    drive = Drive(policy, arguments)
    for event in events:
        drive.play(event)
        assert drive.search.in_flight == tuple(drive.in_flight)
        assert drive.search.spent <= sum(drive.charged)
    drive.finish()
    assert drive.search.done
    assert drive.search.in_flight == ()
    assert drive.search.spent == drive.search.n_epochs == sum(drive.charged)
    if INFOS[policy].adaptive:
        assert drive.search.spent == drive.budget or not drive.free_arms()
    arms = drive.search.explain()
    assert [arm.epochs for arm in arms] == drive.trained
    assert [arm.charged for arm in arms] == drive.charged
    assert [arm.failures for arm in arms] == drive.failures
    assert drive.plain.done
    assert drive.plain.state_dict() == drive.search.state_dict()
