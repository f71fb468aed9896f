import sys
from pathlib import Path

import pytest

from risingsearch.cli.main import main
from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.sweep import checked_sweep, read_sweep

SCRIPT = """
import json, pathlib, sys
rate, last, folder = float(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
file = folder / "epoch"
epoch = int(file.read_text()) if file.exists() else 0
while epoch < last:
    epoch += 1
    file.write_text(str(epoch))
    print(json.dumps({"epoch": epoch, "score": 1 - rate**epoch}), flush=True)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT)
    return tmp_path


def a_sweep(tracker):
    return f"""
command: [{sys.executable}, train.py, "{{rate}}", "{{to_epoch}}", "{{checkpoint_dir}}"]
parameters: {{rate: {{type: choice, values: [0.5, 0.7, 0.9]}}}}
budget: 9
max_epochs: 4
tracker: {tracker}
"""


def n_steps(curves):
    """Return how many steps all arms have, each of them logged once."""
    logged = [scores for curve in curves.values() for scores in curve.values()]
    assert {len(scores) for scores in logged} <= {1}
    return len(logged)


def test_a_sweep_is_tracked_and_so_is_what_resume_adds(
    folder, capsys, tensorboard_curves
):
    Path("sweep.yaml").write_text(a_sweep("{tensorboard: {folder: logs}}"))
    assert main(["run", "sweep.yaml"]) == 0
    assert n_steps(tensorboard_curves(folder / "logs")) == 9
    assert main(["resume", "runs/sweep", "--budget", "+2"]) == 0
    assert n_steps(tensorboard_curves(folder / "logs")) == 11


@pytest.mark.parametrize(
    ("yaml", "options"),
    [
        ("tensorboard", {"tensorboard": {}}),
        ("{mlflow: }", {"mlflow": {}}),
        (
            "[mlflow, {wandb: {mode: offline}}]",
            {"mlflow": {}, "wandb": {"mode": "offline"}},
        ),
    ],
)
def test_forms_of_the_key(folder, yaml, options):
    Path("sweep.yaml").write_text(a_sweep(yaml))
    sweep = read_sweep(Path("sweep.yaml"))
    assert sweep.tracker.options(folder) == options
    described = sweep.model_dump(mode="json", exclude_defaults=True)
    assert checked_sweep(described, "").tracker == sweep.tracker


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("comet", "comet"),
        ("3", "a tracker is a name"),
        ("{wandb: {mode: loud}}", "offline"),
    ],
)
def test_what_is_refused(folder, yaml, said):
    Path("sweep.yaml").write_text(a_sweep(yaml))
    with pytest.raises(InvalidParameterError, match=said):
        read_sweep(Path("sweep.yaml"))


def test_a_password_is_not_kept(folder, capsys):
    uri = "postgresql://me:secret@host/db"
    Path("sweep.yaml").write_text(a_sweep(f"{{mlflow: {{tracking_uri: '{uri}'}}}}"))
    assert main(["run", "sweep.yaml"]) == 2
    said = capsys.readouterr().err
    assert "MLFLOW_TRACKING_URI" in said
    assert "secret" not in said
    assert not Path("runs/sweep/journal.jsonl").exists()
