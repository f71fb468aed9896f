"""Scripts of other tools and their ports run, and the page shows and counts them."""

import difflib
import json
import os
import re
import runpy
import sys
from pathlib import Path

import pytest

from risingsearch.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "coming-from.md"
THERE, HERE = PAGE.with_suffix("") / "there", PAGE.with_suffix("") / "here"
NAMES = sorted(path.name for path in THERE.iterdir())
MOST_CHANGES = 10

SCRIPTS = {  # small arguments, and between what the score lies that is printed last
    "halving.py": ("", 0.9, 1.0),
    "optuna_search_cv.py": ("", 0.8, 1.0),
    "optuna_pytorch.py": ("--trials=3 --epochs=2", 0.05, 1.0),
    "ray_asha.py": ("--num-samples=1 --max-num-epochs=2", 0.0, 3.0),
    "ray_function.py": ("--num-samples=1", 0.05, 1.0),
    "dask_hyperband.py": ("", 0.4, 1.0),
}


SIDES = [  # as they were, they run what others test
    pytest.param(THERE, id="as it was", marks=pytest.mark.slow),
    pytest.param(HERE, id="ported"),
]
CASES = [  # Ray starts slowly
    pytest.param(name, *case, marks=[pytest.mark.slow] * name.startswith("ray"))
    for name, case in SCRIPTS.items()
]


def n_changed(there, here):
    """Return how many lines are changed, added or removed, each counted once."""
    matcher = difflib.SequenceMatcher(
        None, there.splitlines(), here.splitlines(), autojunk=False
    )
    return sum(
        max(i2 - i1, j2 - j1)
        for what, i1, i2, j1, j2 in matcher.get_opcodes()
        if what != "equal"
    )


def test_a_changed_line_counts_once():
    assert n_changed("a\nb\nc\n", "a\nc\n") == 1
    assert n_changed("a\nb\nc\n", "a\nB\nc\nd\n") == 2


def test_every_script_is_there_on_both_sides():
    assert sorted(path.name for path in HERE.iterdir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_page_says_truly_how_few_lines_change(name):
    counted = n_changed((THERE / name).read_text(), (HERE / name).read_text())
    row = rf"^\|.*\]\(coming-from/here/{name}\) \| (\d+) \|$"
    [said] = re.findall(row, PAGE.read_text(), re.MULTILINE)
    assert int(said) == counted <= MOST_CHANGES


def changes(there, here):
    """Return the changed lines of a script with a line around them, as on the page."""
    diff = difflib.unified_diff(there.splitlines(), here.splitlines(), n=1, lineterm="")
    shown = ["..." if line.startswith("@@") else line for line in diff]
    return "\n".join(shown[3:]) + "\n"


def test_the_page_shows_the_changes_of_every_script():
    shown = re.findall(r"^```diff\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    sides = [((THERE / name).read_text(), (HERE / name).read_text()) for name in NAMES]
    assert sorted(shown) == sorted(changes(*both) for both in sides)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, request):
    """Return a function that runs a script in an empty folder, and what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "disabled")

    def run(script, arguments):
        if script.name.startswith("ray"):
            request.getfixturevalue("ray_address")  # the session that it finds
            storage = "ray.train.constants.DEFAULT_STORAGE_PATH"
            monkeypatch.setattr(storage, str(tmp_path))
        monkeypatch.setattr(sys, "argv", [str(script), *arguments.split()])
        runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out

    return run


def last_score(printed):
    """Return the number at the end of the last line that has one."""
    return float(re.findall(r"[ (]([0-9.e+-]+)\)?$", printed, re.MULTILINE)[-1])


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("name", "arguments", "low", "high"), CASES)
@pytest.mark.filterwarnings("ignore")  # what a script would say on the screen
def test_a_script_runs(side, name, arguments, low, high, run):
    if side / name == THERE / "dask_hyperband.py":
        why = "not installed: dask-ml 2025.1 does not run with distributed 2026.8"
        pytest.importorskip("dask_ml", reason=why)
    assert low <= last_score(run(side / name, arguments)) <= high


@pytest.mark.slow
def test_a_wandb_sweep_runs_with_this_search(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    for name in ("wandb_sweep.yaml", "wandb_train.py"):
        text = (HERE / name).read_text()
        Path(name).write_text(text.replace("budget: 300", "budget: 3"))
    assert main(["run", "wandb_sweep.yaml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["epochs"], found["failures"]) == (3, 0)
    assert set(found["best_params"]) == {"learning_rate", "batch_size", "optimizer"}
