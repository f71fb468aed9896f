"""States of arms, in memory or as files: what is loaded is what was saved."""

import errno
import os

import pytest

from risingsearch.errors import CheckpointError, RunDirError, StateError
from risingsearch.storage import checkpoints
from risingsearch.storage.checkpoints import DirectoryStore, Key, MemoryStore

ONE, TWO = Key(3, 1), Key(3, 2)


@pytest.fixture(params=["memory", "directory"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else DirectoryStore(tmp_path)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoints"


def n_bytes(folder):
    return sum(path.stat().st_size for path in folder.iterdir())


class TestEveryStore:
    @pytest.mark.parametrize("state", [b"", b"weights", b"\n\n\x00{}\n" * 100])
    def test_a_state_comes_back(self, store, state):
        store.save(ONE, state)
        assert store.load(ONE) == state

    def test_states_are_told_apart_by_arm_and_epoch(self, store):
        keys = [ONE, TWO, Key(31, 2), Key(1234567, 7654321)]
        for key in keys:
            store.save(key, repr(key).encode())
        assert set(store.keys()) == set(keys)
        assert [store.load(key) for key in keys] == [repr(k).encode() for k in keys]

    def test_the_last_one_saved_counts(self, store):
        store.save(ONE, b"a long state")
        store.save(ONE, b"short")
        assert store.load(ONE) == b"short"

    def test_what_is_dropped_is_gone(self, store):
        store.save(ONE, b"1")
        store.save(TWO, b"2")
        store.drop(ONE)
        assert set(store.keys()) == {TWO}
        assert store.load(TWO) == b"2"


class TestOnDisk:
    def test_another_process_finds_them(self, folder):
        DirectoryStore(folder).save(ONE, b"weights")
        again = DirectoryStore(folder)
        assert again.keys() == {ONE}
        assert again.load(ONE) == b"weights"

    def test_other_files_are_left_alone(self, folder):
        DirectoryStore(folder)
        for name in ("notes.txt", "notes.tmp"):
            (folder / name).write_text("mine")
        assert not DirectoryStore(folder).keys()
        for name in ("notes.txt", "notes.tmp"):
            assert (folder / name).read_text() == "mine"

    def test_what_a_crash_has_left_is_removed(self, folder):
        DirectoryStore(folder).save(ONE, b"weights")
        for left in (".tmp", ".0123456789abcdef.tmp"):  # by an older release, by this
            (folder / f"arm-000003-epoch-000002.ckpt{left}").write_bytes(b"half of")
        again = DirectoryStore(folder)
        assert again.keys() == {ONE}
        assert [path.name for path in folder.iterdir()] == [again.path(ONE).name]

    def test_a_bit_flipped_anywhere_is_found(self, folder):
        store = DirectoryStore(folder)
        store.save(ONE, b"some weights")
        path = store.path(ONE)
        content = path.read_bytes()
        version = content.index(b"1")
        for at in set(range(len(content))) - {version}:
            damaged = bytearray(content)
            damaged[at] ^= 1
            path.write_bytes(damaged)
            with pytest.raises(CheckpointError, match=r"epoch-000001\.ckpt is damaged"):
                store.load(ONE)

    def test_a_file_cut_short_or_empty_is_found(self, folder):
        store = DirectoryStore(folder)
        store.save(ONE, b"some weights")
        content = store.path(ONE).read_bytes()
        for end in range(len(content)):
            store.path(ONE).write_bytes(content[:end])
            with pytest.raises(CheckpointError, match="damaged"):
                store.load(ONE)

    def test_the_file_of_another_arm_is_found(self, folder):
        store = DirectoryStore(folder)
        store.save(ONE, b"some weights")
        os.replace(store.path(ONE), store.path(TWO))
        with pytest.raises(CheckpointError, match="damaged"):
            DirectoryStore(folder).load(TWO)

    def test_a_file_that_was_removed_is_an_error(self, folder):
        store = DirectoryStore(folder)
        store.save(ONE, b"some weights")
        store.path(ONE).unlink()
        with pytest.raises(CheckpointError, match="cannot be read"):
            store.load(ONE)
        store.drop(ONE)
        assert not store.keys()

    @pytest.mark.parametrize(
        ("make", "found"),
        [
            (os.mkdir, "a folder"),
            (os.mkfifo, "a named pipe"),
            (lambda path: os.symlink("nothing", path), "a symbolic link"),
        ],
    )
    def test_what_is_no_file_is_an_error(self, folder, make, found):
        path = DirectoryStore(folder).path(ONE)
        make(path)
        for store in (DirectoryStore(folder), DirectoryStore(folder)):
            with pytest.raises(CheckpointError, match=f"it is {found} and must be"):
                store.load(ONE)
        if make is os.mkdir:
            for work in (lambda: store.save(ONE, b"weights"), lambda: store.drop(ONE)):
                with pytest.raises(CheckpointError, match="directory"):
                    work()
        else:
            store.save(ONE, b"weights")
            assert store.load(ONE) == b"weights"

    def test_another_version_is_told_from_damage(self, folder, monkeypatch):
        monkeypatch.setattr(checkpoints, "VERSION", 2)
        store = DirectoryStore(folder)
        store.save(ONE, b"some weights")
        monkeypatch.undo()
        with pytest.raises(StateError, match="version 2, this release reads version 1"):
            store.load(ONE)

    def test_a_folder_that_cannot_be_made_is_an_error(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(RunDirError, match="cannot be used for checkpoints"):
            DirectoryStore(tmp_path / "file" / "checkpoints")

    def test_a_file_in_place_of_the_folder_is_an_error(self, folder):
        folder.write_text("")
        with pytest.raises(CheckpointError, match="cannot be used"):
            DirectoryStore(folder)


class TestWhenItCannotBeWritten:
    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
    @pytest.mark.parametrize("call", ["fsync", "replace"])
    @pytest.mark.parametrize("key", [ONE, TWO])
    def test_all_older_ones_are_as_they_were(
        self, folder, monkeypatch, call, code, key
    ):
        store = DirectoryStore(folder)
        store.save(ONE, b"old")
        size = store.n_bytes

        def fail(*args):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, call, fail)
        with pytest.raises(CheckpointError, match=os.strerror(code)):
            store.save(key, b"new")
        monkeypatch.undo()
        assert store.keys() == {ONE}
        assert store.load(ONE) == b"old"
        assert store.n_bytes == size == n_bytes(folder)
        store.save(key, b"new")
        assert store.load(key) == b"new"

    def test_a_file_that_cannot_be_removed_is_an_error(self, folder, monkeypatch):
        store = DirectoryStore(folder)
        store.save(ONE, b"old")

        def fail(*args, **kwargs):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        monkeypatch.setattr(os, "unlink", fail)
        with pytest.raises(CheckpointError, match="cannot be removed"):
            store.drop(ONE)
        monkeypatch.undo()
        assert store.keys() == {ONE}
        assert store.load(ONE) == b"old"


class TestDiskSpace:
    def test_it_is_that_of_the_files(self, folder):
        store = DirectoryStore(folder)
        for key, state in [(ONE, b"x" * 99), (TWO, b"y" * 7), (ONE, b"z" * 20)]:
            store.save(key, state)
            assert store.n_bytes == n_bytes(folder) == DirectoryStore(folder).n_bytes
        store.drop(TWO)
        assert store.n_bytes == n_bytes(folder)

    def test_more_than_allowed_is_refused_and_changes_nothing(self, folder):
        unlimited = DirectoryStore(folder)
        unlimited.save(ONE, b"x" * 100)
        store = DirectoryStore(folder, max_bytes=unlimited.n_bytes + 150)
        with pytest.raises(CheckpointError, match="max_checkpoint_bytes"):
            store.save(TWO, b"y" * 100)
        assert store.keys() == {ONE}
        assert store.load(ONE) == b"x" * 100
        store.drop(ONE)
        store.save(TWO, b"y" * 100)
        assert store.load(TWO) == b"y" * 100

    def test_exactly_what_is_allowed_fits(self, folder):
        store = DirectoryStore(folder)
        store.save(ONE, b"x" * 100)
        DirectoryStore(folder, max_bytes=store.n_bytes).save(ONE, b"y" * 100)
        with pytest.raises(CheckpointError):
            DirectoryStore(folder, max_bytes=store.n_bytes - 1).save(ONE, b"z" * 100)

    def test_a_state_that_replaces_its_own_counts_once(self, folder):
        store = DirectoryStore(folder, max_bytes=300)
        for _ in range(5):
            store.save(ONE, b"x" * 120)
        assert store.n_bytes == n_bytes(folder) <= 300
