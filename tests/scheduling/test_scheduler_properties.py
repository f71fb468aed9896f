"""Whatever happens, in whatever order: what a search may rely on."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_runs import INFOS, Gambler

from risingsearch.arms import Job
from risingsearch.budget import Budget
from risingsearch.scheduling.scheduler import Scheduler

POLICIES = [*INFOS, Gambler]
BY_COST = [*(name for name, info in INFOS.items() if not info.plans_rounds), Gambler]
pytestmark = pytest.mark.slow


def is_adaptive(policy: Any) -> bool:
    return policy is Gambler or INFOS[policy].adaptive


def examples(n: int) -> settings:
    """About ``n`` in all, however many policies there are."""
    return settings(max_examples=max(5, n // len(POLICIES)))


# ------------------------------------------------------------------------ what is drawn
arguments = st.integers(1, 7).flatmap(
    lambda n_arms: st.fixed_dictionaries(
        {
            "n_arms": st.just(n_arms),
            "budget": st.integers(1, 30),
            "max_epochs": st.one_of(st.none(), st.integers(1, 9)),
            "epochs_per_job": st.one_of(st.none(), st.integers(1, 5)),
            "direction": st.sampled_from(["maximize", "minimize"]),
            "deterministic": st.booleans(),
            "n_jobs": st.one_of(st.none(), st.integers(1, 4)),
            "error_score": st.one_of(st.none(), st.just(0.25)),
            "max_failures": st.integers(0, 2),
            "opening_order": st.permutations(range(n_arms)),
            "seed": st.integers(0, 3),
        }
    )
)


class Event(NamedTuple):
    kind: str = "tell"
    pick: int = 0  # which of the jobs in flight
    share: float = 1.0  # of its epochs, where it ends early or fails
    scores: tuple[float, ...] = (0.5,)
    cost: float | None = None

    def scores_of(self, job: Job) -> list[float]:
        n = job.n_epochs if self.kind == "tell" else int(self.share * job.n_epochs)
        return [self.scores[k % len(self.scores)] for k in range(n)]


def an_event(*kinds: str) -> st.SearchStrategy[Event]:
    score = st.one_of(
        st.floats(-1.0, 1.0),
        st.sampled_from([0.5, -1e150, 1e150, math.nan, math.inf, -math.inf]),
    )
    return st.builds(
        Event,
        kind=st.sampled_from(kinds),
        pick=st.integers(0, 5),
        share=st.floats(0.0, 1.0, exclude_max=True),
        scores=st.lists(score, min_size=1, max_size=6).map(tuple),
        cost=st.floats(0.0, 5.0),
    )


RESULTS = ("tell", "tell", "tell", "end", "fail")
ASKS = ("ask", "ask", "ask")


# ----------------------------------------------------------------------- what is driven
def deliver(search: Scheduler, job: Job, event: Event, cost: float | None) -> None:
    """Bring a job back as the event says."""
    if event.kind == "fail":
        search.fail(job, "out of memory", event.scores_of(job), cost)
    else:
        search.tell(job, event.scores_of(job), cost)


class Drive:
    """A search, and beside it what must hold of it, counted independently.

    ``plain`` lives through the same asks and tells; it is never looked at, never saved.
    """

    def __init__(self, policy: Any, arguments: dict[str, Any]) -> None:
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
        return int(self.arguments["max_epochs"] or self.budget)

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
            self.plain.extend(Budget(epochs=1 + event.pick))
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
        for search in (self.search, self.plain):
            deliver(search, job, event, cost=None)
        given, failed = event.scores_of(job), event.kind == "fail"
        self.trained[job.arm] += len(given)
        self.charged[job.arm] += min(len(given) + failed, job.n_epochs)
        self.failures[job.arm] += failed + sum(not math.isfinite(x) for x in given)
        if event.kind == "end" and all(map(math.isfinite, given[-1:])):
            self.ended.add(job.arm)

    def reload(self) -> None:
        state = json.loads(json.dumps(self.search.state_dict(), allow_nan=False))
        before = self.search
        self.search = Scheduler(self.policy, **self.arguments)
        self.search.load_state_dict(state)
        assert self.search.state_dict() == before.state_dict() == state
        assert repr(self.search.history) == repr(before.history)

    def finish(self) -> None:
        while self.ask() is not None or self.in_flight:
            if self.in_flight:
                self.bring_back(Event())


def look_at(search: Scheduler) -> None:
    """Read everything there is to read, and look at the next job."""
    search.peek()
    assert search.opened().wanted in (True, False)
    assert search.done == (search.stop_reason is not None)
    assert len(search.explain()) == len(search.statuses()) == search.n_arms
    json.dumps(search.state_dict(), allow_nan=False)
    assert (search.best_arm is None) == math.isnan(search.best_score)
    assert (search.best_arm is None) == (search.best_epoch == 0)
    assert len(search.history) == search.n_epochs == search.spent <= search.budget


# --------------------------------------------------------------------------- what holds
@pytest.mark.parametrize("policy", POLICIES)
@examples(200)
@given(
    arguments=arguments,
    events=st.lists(
        an_event(*ASKS, *RESULTS, "extend", "reload", "look"), min_size=15, max_size=60
    ),
)
def test_promises_hold_whatever_happens(
    policy: Any, live_params: Any, arguments: dict[str, Any], events: list[Event]
) -> None:
    arguments = arguments | {"policy_params": live_params(policy)}
    drive = Drive(policy, arguments)
    for event in events:
        drive.play(event)
        assert drive.search.in_flight == tuple(drive.in_flight)
    drive.finish()
    assert drive.search.done
    assert drive.search.in_flight == ()
    assert drive.search.spent == drive.search.n_epochs == sum(drive.charged)
    if is_adaptive(policy):
        assert drive.search.spent == drive.budget or not drive.free_arms()
    arms = drive.search.explain()
    assert [arm.epochs for arm in arms] == drive.trained
    assert [arm.charged for arm in arms] == drive.charged
    assert [arm.failures for arm in arms] == drive.failures
    assert drive.plain.done
    assert drive.plain.state_dict() == drive.search.state_dict()


@pytest.mark.parametrize("policy", POLICIES)
@examples(120)
@given(
    arguments=arguments,
    n_jobs=st.integers(1, 5),
    results=st.lists(an_event(*RESULTS), min_size=1, max_size=12),
    picks=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    eager=st.booleans(),
)
def test_in_ask_order_it_does_not_matter_what_finishes_first(
    policy: Any,
    live_params: Any,
    arguments: dict[str, Any],
    n_jobs: int,
    results: list[Event],
    picks: list[int],
    eager: bool,
) -> None:
    arguments = arguments | {"deterministic": True, "n_jobs": n_jobs}
    arguments["policy_params"] = live_params(policy)

    def run(next_to_finish: Callable[[int], int], ask_first: bool) -> Scheduler:
        search = Scheduler(policy, **arguments)
        n_told = 0
        while not search.done:
            while (ask_first or not search.in_flight) and search.ask() is not None:
                pass
            job = search.in_flight[next_to_finish(n_told) % len(search.in_flight)]
            deliver(search, job, results[job.id % len(results)], cost=None)
            n_told += 1
            if not ask_first:
                search.ask()
        return search

    in_order = run(lambda k: 0, ask_first=True)
    shuffled = run(lambda k: picks[k % len(picks)], ask_first=eager)
    assert shuffled.state_dict() == in_order.state_dict()
    assert repr(shuffled.history) == repr(in_order.history)


@pytest.mark.parametrize("policy", POLICIES)
@examples(120)
@given(
    arguments=arguments,
    events=st.lists(an_event(*ASKS, *RESULTS, "extend"), min_size=15, max_size=60),
)
def test_minimising_is_maximising_the_negated_scores(
    policy: Any, live_params: Any, arguments: dict[str, Any], events: list[Event]
) -> None:
    arguments = arguments | {"policy_params": live_params(policy)}
    mirrored = dict(arguments)
    mirrored["direction"] = (
        "minimize" if arguments["direction"] == "maximize" else "maximize"
    )
    if arguments["error_score"] is not None:
        mirrored["error_score"] = -arguments["error_score"]
    search = Drive(policy, arguments)
    mirror = Drive(policy, mirrored)
    for event in events:
        search.play(event)
        mirror.play(event._replace(scores=tuple(-score for score in event.scores)))
        assert mirror.in_flight == search.in_flight
    assert mirror.search.best_arm == search.search.best_arm
    assert mirror.search.best_epoch == search.search.best_epoch
    if search.search.best_arm is not None:
        assert mirror.search.best_score == -search.search.best_score


@pytest.mark.parametrize("policy", ["asha", "cure-ucb", "random", "round-robin"])
@examples(120)
@given(
    arguments=arguments,
    events=st.lists(an_event("ask", *RESULTS, "extend"), min_size=15, max_size=60),
)
def test_in_completion_order_no_worker_waits(
    policy: str, live_params: Any, arguments: dict[str, Any], events: list[Event]
) -> None:
    params = {"policy_params": live_params(policy)}
    drive = Drive(policy, arguments | params | {"deterministic": False, "n_jobs": None})
    for event in events:
        drive.play(event)
        while drive.ask() is not None:
            pass
        left = drive.budget - sum(drive.charged) - drive.reserved
        assert left == 0 or not drive.free_arms()


@pytest.mark.parametrize("policy", BY_COST)
@examples(120)
@given(
    arguments=arguments,
    budget=st.floats(0.5, 40.0),
    max_epochs=st.integers(1, 9),
    events=st.lists(an_event(*ASKS, *RESULTS), min_size=15, max_size=60),
)
def test_a_job_starts_only_while_its_expected_cost_fits(
    policy: Any,
    live_params: Any,
    arguments: dict[str, Any],
    budget: float,
    max_epochs: int,
    events: list[Event],
) -> None:
    own = {
        "budget": Budget(cost=budget),
        "max_epochs": max_epochs,
        "policy_params": live_params(policy),
    }
    search = Scheduler(policy, **(arguments | own | {"deterministic": False}))
    n_epochs = [0] * search.n_arms
    paid = [0.0] * search.n_arms
    spent = 0.0

    def expected(job: Job, n: int | None = None) -> float:
        n = job.n_epochs if n is None else n
        if n_epochs[job.arm]:
            return n * paid[job.arm] / n_epochs[job.arm]
        return n * sum(paid) / max(1, sum(n_epochs))

    def left() -> float:
        return budget - spent - sum(expected(job) for job in search.in_flight)

    for event in events:
        if event.kind == "ask":
            job = search.ask()
            if job is not None:
                assert left() >= -1e-9
                assert left() + expected(job) > 0.0
        elif search.in_flight:
            job = search.in_flight[event.pick % len(search.in_flight)]
            cost = event.cost if event.kind != "fail" or event.pick else None
            n_trained = min(job.n_epochs, len(event.scores_of(job)) + 1)
            spent += expected(job, n_trained) if cost is None else cost
            deliver(search, job, event, cost)
            if event.kind != "fail" and event.scores_of(job):
                n_epochs[job.arm] += len(event.scores_of(job))
                paid[job.arm] += cost or 0.0
        assert search.spent == pytest.approx(spent)
    restored = Scheduler(policy, **(arguments | own | {"deterministic": False}))
    restored.load_state_dict(
        json.loads(json.dumps(search.state_dict(), allow_nan=False))
    )
    assert restored.state_dict() == search.state_dict()
    while (job := search.ask()) is not None:
        assert restored.ask() == job
        for each in (search, restored):
            each.tell(job, [0.5] * job.n_epochs, cost=float(job.n_epochs))
