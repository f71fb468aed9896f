"""States of arms in every kind of store: what is loaded is what was saved."""

import errno
import os

import pytest

pytest.importorskip("fsspec")

import fsspec

from risingsearch.errors import RunDirError
from risingsearch.storage.checkpoints import Folder, Key, MemoryStore, Store
from risingsearch.storage.files import DIGEST_BYTES
from risingsearch.storage.object_store import ObjectStore

ONE, TWO = Key(3, 1), Key(3, 2)


@pytest.fixture(params=["folder", "objects"])
def files(request, tmp_path):
    """Return a function that opens the same files again."""
    if request.param == "folder":
        yield lambda: Folder(tmp_path / "checkpoints")
    else:
        yield lambda: ObjectStore("memory://runs/first")
        fsspec.filesystem("memory").store.clear()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoints"


class TestInMemory:
    def test_states_come_back_until_they_are_dropped(self):
        store = MemoryStore()
        store.save(ONE, b"1")
        store.save(TWO, b"2")
        assert store.has_room(ONE, b"x" * 9)
        store.drop(ONE)
        assert set(store.keys()) == {TWO}
        assert store.load(TWO) == b"2"


class TestEveryPlace:
    @pytest.mark.parametrize("state", [b"", b"weights", b"\n\n\x00{}\n" * 100])
    def test_another_process_finds_a_state(self, files, state):
        Store(files()).save(ONE, state)
        again = Store(files())
        assert again.keys() == {ONE}
        assert again.load(ONE) == state

    def test_states_are_told_apart_by_arm_and_epoch(self, files):
        store = Store(files())
        keys = [ONE, TWO, Key(31, 2), Key(1234567, 7654321)]
        for key in keys:
            store.save(key, repr(key).encode())
        assert set(store.keys()) == set(keys) == set(Store(files()).keys())
        assert [store.load(key) for key in keys] == [repr(k).encode() for k in keys]

    def test_what_is_dropped_is_gone(self, files):
        store = Store(files())
        store.save(ONE, b"1")
        store.save(TWO, b"2")
        store.drop(ONE)
        assert set(store.keys()) == {TWO} == set(Store(files()).keys())
        assert store.load(TWO) == b"2"

    def test_damage_is_found(self, files):
        store = Store(files())
        store.save(ONE, b"some weights")
        content = store.files.get(ONE.file_name)
        for at in range(len(content)):
            flipped = bytearray(content)
            flipped[at] ^= 1
            for damaged in (bytes(flipped), content[:at]):
                store.files.put(ONE.file_name, damaged)
                with pytest.raises(RunDirError, match=r"000001\.ckpt is damaged"):
                    store.load(ONE)

    def test_a_file_that_was_removed_is_an_error(self, files):
        store = Store(files())
        store.save(ONE, b"some weights")
        files().remove([ONE.file_name])
        with pytest.raises(RunDirError, match=r"cannot be read|is missing"):
            store.load(ONE)
        store.drop(ONE)
        assert not store.keys()

    def test_more_bytes_than_allowed_are_refused_and_change_nothing(self, files):
        unlimited = Store(files())
        unlimited.save(ONE, b"x" * 100)
        assert unlimited.n_bytes == DIGEST_BYTES + 100 == Store(files()).n_bytes
        store = Store(files(), max_bytes=unlimited.n_bytes + 100)
        assert not store.has_room(TWO, b"y" * 100)
        with pytest.raises(RunDirError, match="max_checkpoint_bytes"):
            store.save(TWO, b"y" * 100)
        assert store.keys() == {ONE}
        assert store.load(ONE) == b"x" * 100
        store.save(ONE, b"z" * 200)  # in its own place, exactly what is allowed
        store.drop(ONE)
        store.save(TWO, b"y" * 100)
        assert store.load(TWO) == b"y" * 100


class TestFolder:
    def test_what_a_crash_has_left_is_removed(self, folder):
        Store(Folder(folder)).save(ONE, b"weights")
        left = folder / f"{TWO.file_name}.0123456789abcdef.tmp"
        left.write_bytes(b"half of")
        (folder / "notes.tmp").write_text("mine")
        assert Store(Folder(folder)).keys() == {ONE}
        assert {path.name for path in folder.iterdir()} == {ONE.file_name, "notes.tmp"}

    def test_a_folder_that_cannot_be_made_is_an_error(self, folder):
        folder.write_text("")
        for path in (folder, folder / "below"):
            with pytest.raises(RunDirError, match="cannot be used for checkpoints"):
                Folder(path)

    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
    @pytest.mark.parametrize("call", ["fsync", "replace"])
    @pytest.mark.parametrize("key", [ONE, TWO])
    def test_if_one_cannot_be_written_all_others_are_as_before(
        self, folder, monkeypatch, call, code, key
    ):
        store = Store(Folder(folder))
        store.save(ONE, b"old")
        size = store.n_bytes

        def fail(*args):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, call, fail)
        with pytest.raises(RunDirError, match=os.strerror(code)):
            store.save(key, b"new")
        monkeypatch.undo()
        assert store.keys() == {ONE}
        assert store.load(ONE) == b"old"
        assert store.n_bytes == size == (folder / ONE.file_name).stat().st_size
        assert len(list(folder.iterdir())) == 1
        store.save(key, b"new")
        assert store.load(key) == b"new"

    def test_a_file_that_cannot_be_removed_is_an_error(self, folder, monkeypatch):
        store = Store(Folder(folder))
        store.save(ONE, b"old")

        def fail(*args, **kwargs):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        monkeypatch.setattr(os, "unlink", fail)
        with pytest.raises(RunDirError, match="cannot be removed"):
            store.drop(ONE)
        monkeypatch.undo()
        assert store.keys() == {ONE}
        assert store.load(ONE) == b"old"
