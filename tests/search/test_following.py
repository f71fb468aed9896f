"""A search is followed from outside: what is seen is what is on disk, and no more."""

import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from kept_search import CANDIDATES, Rising, a_search

from risingsearch.budget import Budget
from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.search.following import RunReader
from risingsearch.search.search import RisingSearch
from risingsearch.storage.run_directory import JOURNAL, LOCK, STATE


def seen_while_it_runs(folder, trainable=None, **options):
    """Return a search, and what a reader saw after each of its jobs."""
    reader, seen = RunReader(folder), []
    search = a_search(folder, trainable, **options)
    search.callbacks = [lambda epoch: seen.append(reader.read())]
    return search, search.run(), seen


def facts(result):
    """Return what was found, without what only the searching process has."""
    return [
        {name: repr(value) for name, value in row.items()} for row in result.history
    ], [replace(arm, status="paused", reason="") for arm in result.arms]


def test_each_look_shows_what_is_recorded_by_then(tmp_path):
    _, result, seen = seen_while_it_runs(tmp_path, epochs_per_job=1)
    assert [len(one.result.history) for one in seen] == list(range(1, 25))
    for n_epochs, one in enumerate(seen, 1):
        rows = [row["score"] for row in result.history[:n_epochs]]
        assert one.result.history["score"] == rows
        assert one.is_running
        assert (one.spent, one.budget, one.unit) == (n_epochs, 24, "epochs")
        assert one.is_done == (n_epochs == 24)
    assert facts(seen[-1].result) == facts(RisingSearch.saved_result(tmp_path))


class Watched(Rising):
    """Keeps what a reader sees in each of its epochs."""

    def __init__(self, folder):
        super().__init__()
        self.reader, self.seen = RunReader(folder), []

    def train(self, state):
        self.seen.append(self.reader.read())
        return super().train(state)


def test_what_trains_now_and_why(tmp_path):
    trainable = Watched(tmp_path)
    result = a_search(tmp_path, trainable, epochs_per_job=1).run()
    for one, row in zip(trainable.seen, result.history, strict=True):
        (training,) = one.training
        assert (training.arm, training.epoch) == (row["arm"], row["epoch"])
        assert training.reason == row["reason"]
        assert training.parts == {name: row[name] for name in training.parts}
        (running,) = [arm for arm in one.result.arms if arm.status == "running"]
        assert (running.arm, running.reason) == (row["arm"], "in training")
    assert trainable.reader.read().training == []


def test_with_several_workers_all_that_train_are_shown(tmp_path):
    together = Barrier(3, timeout=600)

    class Together(Rising):
        def train(self, state):
            together.wait()
            if state["epochs"] == 0 and state["arm"] == 0:
                seen.append(RunReader(tmp_path).read())
            together.wait()
            return super().train(state)

    seen = []
    with ThreadPoolExecutor(3) as executor:
        a_search(
            tmp_path,
            Together(),
            candidates=CANDIDATES[:3],
            policy="round-robin",
            budget=3,
            executor=executor,
            n_jobs=3,
        ).run()
    (status,) = seen
    assert {one.arm for one in status.training} == {0, 1, 2}


def test_a_run_that_has_stopped_trains_nothing(tmp_path):
    search = a_search(tmp_path)
    search.callbacks = [lambda epoch: epoch.stop()]
    search.run()
    status = RunReader(tmp_path).read()
    assert not status.is_running
    assert not status.is_done
    assert status.training == []


def test_nothing_is_written_yet(tmp_path):
    reader = RunReader(tmp_path)
    assert reader.read() is None
    before = reader.version()
    search = a_search(tmp_path)
    assert reader.version() != before
    assert reader.read().result.best_arm is None
    search.run()
    assert reader.read().result.n_epochs == 24


def test_a_folder_in_which_a_search_is_about_to_begin_is_waited_for(tmp_path):
    (tmp_path / LOCK).touch()
    assert RunReader(tmp_path).read() is None


@pytest.mark.parametrize("name", ["notes.txt", STATE])
def test_another_folder_is_refused(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(InvalidParameterError, match="holds no search: name the run"):
        RunReader(tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidParameterError, match="does not exist: name the run"):
        RunReader(tmp_path / "gone")


def test_looking_changes_nothing(tmp_path):
    search = a_search(tmp_path)
    search.run()
    before = {path: path.stat() for path in tmp_path.rglob("*")}
    reader = RunReader(tmp_path)
    reader.version(), reader.read(), reader.read()
    now = {path: path.stat() for path in tmp_path.rglob("*")}
    assert {path: (one.st_size, one.st_mtime_ns) for path, one in before.items()} == {
        path: (one.st_size, one.st_mtime_ns) for path, one in now.items()
    }


def test_a_damaged_journal_is_named_and_one_that_is_mended_goes_on(tmp_path):
    a_search(tmp_path).run()
    reader = RunReader(tmp_path)
    reader.read()
    journal = tmp_path / JOURNAL
    whole = journal.read_bytes()
    journal.write_bytes(whole.replace(b'"started"', b'"st4rted"', 1))
    with pytest.raises(RunDirError, match="is damaged in line 2"):
        RunReader(tmp_path).read()
    journal.write_bytes(whole)
    assert reader.read().result.n_epochs == 24


def test_a_larger_budget_is_seen(tmp_path):
    search = a_search(tmp_path)
    search.run()
    reader = RunReader(tmp_path)
    assert reader.read().is_done
    search.extend(6)
    assert (reader.read().budget, reader.read().is_done) == (30, False)


@pytest.mark.parametrize(
    ("budget", "unit"),
    [
        (24, "epochs"),
        (Budget(hours=0.3), "hours"),
        (Budget(wall_seconds=1e3), "wall_seconds"),
    ],
)
def test_the_time_left_is_known_once_something_has_trained(tmp_path, budget, unit):
    search = a_search(tmp_path, budget=budget, candidates=CANDIDATES, max_epochs=6)
    reader = RunReader(tmp_path)
    first = reader.read()
    assert first.unit == unit
    assert math.isnan(first.seconds_left) == (not unit.startswith("wall"))
    left = []
    search.callbacks = [lambda epoch: left.append(reader.read().seconds_left)]
    search.run()
    assert all(0.0 <= one < math.inf for one in left)


@pytest.mark.parametrize("unit", ["hours", "wall_hours"])
def test_the_time_left_is_in_seconds_whatever_the_budget_is_in(tmp_path, unit):
    a_search(tmp_path, budget=Budget(**{unit: 1.0})).run()
    ahead = time.time() + 1e6  # so that no time has passed since
    os.utime(tmp_path / JOURNAL, (ahead, ahead))
    status = RunReader(tmp_path).read()
    result = status.result
    pace = result.wall_seconds / result.training_seconds if unit == "hours" else 1.0
    expected = pace * 3600 * (1.0 - status.spent)
    assert status.seconds_left == pytest.approx(expected, rel=0.1)
