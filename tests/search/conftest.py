import os
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

# Worker processes import the helpers beside this file by their own names.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch):
    """Let nothing wait for the disk: no machine stops here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def threads():
    with ThreadPoolExecutor(3) as executor:
        yield executor


@pytest.fixture(params=["here", "threads"])
def in_process(request):
    """The executors whose jobs share the memory of the search."""
    return None if request.param == "here" else request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def processes():
    # A spawned process imports the tests by the names that pytest gave them.
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[__name__.count(".")])
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
            yield executor


@pytest.fixture(params=["here", "threads", "processes"])
def executor(request):
    return None if request.param == "here" else request.getfixturevalue(request.param)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"
