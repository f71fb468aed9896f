"""The examples that a build of the site shows and does not run do run."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what Ray would say on the screen
def test_the_ray_example_spends_its_budget(tmp_path, monkeypatch, capsys, ray_address):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for name in ("init", "shutdown"):  # the session of the tests is used
        monkeypatch.setattr(f"ray.{name}", lambda **given: None)
    runpy.run_path(str(EXAMPLES / "07_ray.py"), run_name="__main__")
    assert "\n40 epochs, error " in capsys.readouterr().out
