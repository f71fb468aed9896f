"""What the directory of a search keeps, and which process may change it."""

import os
import subprocess
import sys
import threading
from functools import partial

import pytest

from risingsearch.errors import RunDirError, SetupError
from risingsearch.storage.checkpoints import Key
from risingsearch.storage.run_directory import (
    CHECKPOINTS,
    JOURNAL,
    LOCK,
    STATE,
    RunDirectory,
    is_held,
    saved_header,
    saved_search,
)

HEADER = {"settings": {"budget": 9}, "entropy": 2**100}
HOLD = """
import sys
from pathlib import Path
from risingsearch.storage.run_directory import RunDirectory
with RunDirectory(Path(sys.argv[1])).held():
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
        assert directory.journal.n_events == 0

    def test_what_is_kept_beside_is_that_of_the_first_time(self, tmp_path):
        opened(tmp_path)
        RunDirectory(tmp_path).open(HEADER | {"entropy": 5})
        assert saved_header(tmp_path) == HEADER

    def test_no_search_is_an_error(self, tmp_path):
        with pytest.raises(RunDirError, match="holds no search"):
            saved_header(tmp_path)

    def test_a_file_in_its_place_is_an_error(self, tmp_path):
        (tmp_path / "file").write_text("")
        for path in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(RunDirError, match="cannot be used"):
                RunDirectory(path)


class TestLock:
    def test_another_process_is_kept_out(self, tmp_path):
        directory = opened(tmp_path)
        command = [sys.executable, "-c", HOLD, str(tmp_path)]
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
            other.journal.append({"event": "flushed"})
        with pytest.raises(RunDirError, match="another process has continued"):
            directory.held().__enter__()
        with other.held():
            pass


class TestState:
    def test_it_comes_back_with_the_number_of_events(self, tmp_path):
        directory = opened(tmp_path)
        directory.journal.append({"event": "told"})
        directory.save_state({"pulls": [1, 2]})
        directory.journal.append({"event": "told"})
        assert RunDirectory(tmp_path).open(HEADER)[1:] == (1, {"pulls": [1, 2]})

    def test_without_one_nothing_is_known(self, tmp_path):
        assert RunDirectory(tmp_path).open(HEADER)[1:] == (0, None)

    def test_a_damaged_one_is_as_good_as_none(self, tmp_path):
        directory = opened(tmp_path)
        directory.save_state({"pulls": [1, 2]})
        path = tmp_path / STATE
        content = path.read_bytes()
        for damaged in (b"", content[:-1], content.replace(b"1", b"3")):
            path.write_bytes(damaged)
            with pytest.warns(RuntimeWarning, match="replayed from its beginning"):
                assert RunDirectory(tmp_path).open(HEADER)[1:] == (0, None)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def after(folder, n_events, n_in_state=0, header=HEADER):
    """Return a directory after so many events, whose state knows some of them."""
    directory = RunDirectory(folder)
    directory.open(header)
    for i in range(n_events):
        directory.journal.append({"event": "told", "i": i})
        if i + 1 == n_in_state:
            directory.save_state({"pulls": [i]})
    return directory


@pytest.mark.parametrize(
    "look",
    [saved_search, lambda path: RunDirectory(path).open(HEADER)],
    ids=["look", "open"],
)
class TestEventsThatAreMissing:
    """The journal lost its end, or was replaced by an older one."""

    def test_a_journal_behind_the_saved_state_is_an_error(self, tmp_path, look):
        after(tmp_path, 5, 4)
        lines = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
        for n_left, torn in [(4, b""), (3, b""), (3, lines[-1][:-1]), (0, b"")]:
            (tmp_path / JOURNAL).write_bytes(b"".join(lines[: n_left + 1]) + torn)
            before = contents(tmp_path)
            if n_left >= 4:
                assert len(look(tmp_path).events) == n_left
                continue
            with pytest.raises(RunDirError, match=f"lacks its last {4 - n_left} even"):
                look(tmp_path)
            assert contents(tmp_path) == before

    def test_the_advice_helps(self, tmp_path, look):
        after(tmp_path, 5, 4)
        lines = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
        (tmp_path / JOURNAL).write_bytes(b"".join(lines[:3]))
        with pytest.raises(RunDirError, match=f"delete {STATE} to continue"):
            look(tmp_path)
        (tmp_path / STATE).unlink()
        assert len(look(tmp_path).events) == 2


def test_a_search_whose_journal_is_gone_is_not_begun_again(tmp_path):
    after(tmp_path, 5, 5)
    (tmp_path / JOURNAL).unlink()
    before = contents(tmp_path)
    with pytest.raises(RunDirError, match="lacks its last 5 events"):
        RunDirectory(tmp_path).open(HEADER)
    assert contents(tmp_path) == before


class TestObjectStore:
    @pytest.fixture
    def url(self):
        pytest.importorskip("fsspec")
        import fsspec

        yield "memory://runs"
        fsspec.filesystem("memory").store.clear()

    def test_each_search_has_its_own_folder_in_it(self, tmp_path, url):
        for name in ("one", "two"):
            directory = RunDirectory(tmp_path / name, checkpoints=url)
            directory.open(HEADER)
            directory.checkpoints.save(Key(0, 1), name.encode())
        for name in ("one", "two"):
            again = RunDirectory(tmp_path / name)  # the journal names it
            again.open(HEADER)
            assert again.checkpoints.load(Key(0, 1)) == name.encode()
            assert not (tmp_path / name / CHECKPOINTS).exists()

    def test_one_without_the_checkpoints_of_the_search_is_refused(self, tmp_path, url):
        directory = RunDirectory(tmp_path, checkpoints=url)
        directory.open(HEADER)
        directory.checkpoints.save(Key(0, 1), b"weights")
        directory.journal.append({"event": "told", "best": 1})
        with pytest.raises(SetupError, match="holds no checkpoints"):
            RunDirectory(tmp_path, checkpoints="memory://elsewhere").open(HEADER)

    def test_a_search_with_its_checkpoints_on_disk_is_refused(self, tmp_path, url):
        opened(tmp_path)
        with pytest.raises(RunDirError, match="leave that out to resume it"):
            RunDirectory(tmp_path, checkpoints=url).open(HEADER)


def test_who_looks_while_another_writes_sees_all_up_to_some_event(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "fsync", lambda file: None)
    directory = after(tmp_path, 0)
    begun = threading.Event()

    def write():
        begun.wait()
        for i in range(400):
            directory.journal.append({"event": "told", "i": i})
            if i % 7 == 0:
                directory.save_state({"i": i})

    writer = threading.Thread(target=write)
    writer.start()
    n_seen = 0
    while writer.is_alive():
        begun.set()
        saved = saved_search(tmp_path)
        assert [event["i"] for event in saved.events] == list(range(len(saved.events)))
        assert n_seen <= len(saved.events) >= saved.n_in_state
        assert saved.state is None or saved.state["i"] == saved.n_in_state - 1
        n_seen = len(saved.events)
    writer.join()
    assert len(saved_search(tmp_path).events) == 400


def interrupted(work, at):
    """Do some work and interrupt it at that line of storage; return whether it was."""
    n_lines = 0

    def trace(frame, event, arg):
        nonlocal n_lines
        if "risingsearch/storage/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            n_lines += 1
            if n_lines == at:
                raise KeyboardInterrupt
        return trace

    usual = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(usual)
    return False


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_an_event_is_on_disk_or_not_counted_wherever_ctrl_c_comes(tmp_path):
    directory = after(tmp_path, 2)
    work = partial(directory.journal.append, {"event": "told"})
    at = n_counted = 0
    while interrupted(work, at := at + 1):
        n_counted += directory.journal.n_events > 2 + n_counted
        assert len(saved_search(tmp_path).events) == directory.journal.n_events
        with directory.held():
            assert directory.journal.n_events == 2 + n_counted
    assert 0 < n_counted < at - 1


def test_the_lock_is_free_wherever_ctrl_c_comes(tmp_path):
    def work():
        with RunDirectory(tmp_path).held():
            pass

    at = 0
    while interrupted(work, at := at + 1):
        assert not is_held(tmp_path)
        with RunDirectory(tmp_path).held():
            pass
    assert at > 20


class TestWhatOthersMayRead:
    @pytest.fixture(autouse=True)
    def umask(self):
        usual = os.umask(0o022)
        yield
        os.umask(usual)

    def modes(self, folder):
        paths = [folder, *folder.rglob("*")]
        return {path.name: path.stat().st_mode & 0o777 for path in paths}

    def test_it_is_nothing(self, tmp_path):
        directory = RunDirectory(tmp_path / "run")
        with directory.held():
            directory.open(HEADER)
            directory.journal.append({"event": "told"})
            directory.save_state({})
            directory.checkpoints.save(Key(0, 1), b"weights")
        assert self.modes(tmp_path / "run") == {
            "run": 0o700,
            JOURNAL: 0o600,
            STATE: 0o600,
            LOCK: 0o600,
            CHECKPOINTS: 0o700,
            "arm-000000-epoch-000001.ckpt": 0o600,
        }


def test_what_a_crash_has_left_is_removed_but_no_file_of_another_writer(tmp_path):
    after(tmp_path, 2, 2)
    ours = [f"{JOURNAL}.0a.tmp", f"{STATE}.0b.tmp", f"{STATE}.tmp"]
    others = ["report.html.0c.tmp", "notes.tmp"]
    for name in ours + others:
        (tmp_path / name).write_bytes(b"half of")
    saved_search(tmp_path)
    assert set(ours) < contents(tmp_path).keys()
    opened(tmp_path)
    assert contents(tmp_path).keys() == {JOURNAL, STATE, *others}
