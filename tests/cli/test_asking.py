"""Searches of sweeps that are driven by programs: they ask, train and tell."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from risingsearch.cli.main import main
from tests.cli.sweeping import BASH_SWEEP, exported, json_of, started, wait_for

RUN = "runs/asked"


def asked(capsys, *arguments):
    return json_of(capsys, "ask", RUN, "--sweep", "sweep.yaml", *arguments)


def trained(job):
    """Return the scores that the script of a job has printed."""
    output = subprocess.check_output(job["command"], shell=True, text=True)
    lines = [json.loads(line) for line in output.splitlines() if line[:1] == "{"]
    return [str(line["score"]) for line in lines]


def told(capsys, job, *arguments):
    return json_of(capsys, "tell", RUN, str(job["job"]), *arguments)


def test_a_program_that_asks_and_tells_has_the_search_of_run(folder, capsys):
    json_of(capsys, "run", "sweep.yaml")
    while (job := asked(capsys))["job"] is not None:
        facts = told(capsys, job, *trained(job))
    assert (job["done"], job["spent"], job["epochs_in_training"]) == (True, 24, 0)
    assert job["reason"] == "the budget of 24 epochs is spent" == facts["stop_reason"]
    assert exported(RUN, capsys) == exported("runs/sweep", capsys)
    # One directory of each arm that may train on, and that of the best epoch.
    assert len(list(Path(RUN, "arms").glob("*/training-*"))) == 0
    best = Path(RUN, "arms", f"arm-{facts['best_arm']:06d}")
    assert [path.name for path in best.glob("epoch-*")] == ["epoch-000008"]


def test_a_job_whose_program_was_killed_is_given_again(folder, capsys):
    first = asked(capsys)
    waiting = asked(capsys)
    assert waiting["job"] is None
    assert not waiting["done"]
    assert waiting["reason"].endswith("is told: 0")
    Path(first["checkpoint_dir"], "torn").touch()
    again = asked(capsys, "--again", "0")
    same = {"job", "arm", "params", "seed", "from_epoch", "epochs", "command"}
    assert {key: again[key] for key in same} == {key: first[key] for key in same}
    assert not list(Path(again["checkpoint_dir"]).iterdir())
    assert json_of(capsys, "status", RUN)["state"] == "running"
    assert told(capsys, again, *trained(again))["spent"] == 4
    assert "risingsearch ask" in json_of(capsys, "status", RUN)["stop_reason"]


def test_an_ask_that_is_killed_loses_nothing(folder, capsys):
    with started("ask", RUN, "--sweep", "sweep.yaml") as process:
        wait_for(process, RUN, 1)
        process.kill()
    assert asked(capsys)["in_training"] == [0]
    job = asked(capsys, "--again", "0")
    assert told(capsys, job, *trained(job))["epochs"] == 4


def test_several_programs_have_different_jobs(folder, capsys):
    Path("sweep.yaml").write_text(BASH_SWEEP + "workers: 3\n")
    asked(capsys)

    def ask(_):
        command = ["ask", RUN, "--json"]
        with started(*command) as process:
            return process.wait(), process.stderr.read()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ask, range(2))) == [(0, "")] * 2
    assert asked(capsys)["in_training"] == [0, 1, 2]


def test_run_and_ask_continue_each_other(folder, capsys):
    job = asked(capsys)
    told(capsys, job, *trained(job))
    untold = asked(capsys)
    facts = json_of(capsys, "run", "sweep.yaml", "--run-dir", RUN)
    assert (facts["epochs"], facts["failures"]) == (24, 0)
    assert main(["tell", RUN, str(untold["job"]), "1"]) == 2
    assert "each is told once" in capsys.readouterr().err
    Path("other.yaml").write_text(BASH_SWEEP.replace("train.sh", "wait.sh"))
    Path("wait.sh").write_text("sleep 60")
    with started("run", "other.yaml") as process:
        wait_for(process, "runs/other", 1)
        process.kill()
    assert json_of(capsys, "ask", "runs/other")["job"] == 0  # its process is dead


def test_the_directory_is_the_last_checkpoint_of_the_arm(folder, capsys):
    while (job := asked(capsys))["from_epoch"] == 0:
        Path(job["checkpoint_dir"], "state").write_text(str(job["to_epoch"]))
        told(capsys, job, *["-1e-05"] * 4)
    assert Path(job["checkpoint_dir"], "state").read_text() == "4"


def test_a_job_may_fail_or_end_before_its_time(folder, capsys):
    job = asked(capsys)
    facts = told(capsys, job, "--failed", "CUDA out of memory")
    assert (facts["spent"], facts["failures"]) == (1, 1)
    assert "CUDA out of memory" in facts["why"]
    job = asked(capsys)
    facts = told(capsys, job, "0.5", "0.6")
    assert (facts["spent"], facts["arms"]["finished"]) == (3, 1)


@pytest.mark.parametrize(
    ("budget", "arguments", "spent"),
    [
        ("100s", ["--seconds", "7"], 7),
        ("{cost: 50}", ["--cost", "5"], 5),
        ("1gpu-h\ngpus: 2\nworkers: 1", ["--seconds", "360"], 0.2),
    ],
)
def test_a_budget_is_charged_what_is_told(
    folder, capsys, monkeypatch, budget, arguments, spent
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    text = BASH_SWEEP.replace("budget: 24", f"budget: {budget}")
    Path("sweep.yaml").write_text(text)
    job = asked(capsys)
    scores = ["0.5"] * job["epochs"]
    facts = told(capsys, job, *scores, *arguments)
    assert facts["spent"] == pytest.approx(spent)
    assert told(capsys, asked(capsys), "--failed", "why")["spent"] >= spent


def test_time_is_that_since_ask_by_default(folder, capsys):
    text = BASH_SWEEP.replace("budget: 24", "budget: 1wall-h")
    Path("sweep.yaml").write_text(text)
    job = asked(capsys)
    spent = told(capsys, job, *["0.5"] * job["epochs"])["spent"]
    assert 0 < spent < asked(capsys)["budget"]["wall_hours"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["0"], "is of 4 epochs: give one score of each"),
        (["0", *"12345"], "got 5"),
        (["1", "0.5"], "job 1 is not in training, and those in training are 0"),
        (["0", "0.5", "--cost", "1"], "--cost is for a budget in cost"),
        (["0", "0.5", "--failed", "x"], "give --failed alone"),
    ],
)
def test_what_cannot_be_told_is_refused(folder, capsys, arguments, message):
    asked(capsys)
    assert main(["tell", RUN, *arguments]) == 2
    assert message in capsys.readouterr().err
    assert asked(capsys)["in_training"] == [0]


def test_what_cannot_be_asked_is_refused(folder, capsys):
    assert main(["ask", RUN]) == 2
    assert "begin it with risingsearch ask" in capsys.readouterr().err
    assert not Path(RUN).exists()
    Path("kept.yaml").write_text(BASH_SWEEP + "resume: false\n")
    assert main(["ask", RUN, "--sweep", "kept.yaml"]) == 2
    assert "resume: false is for scripts that" in capsys.readouterr().err
