import subprocess
import venv
from types import SimpleNamespace

import pytest

from benchmarks.peers import environments
from benchmarks.peers.environments import NotInstalledError, python_of


@pytest.fixture
def pip(monkeypatch):
    """Put a stand-in for venv and pip in place; return what they are asked for."""
    asked = SimpleNamespace(environments=[], commands=[], returncode=0)

    def create(folder, **options):
        asked.environments.append(folder)
        folder.mkdir(parents=True, exist_ok=True)

    def run(command, **options):
        asked.commands.append(command)
        stderr = "looking\nERROR: no such package\n\n"
        return subprocess.CompletedProcess(command, asked.returncode, "", stderr)

    monkeypatch.setattr(venv, "create", create)
    monkeypatch.setattr(subprocess, "run", run)
    return asked


def test_an_environment_is_made_once(pip, tmp_path):
    python = python_of("tool", ["tool==1"], tmp_path)
    assert python_of("tool", ["tool==1"], tmp_path) == python
    [folder], [command] = pip.environments, pip.commands
    assert python.is_relative_to(folder)
    assert command[:4] == [str(python), "-m", "pip", "install"]
    assert command[-1] == "tool==1"


def test_other_versions_are_another_environment(pip, tmp_path):
    assert python_of("tool", ["tool==1"], tmp_path) != python_of(
        "tool", ["tool==2"], tmp_path
    )


def test_what_cannot_be_installed_says_why_and_is_tried_again(pip, tmp_path):
    pip.returncode = 1
    with pytest.raises(NotInstalledError, match=r"^ERROR: no such package$"):
        python_of("tool", ["tool==1"], tmp_path)
    pip.returncode = 0
    python_of("tool", ["tool==1"], tmp_path)
    assert len(pip.commands) == 2


def test_no_environment_says_why(monkeypatch, tmp_path):
    def create(folder, **options):
        raise OSError("disk full")

    monkeypatch.setattr(venv, "create", create)
    with pytest.raises(NotInstalledError, match="no virtual environment: disk full"):
        python_of("tool", ["tool==1"], tmp_path)


@pytest.mark.parametrize(
    ("text", "last"), [("a\nb\n\n", "b"), ("  one  ", "one"), ("\n", ""), ("", "")]
)
def test_last_line(text, last):
    assert environments.last_line(text) == last
