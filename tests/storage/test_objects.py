"""Checkpoints that a journal refers to: only those count, as they were written."""

from functools import partial

import pytest

pytest.importorskip("fsspec")

import fsspec

from risingsearch.errors import (
    CheckpointError,
    JournalError,
    ObjectStoreError,
    RunDirError,
    StateError,
)
from risingsearch.storage.bucket import Bucket
from risingsearch.storage.checkpoints import Key
from risingsearch.storage.objects import OBJECTS, Reference
from risingsearch.storage.run_directory import CHECKPOINTS, JOURNAL, RunDirectory

HEADER = {"settings": {"budget": 9}, "entropy": 7}
URL = "memory://runs"
ONE, TWO, THREE = Key(3, 1), Key(3, 2), Key(4, 1)


@pytest.fixture(autouse=True)
def memory():
    yield
    fsspec.filesystem("memory").store.clear()


@pytest.fixture
def opened(tmp_path):
    """Return a function that opens the directory anew."""

    def again(url=URL, max_bytes=None):
        directory = RunDirectory(tmp_path / "run", max_bytes, url)
        directory.open(HEADER)
        return directory

    return again


def told(directory, *keys, state=b"weights"):
    """Save states, and have an event refer to them."""
    objects = [directory.checkpoints.save(key, state) for key in keys]
    directory.append({"event": "told", OBJECTS: objects})


def there():
    """Return the paths of all objects by arm and epoch."""
    paths = fsspec.filesystem("memory").find("/runs")
    return {tuple(path.split("-")[4:7:2]): path for path in paths}


class TestKeeping:
    def test_another_process_finds_what_events_refer_to(self, opened, tmp_path):
        told(opened(), ONE, THREE)
        store = opened().checkpoints
        assert store.keys() == {ONE, THREE}
        assert store.load(ONE) == b"weights"
        assert not (tmp_path / "run" / CHECKPOINTS).exists()

    def test_the_journal_says_where_they_are(self, opened):
        told(opened(), ONE)
        assert opened(None).checkpoints.load(ONE) == b"weights"

    def test_an_object_is_what_was_saved_and_nothing_else(self, opened):
        told(opened(), ONE)
        [path] = there().values()
        assert fsspec.filesystem("memory").cat_file(path) == b"weights"

    def test_no_object_is_overwritten(self, opened):
        directory = opened()
        told(directory, ONE, state=b"first")
        told(directory, ONE, state=b"second")
        assert len(fsspec.filesystem("memory").find("/runs")) == 2
        assert directory.checkpoints.load(ONE) == b"second"
        assert opened().checkpoints.load(ONE) == b"second"

    def test_what_is_dropped_is_gone(self, opened):
        directory = opened()
        told(directory, ONE, TWO)
        directory.checkpoints.drop(ONE)
        assert directory.checkpoints.keys() == {TWO}
        assert opened().checkpoints.keys() == {TWO}
        with pytest.raises(CheckpointError, match="no checkpoint of arm 3 at epoch 1"):
            directory.checkpoints.load(ONE)

    def test_each_search_has_a_folder_of_its_own(self, tmp_path):
        for name in ("one", "two"):
            directory = RunDirectory(tmp_path / name, checkpoints=URL)
            directory.open(HEADER)
            told(directory, ONE, state=name.encode())
        for name in ("one", "two"):
            directory = RunDirectory(tmp_path / name)
            directory.open(HEADER)
            assert directory.checkpoints.load(ONE) == name.encode()

    def test_what_is_allowed_counts_all_of_them(self, opened):
        directory = opened(max_bytes=10)
        told(directory, ONE)
        assert not directory.checkpoints.has_room(TWO, b"four")
        with pytest.raises(CheckpointError, match="checkpoints to 11 bytes, and"):
            directory.checkpoints.save(TWO, b"four")
        told(directory, ONE, state=b"0123456789")
        assert opened().checkpoints.n_bytes == 10


class TestLeft:
    """What a killed process has written, and no event refers to."""

    def test_it_does_not_count(self, opened):
        directory = opened()
        told(directory, ONE)
        directory.checkpoints.save(TWO, b"torn")
        assert opened().checkpoints.keys() == {ONE}

    def test_it_is_removed_once_the_journal_is_past_it(self, opened):
        directory = opened()
        told(directory, ONE)
        directory.checkpoints.save(TWO, b"left")
        directory = opened()
        directory.checkpoints.drop(ONE)  # the next event might still refer to it
        assert len(there()) == 1
        told(directory, THREE)
        directory.checkpoints.drop(THREE)
        assert there() == {}

    def test_an_object_that_was_replaced_is_removed_by_the_next_process(self, opened):
        directory = opened()
        told(directory, ONE)
        told(directory, ONE)
        told(directory, TWO)
        opened().checkpoints.drop(TWO)
        assert len(fsspec.filesystem("memory").find("/runs")) == 1
        assert opened().checkpoints.load(ONE) == b"weights"

    def test_what_is_not_a_checkpoint_stays(self, opened):
        directory = opened()
        told(directory, ONE)
        [path] = there().values()
        note = path.rpartition("/")[0] + "/note"
        fsspec.filesystem("memory").pipe_file(note, b"do not touch")
        directory = opened()
        told(directory, TWO)
        directory.checkpoints.drop(ONE)
        assert fsspec.filesystem("memory").exists(note)


class TestOtherCopies:
    """A journal that is behind another copy of itself touches nothing."""

    @pytest.fixture
    def behind(self, opened, tmp_path):
        """Return the bytes of a journal that is three events behind."""
        told(opened(), ONE)
        content = (tmp_path / "run" / JOURNAL).read_bytes()
        for _ in range(3):
            told(opened(), TWO)
        return content

    def test_one_that_is_behind(self, opened, tmp_path, behind):
        for name in ("journal.tail", JOURNAL):
            (tmp_path / "run" / name).unlink()
        (tmp_path / "run" / JOURNAL).write_bytes(behind)
        before = there()
        with pytest.raises(RunDirError, match="go on with that copy"):
            opened()
        assert there() == before

    def test_one_that_has_gone_another_way(self, opened, tmp_path):
        directory = opened()
        told(directory, ONE)
        content = (tmp_path / "run" / JOURNAL).read_bytes()
        directory.append({"event": "extended"})
        told(directory, TWO)
        (tmp_path / "run" / "journal.tail").unlink()
        (tmp_path / "run" / JOURNAL).write_bytes(content)
        elsewhere = RunDirectory(tmp_path / "run")
        with pytest.raises(RunDirError, match="go on with that copy"):
            elsewhere.open(HEADER)


class TestDamage:
    @pytest.mark.parametrize("content", [b"", b"weight", b"forged!"])
    def test_what_is_not_as_it_was_written_is_not_used(self, opened, content):
        told(opened(), ONE)
        [path] = there().values()
        fsspec.filesystem("memory").pipe_file(path, content)
        with pytest.raises(CheckpointError, match="does not fit the checksum"):
            opened().checkpoints.load(ONE)

    def test_what_goes_missing(self, opened):
        directory = opened()
        told(directory, ONE)
        [path] = there().values()
        fsspec.filesystem("memory").rm_file(path)
        with pytest.raises(CheckpointError, match=f"{path[1:]} is missing"):
            directory.checkpoints.load(ONE)

    def test_a_store_without_any_of_them(self, opened):
        directory = opened()
        objects = [directory.checkpoints.save(ONE, b"weights")]
        directory.append({"event": "told", "best": 1, OBJECTS: objects})
        fsspec.filesystem("memory").store.clear()
        with pytest.raises(ObjectStoreError, match="none of the 1 checkpoints that"):
            opened()

    @pytest.mark.parametrize(
        "forged",
        [
            {"name": "../../other/secret"},
            {"name": "event-000001-00000000-arm-000003-epoch-000001-../x"},
            {"sha256": "none"},
            {"bytes": "many"},
        ],
    )
    def test_a_journal_that_refers_to_something_else(self, opened, forged):
        directory = opened()
        reference = directory.checkpoints.save(ONE, b"weights")
        directory.append({"event": "told", OBJECTS: [reference | forged]})
        with pytest.raises(JournalError, match="refers to no checkpoint"):
            opened()

    def test_a_journal_with_another_folder(self, tmp_path):
        header = HEADER | {OBJECTS: {"url": URL, "folder": "../other"}}
        with pytest.raises(JournalError, match="is no folder of a search"):
            RunDirectory(tmp_path).open(header)


class TestPlaces:
    def test_checkpoints_on_disk_are_not_left_behind(self, tmp_path):
        RunDirectory(tmp_path).open(HEADER)
        with pytest.raises(StateError, match="it was opened with checkpoints='memory"):
            RunDirectory(tmp_path, checkpoints=URL).open(HEADER)

    def test_a_store_that_cannot_be_written_begins_no_search(
        self, tmp_path, monkeypatch
    ):
        def refuse(self, name, content):
            raise ObjectStoreError("no")

        monkeypatch.setattr(Bucket, "put", refuse)
        with pytest.raises(ObjectStoreError):
            RunDirectory(tmp_path, checkpoints=URL).open(HEADER)
        assert not (tmp_path / JOURNAL).exists()

    def test_they_may_have_moved(self, opened):
        told(opened(), ONE)
        files = fsspec.filesystem("memory")
        for path in files.find("/runs"):
            files.mv(path, path.replace("/runs", "/archive"))
        assert opened("memory://archive").checkpoints.load(ONE) == b"weights"


def test_a_reference_says_which_state_it_is(opened):
    facts = opened().checkpoints.save(THREE, b"weights")
    assert Reference.from_json(facts).key == THREE
    make = partial(Reference.from_json, facts | {"name": "arm-1"})
    with pytest.raises(ValueError, match="refers to no checkpoint"):
        make()
