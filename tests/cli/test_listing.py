"""`risingsearch list`: all runs below a folder."""

import json
from pathlib import Path

from risingsearch.cli.main import main
from risingsearch.storage.run_directory import JOURNAL
from tests.cli.sweeping import json_of


def test_every_run_has_its_state_its_best_score_and_its_epochs(folder, capsys):
    assert main(["list"]) == 2
    assert "there is no run below runs" in capsys.readouterr().err
    found = json_of(capsys, "run", "sweep.yaml")
    assert main(["run", "sweep.yaml", "--run-dir", "runs/older/broken"]) == 0
    Path("runs/older/broken", JOURNAL).write_text("no journal\n")
    capsys.readouterr()
    assert main(["list"]) == 0
    head, broken, sweep = capsys.readouterr().out.splitlines()
    assert head.split() == ["run", "best", "metric", "epochs", "state"]
    best = f"{found['best_score']:.6g}"
    assert sweep.split()[:3] == ["runs/sweep", best, "score"]
    assert sweep.endswith("24 of 24  finished")
    assert broken.startswith("runs/older/broken")
    assert "damaged: " in broken
    assert main(["list", "runs/sweep", "--json"]) == 0
    [facts] = json.loads(capsys.readouterr().out)
    assert facts["state"] == "finished"
    assert facts["best_params"] == found["best_params"]
