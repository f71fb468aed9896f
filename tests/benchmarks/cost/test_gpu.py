import math

import pytest
import torch

from benchmarks.cost import gpu

TINY = gpu.Scale(arms=3, width=16, widths=(8,), repeats=1)


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def test_where_there_is_no_gpu_one_sentence_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    gpu.run(tmp_path, scale="quick", seed=0)
    assert (tmp_path / "summary.md").read_text() == f"# GPU\n\n{gpu.NO_GPU}\n"
    assert gpu.NO_GPU in capsys.readouterr().out


def test_all_but_memory_is_measured_on_any_device():
    rows = {
        (row["what"], row["measure"]): row
        for row in gpu.measured(torch.device("cpu"), TINY, 0)
    }
    assert len({frozenset(row) for row in rows.values()}) == 1  # one table
    [differ] = [row for row in rows.values() if "differ" in row["measure"]]
    assert (differ["value"], differ["verdict"]) == (0, "holds")
    times = [row["value"] for (what, _), row in rows.items() if "M weights" in what]
    assert len(times) == 3
    assert min(times) > 0.0
    memory = [row["value"] for key, row in rows.items() if "MB" in key[1]]
    assert all(math.isnan(value) for value in memory)


@pytest.mark.gpu
@pytest.mark.usefixtures("deterministic")
def test_on_a_gpu_every_bar_holds():
    small = gpu.Scale(arms=20, width=512, widths=(256,), repeats=1)
    rows = list(gpu.measured(torch.device("cuda", 0), small, 0))
    judged = {row["measure"]: row["verdict"] for row in rows if row["bar"] != ""}
    assert len(judged) == 3
    assert set(judged.values()) == {"holds"}
    assert all(math.isfinite(row["value"]) for row in rows)
