from pathlib import Path

import pytest

import benchmarks.__main__ as command
from benchmarks.papers.cure_ucb import ltf, two_arm


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
