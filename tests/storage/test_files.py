"""A file that is written is the old one or the new one, and never half of either."""

import errno
import os
import stat

import pytest

from risingsearch.storage.files import sync_folder, write_whole


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_in_parts(tmp_path):
    write_whole(tmp_path / "file", [b"one ", b"", b"two"])
    assert (tmp_path / "file").read_bytes() == b"one two"
    assert names(tmp_path) == ["file"]


def test_a_file_is_replaced_though_the_new_one_is_shorter(tmp_path):
    path = tmp_path / "file"
    write_whole(path, [b"a long content"])
    write_whole(path, [b"short"])
    assert path.read_bytes() == b"short"


def test_what_a_crash_has_left_beside_is_no_obstacle(tmp_path):
    (tmp_path / "file.tmp").write_bytes(b"half of somet")
    write_whole(tmp_path / "file", [b"whole"])
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_when_it_fails_the_old_file_stays_and_nothing_else(
    tmp_path, monkeypatch, call, code
):
    path = tmp_path / "file"
    write_whole(path, [b"old"])

    def fail(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match=os.strerror(code)):
        write_whole(path, [b"new"])
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_parts_that_cannot_be_made_leave_the_old_file(tmp_path):
    path = tmp_path / "file"
    write_whole(path, [b"old"])

    def parts():
        yield b"new"
        raise OSError(errno.EIO, "the source broke")

    with pytest.raises(OSError, match="broke"):
        write_whole(path, parts())
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_a_folder_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "missing" / "file", [b"new"])


@pytest.mark.skipif(os.name != "posix", reason="elsewhere folders cannot be synced")
def test_the_content_is_on_disk_before_the_name_and_the_name_before_it_returns(
    tmp_path, monkeypatch
):
    calls = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        calls.append("folder" if is_folder else "content")
        fsync(descriptor)

    def noted_replace(*args):
        calls.append("name")
        replace(*args)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    write_whole(tmp_path / "file", [b"new"])
    assert calls == ["content", "name", "folder"]


def test_a_folder_is_synced(tmp_path):
    sync_folder(tmp_path)
