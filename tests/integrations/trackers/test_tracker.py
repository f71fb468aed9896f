import pytest
from searching import a_search

from risingsearch.integrations.trackers.tracker import SearchLog, Tracker


class Log(SearchLog):
    def known(self):
        return self.tracker.logged.setdefault(self.search.search, [])

    def open_run(self, run):
        return max([one[1] for one in self.known() if one[0] == run], default=0)

    def log(self, run, step, values):
        if self.tracker.failures:
            self.tracker.failures -= 1
            raise ConnectionError("the store is away")
        if run != "search":
            self.known().append((run, step, values[self.metric]))

    def close(self, search):
        self.tracker.closed.append(search)


class Store(Tracker):
    """Keeps what is logged; fails as long as there are ``failures`` left."""

    package = "pytest"
    runs = Log

    def __init__(self, failures=0):
        super().__init__()
        self.failures = failures
        self.logged = {}  # by search
        self.closed = []


def test_all_epochs_and_the_end_are_logged_when_the_search_returns():
    store = Store()
    result = a_search(store).run()
    [logged] = store.logged.values()
    assert logged == [
        (f"arm-{row['arm']}", row["epoch"], row["score"]) for row in result.history
    ]
    [end] = store.closed
    assert (end.best_arm, end.best_score) == (result.best_arm, result.best_score)


def test_at_ctrl_c_all_is_logged():
    def interrupt(epoch):
        if epoch.number == 5:
            raise KeyboardInterrupt

    store = Store()
    search = a_search(store, interrupt)
    with pytest.raises(KeyboardInterrupt):
        search.run()
    [logged] = store.logged.values()
    assert len(logged) == search.result().n_epochs > 0


def test_a_store_that_is_gone_stops_no_search():
    expected = a_search().run()
    with pytest.warns(RuntimeWarning) as warned:
        result = a_search(Store(failures=100)).run()
    assert result.history["score"] == expected.history["score"]
    first, last = [str(one.message) for one in warned]  # when it fails, and at the end
    assert "the store is away" in first
    assert "could not log 24 epochs" in last


def test_what_could_not_be_logged_is_logged_when_the_search_continues():
    store = Store(failures=1)
    search = a_search(store)
    with pytest.warns(RuntimeWarning, match="the store is away"):
        search.run()
    search.run()
    [logged] = store.logged.values()
    assert len(logged) == 24
    assert store.closed


def test_a_tracker_follows_several_searches():
    store = Store()
    first, second = a_search(store).run(), a_search(store, rates=(0.3, 0.2)).run()
    logged = [len(one) for one in store.logged.values()]
    assert logged == [first.n_epochs, second.n_epochs]
