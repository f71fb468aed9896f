from pathlib import Path

import pytest

import benchmarks.__main__ as command
from benchmarks.papers.cure_ucb import ltf, two_arm
from benchmarks.peers import suite


@pytest.mark.parametrize(("name", "module"), [("two-arm", two_arm), ("ltf", ltf)])
def test_suites_get_the_options_they_take(name, module, monkeypatch, tmp_path):
    taken = {}

    def run(out: Path, *, scale: str, seed: int, jobs: int | None = None) -> None:
        taken.update(out=out, scale=scale, seed=seed, jobs=jobs)

    monkeypatch.setattr(module, "run", run)
    command.main(
        [name, "--quick", "--jobs", "1", "--seed", "3", "--out", str(tmp_path)]
    )
    assert taken == {"out": tmp_path / name, "scale": "quick", "seed": 3, "jobs": 1}
    assert (tmp_path / name).is_dir()


def test_data_folder_comes_from_the_environment(monkeypatch, tmp_path):
    taken = []

    def run(out: Path, *, scale: str, seed: int, data_dir: Path | None) -> None:
        taken.append(data_dir)

    monkeypatch.setattr(suite, "run", run)
    monkeypatch.setenv("RISINGSEARCH_DATA", "/data")
    command.main(["peers", "--out", str(tmp_path)])
    command.main(["peers", "--out", str(tmp_path), "--data-dir", "/other"])
    monkeypatch.delenv("RISINGSEARCH_DATA")
    command.main(["peers", "--out", str(tmp_path)])
    assert taken == [Path("/data"), Path("/other"), None]
