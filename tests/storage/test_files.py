"""A file that is written is the old one or the new one, and never half of either."""

import errno
import os
import resource
import stat
from functools import partial

import pytest

from risingsearch.errors import RunDirError
from risingsearch.storage import files


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_in_parts(tmp_path):
    files.atomic_write(tmp_path / "file", b"one ", b"", b"two")
    assert (tmp_path / "file").read_bytes() == b"one two"
    assert names(tmp_path) == ["file"]


def test_what_a_crash_has_left_beside_is_found(tmp_path, monkeypatch):
    path = tmp_path / "file"

    def crash(*args):
        os._exit(0)

    for _ in range(2):
        if (pid := os.fork()) == 0:
            monkeypatch.setattr(os, "replace", crash)
            files.atomic_write(path, b"half of somet")
        os.waitpid(pid, 0)
    files.atomic_write(path, b"whole")
    files.atomic_write(tmp_path / "other", b"whole")
    assert path.read_bytes() == b"whole"
    left = sorted(files.temp_files_of(path))
    assert len(left) == 2
    assert names(tmp_path) == sorted(["file", "other", *(one.name for one in left)])


@pytest.mark.skipif(os.name != "posix", reason="elsewhere files have no modes")
class TestModes:
    @pytest.fixture(autouse=True)
    def umask(self):
        usual = os.umask(0o022)
        yield
        os.umask(usual)

    @pytest.mark.parametrize(
        ("given", "mode"), [({}, 0o644), ({"mode": files.PRIVATE}, 0o600)]
    )
    def test_a_new_file_is_for_all_to_read_or_for_its_owner(
        self, tmp_path, given, mode
    ):
        files.atomic_write(tmp_path / "file", b"new", **given)
        assert mode_of(tmp_path / "file") == mode

    @pytest.mark.parametrize("given", [{}, {"mode": files.PRIVATE}])
    @pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
    def test_a_file_that_is_replaced_keeps_its_own(self, tmp_path, given, mode):
        (tmp_path / "file").touch()
        (tmp_path / "file").chmod(mode)
        files.atomic_write(tmp_path / "file", b"new", **given)
        assert mode_of(tmp_path / "file") == mode


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_when_it_fails_the_old_file_stays_and_nothing_else(
    tmp_path, monkeypatch, call, code
):
    path = tmp_path / "file"
    files.atomic_write(path, b"old")

    def fail(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match=os.strerror(code)):
        files.atomic_write(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


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
    files.atomic_write(tmp_path / "file", b"new")
    assert calls == ["content", "name", "folder"]


@pytest.mark.parametrize(
    "damage", [lambda c: c[:-1], lambda c: b"0" + c[1:], lambda c: b""]
)
def test_a_file_that_does_not_fit_its_digest_is_an_error(tmp_path, damage):
    path = tmp_path / "file"
    files.write_digested(path, b"content\nof two lines")
    assert files.read_digested(path) == b"content\nof two lines"
    assert mode_of(path) == files.PRIVATE
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="digest does not fit"):
        files.read_digested(path)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_an_error_that_hides_a_full_disk_names_the_folder(tmp_path, number):
    def save():
        try:
            raise OSError(number, os.strerror(number))
        except OSError as error:
            raise ValueError("the archive is not finished") from error

    with (
        pytest.raises(RunDirError, match=f"{tmp_path} cannot be written .*make room"),
        files.blaming_the_disk(tmp_path, files.MAKE_ROOM, tmp_path),
    ):
        save()


def test_an_error_without_a_cause_is_blamed_on_a_folder_that_takes_no_more(tmp_path):
    (tmp_path / "half").write_bytes(bytes(3000))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    blaming = partial(files.blaming_the_disk, tmp_path, files.MAKE_ROOM, tmp_path)
    with pytest.raises(RuntimeError, match="pos 3000"), blaming():
        raise RuntimeError("unexpected pos 3000")
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(RunDirError, match="unexpected pos 3000"), blaming():
            raise RuntimeError("unexpected pos 3000")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == ["half"]
