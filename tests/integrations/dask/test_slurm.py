"""Searches on a real Slurm of one node with two slots, where one can be started."""

import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from risingsearch import RisingSearch
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.dask.slurm import keep_jobs

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
HOUR = 3600.0

pytestmark = pytest.mark.xdist_group("slurm")


def wait_for(condition):
    end = time.monotonic() + HOUR
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.5)


@pytest.fixture
def environment():
    """Return the variables of a search that finds this checkout, as do its jobs."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"PYTHONPATH": path}


def test_a_search_outlives_its_jobs_and_the_controller(
    slurm_cluster, environment, tmp_path
):
    def noted():
        notes = tmp_path / "notes.txt"
        return notes.read_text().splitlines() if notes.exists() else []

    def jobs(state):
        return [job for job, now in slurm_cluster.jobs().items() if now == state]

    def are_replaced(gone=()):
        """Return whether all jobs are there again, asking Slurm once."""
        there = slurm_cluster.jobs()
        states = sorted(there.values())
        return states == ["PENDING", "RUNNING", "RUNNING"] and not {*gone} & {*there}

    command = [sys.executable, str(HERE / "slurm_search.py"), str(tmp_path)]
    with open(tmp_path / "log.txt", "a") as log:
        search = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        wait_for(lambda: len(noted()) >= 6 and are_replaced())
        gone = jobs("RUNNING")
        slurm_cluster.call("scancel", *gone)
        wait_for(lambda: are_replaced(gone))

        gone = jobs("PENDING")  # cancelled, and no controller to submit others to
        slurm_cluster.wait_until_saved()
        slurm_cluster.call("scancel", *gone)
        slurm_cluster.kill_controller()
        slurm_cluster.start_controller()
        slurm_cluster.wait_until_up()
        wait_for(lambda: are_replaced(gone))
        (tmp_path / "go").touch()
        assert search.wait(HOUR) == 0, (tmp_path / "log.txt").read_text()
    finally:
        search.kill()
        search.wait()
    wait_for(lambda: not slurm_cluster.jobs())

    result = RisingSearch.saved_result(tmp_path / "run")
    assert result.n_epochs == 24
    assert not result.failures
    told = Counter(f"{row['arm']} {row['epoch']}" for row in result.history)
    assert set(told.values()) == {1}
    assert (Counter(noted()) - told).total() <= 2  # in training as jobs were cancelled


@pytest.mark.slow
def test_the_script_of_the_guide(slurm_cluster, environment, tmp_path):
    page = (ROOT / "docs" / "clusters.md").read_text()
    [script] = re.findall(r"^```\n(# search\.py\n.*?)^```$", page, re.DOTALL | re.M)
    (tmp_path / "search.py").write_text(script)
    printed = subprocess.run(
        [sys.executable, "search.py"],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=HOUR,
    ).stdout
    assert printed.startswith("40 epochs, best score 0.")
    wait_for(lambda: not slurm_cluster.jobs())


def test_jobs_are_a_number():
    with pytest.raises(InvalidParameterError, match="n_jobs"):
        keep_jobs(None, 0)
