"""Who else can change what a search reads: their code would run when it is read."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from risingsearch.errors import RunDirError
from risingsearch.storage.run_directory import CHECKPOINTS, JOURNAL, STATE, TAIL

DANGER = (
    "what it holds can run code here, because states are unpickled and the command of "
    "a sweep is run"
)
EXPLICITLY = "open it with trust_run_dir=True (--trust on the command line)"


def check_only_own(run_dir: Path, also: Iterable[Path] = ()) -> None:
    """Raise a RunDirError where others own, or can write, what a search reads.

    That is the directory, its journal, state and checkpoints, and what there is
    ``also``. A link counts as what it points to. One that is not there yet is fine, and
    without POSIX's permissions nothing is known.
    """
    if os.name != "posix":
        return
    for path in (*_read(run_dir), *also):
        with suppress(OSError):  # what cannot be looked at cannot be read either
            _check(path, run_dir)


def _read(run_dir: Path) -> Iterator[Path]:
    folder = run_dir / CHECKPOINTS
    yield from (run_dir / name for name in ("", JOURNAL, STATE, TAIL, CHECKPOINTS))
    with suppress(OSError):
        yield from sorted(folder.iterdir())


def _check(path: Path, run_dir: Path) -> None:
    found = path.stat()
    if found.st_uid != os.geteuid():
        msg = (
            f"{path} belongs to another user (uid {found.st_uid}), and {DANGER}: look "
            f"at it with risingsearch status, which runs nothing, run chown -R if it "
            f"should be yours, or, if you trust that user, {EXPLICITLY}"
        )
        raise RunDirError(msg)
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        whole, place = run_dir.resolve(), path.resolve()
        where = whole if place.is_relative_to(whole) else place
        msg = (
            f"{path} can be written by others (mode {stat.S_IMODE(found.st_mode):o}), "
            f"and {DANGER}: run chmod -R go-w {shlex.quote(str(where))} if nobody else "
            f"has changed it, or, if you trust all who can, {EXPLICITLY}"
        )
        raise RunDirError(msg)
