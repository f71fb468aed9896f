"""An arm goes on where it is, unless sending it is cheaper."""

from risingsearch.arms import Job
from risingsearch.integrations.dask.places import Held, Place, Places
from risingsearch.trainable import Task


def part(arm, from_epoch=0, behind=0):
    job = Job(arm, from_epoch, 1, 0)
    return Task(job, {}, 0, None, True, False, 1.0, 0.0, behind=behind)


def places(bandwidth=100.0, **threads):
    places = Places(bandwidth)
    places.see(threads)
    return places


def test_parts_go_where_most_threads_are_free():
    two = places(one=1, other=2)
    assert [two.begin(part(arm)).address for arm in range(3)] == [
        "other",
        "one",
        "other",
    ]


def test_an_arm_stays_where_it_is():
    two = places(one=1, other=3)
    two.hold(5, Held("one", "token", epoch=2, n_bytes=10), seconds=1.0)
    assert two.begin(part(5, 2)) == Place("one", "token")


def test_a_state_of_another_epoch_is_of_no_use():
    two = places(one=1, other=3)
    two.hold(5, Held("one", "token", epoch=2, n_bytes=10), seconds=1.0)
    assert two.begin(part(5, 1)) == Place("other", None)
    assert two.begin(part(5, 2, behind=1)) == Place("other", None)


def test_an_arm_leaves_a_busy_worker_where_sending_is_faster_than_waiting():
    two = places(one=1, other=1)
    two.hold(5, Held("one", "token", epoch=2, n_bytes=90), seconds=1.0)
    two.begin(part(0))
    assert two.begin(part(5, 2)) == Place("other", None)


def test_an_arm_waits_for_a_busy_worker_where_that_is_faster():
    two = places(one=1, other=1)
    two.hold(5, Held("one", "token", epoch=2, n_bytes=190), seconds=1.0)
    two.hold(6, Held("one", "another", epoch=2, n_bytes=190), seconds=1.0)
    first = two.begin(part(0))
    assert first.address == "one"
    assert two.begin(part(5, 2)) == Place("one", "token")
    assert two.begin(part(6, 2)) == Place("other", None)  # it would be the second
    two.end(first)


def test_a_worker_that_has_left_holds_nothing():
    two = places(one=1, other=1)
    two.hold(5, Held("one", "token", epoch=2, n_bytes=90), seconds=1.0)
    two.see({"other": 1})
    assert two.n_threads == 1
    assert two.begin(part(5, 2)) == Place("other", None)


def test_a_state_that_was_let_go_is_not_asked_for():
    two = places(one=1, other=2)
    two.hold(5, Held("one", "token", epoch=2, n_bytes=90), seconds=1.0)
    two.let_go(5)
    assert two.begin(part(5, 2)) == Place("other", None)
