import csv
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.hpo import bars, methods, parts, reference, replay, suite
from benchmarks.hpo.methods import Method
from benchmarks.hpo.parts import MULTIPLES, Part, Played
from benchmarks.hpo.replay import Outcome, Setting
from benchmarks.hpo.tasks import make_task
from risingsearch.simulation import simulate


def curves(seed):
    rng = np.random.default_rng(seed)
    ends, rates = rng.uniform(0.2, 0.9, (40, 1)), rng.uniform(1, 4, (40, 1))
    return ends * (1 - np.exp(-np.arange(1, 7) / rates))


@pytest.fixture
def tasks():
    table = curves(0)
    made = [
        make_task(family, name, table, cost=np.ones((40, 6)))
        for family, names in reference.TASKS.items()
        for name in names
    ]
    return [*made, make_task("lcdb", "x", table)]


def played(tasks, regret, seeds=range(30), multiples=(1, 2)):
    """Return a part in which methods have these mean regrets, the same everywhere."""
    rng = np.random.default_rng(0)
    made = [Method(name, "auto") for name in regret]
    part = Part("clean", tasks, made, Setting(), multiples, seeds)
    shape = len(regret), len(tasks), len(multiples), len(seeds)
    outcomes = np.zeros((*shape, len(Outcome._fields)))
    noise = rng.uniform(-0.01, 0.01, outcomes.shape[1:-1])
    for m, mean in enumerate(regret.values()):
        outcomes[m, ..., 0] = mean + noise + rng.uniform(-1e-3, 1e-3, noise.shape)
    return Played(part, outcomes)


def verdicts(rows):
    return {row["bar"]: row["verdict"] for row in rows}


class TestReference:
    REGRET: ClassVar = {name: row.mean for name, row in reference.REFERENCE.items()}

    def test_it_is_compared_on_its_own_tasks_alone(self, tasks):
        found = reference.public(played(tasks, self.REGRET, multiples=MULTIPLES))
        assert len(found.part.tasks) == 21
        assert found.outcomes.shape[1] == 21
        assert set(verdicts(reference.reproduced(found)).values()) == {"holds"}
        line = reference.reference_table(found).splitlines()[2]
        assert "0.255 / 0.255" in line
        assert "/ 0.375" in line


@pytest.fixture
def run_small(tmp_path, monkeypatch, capsys):
    """Return a function that runs the suite on a few small tables."""
    much = parts.Scale(None, 2, 2, 2, 2, 2, (1, 2), (1, 2), 1)
    monkeypatch.setattr(suite, "SCALES", {"quick": much})
    monkeypatch.setattr(parts, "MULTIPLES", (1, 2))
    monkeypatch.setattr(methods, "BANDITS", methods.BANDITS[:1])
    monkeypatch.setattr(bars, "DECISION_BARS", {20: 5.0})
    monkeypatch.setattr(replay, "simulate", partial(simulate, compiled=False))
    for k, name in enumerate(("one/a", "one/b", "two/c", "lcdb/d")):
        path = tmp_path / f"{name}.npz"
        path.parent.mkdir(exist_ok=True)
        np.savez(path, valid=curves(k), cost=np.ones((40, 6)))
    data = ["--data-dir", str(tmp_path), "--jobs", "1"]

    def run(*options):
        main(["hpo", "--quick", "--out", str(tmp_path / "out"), *data, *options])
        out = tmp_path / "out" / "hpo"
        text = (out / "summary.md").read_text()
        assert text in capsys.readouterr().out
        return out, text

    return run


@pytest.mark.slow
def test_the_whole_suite_at_a_small_scale(run_small):
    out, text = run_small()
    assert "Ours / the reference's" not in text
    assert "in-sample: they flatter it" in text
    for title in ("The bars", "Without noise", "Noise 0.03", "LCDB", "Jobs in flight"):
        assert f"## {title}\n" in text
    for name in ("regret", "ranks", "families", "allocation"):
        assert (out / f"{name}.png").exists()
        assert (out / f"{name}.svg").exists()
    with (out / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["part"] for row in rows} >= {"clean", "unknown", "seconds", "LCDB"}
    assert all(0.0 <= float(row["regret"]) <= 1.0 for row in rows if row["regret"])
