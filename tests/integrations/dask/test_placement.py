"""An arm goes on where it is, unless sending it is cheaper."""

from risingsearch.arms import Job
from risingsearch.integrations.dask.placement import Held, Place, Places
from risingsearch.search.trainable import Task


def part(arm, from_epoch=0, behind=0):
    job = Job(arm, from_epoch, 1, 0)
    return Task(job, {}, 0, None, True, False, 1.0, 0.0, behind=behind)


def places(bandwidth=100.0, **threads):
    places = Places(bandwidth)
    places.see(threads)
    return places


def held(address="one", n_bytes=90):
    return Held(address, "token", epoch=2, n_bytes=n_bytes)


def test_parts_go_where_most_threads_are_free():
    two = places(one=1, other=2)
    chosen = [two.begin(part(arm), None).address for arm in range(3)]
    assert chosen == ["other", "one", "other"]


def test_a_part_that_has_ended_leaves_its_thread():
    two = places(one=1, other=2)
    for _ in range(3):
        place = two.begin(part(0), None)
        assert place.address == "other"
        two.end(place)


def test_an_arm_stays_where_it_is():
    two = places(one=1, other=3)
    assert two.begin(part(5, 2), held()) == Place("one", "token")


def test_a_state_of_another_epoch_is_of_no_use():
    two = places(one=1, other=3)
    assert two.begin(part(5, 1), held()) == Place("other", None)
    assert two.begin(part(5, 2, behind=1), held()) == Place("other", None)


def test_an_arm_leaves_a_busy_worker_where_sending_is_faster_than_waiting():
    two = places(one=1, other=1)
    two.took(seconds=1.0)
    two.begin(part(0), None)
    assert two.begin(part(5, 2), held(n_bytes=90)) == Place("other", None)


def test_an_arm_waits_for_a_busy_worker_where_that_is_faster():
    two = places(one=1, other=1)
    two.took(seconds=0.5)
    two.took(seconds=1.5)
    assert two.begin(part(0), None).address == "one"
    assert two.begin(part(5, 2), held(n_bytes=190)) == Place("one", "token")
    # It would be the second that waits there.
    assert two.begin(part(6, 2), held(n_bytes=190)) == Place("other", None)


def test_a_worker_that_has_left_holds_nothing():
    two = places(one=1, other=1)
    two.see({"other": 1})
    assert two.n_threads == 1
    assert two.begin(part(5, 2), held()) == Place("other", None)
