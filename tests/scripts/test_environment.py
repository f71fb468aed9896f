"""Values of variables are kept for their owner only; a run continues with others."""

import json
import os
import shutil
from pathlib import Path

import pytest

from risingsearch.cli.main import main
from risingsearch.scripts.identity import last

TRAIN = """
import json, os
epoch = int(os.environ["RISINGSEARCH_TO_EPOCH"])
print(json.dumps({"epoch": epoch, "score": epoch, "key": os.environ["API_KEY"][-1]}))
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Return a function that runs a sweep with a key, and its exit code."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(TRAIN)

    def run(key="secret-1", name="API_KEY", budget=3):
        described = {
            "command": ["python3", "train.py"],
            "parameters": {"a": {"type": "choice", "values": [1, 2, 3]}},
            "budget": budget,
            "max_epochs": 1,
            "environment": [{name: key}],
        }
        Path("sweep.yaml").write_text(json.dumps(described))
        return main(["run", "sweep.yaml", "--run-dir", "run"])

    return run


def keys_used(capsys):
    capsys.readouterr()
    assert main(["export", "run", "--format", "json"]) == 0
    return [row["key"] for row in json.loads(capsys.readouterr().out)]


def test_values_stand_in_no_file_that_others_can_read(sweep):
    assert sweep() == 0
    for path in Path("run").rglob("*"):
        if path.is_file() and path.stat().st_mode & 0o077:
            assert b"secret-1" not in path.read_bytes()
    assert b"secret-1" not in Path("run", "journal.jsonl").read_bytes()
    assert b"API_KEY" in Path("run", "journal.jsonl").read_bytes()
    assert Path("run", "sweep.json").stat().st_mode & 0o777 == 0o600


def test_a_run_is_for_its_owner_alone(sweep):
    before = os.umask(0)
    try:
        assert sweep() == 0
        assert sweep() == 0
    finally:
        os.umask(before)
    for path in (Path("run"), *Path("run").rglob("*")):
        if not path.is_symlink():
            assert path.stat().st_mode & 0o077 == 0, path


def test_a_run_goes_on_with_its_values(sweep, capsys):
    assert sweep() == 0
    assert main(["resume", "run", "--budget", "+0.5"]) == 2
    Path("run", "journal.jsonl").write_bytes(  # as if it was killed
        b"".join(Path("run", "journal.jsonl").read_bytes().splitlines(True)[:2])
    )
    shutil.rmtree("run/arms")
    Path("run", "state.json").unlink(missing_ok=True)
    assert main(["resume", "run"]) == 0
    assert keys_used(capsys) == ["1", "1", "1"]


def test_a_run_goes_on_with_other_values(sweep, capsys):
    assert sweep() == 0
    journal = Path("run", "journal.jsonl")
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(True)[:3]))
    Path("run", "state.json").unlink(missing_ok=True)
    with pytest.warns(RuntimeWarning, match="with other values of environment"):
        assert sweep("secret-2") == 0
    assert keys_used(capsys) == ["1", "2", "2"]
    assert main(["resume", "run"]) == 0
    assert last(Path("run"))["environment"] == [{"API_KEY": "secret-2"}]


@pytest.mark.parametrize("damage", ["missing", "flipped"])
def test_values_that_are_lost(sweep, capsys, damage):
    assert sweep() == 0
    path = Path("run", "sweep.json")
    content = bytearray(path.read_bytes())
    path.unlink()
    if damage == "flipped":
        content[-5] ^= 1
        path.write_bytes(content)
    capsys.readouterr()
    assert main(["resume", "run"]) == 2
    said = capsys.readouterr().err
    assert "continue with risingsearch run SWEEP.yaml --run-dir run" in said
    assert sweep() == 0
    assert main(["resume", "run"]) == 0
