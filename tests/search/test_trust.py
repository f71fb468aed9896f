"""Whose directories a search opens."""

import base64
import os
import pickle
from pathlib import Path

import pytest
from kept_search import Rising, a_search, crashed, facts, whole

from risingsearch.errors import RunDirError
from risingsearch.search.search import RisingSearch
from risingsearch.storage.checkpoints import Folder, Store
from risingsearch.storage.journal import create, read
from risingsearch.storage.run_directory import CHECKPOINTS, JOURNAL

WAYS = ["the same call", "resume"]


def opened(folder, way):
    if way == "resume":
        return RisingSearch.resume(folder, Rising())
    return a_search(folder)


@pytest.mark.parametrize("way", WAYS)
def test_one_that_another_user_owns_is_refused(folder, way, monkeypatch):
    crashed(folder)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(RunDirError, match=r"belongs to another user .*chown"):
        opened(folder, way)
    assert len(RisingSearch.saved_result(folder).history) == 11


def test_a_new_search_begins_in_none_that_everybody_may_write_to(folder):
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(RunDirError, match=r"everybody may write to .*chmod -R o-w"):
        a_search(folder)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("way", WAYS)
def test_a_group_may_share_one(folder, tmp_path, way):
    crashed(folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o770)
    assert facts(opened(folder, way).run()) == facts(whole(tmp_path))


class Mark:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_unpickled_before_it_is_refused(folder, tmp_path, way):
    crashed(folder)
    mark = tmp_path / "was here"
    pickled = pickle.dumps(Mark(mark))
    header = read(folder / JOURNAL).header
    forged = {"candidates": base64.b64encode(pickled).decode()}
    create(folder / JOURNAL, header | forged)
    store = Store(Folder(folder / CHECKPOINTS))
    for key in sorted(store.keys()):
        store.save(key, pickled)
    folder.chmod(0o777)
    with pytest.raises(RunDirError, match="everybody may write to"):
        opened(folder, way)
    assert not mark.exists()
