"""A sweep from its file to its results, killed and interrupted in between."""

import csv
import json
import pickle
import re
import signal
import subprocess
import sys
import time
from contextlib import chdir, contextmanager, suppress
from pathlib import Path

import pandas as pd
import psutil
import pytest

from risingsearch import Functions, RisingSearch
from risingsearch.cli.main import main
from risingsearch.search import loop
from risingsearch.storage.journal import Journal, create, read
from risingsearch.storage.run_directory import saved_header

BASH = """#!/usr/bin/env bash
# The state is a number in a file; every epoch brings it closer to the top.
set -eu
state="$RISINGSEARCH_CHECKPOINT_DIR/state"
if [[ -e $state ]]; then read -r epoch < "$state"; else epoch=0; fi
for ((i = 0; i < RISINGSEARCH_EPOCHS; i++)); do
    epoch=$((epoch + 1))
    echo "$epoch" > "$state"
    echo "arm $1 at epoch $epoch"
    echo "{\\"epoch\\": $epoch, \\"score\\": $((1000 * $1 * epoch / (epoch + 2)))}"
done
"""
PROGRAM = "import sys; from risingsearch.cli.main import main; sys.exit(main())"
BASH_SWEEP = """
command: [bash, train.sh, "{top}"]
parameters:
  top: {type: int, low: 1, high: 50}
budget: 24
max_epochs: 8
deterministic: true
seed: 0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.sh").write_text(BASH)
    Path("sweep.yaml").write_text(BASH_SWEEP)
    return tmp_path


def told(capsys):
    return json.loads(capsys.readouterr().out)


def json_of(capsys, *arguments):
    """Return what a command that succeeds prints with ``--json``."""
    assert main([*arguments, "--json"]) == 0
    return told(capsys)


def exported(run_dir, capsys):
    """Return all epochs but their seconds."""
    capsys.readouterr()
    assert main(["export", str(run_dir), "--format", "json"]) == 0
    return [row | {"seconds": None} for row in told(capsys)]


@contextmanager
def started(*arguments):
    """Yield a process that is killed at the latest when its test has failed."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def wait_for(process, run_dir, n_events):
    journal = Path(run_dir, "journal.jsonl")
    ended = False
    while not journal.exists() or len(journal.read_text().splitlines()) <= n_events:
        assert not ended, process.stderr.read()
        ended = process.poll() is not None
        time.sleep(0.01)


def test_a_plan_says_what_is_opened_first_and_when_arms_are_judged(folder, capsys):
    assert (
        not {"opened_first", "epochs_each_before_it_is_judged"}
        & json_of(capsys, "plan", "sweep.yaml").keys()
    )
    asked = "min_epochs: 3\nenqueue: [{top: 77}]\n"
    Path("sweep.yaml").write_text(BASH_SWEEP + asked)
    plan = json_of(capsys, "plan", "sweep.yaml")
    assert plan["opened_first"] == [{"top": 77}]
    assert plan["epochs_each_before_it_is_judged"] == 3


def test_a_timeout_alone_is_the_budget(folder, capsys):
    by_the_clock = BASH_SWEEP.replace("budget: 24", "timeout: 0.2\ncandidates: 1000")
    Path("sweep.yaml").write_text(by_the_clock)
    assert json_of(capsys, "plan", "sweep.yaml")["budget_wall_seconds"] == 0.2
    assert (
        json_of(capsys, "run", "sweep.yaml")["stop_reason"]
        == "the budget of 0.2 wall_seconds is spent"
    )
    Path("sweep.yaml").write_text(by_the_clock.replace("0.2", "0.5"))
    assert main(["run", "sweep.yaml"]) == 2
    assert "resume runs/sweep --budget +N" in capsys.readouterr().err


HANGS = BASH.replace("set -eu", "[[ $1 == 7 && -e hangs ]] && sleep 3600\nset -eu")


@pytest.mark.parametrize(("workers", "tops"), [(1, "[7]"), (2, "[1, 7]")])
def test_a_timeout_does_not_wait_for_a_script_that_hangs(
    folder, capsys, monkeypatch, tops, workers
):
    monkeypatch.setattr(loop, "SHORTEST", 0.2)
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


def test_a_bash_script_from_plan_to_export(folder, capsys):
    plan = json_of(capsys, "plan", "sweep.yaml")
    assert plan["budget_epochs"] == plan["configurations"] == 24
    assert plan["epochs_to_train_all_in_full"] == 24 * 8
    assert not Path("runs").exists()

    found = json_of(capsys, "run", "sweep.yaml")
    assert found["epochs"] == 24
    assert found["run"] == "runs/sweep"
    top, epoch = found["best_params"]["top"], found["best_epoch"]
    assert found["best_score"] == 1000 * top * epoch // (epoch + 2)
    assert Path(found["checkpoint"], "state").read_text() == f"{epoch}\n"

    assert main(["status", "runs/sweep"]) == 0
    status = capsys.readouterr().out
    assert "the budget of 24 epochs is spent" in status
    assert "metric       score" in status
    assert json_of(capsys, "resume", "runs/sweep", "--budget", "+6")["epochs"] == 30

    assert main(["export", "runs/sweep", "--out", "epochs.csv"]) == 0
    with Path("epochs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    assert {row["param_top"] for row in rows if row["arm"] == str(found["best_arm"])}
    assert main(["report", "runs/sweep"]) == 0
    page = Path("runs", "sweep", "report.html").read_text()
    assert "<title>sweep" in page
    assert "<dd>bash train.sh &#x27;{top}&#x27;</dd>" in page
    assert "<dt>top</dt><dd>int, low 1, high 50</dd>" in page
    parquet = ["export", "runs/sweep", "--format", "parquet"]
    assert main([*parquet, "--out", "epochs.parquet"]) == 0
    assert len(pd.read_parquet("epochs.parquet")) == 30
    assert main(parquet) == 2
    log = Path("runs", "sweep", "arms", f"arm-{found['best_arm']:06d}", "log.txt")
    assert f"arm {top} at epoch 1\n" in log.read_text()


def test_runs_are_compared_on_one_page(folder, capsys):
    for run_dir in ("runs/one", "runs/two"):
        assert main(["run", "sweep.yaml", "--run-dir", run_dir]) == 0
    capsys.readouterr()
    assert main(["report", "runs/one", "runs/two"]) == 0
    assert capsys.readouterr().out == "comparison.html\n"
    page = Path("comparison.html").read_text()
    assert '<th scope="col">one</th><th scope="col">two</th>' in page
    assert main(["report", "runs/one", "runs/two", "--out", "page.html"]) == 0
    assert Path("page.html").exists()
    assert main(["report", "runs/one", "runs/one"]) == 2
    assert "runs/one is named twice" in capsys.readouterr().err


def test_known_configurations_first_and_an_early_end(folder, capsys):
    knobs = "min_epochs: 3\npatience: 5\nenqueue: [{top: 60}, {top: 7}]\n"
    Path("sweep.yaml").write_text(BASH_SWEEP + knobs)
    first = json_of(capsys, "run", "sweep.yaml")
    assert first["epochs"] < 24
    assert first["best_params"] == {"top": 60}
    assert first["stop_reason"].startswith("the patience of 5 epochs without a new ")
    result = RisingSearch.saved_result("runs/sweep")
    opened = list(dict.fromkeys(result.history["arm"]))
    assert [result.candidates[arm]["top"] for arm in opened[:2]] == [60, 7]
    assert all(arm.epochs >= 3 for arm in result.arms if arm.epochs)
    assert main(["status", "runs/sweep"]) == 0
    assert first["stop_reason"] in capsys.readouterr().out
    assert main(["report", "runs/sweep"]) == 0
    assert first["stop_reason"] in Path("runs/sweep/report.html").read_text()
    capsys.readouterr()
    Path("sweep.yaml").write_text(BASH_SWEEP + knobs.replace("patience: 5", ""))
    assert json_of(capsys, "run", "sweep.yaml")["epochs"] == 24
    Path("sweep.yaml").write_text(BASH_SWEEP + knobs.replace("{top: 7}", "{top: 8}"))
    assert main(["run", "sweep.yaml"]) == 2
    assert "enqueue[1].top is 8 in the sweep" in capsys.readouterr().err


def test_a_run_ends_in_time_and_is_resumed(folder, capsys):
    sweep = BASH_SWEEP.replace("24", "4000") + "epochs_per_job: 1\ncandidates: 50\n"
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


def test_without_a_seed_each_run_has_its_own_and_keeps_it(folder):
    more = "error_score: -5.0\ncandidates: 20\n"
    Path("sweep.yaml").write_text(BASH_SWEEP.replace("seed: 0\n", more))
    for run_dir in ("one", "other", "one"):  # the last is the first once more
        assert main(["run", "sweep.yaml", "--run-dir", run_dir]) == 0
    assert main(["resume", "one", "--budget", "+2"]) == 0
    one, other = (RisingSearch.saved_result(name) for name in ("one", "other"))
    assert one.n_epochs == 26
    assert one.candidates != other.candidates
    assert saved_header(Path("one"))["settings"]["error_score"] == -5.0


def test_a_second_run_ends_nothing_of_the_first(folder, capsys):
    Path("train.sh").write_text(f"echo $$ > {folder}/pid; exec sleep 3600")
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


def test_a_program_that_is_missing_blames_no_arm(folder, capsys):
    sweep = BASH_SWEEP.replace("bash, train.sh", "./train.sh")
    Path("sweep.yaml").write_text(sweep)
    for _ in range(2):
        assert main(["run", "sweep.yaml"]) == 2
        assert "./train.sh cannot be started" in capsys.readouterr().err
    Path("train.sh").chmod(0o700)
    found = json_of(capsys, "run", "sweep.yaml")
    assert (found["epochs"], found["failures"]) == (24, 0)


def test_a_budget_in_hours_is_extended_by_hours(folder, capsys):
    sweep = BASH_SWEEP.replace("budget: 24", "budget: {hours: 1e-9}\ncandidates: 3")
    Path("sweep.yaml").write_text(sweep)
    before = json_of(capsys, "run", "sweep.yaml")["epochs"]
    arguments = ["resume", "runs/sweep", "--budget", "+1", "--json"]
    assert main(arguments) == 0
    said = capsys.readouterr()
    assert "continues as runs/sweep/sweep.json says" in said.err
    found = json.loads(said.out)
    assert found["epochs"] > before
    assert found["budget"] == {"hours": 1e-9 + 1}
    assert main([*arguments[:3], "+1s"]) == 0
    assert " of 1.00028 hours" in capsys.readouterr().out


def test_a_plan_says_what_the_starts_of_a_begun_sweep_took(folder, capsys):
    assert "share_of_time_starting" not in json_of(capsys, "plan", "sweep.yaml")
    journal = Path("runs", "sweep", "journal.jsonl")
    journal.parent.mkdir(parents=True)
    create(journal, {"settings": {}})
    written = Journal(journal, read(journal))
    for _ in range(5):
        took = {"elapsed": 32.0, "startup": 30.0, "scores": [0.1, 0.2]}
        written.append({"event": "result", **took})
    plan = json_of(capsys, "plan", "sweep.yaml")
    assert plan["share_of_time_starting"] == 0.9375
    assert "30 s a start, 1 s an epoch" in plan["advice"]


def test_workers_share_the_gpus_that_there_are(folder, capsys, monkeypatch):
    Path("train.sh").write_text(
        BASH.replace('\\"epoch\\"', '\\"gpu\\": $CUDA_VISIBLE_DEVICES, \\"epoch\\"')
    )
    sweep = BASH_SWEEP.replace("budget: 24", "budget: 1gpu-h\ncandidates: 9")
    Path("sweep.yaml").write_text(f"{sweep}workers: auto\ngpus: 0.5\n")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    plan = json_of(capsys, "plan", "sweep.yaml")
    assert (plan["workers"], plan["gpus"]) == (4, [["4"], ["6"], ["4"], ["6"]])
    found = json_of(capsys, "run", "sweep.yaml")
    assert {row["gpu"] for row in exported("runs/sweep", capsys)} == {4, 6}
    seconds = RisingSearch.saved_result("runs/sweep").training_seconds
    assert found["spent"] == pytest.approx(seconds * 0.5 / 3600)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert main(["resume", "runs/sweep"]) == 0
    capsys.readouterr()
    assert main(["status", "runs/sweep"]) == 0
    assert "worker 1: 1, worker 2: 1\n" in capsys.readouterr().out
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert main(["plan", "sweep.yaml"]) == 2
    assert "gpus is 0.5, and no GPU is seen here" in capsys.readouterr().err


def test_a_sweep_whose_terminal_is_closed_leaves_no_script_behind(folder, capsys):
    Path("train.sh").write_text(f"echo $$ > {folder}/pid; exec sleep 3600")
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


def test_ctrl_c_ends_the_scripts_and_leaves_a_run_to_resume(folder, capsys):
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


def test_a_budget_is_what_the_script_says_it_costs(folder, capsys):
    script = BASH.replace('\\"epoch\\"', '\\"dollars\\": $1, \\"epoch\\"')
    Path("train.sh").write_text(script)
    sweep = BASH_SWEEP.replace("budget: 24", "budget: {cost: 300}\ncandidates: 9")
    Path("sweep.yaml").write_text(f"{sweep}cost: dollars\n")
    found = json_of(capsys, "run", "sweep.yaml")
    rows = exported("runs/sweep", capsys)
    assert found["budget"] == {"cost": 300}
    assert found["spent"] == sum(row["cost"] for row in rows)
    assert all(row["cost"] == row["param_top"] for row in rows)
    for wrong, message in (
        ("dollar", "the script reports None as 'dollars'"),
        ('dollars\\": -1, \\"other', "the script reports -1 as 'dollars'"),
    ):
        Path("train.sh").write_text(script.replace("dollars", wrong))
        assert main(["run", "sweep.yaml", "--run-dir", wrong[:7]]) == 3
        assert message in capsys.readouterr().err


def test_another_sweep_is_refused_in_the_same_run(folder, capsys):
    assert (
        json_of(capsys, "plan", "sweep.yaml", "--budget", "12")["budget_epochs"] == 12
    )
    assert main(["plan", "sweep.yaml", "--budget", "1h"]) == 2
    assert "candidates: with a budget in hours say how" in capsys.readouterr().err
    assert json_of(capsys, "run", "sweep.yaml", "--budget", "12")["epochs"] == 12
    assert main(["resume", "runs/sweep", "--budget", "+4"]) == 0
    back = "with 50: put it back to continue, or begin another search with --r"
    for before, after, *messages in (
        ("24", "18", "add to it with risingsearch resume runs/sweep --budget +N\n"),
        ("24", "8", "budget is 8 in the sweep, and runs/sweep was begun with 12"),
        ("24", "{hours: 1}\ncandidates: 24", "and runs/sweep was begun with 12"),
        ("high: 50", "high: 60", "parameters.top.high is 60 in the sweep", back),
    ):
        Path("sweep.yaml").write_text(BASH_SWEEP.replace(before, after))
        budget = ["--budget", "12"] if before == "high: 50" else []
        assert main(["run", "sweep.yaml", *budget]) == 2
        said = capsys.readouterr().err
        assert [message for message in messages if message not in said] == []


def test_a_column_of_a_file_has_one_kind_of_value(folder, capsys):
    kinds = ["plain", "a=1", 1, -2.5, True]
    values = f"{{type: choice, values: {json.dumps(kinds)}}}"
    sweep = BASH_SWEEP.replace("{type: int, low: 1, high: 50}", values)
    Path("sweep.yaml").write_text(sweep.replace("24", "5\ncandidates: all"))
    Path("train.sh").write_text(BASH.replace("1000 * $1 * epoch", "epoch"))
    assert main(["run", "sweep.yaml"]) == 0
    assert {row["param_top"] for row in exported("runs/sweep", capsys)} <= {*kinds}
    out = ["--format", "parquet", "--out", "epochs.parquet"]
    assert main(["export", "runs/sweep", *out]) == 0
    assert set(pd.read_parquet("epochs.parquet")["param_top"]) <= {*map(str, kinds)}


def test_a_budget_grows_with_a_sweep_that_was_begun(folder, capsys):
    assert main(["run", "sweep.yaml", "--budget", "+6"]) == 2
    assert "runs/sweep holds no search whose budget could grow" in (
        capsys.readouterr().err
    )
    Path("train.sh").write_text("exit 1")
    assert main(["run", "sweep.yaml", "--run-dir", "failed"]) == 3
    assert main(["run", "sweep.yaml", "--run-dir", "failed"]) == 3
    assert main(["run", "sweep.yaml", "--run-dir", "failed"]) == 3
    assert "--budget +N adds to a budget that is spent" in capsys.readouterr().err
    Path("train.sh").write_text(BASH)
    again = ["run", "sweep.yaml", "--run-dir", "failed", "--retry-failed", "--json"]
    assert main(again) == 2
    assert "add to it with --budget +N" in capsys.readouterr().err
    assert main([*again, "--budget", "+30"]) == 0
    assert told(capsys)["epochs"] == 54
    with pytest.raises(SystemExit):
        main(["plan", "sweep.yaml", "--budget", "+6"])


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
    assert "sweep.json, with what the sweep was last run" in capsys.readouterr().err
    assert main(["run", "sweep.yaml"]) == 0
    assert main(["resume", "runs/sweep"]) == 0


def test_a_search_of_python_is_not_continued_by_the_command(tmp_path, capsys):
    functions = Functions(lambda params, seed: {}, lambda state: 0.5)
    RisingSearch(functions, [{"a": 1}], budget=4, run_dir=tmp_path / "run")
    assert main(["status", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert "continue in Python: RisingSearch.resume, or fit of RisingSearchCV" in said
    assert "risingsearch resume" not in said


def test_scripts_that_all_fail_end_the_search_early(folder, capsys):
    Path("train.sh").write_text("echo no GPU here; exit 7")
    Path("sweep.yaml").write_text(BASH_SWEEP.replace("budget: 24", "budget: 40"))
    assert main(["run", "sweep.yaml"]) == 3
    said = capsys.readouterr().err
    assert "exit code 7; its last line: 'no GPU here'" in said
    assert "run sweep.yaml --run-dir runs/sweep continues with others" in said
    assert "with --retry-failed tries those again first that have failed" in said
    found = json_of(capsys, "status", "runs/sweep")
    assert (found["epochs"], found["failures"]) == (10, 10)
    assert found["stop_reason"].startswith("none: it has stopped; continue with")
    Path("train.sh").write_text(BASH)
    assert json_of(capsys, "run", "sweep.yaml")["epochs"] == 40
    Path("train.sh").rename("moved.sh")
    assert main(["resume", "runs/sweep", "--budget", "+40"]) == 3
    assert "train.sh: No such file" in capsys.readouterr().err
    assert json_of(capsys, "status", "runs/sweep")["epochs"] < 60


def test_a_broken_script_is_mended_before_it_has_cost_the_budget(folder, capsys):
    """The same command continues with the others, and then with those that failed."""
    Path("train.sh").write_text(BASH.replace("score", "accuracy"))
    sweep = BASH_SWEEP.replace("budget: 24", "budget: 60\ncandidates: 20")
    Path("sweep.yaml").write_text(f"{sweep}workers: 2\n")
    assert main(["run", "sweep.yaml"]) == 3
    said = capsys.readouterr().err
    assert "there is no line of JSON with an epoch and 'score'" in said
    assert "the keys seen were epoch, accuracy" in said
    failed = json_of(capsys, "status", "runs/sweep")["arms"]["failed"]
    assert 10 <= failed <= 11
    Path("train.sh").write_text(BASH)
    assert json_of(capsys, "run", "sweep.yaml")["failures"] == failed
    assert main(["status", "runs/sweep"]) == 0
    assert "first failure  arm" in capsys.readouterr().out
    again = ["resume", "runs/sweep", "--retry-failed", "--json"]
    assert main(["run", "sweep.yaml", "--retry-failed"]) == 2
    assert main(again) == 2
    assert (
        "cannot be tried again: add to it with --budget +N" in capsys.readouterr().err
    )
    assert main([*again, "--budget", "+30"]) == 0
    found = told(capsys)
    assert "failed" not in found["arms"]
    assert (found["epochs"], found["failures"]) == (90, failed)
    assert found["first_failure"] is None
    whole = exported("runs/sweep", capsys)
    assert len({row["arm"] for row in whole if row["score"] != "nan"}) == 20
    assert main(["resume", "runs/sweep"]) == 0
    assert exported("runs/sweep", capsys) == whole


def test_a_misspelt_metric_is_mended_in_the_file(folder, capsys):
    """It may change until there is a score, and no more after that."""
    metrics = ("scores", "score", "epochs")
    codes = []
    for metric in metrics:
        Path("sweep.yaml").write_text(f"{BASH_SWEEP}metric: {metric}\n")
        codes.append(main(["run", "sweep.yaml"]))
    assert codes == [3, 0, 2]
    said = capsys.readouterr().err
    assert "metric is 'epochs' in the sweep, and runs/sweep was begun with 's" in said
    assert json_of(capsys, "status", "runs/sweep")["metric"] == "score"
    assert json_of(capsys, "resume", "runs/sweep", "--budget", "+6")["epochs"] == 30


def test_what_has_used_all_its_epochs_is_not_tried_again(folder, capsys):
    Path("train.sh").write_text(BASH.replace("set -eu", "set -eu; (( $1 % 3 ))"))
    sweep = BASH_SWEEP.replace("max_epochs: 8", "max_epochs: 1\ncandidates: 30")
    Path("sweep.yaml").write_text(sweep)
    assert main(["run", "sweep.yaml"]) == 0
    again = ["resume", "runs/sweep", "--retry-failed", "--budget", "+2"]
    with pytest.warns(RuntimeWarning, match="is not tried again: it has had its"):
        assert main(again) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "none.yaml"], "none.yaml cannot be read"),
        (["status", "runs/none"], "runs/none does not exist: name the run directory"),
        (["resume", "runs/none"], "runs/none holds no search"),
        (["export", "runs/none"], "runs/none does not exist: name the run directory"),
    ],
)
def test_what_is_not_there(folder, capsys, arguments, message):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert not Path("runs").exists()


def test_a_file_that_cannot_be_written(folder, capsys):
    assert main(["run", "sweep.yaml"]) == 0
    for kind in ("csv", "json", "parquet"):
        out = ["--format", kind, "--out", "none/epochs"]
        assert main(["export", "runs/sweep", *out]) == 2
        assert "none/epochs cannot be written" in capsys.readouterr().err
    for place in (".", "/"):
        assert main(["report", "runs/sweep", "--out", place]) == 2
        assert f"{place} cannot be written (it is a folder)" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["+many", "5", "+0"])
def test_more_budget_is_a_number_with_a_plus(folder, capsys, given):
    with pytest.raises(SystemExit):
        main(["resume", "runs/sweep", f"--budget={given}"])
    assert "must be an amount such as +100, +8h" in capsys.readouterr().err


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


FORGETFUL = BASH.replace("[[ -e $state ]]", "false")


@pytest.mark.parametrize(
    ("spent", "n_failed"), [("budget: 240", 3), ("budget: 4\ncandidates: 2", 2)]
)
def test_scripts_that_never_resume_end_the_search(folder, capsys, spent, n_failed):
    Path("train.sh").write_text(FORGETFUL)
    Path("sweep.yaml").write_text(BASH_SWEEP.replace("budget: 24", spent))
    assert main(["run", "sweep.yaml"]) == 3
    said = capsys.readouterr().err
    assert "no script has resumed from its checkpoint, of" in said
    assert "script reports epoch 1 where 2 is due: it has started anew" in said
    assert "resume: false in the sweep keeps its process alive" in said
    found = json_of(capsys, "status", "runs/sweep")
    assert found["failures"] == n_failed
    assert "it has started anew" in found["first_failure"]


def test_one_that_cannot_resume_is_told_of_beside_the_others(folder, capsys):
    forgetful = BASH.replace("[[ -e $state ]]", "(( $1 % 4 )) && [[ -e $state ]]")
    Path("train.sh").write_text(forgetful)
    assert main(["run", "sweep.yaml"]) == 0
    assert "it has started anew instead of resuming" in capsys.readouterr().out


PLAIN = """
import os, sys, time
top = int(sys.argv[1])
print(os.getpid(), file=open("pids", "a"))
for epoch in range(int(sys.argv[2])):
    print(f"Epoch {epoch}: train 0.9, validation {top * (epoch + 1) / (epoch + 3):.6f}")
"""
PLAIN_SWEEP = """
command: [PYTHON, train.py, "{top}", "{epochs}"]
parameters:
  top: {type: int, low: 1, high: 50}
metric: {regex: "validation {number}", name: accuracy}
resume: false
budget: 24
candidates: 6
max_epochs: 8
deterministic: true
seed: 0
"""


@pytest.fixture
def plain(folder):
    """A training script that knows nothing of searches, and its sweep."""
    Path("train.py").write_text(PLAIN)
    Path("plain.yaml").write_text(PLAIN_SWEEP.replace("PYTHON", sys.executable))
    return folder


def still_alive():
    found = []
    for pid in map(int, Path("pids").read_text().split()):
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
    return found


def test_an_unmodified_script_is_tuned(plain, capsys):
    found = json_of(capsys, "run", "plain.yaml")
    assert (found["epochs"], found["failures"]) == (24, 0)
    assert found["metric"] == "accuracy"
    assert json_of(capsys, "status", "runs/plain")["metric"] == "accuracy"
    assert main(["report", "runs/plain"]) == 0
    capsys.readouterr()
    rows = exported("runs/plain", capsys)
    for row in rows:
        expected = row["param_top"] * row["epoch"] / (row["epoch"] + 2)
        assert abs(row["score"] - expected) < 1e-6
    n_started = len(Path("pids").read_text().split())
    assert n_started == len({row["arm"] for row in rows})
    assert still_alive() == []


def test_what_was_ended_to_make_room_is_not_called_paused(plain, capsys):
    sweep = Path("plain.yaml").read_text()
    Path("plain.yaml").write_text(f"{sweep}max_alive: 1\n")
    arms = json_of(capsys, "run", "plain.yaml")["arms"]
    assert "paused" not in arms
    assert json_of(capsys, "status", "runs/plain")["arms"] == arms


WAITS = "    while epoch > 2 and not os.path.exists('go'): time.sleep(0.01)\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_what_lived_when_a_sweep_ended_is_lost(plain, capsys, number):
    Path("train.py").write_text(PLAIN.replace("    print(", f"{WAITS}    print("))
    with started("run", "plain.yaml") as process:
        wait_for(process, "runs/plain", 5)
        process.send_signal(number)
    if number == signal.SIGINT:
        assert still_alive() == []
    Path("go").touch()
    with pytest.warns(RuntimeWarning, match="is lost"):
        found = json_of(capsys, "resume", "runs/plain")
    assert still_alive() == []
    assert found["epochs"] <= 24
    assert found["failures"] == 0
