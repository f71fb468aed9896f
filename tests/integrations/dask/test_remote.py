"""What workers keep, and what travels."""

import pickle

import numpy as np
import pytest

from risingsearch.integrations.dask.remote import SharedTrainable, WorkerData


class TestSharedTrainable:
    def test_arrives_whole_and_is_unpickled_once(self):
        data = np.arange(1000.0)
        shared = SharedTrainable.of({"data": data, "name": "digits"})
        arrived = pickle.loads(pickle.dumps(shared, protocol=5))
        assert arrived.trainable["name"] == "digits"
        assert (arrived.trainable["data"] == data).all()
        assert arrived.trainable is arrived.trainable

    def test_arrays_are_not_copied_to_be_sent_and_dask_knows_their_size(self):
        data = np.arange(1000.0)
        shared = SharedTrainable.of([data])
        assert np.shares_memory(shared.trainable[0], data)
        assert data.nbytes <= shared.__sizeof__() < data.nbytes + 1000

    def test_what_training_leaves_in_it_does_not_travel_on(self):
        shared = SharedTrainable.of({"name": "digits"})
        shared.trainable["cache"] = "filled"
        assert pickle.loads(pickle.dumps(shared, protocol=5)).trainable == {
            "name": "digits"
        }


class TestWorkerData:
    @pytest.fixture
    def data(self):
        return WorkerData(SharedTrainable.of({"name": "digits"}), most_bytes=100)

    def test_is_not_moved(self, data):
        token = data.put({"epochs": 3}, 10)
        moved = pickle.loads(pickle.dumps(data))
        assert moved.shared is None
        with pytest.raises(KeyError):
            moved.take(token)

    def test_a_state_is_taken_once_by_its_token(self, data):
        one, other = data.put("state", 10), data.put("state", 10)
        assert one != other
        assert data.take(one) == "state"
        with pytest.raises(KeyError):
            data.take(one)

    def test_the_last_states_are_kept_and_none_that_is_larger_than_the_room(self, data):
        first, second, third = (data.put(name, 40) for name in "abc")
        assert data.put("d", 101) is None
        with pytest.raises(KeyError):
            data.take(first)
        assert (data.take(second), data.take(third)) == ("b", "c")
