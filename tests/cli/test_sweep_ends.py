"""A sweep that is killed, interrupted, out of time or moved continues."""

import pickle
import re
import signal
import time
from contextlib import chdir
from pathlib import Path

import psutil
import pytest

from risingsearch import Functions, RisingSearch
from risingsearch.cli.main import main
from risingsearch.search import wall_clock
from risingsearch.storage.journal import read
from tests.cli.sweeping import (
    BASH,
    BASH_SWEEP,
    BY_EPOCH,
    exported,
    json_of,
    started,
    told,
    wait_for,
)

HANGS = BASH.replace("set -eu", "[[ $1 == 7 && -e hangs ]] && sleep 3600\nset -eu")


@pytest.mark.parametrize(("workers", "tops"), [(1, "[7]"), (2, "[1, 7]")])
def test_a_timeout_does_not_wait_for_a_script_that_hangs(
    folder, capsys, monkeypatch, tops, workers
):
    monkeypatch.setattr(wall_clock, "SHORTEST", 0.2)
    Path("train.sh").write_text(HANGS)
    Path("hangs").touch()
    sweep = BASH_SWEEP.replace("int, low: 1, high: 50", f"choice, values: {tops}")
    sweep += f"timeout: 0.3\nworkers: {workers}\ncandidates: all\nenqueue: [top: 7]\n"
    Path("sweep.yaml").write_text(sweep)
    with pytest.warns(RuntimeWarning, match="of these arms seem to hang: 0; they are"):
        main(["run", "sweep.yaml"])
    found = json_of(capsys, "status", "runs/sweep")
    assert found["failures"] == 0
    assert "resume runs/sweep" in found["stop_reason"]
    Path("hangs").unlink()
    Path("sweep.yaml").write_text(sweep.replace("0.3", "600"))
    found = json_of(capsys, "run", "sweep.yaml")
    assert found["arms"] == {"finished": len(tops.split(","))}


def test_a_run_ends_in_time_and_is_resumed(folder, capsys):
    sweep = BY_EPOCH.replace("24", "4000") + "candidates: 50\n"
    Path("sweep.yaml").write_text(f"{sweep}timeout: 1.5\n")
    first = json_of(capsys, "run", "sweep.yaml")
    assert first["stop_reason"] == "the timeout of 1.5 seconds is over"
    assert first["epochs"] < json_of(capsys, "resume", "runs/sweep")["epochs"] < 400


def test_killed_and_run_again(folder, capsys):
    Path("sweep.yaml").write_text(f"{BASH_SWEEP}workers: 2\n")
    assert main(["run", "sweep.yaml", "--run-dir", "whole"]) == 0
    with started("run", "sweep.yaml", "--run-dir", "killed") as process:
        wait_for(process, "killed", 5)
        process.kill()
    assert main(["run", "sweep.yaml", "--run-dir", "killed"]) == 0
    assert exported("killed", capsys) == exported("whole", capsys)


def test_a_second_run_ends_nothing_of_the_first(folder, capsys):
    Path("train.sh").write_text("echo $$ > new; mv new pid; exec sleep 3600")
    with started("run", "sweep.yaml") as process:
        while not Path("pid").exists() or not list(Path("runs").rglob("running.json")):
            time.sleep(0.01)
        script = psutil.Process(int(Path("pid").read_text()))
        for arguments in (["run", "sweep.yaml"], ["resume", "runs/sweep"]):
            assert main(arguments) == 2
            assert "another process searches in" in capsys.readouterr().err
        assert script.is_running()
        assert list(Path("runs").rglob("running.json"))
        process.send_signal(signal.SIGTERM)
    assert not script.is_running()


def test_a_run_is_resumed_from_any_folder(folder, capsys, monkeypatch):
    assert main(["run", "sweep.yaml"]) == 0
    capsys.readouterr()
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    run_dir = str(folder / "runs" / "sweep")
    assert json_of(capsys, "resume", run_dir, "--budget", "+6")["failures"] == 0
    same = ["run", str(folder / "sweep.yaml"), "--run-dir", run_dir]
    with pytest.warns(RuntimeWarning, match=r"with its scripts in .*elsewhere"):
        assert main(same) == 0


def test_a_sweep_whose_terminal_is_closed_leaves_no_script_behind(folder, capsys):
    Path("train.sh").write_text("echo $$ > new; mv new pid; exec sleep 3600")
    with started("run", "sweep.yaml") as process:
        while not Path("pid").exists():
            time.sleep(0.01)
        assert main(["status", "runs/sweep"]) == 0
        said = capsys.readouterr().out
        assert "it is running" in said
        assert re.search(r"^best score +none$", said, re.MULTILINE)
        assert not re.search("nan|best arm|best params", said)
        script = psutil.Process(int(Path("pid").read_text()))
        process.send_signal(signal.SIGHUP)
        _, said = process.communicate()
    assert process.returncode == 130
    assert "continue with: risingsearch resume" in said
    assert not script.is_running()
    assert json_of(capsys, "status", "runs/sweep")["arms"].keys() == {"unopened"}


def test_ctrl_c_ends_the_scripts_and_leaves_a_run_to_resume(folder, capsys):
    Path("sweep.yaml").write_text(BY_EPOCH)
    hangs = "    if ((epoch > 2)); then sleep 3600; fi; epoch=$((epoch + 1))"
    Path("train.sh").write_text(BASH.replace("    epoch=$((epoch + 1))", hangs))
    with started("run", "sweep.yaml") as process:
        wait_for(process, "runs/sweep", 3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130
    assert "continue with: risingsearch resume runs/sweep" in said
    assert said.count("interrupted") == 1
    assert main(["status", "runs/sweep"]) == 0
    said = capsys.readouterr().out
    assert "none: it has stopped; continue with: risingsearch resume" in said
    assert "running" not in said
    Path("train.sh").write_text(BASH)
    assert json_of(capsys, "resume", "runs/sweep")["epochs"] == 24


def test_how_the_scripts_run_may_change(folder, capsys):
    """They move, with their sweep; a resumed run continues as it last ran."""
    Path("sweep.yaml").write_text(f"{BASH_SWEEP}workers: 1\n")
    with started("run", "sweep.yaml") as process:
        wait_for(process, "runs/sweep", 4)
        process.kill()
    moved = folder / "moved"
    moved.mkdir()
    for name in ("train.sh", "sweep.yaml", "runs"):
        Path(name).rename(moved / name)
    sweep = BASH_SWEEP.replace("train.sh", f"{moved}/train.sh")
    sweep += "workers: 3\ntimeout: 60\n"
    (moved / "sweep.yaml").write_text(sweep)
    run_dir = str(moved / "runs" / "sweep")
    with chdir(moved), pytest.warns(RuntimeWarning, match="continues with") as warned:
        assert main(["run", "sweep.yaml", "--json"]) == 0
    assert len([one for one in warned if "moved" in str(one.message)]) == 2
    assert told(capsys)["epochs"] == 24
    assert json_of(capsys, "resume", run_dir, "--budget", "+6")["epochs"] == 30
    events = read(Path(run_dir, "journal.jsonl")).events
    assert [e["n_jobs"] for e in events if e["event"] == "resized"] == [3]


def test_a_folder_that_is_gone_is_named(folder, capsys):
    assert main(["run", "sweep.yaml"]) == 0
    other = folder.with_name("other")
    folder.rename(other)
    assert main(["resume", str(other / "runs" / "sweep")]) == 2
    said = capsys.readouterr().err
    assert f"{folder}, where the scripts of" in said
    assert "call risingsearch run SWEEP.yaml --run-dir" in said


def test_what_a_run_goes_on_with_is_written_anew(folder, capsys):
    assert main(["run", "sweep.yaml"]) == 0
    Path("runs", "sweep", "sweep.json").write_text("x")
    assert main(["resume", "runs/sweep"]) == 2
    assert "sweep.json, its last sweep, cannot be read" in capsys.readouterr().err
    assert main(["run", "sweep.yaml"]) == 0
    assert main(["resume", "runs/sweep"]) == 0


def test_a_search_of_python_is_not_continued_by_the_command(tmp_path, capsys):
    functions = Functions(lambda params, seed: {}, lambda state: 0.5)
    RisingSearch(functions, [{"a": 1}], budget=4, run_dir=tmp_path / "run")
    assert main(["status", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert "continue in Python: run the program that began it again, with the" in said
    assert "risingsearch resume" not in said
    assert main(["resume", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert "run is not the run of a sweep: to continue it, run the Python" in said
    assert "continues" not in said


def test_what_is_refused_is_not_said_to_continue(folder, capsys):
    assert main(["resume", "runs/sweep"]) == 2
    assert "runs/sweep does not exist: name the run" in capsys.readouterr().err
    assert main(["run", "sweep.yaml"]) == 0
    text = Path("sweep.yaml").read_text()
    Path("sweep.yaml").write_text(text.replace("command: [", "command: [nice, ", 1))
    with Path("sweep.yaml").open("a") as file:
        file.write("report_file: told\n")
    capsys.readouterr()
    assert main(["run", "sweep.yaml"]) == 2
    said = capsys.readouterr().err
    assert "report_file is" in said
    assert "continues" not in said


@pytest.mark.parametrize("again", [["run", "sweep.yaml"], ["resume", "runs/sweep"]])
def test_a_run_that_everybody_may_write_to_starts_nothing(folder, capsys, again):
    assert main(["run", "sweep.yaml", "--budget", "12"]) == 0
    Path("runs", "sweep").chmod(0o777)
    logged = {path: path.read_text() for path in Path("runs").rglob("log.txt")}
    assert main(again) == 2
    assert "everybody may write to runs/sweep (mode 777)" in capsys.readouterr().err
    assert {path: path.read_text() for path in Path("runs").rglob("log.txt")} == logged


def test_a_sweep_unpickles_nothing(folder, monkeypatch):
    def loads(*_):
        raise AssertionError

    assert main(["run", "sweep.yaml"]) == 0
    monkeypatch.setattr(pickle, "loads", loads)
    for again in (["resume", "runs/sweep", "--budget", "+6"], ["run", "sweep.yaml"]):
        assert main(again) == 0
