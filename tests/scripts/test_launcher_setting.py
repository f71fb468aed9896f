"""What jobs are asked for is checked before any is submitted."""

import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.sweep import checked_sweep

SWEEP = {
    "command": ["python", "train.py"],
    "parameters": {"lr": {"type": "uniform", "low": 0.0, "high": 1.0}},
    "budget": 10,
    "max_epochs": 5,
}


def sweep_with(**changes):
    return checked_sweep(SWEEP | changes, "a.yaml")


def test_all_keys_become_options_of_sbatch():
    slurm = {
        "partition": "gpu",
        "account": "vision",
        "qos": "long",
        "time": "00:30:00",
        "mem": "8G",
        "cpus_per_task": 4,
        "gpus": "a100:1",
        "requeue": True,
        "options": ["--constraint=fast", "--exclusive"],
    }
    assert sweep_with(launcher={"slurm": slurm}).sbatch_arguments == [
        "--partition=gpu",
        "--account=vision",
        "--qos=long",
        "--time=00:30:00",
        "--mem=8G",
        "--cpus-per-task=4",
        "--gpus=a100:1",
        "--requeue",
        "--constraint=fast",
        "--exclusive",
    ]


def test_without_keys_the_cluster_decides():
    for launcher in ("slurm", {"slurm": None}, {"slurm": {}}):
        assert sweep_with(launcher=launcher).sbatch_arguments == []
    assert sweep_with(launcher="local") == sweep_with()


def test_the_gpus_of_a_worker_are_those_of_a_job():
    sweep = sweep_with(launcher="slurm", gpus=2, budget="1gpu-h", candidates=3)
    assert sweep.sbatch_arguments == ["--gpus=2"]
    assert sweep.placement().gpus == []  # none here are looked for
    kind = {"slurm": {"gpus": "a100:2"}}
    assert sweep_with(launcher=kind, budget="1gpu-h", candidates=3).n_gpus == 2


@pytest.mark.parametrize(
    ("slurm", "message"),
    [
        ({"time": ""}, "time: String should have at least 1 character"),
        ({"gpus": "a100:0"}, "gpus: it is a whole number above 0, or text"),
        ({"options": ["--wrap=rm"]}, "'--wrap=rm' is not yours to give"),
        ({"nodes": 2}, "launcher.slurm.nodes is no key of a sweep here"),
    ],
)
def test_a_mistake_is_named_with_its_place(slurm, message):
    with pytest.raises(InvalidParameterError) as error:
        sweep_with(launcher={"slurm": slurm})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"launcher": "pbs"}, "launcher: it is local, slurm, or a mapping such as"),
        ({"resume": False}, "launcher: slurm and resume: false: leave out one of"),
        ({"workers": "auto", "gpus": 1}, "say how many jobs may be in Slurm"),
        ({"gpus": 0.5}, "Slurm gives whole GPUs to a job"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, message):
    with pytest.raises(InvalidParameterError) as error:
        sweep_with(**{"launcher": "slurm"} | changes)
    assert message in str(error.value)
