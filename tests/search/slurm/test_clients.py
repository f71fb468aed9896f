"""What Slurm's commands answer, and what it means when they do not."""

import pytest

from risingsearch.errors import SetupError
from risingsearch.scripts.run import run_sweep
from risingsearch.search.slurm import clients
from tests.scripts.test_launcher_setting import sweep_with


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that puts a program in the place of one of Slurm's."""

    def make(name, lines):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o700)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return make


def test_jobs_are_listed_by_name_also_among_others(program):
    program(
        "squeue",
        r"""printf '%s\n' 'sweep-ab|7|RUNNING|1:02|None' 'a' 'b|6|RUNNING|0:01|None' \
            'sweep-cd|8|FAILED|1-00:00:01|RaisedSignal:9(Killed)|odd'""",
    )
    listed = clients.listed()
    assert listed["sweep-ab"] == ("7", "RUNNING", 62.0, "None")
    assert listed["sweep-cd"] == ("8", "FAILED", 86401.0, "RaisedSignal:9(Killed)|odd")


@pytest.mark.parametrize("greeting", ["", "Welcome to 7 nodes"])
def test_the_number_of_a_job_comes_without_its_cluster(program, greeting):
    program("sbatch", f"echo '{greeting}'; echo '12;west'")
    assert clients.submit([], ["true"]) == "12"


@pytest.mark.parametrize(
    "said",
    [
        "Unable to contact slurm controller (connect failure)",
        "Socket timed out on send/recv operation",
    ],
)
def test_a_controller_that_is_away_is_no_refusal(program, said):
    program("squeue", f"echo 'slurm_load_jobs error: {said}' >&2; exit 1")
    with pytest.raises(clients.NoAnswerError, match=said.split(" (")[0]):
        clients.listed()


def test_silence_is_no_answer(program, monkeypatch):
    monkeypatch.setattr(clients, "LONGEST", 0.1)
    program("squeue", "exec sleep 60")
    with pytest.raises(clients.NoAnswerError, match=r"not answered for 0.1 seconds"):
        clients.listed()


def test_a_refusal_stops_the_search_with_what_slurm_says(program):
    program("sbatch", "echo 'sbatch: error: invalid partition: gpus' >&2; exit 1")
    with pytest.raises(SetupError, match=r"sbatch refuses .*invalid partition: gpus"):
        clients.submit([], ["true"])


def test_where_there_is_no_slurm_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="sbatch cannot be started here"):
        run_sweep(sweep_with(launcher="slurm"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_is_no_number_is_no_job(program):
    program("sbatch", "echo 'Usage: sbatch [OPTIONS...] executable'")
    with pytest.raises(SetupError, match="answers 'Usage: sbatch"):
        clients.submit(["--h"], ["true"])


def test_what_the_user_has_set_for_himself_hides_no_job(program, monkeypatch):
    for name in ("SQUEUE_NAMES", "SBATCH_ARRAY_INX", "SBATCH_PARTITION"):
        monkeypatch.setenv(name, "7")
    program("sbatch", 'echo "$SQUEUE_NAMES$SBATCH_ARRAY_INX$SBATCH_PARTITION"')
    assert clients.submit([], ["true"]) == "7"


@pytest.mark.parametrize("name", ["standby", "connect"])
def test_a_partition_with_the_words_of_silence_is_refused_all_the_same(program, name):
    program("sbatch", f"echo 'invalid partition specified: {name}' >&2; exit 1")
    with pytest.raises(SetupError, match=f"sbatch refuses .*{name}"):
        clients.submit([f"--partition={name}"], ["true"])
