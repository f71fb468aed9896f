"""The folder that sweeps of the tests run in."""

from pathlib import Path

import pytest

from tests.cli.sweeping import BASH, BASH_SWEEP


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.sh").write_text(BASH)
    Path("sweep.yaml").write_text(BASH_SWEEP)
    return tmp_path
