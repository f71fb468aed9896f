"""What the directory of a search keeps, and whom it lets in."""

import errno
import os
import subprocess
import sys

import pytest

from risingsearch.errors import (
    JournalError,
    RunDirError,
)
from risingsearch.storage.run_directory import (
    JOURNAL,
    LOCK,
    STATE,
    RunDirectory,
    saved_entropy,
    saved_header,
)

HEADER = {"settings": {"budget": 9}, "entropy": 2**100}
HOLD = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def opened(path):
    directory = RunDirectory(path)
    directory.open(HEADER)
    return directory


class TestOpening:
    def test_a_directory_is_made_with_all_above_it(self, tmp_path):
        directory = opened(tmp_path / "runs" / "monday")
        assert (directory.path / JOURNAL).exists()
        assert directory.n_events == 0

    def test_events_come_back_in_order(self, tmp_path):
        directory = opened(tmp_path)
        for i in range(3):
            directory.append({"event": "told", "i": i})
        events = RunDirectory(tmp_path).open(HEADER)
        assert [event["i"] for event in events] == [0, 1, 2]

    def test_what_is_kept_beside_is_that_of_the_first_time(self, tmp_path):
        opened(tmp_path)
        RunDirectory(tmp_path).open(HEADER | {"entropy": 5})
        assert saved_header(tmp_path) == HEADER
        assert saved_entropy(tmp_path) == 2**100

    def test_no_search_is_an_error_or_no_entropy(self, tmp_path):
        with pytest.raises(JournalError, match="holds no search"):
            saved_header(tmp_path)
        assert saved_entropy(tmp_path) is None

    def test_a_file_in_its_place_is_an_error(self, tmp_path):
        (tmp_path / "file").write_text("")
        for path in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(RunDirError, match="cannot be used"):
                RunDirectory(path)


class TestLock:
    def test_another_process_is_kept_out(self, tmp_path):
        directory = opened(tmp_path)
        command = [sys.executable, "-c", HOLD, str(tmp_path / LOCK)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout.readline() == "held\n"
            with (
                pytest.raises(RunDirError, match="another process searches in"),
                directory.held(),
            ):
                raise AssertionError
            other.communicate("")
        with directory.held():
            pass

    def test_another_search_of_this_process_is_kept_out(self, tmp_path):
        directory, other = opened(tmp_path), opened(tmp_path)
        with (
            directory.held(),
            pytest.raises(RunDirError, match="another process searches"),
            other.held(),
        ):
            raise AssertionError
        with other.held():
            pass

    def test_who_holds_it_may_hold_it_again(self, tmp_path):
        directory, other = opened(tmp_path), opened(tmp_path)
        with directory.held():
            with directory.held():
                pass
            with pytest.raises(RunDirError), other.held():
                raise AssertionError

    def test_an_exception_lets_it_go(self, tmp_path):
        directory = opened(tmp_path)
        with pytest.raises(LookupError), directory.held():
            raise LookupError
        with opened(tmp_path).held():
            pass

    def test_who_was_left_behind_is_kept_out(self, tmp_path):
        directory, other = opened(tmp_path), opened(tmp_path)
        with other.held():
            other.append({"event": "flushed"})
        with pytest.raises(RunDirError, match="another process went on"):
            directory.held().__enter__()
        with other.held():
            pass

    def test_a_directory_that_cannot_be_written_is_an_error(
        self, tmp_path, monkeypatch
    ):
        directory = opened(tmp_path)
        usual = os.open

        def fail(path, *args, **kwargs):
            if os.fspath(path).endswith(LOCK):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            return usual(path, *args, **kwargs)

        monkeypatch.setattr(os, "open", fail)
        with pytest.raises(RunDirError, match="Read-only"):
            directory.held().__enter__()


class TestState:
    def test_it_comes_back_with_the_number_of_events(self, tmp_path):
        directory = opened(tmp_path)
        assert directory.load_state() == (0, None)
        directory.append({"event": "told"})
        assert directory.events_since_state == 1
        directory.save_state({"pulls": [1, 2]})
        assert directory.events_since_state == 0
        directory.append({"event": "told"})
        again = opened(tmp_path)
        assert again.load_state() == (1, {"pulls": [1, 2]})
        assert again.events_since_state == 1

    def test_a_damaged_one_is_as_good_as_none(self, tmp_path):
        directory = opened(tmp_path)
        directory.save_state({"pulls": [1, 2]})
        path = tmp_path / STATE
        content = path.read_bytes()
        damaged = [content[:end] for end in range(0, len(content), 9)]
        for at in range(len(content)):
            flipped = bytearray(content)
            flipped[at] ^= 1
            damaged.append(bytes(flipped))
        for content in damaged:
            path.write_bytes(content)
            with pytest.warns(RuntimeWarning, match="decisions are made again"):
                assert opened(tmp_path).load_state() == (0, None)

    def test_one_that_knows_more_than_the_journal_is_not_used(self, tmp_path):
        directory = opened(tmp_path)
        before = (tmp_path / JOURNAL).read_bytes()
        directory.append({"event": "told"})
        directory.save_state({"pulls": [1, 2]})
        (tmp_path / JOURNAL).write_bytes(before)
        with pytest.warns(RuntimeWarning, match="decisions are made again"):
            assert opened(tmp_path).load_state() == (0, None)

    def test_when_it_cannot_be_written_the_old_one_stays(self, tmp_path, monkeypatch):
        directory = opened(tmp_path)
        directory.save_state({"pulls": [1, 2]})

        def fail(*args):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "replace", fail)
        with pytest.raises(RunDirError, match="No space left"):
            directory.save_state({"pulls": [3, 4]})
        assert opened(tmp_path).load_state() == (0, {"pulls": [1, 2]})
