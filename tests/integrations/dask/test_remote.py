"""What workers keep, and what travels."""

import pickle

import numpy as np
import pytest

from risingsearch.integrations.dask import remote
from risingsearch.integrations.dask.remote import (
    LiveStates,
    SharedTrainable,
    WorkerData,
)


class TestSharedTrainable:
    def test_arrives_whole_and_is_counted(self):
        before = remote._counted()
        data = np.arange(1000.0)
        shared = SharedTrainable.of({"data": data, "name": "digits"})
        arrived = pickle.loads(pickle.dumps(shared, protocol=5))
        assert arrived.trainable["name"] == "digits"
        assert (arrived.trainable["data"] == data).all()
        after = remote._counted()
        assert after["data"] - before["data"] == 1
        assert after["data_bytes"] - before["data_bytes"] == shared.n_bytes

    def test_arrays_are_not_copied_to_be_sent(self):
        data = np.arange(1000.0)
        assert np.shares_memory(SharedTrainable.of([data]).trainable[0], data)

    def test_is_unpickled_once(self):
        shared = SharedTrainable.of({"name": "digits"})
        assert shared.trainable is shared.trainable

    def test_what_training_leaves_in_it_does_not_travel_on(self):
        shared = SharedTrainable.of({"name": "digits"})
        shared.trainable["cache"] = "filled"
        assert pickle.loads(pickle.dumps(shared, protocol=5)).trainable == {
            "name": "digits"
        }

    def test_its_size_is_known_to_dask(self):
        data = np.arange(1000.0)
        assert (
            data.nbytes <= SharedTrainable.of([data]).__sizeof__() < data.nbytes + 1000
        )


def test_what_a_worker_has_of_a_search_is_not_moved():
    data = WorkerData(SharedTrainable.of({"name": "digits"}))
    data.states.put({"epochs": 3}, 10, 100)
    moved = pickle.loads(pickle.dumps(data))
    assert moved.shared is None
    assert not moved.states._states


class TestLiveStates:
    def test_a_state_is_taken_once(self):
        states = LiveStates()
        token = states.put("state", 10, 100)
        assert states.take(token) == "state"
        with pytest.raises(KeyError):
            states.take(token)

    def test_a_token_is_good_for_one_state(self):
        states = LiveStates()
        assert states.put("state", 10, 100) != states.put("state", 10, 100)

    def test_the_last_ones_are_kept_where_room_is_short(self):
        states = LiveStates()
        first, second, third = (states.put(name, 40, 100) for name in "abc")
        with pytest.raises(KeyError):
            states.take(first)
        assert (states.take(second), states.take(third)) == ("b", "c")

    def test_what_is_larger_than_the_room_is_not_kept(self):
        states = LiveStates()
        kept = states.put("a", 40, 100)
        assert states.put("b", 101, 100) is None
        assert states.take(kept) == "a"
