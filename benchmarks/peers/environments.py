"""A virtual environment per peer: made once, kept, and used again."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

COMMON = ("numpy==2.4.6", "scikit-learn==1.9.1")
TORCH = "torch==2.13.0"
INSTALLED = "installed"


class NotInstalledError(Exception):
    """A peer cannot take part, because its packages cannot be installed."""


def python_of(name: str, packages: Sequence[str], cache: Path) -> Path:
    """Return the interpreter that has the packages; make it if it does not exist.

    The folder's name holds a digest of the packages, so that other versions are another
    environment.

    Raises
    ------
    NotInstalledError
        If an environment cannot be made or filled.
    """
    digest = hashlib.sha256("\n".join([sys.version, *packages]).encode()).hexdigest()
    folder = (cache / f"{name}-{digest[:10]}").absolute()
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not (folder / INSTALLED).is_file():
        print(f"installing {' '.join(packages)}", file=sys.stderr)
        try:
            venv.create(folder, clear=True, symlinks=os.name != "nt", with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            msg = f"no virtual environment: {error}"
            raise NotInstalledError(msg) from error
        _install(python, packages)
        (folder / INSTALLED).touch()
    return python


def _install(python: Path, packages: Sequence[str]) -> None:
    """Install packages as wheels, so that nothing of theirs is built or run."""
    options = ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    command = [str(python), "-m", "pip", "install", *options, *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalledError(last_line(done.stderr) or "pip failed, saying nothing")


def last_line(text: str) -> str:
    """Return the last line that says anything."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
