"""The examples that a build of the site shows and does not run do run."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def test_the_ray_example_spends_its_budget(tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLES / "07_ray.py"],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "\n40 epochs, error " in done.stdout
