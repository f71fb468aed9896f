"""The history: what finished searches leave there, and what a new one reads."""

import json
import os
import stat
import warnings
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from risingsearch import Functions, RisingSearch, RisingSearchCV
from risingsearch.errors import PriorError
from risingsearch.priors import EarlierSearch, Prior, earlier_searches
from risingsearch.priors.earlier import MOST_SEARCHES
from risingsearch.priors.history import (
    SETTING,
    Entry,
    history_of,
    read_history,
    write_entry,
)

NOON = datetime(2024, 5, 3, 12, tzinfo=UTC)
RATES = [{"rate": 2.0**-k} for k in range(12)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Keep a history in a folder that is yet to be made."""
    folder = tmp_path / "kept" / "history"
    monkeypatch.setenv(SETTING, str(folder))
    return folder


def entry(key=1, name="rates", time=NOON, params=RATES):
    curves = [np.array([k / 20, k / 10]) for k in range(len(params))]
    search = EarlierSearch("any", params, curves, direction="maximize")
    return Entry.of(search, f"{key:016x}", name, time)


def entries(folder):
    found, damaged = read_history(folder)
    assert damaged == []
    return found


def test_without_the_setting_nothing_is_written(tmp_path, make_search, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_search().run()
    monkeypatch.setenv(SETTING, "")
    make_search().run()
    assert list(tmp_path.iterdir()) == []


def test_a_finished_search_is_kept_for_its_owner_alone(folder, make_search):
    result = make_search(direction="minimize").run()
    [path] = folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    [kept] = entries(folder)
    assert kept.name == "train: top, kind"
    assert kept.search.name == f"train: top, kind {kept.date}"
    assert abs(datetime.now(UTC) - kept.time) < timedelta(hours=1)
    assert kept.best_score == result.best_score
    assert kept.best_params == result.best_params
    assert kept.search.direction == "minimize"
    [read] = earlier_searches(result)
    assert kept.search.params == read.params
    for one, other in zip(kept.search.curves, read.curves, strict=True):
        np.testing.assert_array_equal(one, other)
    assert kept.search.max_epochs == 8
    saved = json.loads(path.read_text())
    assert saved["best_score"] == result.best_score


def test_a_search_is_called_by_what_it_has_trained(folder):
    X, y = [[0.0], [1.0]] * 10, [0, 1] * 10
    RisingSearchCV(SGDClassifier(), {"alpha": [0.1, 0.2]}, budget=4, cv=2).fit(X, y)
    functions = Functions(lambda params, seed: params, lambda state: state["rate"])
    RisingSearch(functions, RATES, budget=4).run()
    names = {entry.name for entry in entries(folder)}
    assert names == {"SGDClassifier: alpha", "search: rate"}


def test_a_search_that_goes_on_replaces_its_entry(folder, tmp_path, make_search):
    search = make_search()
    search.run()
    search.extend(6)
    search.run()
    [kept] = entries(folder)
    make_search().run()
    assert len(entries(folder)) == 2  # another search

    run_dir = tmp_path / "my run"
    search = make_search(run_dir=run_dir)
    search.run()
    resumed = RisingSearch.resume(run_dir, search.trainable)
    resumed.extend(8)
    resumed.run()
    assert len(entries(folder)) == 3
    [own] = [one for one in entries(folder) if one.name == "my run"]
    assert own.n_epochs > kept.n_epochs
    make_search(run_dir=tmp_path / "other" / "my run").run()
    assert len(entries(folder)) == 4


def test_a_search_that_is_stopped_or_fails_is_not_kept(folder, make_search):
    def stop(search, report):
        search.stop()

    def fail(search, report):
        raise LookupError

    stopped = make_search(callbacks=[stop])
    stopped.run()
    with pytest.raises(LookupError):
        make_search(callbacks=[fail]).run()
    assert not folder.exists()
    stopped.callbacks = ()
    stopped.run()
    assert len(entries(folder)) == 1


def test_a_folder_that_cannot_be_written_loses_no_search(folder, make_search):
    folder.parent.mkdir()
    folder.write_text("in its place")
    with pytest.warns(RuntimeWarning, match="not kept in the history: .* cannot be wr"):
        result = make_search().run()
    assert result.best_score > 0.8
    with pytest.raises(PriorError, match="cannot be read"):
        make_search(prior="history")


def test_what_json_cannot_hold_is_said_to_be_left_out(folder, make_search):
    candidates = [{"top": 0.1 * k, "loss": np.sqrt} for k in range(6)]
    candidates = [{**one, "kind": "a"} for one in candidates]
    with pytest.warns(RuntimeWarning, match="not kept in the history: a SearchResult"):
        make_search(candidates=candidates).run()
    assert not folder.exists()


def test_a_second_search_learns_from_the_first(folder, make_search):
    first = make_search().run()
    [kept] = entries(folder)
    for prior in ("history", ["history", "history"], Prior(["history"])):
        second = make_search(prior=prior)
        assert list(second.scheduler.trust_in_prior()) == [kept.search.name]
    assert list(second.run().trust_in_prior) == [kept.search.name]
    names, given = [one.search.name for one in entries(folder)], "a SearchResult"
    assert len(names) == 2
    both = make_search(prior=["history", first]).scheduler.trust_in_prior()
    assert list(both) == [given, *names]


def test_an_empty_history_is_no_error(folder, make_search):
    plain = make_search(prior="history")
    assert plain.scheduler.trust_in_prior() == {}
    plain.run()
    others = [{"depth": k, "kind": "a", "top": 0.5} for k in range(6)]
    assert history_of([{"depth": one["depth"]} for one in others]) == []


def test_without_the_setting_the_history_is_an_error(make_search):
    with pytest.raises(PriorError, match=f"set the environment variable {SETTING}"):
        make_search(prior="history")
    skipping = Prior(["history"], skip_unusable=True)
    with pytest.warns(RuntimeWarning, match="goes on without an earlier search"):
        make_search(prior=skipping)


def test_a_path_is_no_history(folder, tmp_path, make_search, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_search(run_dir="history").run()
    for path in folder.iterdir():
        path.unlink()
    named = make_search(prior="./history").scheduler.trust_in_prior()
    assert list(named) == ["history"]


def test_the_newest_that_share_a_parameter_are_taken(folder):
    foreign = [{"depth": k} for k in range(12)]
    for k in range(MOST_SEARCHES + 3):
        time = NOON + timedelta(hours=k)
        write_entry(folder, entry(2 * k, time=time))
        write_entry(folder, entry(2 * k + 1, "depths", time, foreign))
    names = [search.name for search in history_of(RATES)]
    assert len(names) == len(set(names)) == MOST_SEARCHES
    assert names[0] == "rates 2024-05-04 22:00:00"
    assert [one.name for one in history_of(RATES, 2)] == names[:2]
    write_entry(folder, entry(999, time=NOON + timedelta(hours=99)))
    write_entry(folder, entry(998, time=NOON + timedelta(hours=99)))
    told_apart = [search.name for search in history_of(RATES, 2)]
    assert told_apart == [f"rates 2024-05-07 15:00:00 {key:016x}" for key in (999, 998)]


def changed(**changes):
    return json.dumps(entry().to_json() | changes)


def search_with(**changes):
    saved = entry().to_json()["search"]
    return changed(search=saved | changes)


N = len(RATES)
DAMAGED = [
    "",
    "[]",
    "{}",
    "null",
    "[" * 100_000,
    changed()[:-9],
    changed().replace("0.5", "NaN"),
    changed(risingsearch_history=2),
    changed(name=""),
    changed(name="\x1b[2J"),
    changed(name=3),
    changed(time="today"),
    changed(time="2024-05-03T12:00:00"),
    changed(direction=["maximize"]),
    changed(runs=-1),
    changed(epochs=1.5),
    changed(search=[]),
    search_with(params=[{}] * N),
    search_with(params="x" * N),
    search_with(params=[{"$float": "1"}] * N),
    search_with(params=[{"rate": {"$float": "x"}}] * N),
    search_with(curves=[["0.5"]] * N),
    search_with(curves=[[[0.5]]] * N),
    search_with(curves=[[10**400]] * N),
    search_with(curves=[[]] * N),
    search_with(curves=[[0.5]]),
    search_with(seconds=[0.5]),
    search_with(seconds="x" * N),
    search_with(max_epochs="9"),
    search_with(max_epochs=-1),
]


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_named_and_skipped(folder, content):
    write_entry(folder, entry(2))
    path = folder / "2024-05-03-0123456789abcdef.json"
    path.write_text(content)
    with pytest.warns(RuntimeWarning, match=path.name) as caught:
        [found] = history_of(RATES)
    assert len(caught) == 1
    assert found.name == "rates 2024-05-03 12:00:00"


def test_foreign_files_are_named_and_no_link_is_followed(folder, tmp_path):
    path = write_entry(folder, entry())
    outside = path.rename(tmp_path / "outside.json")
    path.symlink_to(outside)
    (folder / "notes.txt").write_text("mine")
    (folder / "2024-05-03-00000000000000aa.json").mkdir()
    os.mkfifo(folder / "2024-05-03-00000000000000bb.json")
    (folder / ".hidden").write_text("of the system")
    (folder / f"{path.name}.0123456789abcdef.tmp").write_text("being written")
    with pytest.warns(RuntimeWarning, match="notes.txt") as caught:
        assert history_of(RATES) == []
    message = str(caught[0].message)
    assert "a symbolic link" in message
    assert "a folder" in message
    assert "a named pipe" in message
    assert "hidden" not in message
    assert ".tmp" not in message


def test_an_entry_takes_the_place_of_a_link(folder, tmp_path):
    path = write_entry(folder, entry())
    outside = tmp_path / "outside.json"
    outside.write_text("mine")
    path.unlink()
    path.symlink_to(outside)
    assert write_entry(folder, entry()) == path
    assert outside.read_text() == "mine"
    assert len(entries(folder)) == 1


def test_what_is_not_finite_and_what_is_large_is_kept_as_it_was(folder):
    params = [{"rate": 2.0**-k, "size": (k, 2)} for k in range(400)]
    curves = [np.array([0.5 + k, np.nan]) for k in range(399)] + [np.array([])]
    search = EarlierSearch("any", params, curves, seconds=[0.5] * 399 + [np.nan])
    write_entry(folder, Entry.of(search, "0" * 16, "large", NOON))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [kept] = entries(folder)
    assert kept.n_runs == 400
    assert kept.n_epochs == 2 * 399
    assert len(kept.search.params) == 300
    assert kept.best_score == 398.5
    assert kept.best_params == params[398]
    assert np.isnan(kept.search.curves[0][1])
