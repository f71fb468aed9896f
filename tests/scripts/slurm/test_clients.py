"""What Slurm's commands answer, and what it means when they do not."""

import pytest

from risingsearch.errors import SetupError
from risingsearch.scripts.slurm import clients


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that puts a program in the place of one of Slurm's."""

    def make(name, lines):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o700)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return make


def test_jobs_and_elements_of_arrays_are_listed_by_name_and_number(program):
    program(
        "squeue",
        """printf '%s\\n' \\
            'sweep-ab|N/A|7|RUNNING|1:02|None' \\
            'sweep-cd|3|8_3|PENDING|0:00|Resources' \\
            'sweep-cd|4|8_4|FAILED|1-00:00:01|RaisedSignal:9(Killed)|odd'""",
    )
    assert clients.listed() == {
        ("sweep-ab", 0): ("7", "RUNNING", 62.0, "None"),
        ("sweep-cd", 3): ("8_3", "PENDING", 0.0, "Resources"),
        ("sweep-cd", 4): ("8_4", "FAILED", 86401.0, "RaisedSignal:9(Killed)|odd"),
    }


@pytest.mark.parametrize("greeting", ["", "Welcome to 7 nodes"])
def test_the_number_of_a_job_comes_without_its_cluster(program, tmp_path, greeting):
    program("sbatch", f"echo '{greeting}'; echo '12;west'")
    assert clients.submit(tmp_path / "job.sh", [], ["true"]) == "12"


@pytest.mark.parametrize(
    "said",
    [
        "Unable to contact slurm controller (connect failure)",
        "Socket timed out on send/recv operation",
        "Slurm backup controller in standby mode",
        "Zero Bytes were transmitted or received",
    ],
)
def test_a_controller_that_is_away_is_no_refusal(program, said):
    program("squeue", f"echo 'slurm_load_jobs error: {said}' >&2; exit 1")
    with pytest.raises(clients.NoAnswerError, match=said.split(" (")[0]):
        clients.listed()


def test_a_refusal_stops_the_search_with_what_slurm_says(program, tmp_path):
    program("sbatch", "echo 'sbatch: error: invalid partition: gpus' >&2; exit 1")
    with pytest.raises(SetupError, match=r"sbatch refuses .*invalid partition: gpus"):
        clients.submit(tmp_path / "job.sh", [], ["true"])


def test_where_there_is_no_slurm_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="there is no squeue here"):
        clients.listed()


def test_a_program_that_cannot_be_started_is_named(tmp_path, monkeypatch):
    (tmp_path / "sbatch").write_text("no program\0")
    (tmp_path / "sbatch").chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="sbatch cannot be started"):
        clients.submit(tmp_path / "job.sh", [], ["true"])


def test_a_refusal_without_a_word_is_told_by_its_exit_status(program, tmp_path):
    program("sbatch", "exit 9")
    with pytest.raises(SetupError, match="exit code 9"):
        clients.submit(tmp_path / "job.sh", [], ["true"])


def test_what_is_no_number_is_no_job(program, tmp_path):
    program("sbatch", "echo 'Usage: sbatch [OPTIONS...] executable'")
    with pytest.raises(SetupError, match="answers 'Usage: sbatch"):
        clients.submit(tmp_path / "job.sh", ["--h"], ["true"])


def test_names_of_other_jobs_may_be_any_text(program):
    program(
        "squeue",
        r"""printf 'a\nb|0|6|RUNNING|0:01|None\nx\u2028y|0|5|RUNNING|0:01|None\n'
        printf 'sweep-ab|0|7|RUNNING|1:02|None\n'""",
    )
    assert clients.listed()["sweep-ab", 0].job_id == "7"


def test_what_the_user_has_set_for_himself_hides_no_job(program, monkeypatch):
    for name in ("SQUEUE_NAMES", "SBATCH_ARRAY_INX", "SBATCH_PARTITION"):
        monkeypatch.setenv(name, "7")
    program("sbatch", 'echo "$SQUEUE_NAMES$SBATCH_ARRAY_INX$SBATCH_PARTITION"')
    assert clients.submit("job.sh", [], ["true"]) == "7"


@pytest.mark.parametrize("name", ["standby", "connect"])
def test_a_partition_with_the_words_of_silence_is_refused_all_the_same(program, name):
    program("sbatch", f"echo 'invalid partition specified: {name}' >&2; exit 1")
    with pytest.raises(SetupError, match=f"sbatch refuses .*{name}"):
        clients.submit("job.sh", [f"--partition={name}"], ["true"])
