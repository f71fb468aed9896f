"""Sweeps on a real Slurm of one node with two slots: no epoch too many, none twice."""

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from risingsearch.cli.main import main
from risingsearch.storage.journal import read

PROGRAM = """
import sys
from risingsearch.cli.main import main
from risingsearch.search.slurm import executor
executor.ASK_EVERY = 0.5
sys.exit(main())
"""
SCRIPT = """
import json, os, pathlib, time
state = pathlib.Path(os.environ["RISINGSEARCH_CHECKPOINT_DIR"], "epoch")
epoch = int(state.read_text()) if state.exists() else 0
assert epoch == int(os.environ["RISINGSEARCH_FROM_EPOCH"])
lr = json.loads(os.environ["RISINGSEARCH_PARAMS"])["lr"]
arm, job = os.environ["RISINGSEARCH_ARM"], os.environ.get("SLURM_JOB_ID", "local")

def hangs():
    try:
        allowed = int(pathlib.Path("hang").read_text() or 0)
    except FileNotFoundError:
        return False
    return len(pathlib.Path("trained").read_text().splitlines()) > allowed

for _ in range(int(os.environ["RISINGSEARCH_EPOCHS"])):
    epoch += 1
    with open("trained", "a") as trained:
        trained.write(f"{arm} {epoch} {job}\\n")
    while hangs():
        time.sleep(0.05)
    print(json.dumps({"epoch": epoch, "score": lr * (1 - 0.7**epoch)}), flush=True)
state.write_text(str(epoch))
"""
SWEEP = """
command: [PYTHON, train.py]
parameters:
  lr: {type: uniform, low: 0.1, high: 1.0}
budget: 10
candidates: 4
max_epochs: 5
epochs_per_job: 2
deterministic: true
seed: 0
workers: 2
launcher: LAUNCHER
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Return a function: start ``run`` of the sweep with a launcher."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT)
    running = []

    def start(launcher, run_dir="run", workers=2, budget=10):
        text = SWEEP.replace("PYTHON", sys.executable).replace("LAUNCHER", launcher)
        text = text.replace("workers: 2", f"workers: {workers}")
        text = text.replace("budget: 10", f"budget: {budget}")
        Path("sweep.yaml").write_text(text)
        command = [sys.executable, "-c", PROGRAM, "run", "sweep.yaml"]
        with open("err", "a") as err:
            process = subprocess.Popen([*command, "--run-dir", run_dir], stderr=err)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()


def history(run_dir="run"):
    """Return (arm, epoch, score) of every epoch in the journal."""
    journal = Path(run_dir, "journal.jsonl")
    return [
        (event["job"][0], event["job"][1] + k + 1, score)
        for event in (read(journal).events if journal.exists() else [])
        if event["event"] in ("result", "failed")
        for k, score in enumerate(event["scores"])
    ]


def trained():
    """Return (arm, epoch, job) of every epoch that a script has begun."""
    path = Path("trained")
    return (
        [line.split() for line in path.read_text().splitlines()]
        if path.exists()
        else []
    )


def wait_for(condition, process):
    ended = False
    while not condition():
        assert not ended, Path("err").read_text()
        ended = process.poll() is not None
        time.sleep(0.05)


def assert_done(process, n_epochs=10, run_dir="run"):
    assert process.wait() == 0, Path("err").read_text()
    told = history(run_dir)
    assert len(told) == len({epoch[:2] for epoch in told}) == n_epochs


def test_a_sweep_trains_each_slice_in_a_job_that_asks_for_its_resources(
    slurm_cluster, sweep
):
    Path("hang").touch()
    process = sweep("{slurm: {time: '00:07:00', cpus_per_task: 1, mem: 100M}}", "pic%N")
    wait_for(lambda: len(trained()) == 2, process)
    jobs = slurm_cluster.call("squeue", "--noheader", "--format=%j %l %m")
    names, limits, memory = zip(*map(str.split, jobs.splitlines()), strict=True)
    assert len(set(names)) == 2
    assert all(name.startswith("pic_N-") for name in names)
    logs = {path.parent.name for path in Path("pic%N", "slurm").glob("*/log.txt")}
    assert logs == set(names)
    assert set(limits) == {"7:00"}
    assert set(memory) == {"100M"}
    Path("hang").unlink()
    assert_done(process, run_dir="pic%N")
    assert len({(arm, epoch) for arm, epoch, _ in trained()}) == len(trained()) == 10
    by_job = Counter(job for _, _, job in trained())
    assert "local" not in by_job
    assert set(by_job.values()) <= {1, 2}
    assert not list(Path("pic%N", "slurm").glob("*-*"))


def test_cancelled_jobs_and_a_controller_that_dies_cost_no_epoch(slurm_cluster, sweep):
    Path("hang").touch()
    process = sweep("slurm")
    wait_for(lambda: len(trained()) == 2, process)
    slurm_cluster.call("scancel", sorted(slurm_cluster.jobs())[0])
    wait_for(lambda: len(trained()) == 3, process)  # the same once more
    slurm_cluster.wait_until_saved()
    slurm_cluster.kill_controller()
    Path("hang").unlink()
    wait_for(lambda: len(history()) >= 2, process)  # taken in while it is away
    slurm_cluster.start_controller()
    slurm_cluster.wait_until_up()
    assert_done(process)
    assert "has ended as CANCELLED" in Path("err").read_text()


def test_a_search_that_is_killed_takes_in_what_its_jobs_have_done(slurm_cluster, sweep):
    Path("hang").touch()
    process = sweep("slurm")
    wait_for(lambda: len(trained()) == 2, process)
    process.kill()
    process.wait()
    assert len(slurm_cluster.jobs("RUNNING")) == 2
    assert history() == []
    for log in Path("run", "slurm").glob("*/log.txt"):
        log.chmod(0o664)  # as many a cluster's umask has it
    before = trained()
    Path("hang").unlink()
    while slurm_cluster.jobs():
        time.sleep(0.05)
    n_before = len(trained())
    assert n_before == 4  # two slices of two epochs
    process = sweep("slurm")
    assert_done(process)
    assert trained()[: len(before)] == before
    assert len({(arm, epoch) for arm, epoch, _ in trained()}) == len(trained()) == 10


def test_interrupted_it_leaves_no_job_waiting(slurm_cluster, sweep):
    Path("hang").touch()
    process = sweep("slurm", workers=4, budget=20)
    wait_for(lambda: len(trained()) == 2, process)
    wait_for(lambda: len(slurm_cluster.jobs("PENDING")) == 2, process)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert slurm_cluster.jobs("PENDING") == {}
    running = slurm_cluster.jobs("RUNNING")
    assert len(running) == 2
    assert f"scancel {' '.join(sorted(running))}\n" in Path("err").read_text()
    Path("hang").unlink()
    while slurm_cluster.jobs():
        time.sleep(0.05)
    assert_done(sweep("slurm", workers=4, budget=20), 20)
    assert "CANCELLED" not in Path("err").read_text()  # they were never begun
    assert len({(arm, epoch) for arm, epoch, _ in trained()}) == len(trained()) == 20


@pytest.mark.slow
def test_a_search_moves_to_the_cluster_and_back(slurm_cluster, sweep):
    assert_done(sweep("local", "straight"), run_dir="straight")
    straight = history("straight")
    Path("trained").unlink()
    for launcher in ("local", "slurm"):
        # A fifth epoch is of another slice than the first ones: one has been told.
        Path("hang").write_text(str(len(trained()) + 4))
        before = len(history())
        process = sweep(launcher)
        wait_for(lambda before=before: len(history()) > before, process)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130, Path("err").read_text()
        Path("hang").unlink()
        while slurm_cluster.jobs():
            time.sleep(0.05)
    assert_done(sweep("local"))
    assert sorted(history()) == sorted(straight)  # whichever job ended first


@pytest.mark.slow
def test_a_job_that_slurm_starts_again_begins_its_slice_anew(slurm_cluster, sweep):
    Path("hang").touch()
    process = sweep("{slurm: {requeue: true}}")
    wait_for(lambda: len(trained()) == 2, process)
    job = sorted(slurm_cluster.jobs("RUNNING"))[0]
    slurm_cluster.call("scontrol", "requeue", job)
    Path("hang").unlink()
    while process.poll() is None:  # else it waits for two minutes
        for pending in slurm_cluster.jobs("PENDING"):
            now = ("scontrol", "update", f"JobId={pending}", "StartTime=now")
            with suppress(subprocess.CalledProcessError):  # it has run by now
                slurm_cluster.call(*now)
        time.sleep(0.05)
    assert_done(process)


@pytest.mark.slow
def test_the_script_of_the_page_is_searched_over(slurm_cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    docs = Path(__file__).parents[2] / "docs"
    for page, name in [("command-line", "train.py"), ("clusters", "sweep.yaml")]:
        found = rf"```\w+\n(# {name}\n.*?)```"
        [text] = re.findall(found, (docs / f"{page}.md").read_text(), re.S)
        Path(name).write_text(text)
    assert main(["run", "sweep.yaml", "--json"]) == 0
    assert len({epoch[:2] for epoch in history("runs/sweep")}) == 30
