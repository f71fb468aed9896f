"""What an arm gets when it is opened, and which arms are opened first."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_runs import INFOS, ask, finish, rising, saved, scores_of, scripted
from test_scheduler_properties import ASKS, RESULTS, Drive, Event, an_event, arguments

from risingsearch.budget import Budget
from risingsearch.errors import InvalidParameterError
from risingsearch.proposers import Proposer
from risingsearch.scheduling.policy_choice import choose_policy
from risingsearch.scheduling.scheduler import Scheduler


def opened(scheduler: Scheduler) -> list[int]:
    """The arms in the order in which they were opened."""
    return list(dict.fromkeys(row["arm"] for row in scheduler.history))


@st.composite
def with_openings(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of a scheduler with a grace period and arms that come first."""
    drawn = dict(draw(arguments))
    most = min(drawn["max_epochs"] or drawn["budget"], drawn["budget"])
    drawn["min_epochs"] = draw(st.integers(1, most))
    order = draw(st.permutations(range(drawn["n_arms"])))
    n_first = min(drawn["n_arms"], drawn["budget"] // drawn["min_epochs"])
    drawn["enqueue"] = order[: draw(st.integers(0, n_first))]
    return drawn


@settings(max_examples=30)
@given(
    policy=st.sampled_from(list(INFOS)),
    drawn=with_openings(),
    events=st.lists(
        an_event(*ASKS, *RESULTS, "extend", "reload", "look"), min_size=15, max_size=60
    ),
)
def test_whatever_happens_arms_get_what_they_are_promised(
    live_params: Any, policy: str, drawn: dict[str, Any], events: list[Event]
) -> None:
    drive = Drive(policy, drawn | {"policy_params": live_params(policy)})
    starts = []
    for event in events:
        drive.play(event)
        starts += [job.arm for job in drive.in_flight if job.from_epoch == 0]
    drive.finish()
    assert drive.search.done
    assert drive.search.spent == sum(drive.charged) <= drive.budget
    assert drive.plain.state_dict() == drive.search.state_dict()
    for arm in drive.search.explain():
        if arm.charged and not arm.failures and arm.arm not in drive.ended:
            assert arm.epochs >= drawn["min_epochs"]
    first = list(dict.fromkeys(starts))[: len(drawn["enqueue"])]
    assert first == drawn["enqueue"][: len(first)]


@pytest.mark.parametrize("policy", list(INFOS))
def test_every_policy_goes_on_after_the_grace_period(
    policy: str, live_params: Any
) -> None:
    arguments = {"n_arms": 8, "budget": 60, "max_epochs": 12, "seed": 0}
    arguments |= {"policy_params": live_params(policy), "min_epochs": 4}
    search = Scheduler(policy, **arguments)
    jobs = finish(search)
    assert all(job.n_epochs >= 4 for job in jobs if job.from_epoch == 0)
    assert search.n_epochs == 60 or not INFOS[policy].adaptive
    again = Scheduler(policy, **arguments)
    for _ in range(3):
        again.tell(job := ask(again), scores_of(job))
    twin = Scheduler(policy, **arguments)
    twin.load_state_dict(saved(again))
    assert finish(twin) == finish(again)


def test_the_policy_is_told_every_epoch_of_the_grace_period() -> None:
    calls: list[tuple[Any, ...]] = []
    search = Scheduler(scripted(calls), n_arms=2, budget=8, min_epochs=3)
    finish(search, lambda arm, epoch: 10.0 * arm + epoch)
    assert [call for call in calls if call[0] == "update"] == [
        ("update", 1, 0, 1.0),
        ("update", 2, 0, 2.0),
        ("update", 3, 0, 3.0),
        ("update", 4, 1, 11.0),
        ("update", 5, 1, 12.0),
        ("update", 6, 1, 13.0),
        ("update", 7, 0, 4.0),
        ("update", 8, 1, 14.0),
    ]
    assert [call[1] for call in calls if call[0] == "select"] == [1, 4, 7, 8]


def test_a_first_job_that_was_cut_short_goes_on_before_the_policy_is_asked() -> None:
    search = Scheduler(scripted(), n_arms=3, budget=12, min_epochs=4)
    search.tell(ask(search), [0.1], ended=False)
    job = ask(search)
    assert (job.arm, job.from_epoch, job.n_epochs) == (0, 1, 3)
    assert search.history[0]["reason"] == "opened"


def test_an_arm_that_failed_is_tried_again_before_another_is_opened() -> None:
    search = Scheduler(scripted(), n_arms=3, budget=20, min_epochs=4, max_failures=1)
    search.fail(ask(search), "out of memory", [0.1, 0.2])
    job = ask(search)
    assert (job.arm, job.from_epoch, job.n_epochs) == (0, 2, 2)
    search.tell(job, [0.3, 0.4])
    assert ask(search).arm == 1


def test_a_first_job_is_no_shorter_than_the_grace_period_whatever_slice_says() -> None:
    search = Scheduler(n_arms=3, budget=20, epochs_per_job=1, min_epochs=5)
    jobs = finish(search)
    assert {job.n_epochs for job in jobs if job.from_epoch == 0} == {5}
    assert {job.n_epochs for job in jobs if job.from_epoch > 0} <= {1}


def test_no_arm_is_opened_that_the_budget_cannot_judge() -> None:
    search = Scheduler("round-robin", n_arms=5, budget=11, max_epochs=4, min_epochs=4)
    finish(search)
    assert [arm.epochs for arm in search.explain()] == [4, 4, 0, 0, 0]
    assert search.stop_reason == (
        "what is left trains no new arm for min_epochs=4, 3 of 11 epochs left"
    )
    search.extend(1)
    assert finish(search)[0].arm == 2
    assert search.stop_reason == "the budget of 12 epochs is spent"


def test_the_default_policy_plans_its_looks_for_the_grace_period() -> None:
    chosen = choose_policy("auto", 300, 30, min_epochs=6)
    assert chosen.parameters["shortest_look"] == 6
    assert chosen.n_opened == 22
    search = Scheduler(n_arms=50, budget=300, max_epochs=30, min_epochs=6, seed=0)
    finish(search)
    n_epochs = [arm.epochs for arm in search.explain() if arm.epochs]
    assert len(n_epochs) < 30
    assert max(n_epochs) == 30
    assert choose_policy(
        "auto", 300, 30, min_epochs=6, parameters={"shortest_look": 2}
    ).parameters == {"shortest_look": 2}


@pytest.mark.parametrize("policy", list(INFOS))
def test_what_is_enqueued_is_opened_first_whatever_the_policy(
    policy: str, live_params: Any
) -> None:
    search = Scheduler(
        policy,
        n_arms=9,
        budget=50,
        max_epochs=9,
        policy_params=live_params(policy),
        enqueue=[7, 3, 5],
        min_epochs=2,
        seed=0,
    )
    finish(search)
    assert opened(search)[:3] == [7, 3, 5]
    reasons = [row["reason"] for row in search.history if row["epoch"] == 1]
    assert reasons[:3] == ["opened as enqueued"] * 3
    assert "opened as enqueued" not in reasons[3:]
    assert all(search.explain()[arm].epochs >= 2 for arm in (7, 3, 5))


def test_a_proposer_comes_after_what_is_enqueued() -> None:
    class Last(Proposer):
        def propose(self, opened: Any, unopened: Any, rng: Any) -> int:
            return int(unopened[-1])

    search = Scheduler(
        scripted(), n_arms=6, budget=6, enqueue=[2, 1], proposer=Last(), seed=0
    )
    finish(search)
    assert opened(search) == [2, 1, 5, 4, 3, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_epochs": 0}, "min_epochs must be a whole number of at least 1; got 0"),
        ({"min_epochs": 6}, "min_epochs is at most max_epochs=5; got 6"),
        (
            {"min_epochs": 4, "budget": 3},
            "a budget of 3 epochs is less than the 4 that min_epochs=4 of 1 "
            "configuration",
        ),
        (
            {"min_epochs": 5, "enqueue": [0, 1, 2]},
            "a budget of 12 epochs is less than the 15 that min_epochs=5 of 3 "
            "configurations cost: raise the budget, or lower min_epochs or the number "
            "enqueued",
        ),
        ({"enqueue": [6]}, "enqueue must name some of the 6 arms once; got [6]"),
        ({"enqueue": [1, 1]}, "enqueue must name some of the 6 arms once; got [1, 1]"),
    ],
)
def test_what_cannot_be_promised_is_refused(
    given: dict[str, Any], message: str
) -> None:
    made = {"n_arms": 6, "budget": 12, "max_epochs": 5}
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        Scheduler(**made | given)


def test_a_budget_in_time_promises_no_more_than_there_is_time_for() -> None:
    search = Scheduler(
        n_arms=6, budget=Budget(seconds=10), max_epochs=8, min_epochs=4, enqueue=[5, 3]
    )
    while (job := search.ask()) is not None:
        assert job.from_epoch or job.n_epochs >= 4
        search.tell(job, [rising(job.arm, 1)] * job.n_epochs, cost=0.8 * job.n_epochs)
    assert opened(search)[:2] == [5, 3]
    assert math.isclose(search.spent, 9.6)
