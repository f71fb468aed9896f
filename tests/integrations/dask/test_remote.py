"""What workers keep, and what travels."""

import pickle

import numpy as np
import pytest

from risingsearch.integrations.dask import remote
from risingsearch.integrations.dask.remote import KeptStates, Sent, There


class TestSent:
    def test_arrives_whole_and_is_counted(self):
        before = remote._counted()
        data = np.arange(1000.0)
        sent = Sent.of({"data": data, "name": "digits"})
        arrived = pickle.loads(pickle.dumps(sent, protocol=5))
        assert arrived.trainable["name"] == "digits"
        assert (arrived.trainable["data"] == data).all()
        after = remote._counted()
        assert after["data"] - before["data"] == 1
        assert after["data_bytes"] - before["data_bytes"] == sent.n_bytes

    def test_arrays_are_not_copied_to_be_sent(self):
        data = np.arange(1000.0)
        assert np.shares_memory(Sent.of([data]).trainable[0], data)

    def test_is_unpickled_once(self):
        sent = Sent.of({"name": "digits"})
        assert sent.trainable is sent.trainable

    def test_what_training_leaves_in_it_does_not_travel_on(self):
        sent = Sent.of({"name": "digits"})
        sent.trainable["cache"] = "filled"
        assert pickle.loads(pickle.dumps(sent, protocol=5)).trainable == {
            "name": "digits"
        }

    def test_its_size_is_known_to_dask(self):
        data = np.arange(1000.0)
        assert data.nbytes <= Sent.of([data]).__sizeof__() < data.nbytes + 1000


def test_what_a_worker_has_of_a_search_is_not_moved():
    there = There(Sent.of({"name": "digits"}))
    there.states.put({"epochs": 3}, 10, 100)
    moved = pickle.loads(pickle.dumps(there))
    assert moved.sent is None
    assert not moved.states._states


class TestKeptStates:
    def test_a_state_is_taken_once(self):
        states = KeptStates()
        token = states.put("state", 10, 100)
        assert states.take(token) == "state"
        with pytest.raises(KeyError):
            states.take(token)

    def test_a_token_is_good_for_one_state(self):
        states = KeptStates()
        assert states.put("state", 10, 100) != states.put("state", 10, 100)

    def test_the_last_ones_are_kept_where_room_is_short(self):
        states = KeptStates()
        first, second, third = (states.put(name, 40, 100) for name in "abc")
        with pytest.raises(KeyError):
            states.take(first)
        assert (states.take(second), states.take(third)) == ("b", "c")

    def test_what_is_larger_than_the_room_is_not_kept(self):
        states = KeptStates()
        kept = states.put("a", 40, 100)
        assert states.put("b", 101, 100) is None
        assert states.take(kept) == "a"
