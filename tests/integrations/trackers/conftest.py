import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# Nothing leaves the machine.
os.environ |= {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "WANDB_ERROR_REPORTING": "false",
}


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """Have all relative paths, and what MLflow keeps by default, in a folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
