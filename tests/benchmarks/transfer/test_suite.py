"""The suite of earlier searches, on made-up families of tasks."""

import numpy as np
import pytest

from benchmarks.hpo.tasks import make_task
from benchmarks.transfer import suite
from benchmarks.transfer.tasks import NEGATED, TransferTask, earlier_searches


def made_up(family, peak, seed):
    """Return a task of 60 configurations whose best rate is near ``peak``."""
    rng = np.random.default_rng(seed)
    rates = rng.uniform(0.0, 1.0, 60)
    ends = 1.0 - (rates - peak) ** 2
    curves = ends[:, None] * (1.0 - 0.5 / np.arange(1, 11))
    task = make_task(family, f"{family}-{seed}", curves, features=rates[:, None])
    return TransferTask(task, [{"rate": rate, "size": 1.0} for rate in rates])


@pytest.fixture
def families():
    return {
        "left": [made_up("left", 0.2, seed) for seed in range(4)],
        "right": [made_up("right", 0.8, seed) for seed in range(4, 8)],
    }


def test_misleading_searches_rank_the_runs_the_other_way_round(families):
    [plain] = earlier_searches(families["left"], 1, seed=0)
    [negated] = earlier_searches(families["left"], 1, seed=0, mislead=NEGATED)
    assert np.array_equal(np.argsort(plain.scores), np.argsort(-negated.scores))


@pytest.mark.slow
def test_the_suite_shows_every_method_and_bar(families, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(suite, "load_families", lambda data_dir: families)
    suite.run(tmp_path, scale="quick", seed=0, jobs=1)
    shown = capsys.readouterr().out
    assert all(row in shown for row in ("| 4 earlier ", "| four, negated "))
    assert "4 negated: at most 0.02 worse at any budget" in shown
    assert (tmp_path / "transfer.png").exists()
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 1 + 8 * 2 * 5
