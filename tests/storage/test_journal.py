"""Events on disk: whole once written, and damage is named, never read over."""

import errno
import os
import resource
from contextlib import contextmanager

import numpy as np
import pytest

from risingsearch.errors import RunDirError
from risingsearch.storage import journal
from risingsearch.storage.journal import Journal, create, read, read_appended

HEADER = {"budget": 9, "name": "naïve"}
EVENTS = [
    {"event": "told", "score": 0.5, "text": 'a "quoted" line\nand , "crc": "more'},
    {"event": "told", "score": -1e-9, "metrics": [{"a": [1, None, True]}]},
    {"event": "flushed"},
    {"event": "told", "score": 0.25},
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


@pytest.fixture
def written(path):
    return write(path, EVENTS)


def write(path, events):
    create(path, HEADER)
    opened = Journal(path, read(path))
    for event in events:
        opened.append(event)
    return path


@contextmanager
def largest_file(n_bytes):
    """Let no file grow beyond so many bytes: a write is cut off there."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


def begins(content):
    """Where every line begins."""
    return [0] + [i + 1 for i, byte in enumerate(content[:-1]) if byte == 10]


def test_what_was_written_is_read(written):
    recorded = read(written)
    assert recorded.header == HEADER
    assert recorded.events == EVENTS
    assert recorded.n_bytes == written.stat().st_size


def test_one_line_per_event_and_the_first_names_the_version(written):
    lines = written.read_bytes().splitlines()
    assert len(lines) == 1 + len(EVENTS)
    assert lines[0].startswith(b'{"n": 0, "journal": 3, "budget": 9')


def test_the_header_can_be_read_alone(written):
    assert read(written, header_only=True).header == HEADER
    with written.open("ab") as file:
        file.write(b"damage\n")
    assert read(written, header_only=True).header == HEADER


def test_what_is_new_is_read_on_from_what_was_known(path, written):
    content = path.read_bytes()
    whole = read(path)
    ends = [at + 1 for at, byte in enumerate(content) if byte == ord("\n")]
    path.write_bytes(content[: ends[0]])
    known = read(path)
    for end in ends[1:]:
        path.write_bytes(content[: end - 1])  # torn
        known = read_appended(path, known)
        path.write_bytes(content[:end])
        known = read_appended(path, known)
        assert known.n_bytes == end
    assert known == whole


def test_a_journal_that_has_another_past_is_not_read_on(path, written):
    known = read(path)
    write(path, [{"event": "told", "i": i} for i in range(50, 90)])
    with pytest.raises(RunDirError, match="is damaged"):
        read_appended(path, known)


def test_a_journal_that_has_lost_its_end_is_not_read_on(path, written):
    known = read(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RunDirError, match="is shorter than it was"):
        read_appended(path, known)


def test_every_event_is_one_write_brought_to_disk(written, monkeypatch):
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda file: (synced.append(os.fstat(file).st_size), fsync(file))
    )
    opened = Journal(written, read(written))
    opened.append({"event": "more"})
    assert synced == [written.stat().st_size]


def test_a_value_that_is_no_json_changes_nothing(written):
    before = written.read_bytes()
    opened = Journal(written, read(written))
    for value in (float("nan"), object()):
        with pytest.raises((ValueError, TypeError)):
            opened.append({"event": "told", "score": value})
    opened.append({"event": "more"})
    assert written.read_bytes().startswith(before)
    assert read(written).events[-1] == {"event": "more"}


class TestDamage:
    def test_a_last_line_torn_at_any_byte_is_cut_off(self, written):
        content = written.read_bytes()
        last = begins(content)[-1]
        for end in range(last, len(content)):
            written.write_bytes(content[:end])
            recorded = read(written)
            assert recorded.events == EVENTS[:-1]
            assert recorded.n_bytes == last
            Journal(written, recorded).append({"event": "again"})
            assert read(written).events == [*EVENTS[:-1], {"event": "again"}]

    def test_a_line_that_is_missing_is_named(self, written):
        lines = written.read_bytes().splitlines(keepends=True)
        written.write_bytes(b"".join(lines[:2] + lines[3:]))
        with pytest.raises(
            RunDirError, match=r"line 3, .*lines are missing, doubled or"
        ):
            read(written)

    @pytest.mark.parametrize("content", [b"", b'{"n": 0, "journal": 1'])
    @pytest.mark.parametrize("header_only", [True, False])
    def test_a_header_that_is_not_whole_is_an_error(self, path, content, header_only):
        path.write_bytes(content)
        with pytest.raises(RunDirError, match="line 1, which begins at byte 0"):
            read(path, header_only=header_only)

    def test_the_advice_helps(self, written):
        lines = written.read_bytes().splitlines(keepends=True)
        written.write_bytes(b"".join([*lines[:3], b"?" + lines[3][1:], *lines[4:]]))
        with pytest.raises(RunDirError) as caught:
            read(written)
        n_bytes = len(b"".join(lines[:3]))
        assert f"keep its first {n_bytes} bytes" in str(caught.value)
        os.truncate(written, n_bytes)
        assert read(written).events == EVENTS[:2]


def damaged(content, rng):
    """Return what a random mishap makes of a file, of its bytes or of its lines."""
    parts = content.splitlines(keepends=True) if rng.random() < 0.5 else list(content)
    if isinstance(parts[0], int):
        parts = [bytes([byte]) for byte in parts]
    at, to = sorted(rng.integers(0, len(parts) + 1, 2))
    match rng.integers(6):
        case 0:  # removed
            parts[at:to] = []
        case 1:  # doubled
            parts[to:to] = parts[at:to]
        case 2:  # elsewhere
            moved, parts[at:to] = parts[at:to], []
            where = rng.integers(0, len(parts) + 1)
            parts[where:where] = moved
        case 3:  # cut off
            parts[at:] = []
        case 4:  # overwritten, as with blocks that never came to disk
            parts[at:to] = [b"\0" * len(b"".join(parts[at:to]))]
        case 5:  # bits flipped
            flipped = bytearray(b"".join(parts))
            for where in rng.integers(0, len(flipped), rng.integers(1, 4)):
                flipped[where] ^= 1 << rng.integers(8)
            parts = [bytes(flipped)]
    return b"".join(parts)


def test_no_other_events_are_read_after_random_damage(path):
    content = write(path, EVENTS).read_bytes()
    rng = np.random.default_rng(2)
    n_read = 0
    for _ in range(3000):
        left = damaged(content, rng)
        path.write_bytes(left)
        try:
            recorded = read(path)
        except RunDirError:
            continue
        # The lines before a torn one, and every one of them is as it was written.
        n_read += 1
        end = recorded.n_bytes
        assert left[:end] == content[:end]
        assert b"\n" not in left[end:]
        assert recorded.header == HEADER
        assert recorded.events == EVENTS[: content.count(b"\n", 0, end) - 1]
    assert 100 < n_read < 2000


def test_another_version_is_told_from_damage(path, monkeypatch):
    monkeypatch.setattr(journal, "VERSION", 4)
    create(path, HEADER)
    monkeypatch.undo()
    with pytest.raises(RunDirError, match="version 4, and this release reads version"):
        read(path)


def test_a_file_that_is_not_there_is_an_error(path):
    with pytest.raises(RunDirError, match="is this a run directory"):
        read(path)


@pytest.mark.parametrize("content", [b"\0" * 300, b"\xff\xfe\n" * 3, b"\n", b"[]\n"])
def test_what_is_no_journal_is_an_error(path, content):
    path.write_bytes(content)
    with pytest.raises(RunDirError, match="line 1, which begins at byte 0"):
        read(path)


class TestWhenItCannotBeWritten:
    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
    def test_it_is_as_it_was_and_can_go_on(self, written, monkeypatch, code):
        before = written.read_bytes()
        opened = Journal(written, read(written))

        def fail(file):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(RunDirError, match=os.strerror(code)):
            opened.append({"event": "lost"})
        assert written.read_bytes() == before
        monkeypatch.undo()
        opened.append({"event": "kept"})
        assert read(written).events == [*EVENTS, {"event": "kept"}]

    @pytest.mark.parametrize("n_lost", [1, 60, 9000])
    @pytest.mark.parametrize("is_synced", [True, False])
    def test_what_cannot_be_taken_back_is_before_the_next_event(
        self, written, monkeypatch, n_lost, is_synced
    ):
        opened = Journal(written, read(written))

        def fail(file):
            os.close(file)  # so that truncate and close fail as well
            if not is_synced:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

        for _ in range(2):
            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", fail)
                with pytest.raises(RunDirError, match="cannot be written"):
                    opened.append({"event": "lost", "text": "x" * n_lost})
        opened.append({"event": "kept", "text": "x" * 60})
        assert read(written).events == [*EVENTS, {"event": "kept", "text": "x" * 60}]

    def test_half_a_line_is_taken_back(self, written):
        before = written.read_bytes()
        opened = Journal(written, read(written))
        for room in range(0, 60, 7):
            with (
                largest_file(len(before) + room),
                pytest.raises(RunDirError, match="make room"),
            ):
                opened.append({"event": "told", "text": "x" * 60})
            assert written.read_bytes() == before
        opened.append({"event": "kept"})
        assert read(written).events == [*EVENTS, {"event": "kept"}]

    def test_it_cannot_be_made_in_a_folder_that_is_not_there(self, tmp_path):
        with pytest.raises(RunDirError, match="cannot be written"):
            create(tmp_path / "missing" / "journal.jsonl", HEADER)
