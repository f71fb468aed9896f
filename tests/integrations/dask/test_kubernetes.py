"""The manifest of the guide: its parts fit together, and its program runs."""

import runpy
from pathlib import Path

import pytest
import yaml
from distributed import LocalCluster

MANIFEST = Path(__file__).parents[3] / "docs" / "clusters" / "digits.yaml"


@pytest.fixture(scope="module")
def manifest():
    return {part["kind"]: part for part in yaml.safe_load_all(MANIFEST.read_text())}


def test_its_parts_name_each_other(manifest):
    job = manifest["DaskJob"]
    runner, cluster = job["spec"]["job"]["spec"], job["spec"]["cluster"]["spec"]
    script, runs = runner["volumes"]
    assert script["configMap"]["name"] == manifest["ConfigMap"]["metadata"]["name"]
    claim = runs["persistentVolumeClaim"]["claimName"]
    assert claim == manifest["PersistentVolumeClaim"]["metadata"]["name"]
    service = cluster["scheduler"]["service"]
    assert service["selector"]["dask.org/cluster-name"] == job["metadata"]["name"]
    [search] = runner["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in search["volumeMounts"]}
    assert mounts.keys() == {"script", "runs"}
    assert {"name": "RUNS", "value": mounts["runs"]} in search["env"]


def test_its_program_runs_on_a_cluster_and_goes_on(
    manifest, tmp_path, monkeypatch, capsys
):
    program = tmp_path / "search.py"
    program.write_text(manifest["ConfigMap"]["data"]["search.py"])
    monkeypatch.setenv("RUNS", str(tmp_path))
    options = {"processes": False, "protocol": "tcp", "dashboard_address": ":0"}
    with LocalCluster(2, threads_per_worker=1, **options) as cluster:
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", cluster.scheduler_address)
        runpy.run_path(str(program), run_name="__main__")
        first = capsys.readouterr().out
        runpy.run_path(str(program), run_name="__main__")
    assert first.startswith("40 epochs, best score 0.")
    assert capsys.readouterr().out == first
