"""A search on disk goes on from whatever of its files is whole."""

import errno
import itertools
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from kept_search import (
    CANDIDATES,
    TO_THE_END,
    Peaked,
    Rising,
    a_search,
    crashed,
    damage,
    facts,
    files,
    kept,
    n_told,
    whole,
)

from risingsearch.errors import RunDirError
from risingsearch.search import run_log
from risingsearch.search.search import RisingSearch

ENOSPC, EROFS = errno.ENOSPC, errno.EROFS


class TestDamagedCheckpoints:
    """An arm goes on from its last checkpoint that is whole."""

    def latest(self, folder):
        """Return an arm that has two checkpoints and trains on, and their epochs."""
        search = RisingSearch.resume(folder, Rising())
        best = search.result().best_arm
        for arm, epochs in kept(folder).items():
            status = search.scheduler.status(arm)
            if len(epochs) == 2 and status == "paused" and arm != best:
                return arm, epochs
        raise AssertionError

    @pytest.fixture
    def stopped(self, folder):
        crashed(folder, at=26, **TO_THE_END)
        return folder

    @pytest.mark.parametrize("n_damaged", [1, 2])
    def test_from_the_last_that_is_whole_uncharged(self, tmp_path, stopped, n_damaged):
        expected = whole(tmp_path, **TO_THE_END)
        arm, epochs = self.latest(stopped)
        for epoch in epochs[-n_damaged:]:
            damage(stopped, arm, epoch)
        begin = [0, *epochs][-1 - n_damaged]
        trainable = Rising()
        search = RisingSearch.resume(stopped, trainable)
        message = rf"damaged.*arm {arm} trains again from epoch {begin} to {epochs[1]},"
        with pytest.warns(RuntimeWarning, match=message):
            result = search.run()
        assert facts(result) == facts(expected)
        again = [epoch for of, epoch in trainable.trained if of == arm]
        assert again == list(range(begin + 1, 7))

    def test_from_the_start_when_all_files_are_gone(self, tmp_path, stopped):
        expected = whole(tmp_path, **TO_THE_END)
        shutil.rmtree(stopped / "checkpoints")
        with pytest.warns(RuntimeWarning, match="cannot be read"):
            result = RisingSearch.resume(stopped, Rising()).run()
        assert facts(result) == facts(expected)

    def test_in_a_worker(self, tmp_path, folder, threads):
        options = {**TO_THE_END, "executor": threads}
        expected = whole(tmp_path, **options)
        crashed(folder, at=26, **options)
        for arm, epochs in kept(folder).items():
            damage(folder, arm, max(epochs))
        with pytest.warns(RuntimeWarning, match="which is not charged"):
            result = a_search(folder, **options).run()
        assert facts(result) == facts(expected)

    def test_the_best_one_is_missed_when_it_is_asked_for(self, folder):
        expected = a_search(folder, Peaked(), shuffle=False).run()
        assert expected.best_epoch == 2
        damage(folder, expected.best_arm, expected.best_epoch)
        result = RisingSearch.resume(folder, Peaked()).run()
        assert facts(result) == facts(expected)
        with pytest.raises(RunDirError, match="damaged"):
            result.best_state()


class TestDamagedJournal:
    def test_a_last_line_torn_at_any_byte_is_trained_again(self, tmp_path, folder):
        crashed(folder, at=12)
        expected = facts(whole(tmp_path))
        journal = folder / "journal.jsonl"
        content = journal.read_bytes()
        before = files(folder)
        last = content.rindex(b"\n", 0, -1) + 1
        for end in (*range(last, len(content), 16), len(content) - 1):
            torn = tmp_path / "torn"
            shutil.rmtree(torn, ignore_errors=True)
            shutil.copytree(folder, torn)
            os.truncate(torn / "journal.jsonl", end)
            n_left = n_told(torn)
            trainable = Rising()
            search = a_search(torn, trainable)
            assert (torn / "journal.jsonl").read_bytes().startswith(content[:last])
            assert facts(search.run()) == expected
            assert len(trainable.trained) == 24 - n_left
        assert files(folder) == before

    def test_the_advice_leads_to_the_same_result(self, tmp_path, folder):
        expected = a_search(folder, **TO_THE_END).run()
        journal = folder / "journal.jsonl"
        content = bytearray(journal.read_bytes())
        at = len(content) // 2
        content[at] ^= 1
        journal.write_bytes(content)
        os.truncate(journal, content.rindex(b"\n", 0, at) + 1)
        with pytest.raises(RunDirError, match=r"lacks its last \d+ events"):
            RisingSearch.resume(folder, Rising())
        (folder / "state.json").unlink()
        with pytest.warns(RuntimeWarning, match="trains again"):  # dropped when over
            result = RisingSearch.resume(folder, Rising()).run()
        assert facts(result) == facts(expected)
        assert result.best_state() == expected.best_state()


@pytest.mark.parametrize(
    "damaged",
    [lambda content: content[:-1], lambda content: content.replace(b"1", b"2")],
)
def test_a_damaged_state_is_a_warning_and_the_result_is_the_same(
    tmp_path, folder, damaged, monkeypatch
):
    monkeypatch.setattr(run_log, "FEWEST_EVENTS", 4)
    expected = whole(tmp_path)
    crashed(folder)
    path = folder / "state.json"
    path.write_bytes(damaged(path.read_bytes()))
    with pytest.warns(RuntimeWarning, match="replayed from its beginning"):
        search = a_search(folder)
    assert facts(search.run()) == facts(expected)


@contextmanager
def failing(at, error):
    """Let the write of that number fail, once."""
    numbers = itertools.count()

    def wrapped(write):
        def call(*args, **kwargs):
            if next(numbers) == at:
                raise error
            return write(*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "replace", "unlink"):
            patch.setattr(os, name, wrapped(getattr(os, name)))
        yield
    failing.n_writes = next(numbers)


def n_writes(work):
    with failing(-1, None):
        work()
    return failing.n_writes


SMALL = {"budget": 12, "candidates": CANDIDATES[:4], "max_epochs": 4}


class TestWritesThatFail:
    """The disk is full, or Ctrl-C comes, in the middle of any write."""

    ERRORS = (
        (OSError(ENOSPC, os.strerror(ENOSPC)), RunDirError),
        (OSError(EROFS, os.strerror(EROFS)), RunDirError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    )

    @pytest.mark.parametrize("n_workers", [pytest.param(0, marks=pytest.mark.slow), 2])
    def test_it_goes_on(self, tmp_path, n_workers):
        """Each write fails once, in one of three ways; every second search is anew."""
        with ThreadPoolExecutor(max(1, n_workers)) as executor:
            options = {**SMALL, "executor": executor if n_workers else None}
            expected = facts(whole(tmp_path, **options))
            for at in range(
                n_writes(lambda: a_search(tmp_path / "counted", **options).run())
            ):
                error, raised = self.ERRORS[(at + n_workers) % 3]
                folder = tmp_path / str(at)
                search = None
                failed = False
                trainable = Rising()
                try:
                    with failing(at, error):
                        search = a_search(folder, trainable, **options)
                        search.run()
                except raised:
                    failed = True
                assert failed or at > 40
                if search is None or at % 2:
                    search = a_search(folder, trainable, **options)
                assert facts(search.run()) == expected
                # What went on in memory is what is on disk.
                again = RisingSearch.resume(folder, Rising()).run()
                assert facts(again) == expected

    @pytest.mark.parametrize(("error", "raised"), ERRORS[1:])
    @pytest.mark.parametrize("anew", [False, True])
    def test_an_extension_is_made_or_not(self, folder, error, raised, anew):
        search = a_search(folder)
        search.run()
        with pytest.raises(raised), failing(0, error):
            search.extend(6)
        if anew:
            search = RisingSearch.resume(folder, Rising())
        assert search.scheduler.budget == 24
        search.extend(6)
        result = search.run()
        assert result.n_epochs == 30
        again = RisingSearch.resume(folder, Rising()).run()
        assert facts(again) == facts(result)

    @pytest.mark.parametrize(
        ("number", "said"),
        [
            (ENOSPC, "No space left.*make room"),
            (EROFS, "Read-only file system.*change the permissions"),
        ],
    )
    def test_a_disk_that_stays_full_says_so_each_time(
        self, tmp_path, folder, number, said
    ):
        crashed(folder)
        before = files(folder)

        def full(*args):
            raise OSError(number, os.strerror(number))

        with pytest.MonkeyPatch.context() as patch:
            search = a_search(folder)
            patch.setattr(os, "fsync", full)
            for _ in range(2):
                with pytest.raises(RunDirError, match=said):
                    search.run()
            assert len(RisingSearch.saved_result(folder).history) == 11
        assert files(folder) == before
        assert facts(search.run()) == facts(whole(tmp_path))
