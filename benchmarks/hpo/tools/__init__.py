"""Other tools' own searches on the recorded curves, where the tools are installed."""

from __future__ import annotations

import importlib.util
from functools import partial
from pathlib import Path

from benchmarks.hpo.methods import Method
from benchmarks.hpo.tools import syne, tpe
from benchmarks.peers.environments import NotInstalledError, python_of


def installed(cache: Path) -> tuple[list[Method], list[str]]:
    """Return the searches that can be played, and why others are left out.

    Syne Tune is installed in an environment of its own, which is kept in ``cache``.
    """
    found: list[Method] = []
    left_out = []
    if importlib.util.find_spec("optuna") is None:
        left_out.append("left out: tpe-hyperband: optuna is not installed")
    else:
        found.append(Method("tpe-hyperband", "tpe-hyperband", play=tpe.play))
    names = [f"syne tune: {search}" for search in syne.SEARCHES]
    try:
        python = str(python_of("syne", syne.PACKAGES, cache))
    except NotInstalledError as error:
        left_out.append(f"left out: {', '.join(names)}: not installed: {error}")
        return found, left_out
    for name, search in zip(names, syne.SEARCHES, strict=True):
        play = partial(syne.play, search=search, python=python)
        found.append(Method(name, name, play=play))
    return found, left_out
