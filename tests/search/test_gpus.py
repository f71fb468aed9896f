"""Which worker gets which GPU, by variables or by what the driver lists."""

import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.search.gpus import MASKS, gpus_text, placed, visible_devices

LISTED = """GPU 0: NVIDIA H100 (UUID: GPU-aa)
GPU 1: NVIDIA H100 (UUID: GPU-bb)
"""
PARTITIONED = """GPU 0: NVIDIA H100 (UUID: GPU-aa)
  MIG 1g.10gb     Device  0: (UUID: MIG-a1)
  MIG 1g.10gb     Device  1: (UUID: MIG-a2)
GPU 1: NVIDIA H100 (UUID: GPU-bb)
"""


@pytest.fixture(autouse=True)
def no_gpus(tmp_path, monkeypatch):
    for mask in MASKS:
        monkeypatch.delenv(mask, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def driver(tmp_path):
    """Return a function that has the driver list some GPUs."""

    def lists(text, status=0):
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\necho '{text}'\nexit {status}\n")
        program.chmod(0o755)

    return lists


def given(workers, gpus, environment=()):
    return placed(workers, gpus, environment)


def masks_of(placement):
    return [each["CUDA_VISIBLE_DEVICES"] for each in placement.variables]


@pytest.mark.parametrize(
    ("gpus", "each"),
    [
        (1, ["3", "GPU-5f", "MIG-7"]),
        (0.5, ["3", "GPU-5f", "MIG-7"] * 2),
        (1 / 3, ["3", "GPU-5f", "MIG-7"] * 3),
    ],
)
def test_the_devices_of_this_process_are_shared_out(monkeypatch, gpus, each):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-5f, MIG-7")
    assert masks_of(given("auto", gpus)) == each


def test_several_gpus_for_each_worker(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4")
    placement = given("auto", 2)
    assert masks_of(placement) == ["0,1", "2,3"]
    assert gpus_text(placement.gpus) == "worker 1: 0 and 1, worker 2: 2 and 3"


def test_workers_share_a_gpu_only_where_they_have_to(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert masks_of(given(2, 0.5)) == ["0", "1"]
    assert masks_of(given(3, 0.5)) == ["0", "1", "0"]


def test_the_driver_is_asked_where_no_variable_says(driver):
    driver(LISTED)
    placement = given("auto", 1)
    assert masks_of(placement) == ["0", "1"]
    assert {each["CUDA_DEVICE_ORDER"] for each in placement.variables} == {"PCI_BUS_ID"}


def test_partitions_go_by_their_names(driver):
    driver(PARTITIONED)
    assert visible_devices().names == ["MIG-a1", "MIG-a2", "GPU-bb"]
    with pytest.raises(InvalidParameterError, match="uses one partition"):
        given(1, 2)


def test_on_amd_the_variable_is_its_own(monkeypatch):
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "0,1")
    assert given(2, 1).variables == [
        {"HIP_VISIBLE_DEVICES": "0"},
        {"HIP_VISIBLE_DEVICES": "1"},
    ]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert set(given(2, 1).variables[1]) == {*MASKS}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    with pytest.raises(InvalidParameterError, match="name different GPUs"):
        given(1, 1)


@pytest.mark.parametrize("mask", ["", "-1", "none", "NoDevFiles", "all", "0;1"])
def test_what_names_no_gpu_gives_none(monkeypatch, mask):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", mask)
    with pytest.raises(InvalidParameterError, match="no GPU is seen here"):
        given(1, 1)


def test_more_workers_than_there_is_room_for(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,-1,2")
    said = r"5 workers have no room where gpus is 0\.5: 2 can be seen here \(CUDA_"
    with pytest.raises(InvalidParameterError, match=said):
        given(5, 0.5)


@pytest.mark.parametrize("workers", [1, "auto"])
def test_no_gpu_at_all(driver, workers):
    said = r"no GPU is seen here .* there is no nvidia-smi\): search without gpus"
    with pytest.raises(InvalidParameterError, match=said):
        given(workers, 1)
    driver("No devices were found", status=6)
    with pytest.raises(InvalidParameterError, match="fails: 'No devices were found'"):
        given(workers, 1)
