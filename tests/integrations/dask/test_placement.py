"""An arm goes on where it is while a thread is free there."""

from risingsearch.arms import Job
from risingsearch.integrations.dask.placement import Assignment, HeldState, Placement
from risingsearch.search.training import Task


def task(arm, from_epoch=0, behind=0):
    job = Job(arm, from_epoch, 1, 0)
    return Task(job, {}, 0, None, True, False, 1.0, 0.0, epochs_missing=behind)


def workers(**threads):
    placement = Placement()
    placement.threads = threads
    return placement


HELD = HeldState("one", "token", epoch=2)


def test_jobs_go_where_most_threads_are_free():
    two = workers(one=1, other=2)
    chosen = [two.assign(task(arm), None).address for arm in range(3)]
    assert chosen == ["other", "one", "other"]


def test_a_job_that_has_ended_leaves_its_thread():
    two = workers(one=1, other=2)
    for _ in range(3):
        assignment = two.assign(task(0), None)
        assert assignment.address == "other"
        two.release(assignment)


def test_an_arm_stays_where_it_is():
    two = workers(one=1, other=3)
    assert two.assign(task(5, 2), HELD) == Assignment("one", "token")


def test_a_state_of_another_epoch_is_of_no_use():
    two = workers(one=1, other=3)
    assert two.assign(task(5, 1), HELD) == Assignment("other", None)
    assert two.assign(task(5, 2, behind=1), HELD) == Assignment("other", None)


def test_an_arm_leaves_a_busy_worker():
    two = workers(one=1, other=1)
    assert two.assign(task(0), None).address == "one"
    assert two.assign(task(5, 2), HELD) == Assignment("other", None)


def test_a_worker_that_has_left_holds_nothing():
    two = workers(one=1, other=1)
    two.threads = {"other": 1}
    assert two.n_threads == 1
    assert two.assign(task(5, 2), HELD) == Assignment("other", None)
