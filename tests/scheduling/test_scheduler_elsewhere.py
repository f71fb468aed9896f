"""Decisions made elsewhere: ``peek``, ``start``, ``end``."""

import pytest

from risingsearch import Scheduler
from risingsearch.errors import InvalidParameterError


def scheduler(**options):
    given = {"n_arms": 4, "budget": 20, "max_epochs": 8, "seed": 0}
    return Scheduler(**given | options)


def train(search, job):
    epochs = range(job.from_epoch + 1, job.from_epoch + job.n_epochs + 1)
    search.tell(job, [(job.arm + 1) * (1 - 1 / (epoch + 1)) for epoch in epochs])


def test_what_is_peeked_at_is_what_is_asked_for_and_why():
    looked, blind = scheduler(), scheduler()
    while (job := looked.peek()) is not None:
        assert looked.peek() == job == looked.ask() == blind.ask()
        why = looked.why(job)
        train(looked, job)
        train(blind, job)
        row = looked.history[-job.n_epochs]
        assert row["reason"] == why.reason
        assert {name: row[name] for name in why.parts} == why.parts
    assert looked.spent == 20
    assert looked.state_dict() == blind.state_dict()


def test_why_takes_no_job_that_is_over():
    over = scheduler()
    job = over.ask()
    train(over, job)
    with pytest.raises(InvalidParameterError, match="was told before"):
        over.why(job)


def test_following_another_scheduler_leads_to_the_same_decisions():
    leader, follower = scheduler(), scheduler()
    while (job := leader.ask()) is not None:
        assert follower.start(job.arm, job.n_epochs) == job
        train(leader, job)
        train(follower, job)
    assert follower.done
    assert follower.best_arm == leader.best_arm
    assert [a.epochs for a in follower.explain()] == [
        a.epochs for a in leader.explain()
    ]


def test_what_is_started_elsewhere_is_reserved():
    search = scheduler(budget=10)
    jobs = [search.start(0, 6), search.start(1, 4)]
    assert search.ask() is None
    with pytest.raises(
        InvalidParameterError, match="arm 2 can get 0 epochs now at most"
    ):
        search.start(2, 1)
    search.tell(jobs[0], [0.1, 0.2])
    assert search.start(2, 4).from_epoch == 0


def test_by_default_the_policy_says_how_long():
    search = scheduler()
    assert search.start(1).n_epochs == search.peek().n_epochs == 1
    assert scheduler(epochs_per_job=5).start(1).n_epochs == 5


def test_what_has_failed_and_finished_cannot_start():
    ended, used_up = scheduler(policy="round-robin"), scheduler(max_epochs=1)
    for search in (ended, used_up):
        search.fail(search.ask(), "broken")
    ended.end(0)
    for search in (ended, used_up):
        with pytest.raises(
            InvalidParameterError, match="neither in training nor finished"
        ):
            search.start(0)


def test_what_cannot_start_changes_nothing():
    search = scheduler()
    search.start(0, 1)
    train(search, search.start(1, 8))
    before = search.state_dict()
    for arm, n_epochs, message in [
        (0, 1, "arm 0 cannot start"),
        (1, 1, "arm 1 cannot start"),
        (4, 1, "takes an arm below 4"),
        (2, 9, "arm 2 can get 8 epochs now at most; got n_epochs=9"),
    ]:
        with pytest.raises(InvalidParameterError, match=message):
            search.start(arm, n_epochs)
    with pytest.raises(InvalidParameterError, match="n_epochs must be a whole number"):
        search.start(2, 0)
    assert search.state_dict() == before


def test_a_retired_arm_comes_back_until_it_fails_again():
    search = scheduler()
    search.fail(search.start(0, 2), "its machine was lost")
    assert search.explain()[0].status == "failed"
    again = search.start(0, 2)
    assert again.from_epoch == 0
    search.fail(again, "and again")
    assert search.explain()[0].status == "failed"
    train(search, search.start(0, 2))
    assert search.explain()[0].status == "paused"
    assert search.spent == 1 + 1 + 2


def test_an_arm_that_has_ended_is_not_asked_for():
    search = scheduler(n_arms=1)
    train(search, search.start(0, 2))
    search.end(0)
    assert search.explain()[0].status == "finished"
    assert search.done
    assert search.spent == 2


def test_an_arm_whose_result_no_decision_has_seen_yet_can_end():
    search = scheduler(n_arms=2, deterministic=True, n_jobs=2)
    first, second = search.ask(), search.ask()
    train(search, second)
    assert search.status(second.arm) == "running"  # the result of the first is missing
    search.end(second.arm)
    with pytest.raises(InvalidParameterError, match="does not train"):
        search.end(first.arm)
    train(search, first)
    arm = search.with_all_results().explain()[second.arm]
    assert (arm.status, arm.reason) == ("finished", "ended before its last epoch")


def test_an_arm_in_training_ends_by_its_job():
    search = scheduler()
    search.start(0, 2)
    for arm in (0, 4):
        with pytest.raises(InvalidParameterError, match=f"does not train; got {arm}"):
            search.end(arm)
