"""What is not a file is not opened, and no link is followed."""

import importlib.util
import os
import socket
import sys

import pytest

from risingsearch.errors import ScriptError, SetupError
from risingsearch.scripts.plain_files import check_tree, make_folder, open_plain


def test_a_file_is_opened_or_made(tmp_path):
    path = tmp_path / "a"
    descriptor = open_plain(path, os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, b"text")
    os.close(descriptor)
    os.close(open_plain(path, os.O_RDONLY))
    assert path.read_text() == "text"
    with pytest.raises(FileNotFoundError):
        open_plain(tmp_path / "none", os.O_RDONLY)


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_RDWR])
def test_links_are_not_followed(tmp_path, flags):
    (tmp_path / "link").symlink_to("none")
    with pytest.raises(OSError, match="is a symbolic link and must be a file"):
        open_plain(tmp_path / "link", flags)
    assert not (tmp_path / "none").exists()


def test_a_folder_is_no_link(tmp_path):
    make_folder(tmp_path / "a" / "b")
    (tmp_path / "link").symlink_to("a")
    with pytest.raises(OSError, match="must be a folder"):
        make_folder(tmp_path / "link")


def test_files_folders_and_links_can_be_copied(tmp_path):
    for i in range(200):
        (tmp_path / f"folder-{i % 7}").mkdir(exist_ok=True)
        (tmp_path / f"folder-{i % 7}" / f"file-{i}").touch()
    (tmp_path / "link").symlink_to("/")
    (tmp_path / "circle").symlink_to(tmp_path)
    check_tree(tmp_path)


@pytest.mark.parametrize("kind", ["FIFO", "socket"])
def test_what_cannot_be_copied_is_named(tmp_path, kind, monkeypatch):
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path)
    if kind == "FIFO":
        os.mkfifo("inner/x")
    else:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("inner/x")
    with pytest.raises(ScriptError, match="has left 'inner/x'"):
        check_tree(tmp_path)


def test_windows_is_told_what_to_use_instead(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    module = importlib.util.find_spec("risingsearch.scripts.plain_files")
    with pytest.raises(SetupError, match="need Linux or macOS, and this is Windows"):
        module.loader.exec_module(importlib.util.module_from_spec(module))
