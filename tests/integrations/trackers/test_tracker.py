import pytest
from searching import a_search

from risingsearch.integrations.trackers.background import Log
from risingsearch.integrations.trackers.tracker import Tracker


class Store(Tracker):
    """Keeps what is logged; fails as long as there are ``failures`` left."""

    def __init__(self, failures=0, opening_fails=False):
        super().__init__()
        self.failures, self.opening_fails = failures, opening_fails
        self.logged = []
        self.closed = []

    def check(self):
        pass

    def open(self, search):
        if self.opening_fails:
            raise ConnectionError("the store is gone")
        return _Log(self)


class _Log(Log):
    def __init__(self, store):
        self.store = store

    def write(self, epochs):
        if self.store.failures:
            self.store.failures -= 1
            raise ConnectionError("the store is away")
        self.store.logged += epochs

    def close(self, search):
        self.store.closed.append(search)


def test_all_epochs_and_the_end_are_logged_when_the_search_returns():
    store = Store()
    result = a_search(store).run()
    told = [(epoch.arm, epoch.epoch, epoch.score) for epoch in store.logged]
    assert told == [(row["arm"], row["epoch"], row["score"]) for row in result.history]
    [end] = store.closed
    assert (end.best_arm, end.best_score) == (result.best_arm, result.best_score)


def test_at_ctrl_c_all_is_logged():
    def interrupt(search, report):
        if report.job.id == 4:
            raise KeyboardInterrupt

    store = Store()
    search = a_search(store, interrupt)
    with pytest.raises(KeyboardInterrupt):
        search.run()
    assert len(store.logged) == search.result().n_epochs > 0


def test_a_store_that_is_gone_stops_no_search():
    expected = a_search().run()
    with pytest.warns(RuntimeWarning) as warned:
        result = a_search(Store(opening_fails=True)).run()
    assert result.history["score"] == expected.history["score"]
    said = [str(one.message) for one in warned]
    assert "has not logged 24 epochs" in said[-1]
    assert "the store is gone" in said[-1]
    assert len(said) <= 2  # once while it runs, and at the end


def test_what_could_not_be_logged_is_logged_when_the_search_goes_on():
    store = Store(failures=1)
    search = a_search(store)
    with pytest.warns(RuntimeWarning, match="the store is away"):
        search.run()
    search.run()
    assert len({(epoch.arm, epoch.epoch) for epoch in store.logged}) == 24
    assert store.closed


def test_a_tracker_follows_several_searches():
    store = Store()
    first, second = a_search(store).run(), a_search(store, rates=(0.3, 0.2)).run()
    searches = {epoch.search for epoch in store.logged}
    assert len(searches) == 2
    assert len(store.logged) == first.n_epochs + second.n_epochs
