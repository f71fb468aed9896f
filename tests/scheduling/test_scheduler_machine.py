"""A scheduler that is asked in vain, looked at and reloaded, and its undisturbed twin.

The twin hears of what happens only: of jobs that start and come back, of arms that end,
of larger budgets. Whatever hypothesis does to the other one, both stay equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from scheduler_runs import INFOS, Gambler, saved

from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.scheduler import Scheduler

POLICIES: dict[str, Any] = {name: name for name in INFOS} | {"gambler": Gambler.create}
LOOKS: dict[str, Callable[[Scheduler], Any]] = {
    "peek": Scheduler.peek,
    "done": lambda search: search.done,
    "stop_reason": lambda search: search.stop_reason,
    "explain": Scheduler.explain,
    "statuses": Scheduler.statuses,
    "history": lambda search: search.history,
    "expected_end": lambda search: search.expected_end(search.n_arms - 1),
}

arguments = st.fixed_dictionaries(
    {
        "n_arms": st.integers(1, 8),
        "budget": st.integers(1, 25),
        "max_epochs": st.one_of(st.none(), st.integers(1, 9)),
        "epochs_per_job": st.one_of(st.none(), st.integers(1, 3)),
        "deterministic": st.booleans(),
        "n_jobs": st.sampled_from([None, 1, 2, 5, 64]),
        "max_failures": st.integers(0, 1),
        "seed": st.integers(0, 3),
    }
)
picks = st.integers(0, 7)
rewards = st.lists(
    st.one_of(st.floats(-1.0, 1.0), st.just(float("nan"))), min_size=1, max_size=4
)


class Twins(RuleBasedStateMachine):
    search: Scheduler
    twin: Scheduler

    def __init__(self, params: Callable[[str], dict[str, Any]]) -> None:
        super().__init__()
        self.params = params

    @initialize(policy=st.sampled_from([*POLICIES]), arguments=arguments)
    def begin(self, policy: str, arguments: dict[str, Any]) -> None:
        chosen = {"policy": POLICIES[policy], "policy_params": self.params(policy)}
        self.arguments = arguments | chosen
        self.search, self.twin = (Scheduler(**self.arguments) for _ in range(2))

    # ---- what leaves no trace

    @rule()
    def ask(self) -> None:
        job = self.search.ask()
        if job is not None:
            assert self.twin.ask() == job

    @rule(name=st.sampled_from([*LOOKS]))
    def look(self, name: str) -> None:
        LOOKS[name](self.search)

    @rule()
    def reload(self) -> None:
        state = saved(self.search)
        self.search = Scheduler(**self.arguments)
        self.search.load_state_dict(state)

    # ---- what both hear of

    @precondition(lambda self: self.search.in_flight)
    @rule(pick=picks, rewards=rewards, ended=st.booleans(), failed=st.booleans())
    def come_back(
        self, pick: int, rewards: list[float], ended: bool, failed: bool
    ) -> None:
        job = self.search.in_flight[pick % len(self.search.in_flight)]
        scores = rewards[: job.n_epochs]
        for each in (self.search, self.twin):
            if failed:
                each.fail(job, "out of memory", scores)
            else:
                each.tell(job, scores, ended=ended)

    @rule(pick=picks)
    def end(self, pick: int) -> None:
        arm = pick % self.search.n_arms
        if self.search.status(arm) != "running":
            self.search.end(arm)
            self.twin.end(arm)

    @rule(pick=picks)
    def start(self, pick: int) -> None:
        arm = pick % self.search.n_arms
        try:
            job = self.search.start(arm)
        except InvalidParameterError:
            return
        assert self.twin.start(arm) == job

    @rule(more=st.integers(1, 5))
    def extend(self, more: int) -> None:
        self.search.extend(more)
        self.twin.extend(more)

    # ---- what holds

    @invariant()
    def they_are_equal(self) -> None:
        if hasattr(self, "search"):
            assert self.twin.state_dict() == self.search.state_dict()


def test_twins_stay_equal(live_params: Callable[[str], dict[str, Any]]) -> None:
    run_state_machine_as_test(
        lambda: Twins(live_params),
        settings=settings(max_examples=80, stateful_step_count=30),
    )
