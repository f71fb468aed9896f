"""Whose directories a search opens."""

import base64
import os
import pickle
from pathlib import Path

import pytest
from kept_search import Rising, a_search, crashed, facts, whole

from risingsearch.errors import RunDirError
from risingsearch.search.search import RisingSearch
from risingsearch.storage.checkpoints import DirectoryStore
from risingsearch.storage.journal import create, read
from risingsearch.storage.run_directory import CHECKPOINTS, JOURNAL

WAYS = ["the same call", "resume"]
REFUSED = r"can be written by others .*chmod -R go-w .*trust_run_dir=True"


def opened(folder, way, **options):
    if way == "resume":
        return RisingSearch.resume(folder, Rising(), **options)
    return a_search(folder, **options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [".", JOURNAL, CHECKPOINTS])
def test_what_others_can_write_is_opened_only_where_it_is_said(
    folder, tmp_path, way, name
):
    crashed(folder)
    (folder / name).chmod(0o770)
    with pytest.raises(RunDirError, match=REFUSED):
        opened(folder, way)
    assert len(RisingSearch.saved_result(folder).history) == 11
    result = opened(folder, way, trust_run_dir=True).run()
    assert facts(result) == facts(whole(tmp_path))


@pytest.mark.parametrize("way", WAYS)
def test_what_another_user_owns_is_opened_only_where_it_is_said(
    folder, way, monkeypatch
):
    crashed(folder)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(RunDirError, match=r"belongs to another user .*trust_run_dir="):
        opened(folder, way)
    assert len(RisingSearch.saved_result(folder).history) == 11
    assert opened(folder, way, trust_run_dir=True).run().n_epochs == 24


def test_a_new_search_begins_in_no_place_where_others_can_write(folder, tmp_path):
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(RunDirError, match=REFUSED):
        a_search(folder)
    assert list(folder.iterdir()) == []
    result = a_search(folder, trust_run_dir=True).run()
    assert facts(result) == facts(whole(tmp_path))


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o000])
def test_a_search_goes_on_in_what_it_has_made(folder, tmp_path, umask):
    before = os.umask(umask)
    try:
        crashed(folder)
        assert facts(a_search(folder).run()) == facts(whole(tmp_path))
    finally:
        os.umask(before)


class Mark:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [".", JOURNAL, CHECKPOINTS])
def test_nothing_is_unpickled_before_it_is_refused(folder, tmp_path, way, name):
    crashed(folder)
    mark = tmp_path / "was here"
    pickled = pickle.dumps(Mark(mark))
    header = read(folder / JOURNAL).header
    forged = {"candidates": base64.b64encode(pickled).decode()}
    create(folder / JOURNAL, header | forged)
    store = DirectoryStore(folder / CHECKPOINTS)
    for key in sorted(store.keys()):
        store.save(key, pickled)
    (folder / name).chmod(0o770)
    with pytest.raises(RunDirError, match=REFUSED):
        opened(folder, way)
    assert not mark.exists()
