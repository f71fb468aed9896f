"""Folders and files as they are named: no link is followed, and no pipe waited for."""

from __future__ import annotations

import os
from pathlib import Path

from risingsearch.errors import PriorError
from risingsearch.storage.files import open_plain


def subfolders(folder: Path) -> list[Path]:
    """Return the folders in a folder, by name, without links."""
    return _entries(folder, folders=True)


def files(folder: Path) -> list[Path]:
    """Return the files in a folder, by name, without links."""
    return _entries(folder, folders=False)


def has_entry(folder: Path, name: str) -> bool:
    """Return whether a folder has an entry of a name, whatever it is."""
    return os.path.lexists(folder / name)


def _entries(folder: Path, *, folders: bool) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if (entry.is_dir if folders else entry.is_file)(follow_symlinks=False)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable(folder, error) from error
    return [folder / name for name in sorted(names)]


def text_of(path: Path) -> str | None:
    """Return the text of a file, None where there is none; no text is a PriorError.

    What is no UTF-8 at the end, where a killed process may have stopped, is left out.
    """
    content = content_of(path)
    return None if content is None else as_text(content, path)


def content_of(path: Path) -> bytes | None:
    """Return what is in a file, None where there is none."""
    try:
        with open_plain(path) as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(path, error) from error


def as_text(content: bytes, path: Path) -> str:
    """Return the content of a file as text; see ``text_of``."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if "unexpected end" not in error.reason:
            msg = f"{path} holds no text in UTF-8, from byte {error.start}"
            raise PriorError(msg) from error
        text = content[: error.start].decode("utf-8-sig")
    if "\0" in text:
        msg = f"{path} holds a NUL, so it is no text"
        raise PriorError(msg)
    return text


def begins_with(path: Path, beginning: bytes) -> bool:
    """Return whether these are the first bytes of a file."""
    try:
        with open_plain(path) as file:
            return file.read(len(beginning)) == beginning
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> PriorError:
    """Return the error for what cannot be read."""
    return PriorError(f"{path} cannot be read ({error.strerror or error})")
