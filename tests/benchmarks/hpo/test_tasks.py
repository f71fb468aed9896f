import numpy as np
import pytest

from benchmarks.hpo.tasks import load_tasks
from risingsearch.errors import InvalidParameterError


@pytest.fixture
def curves():
    """Return twenty rising curves of 10 epochs; the last two are longer."""
    ends = np.linspace(0.2, 0.9, 20)
    epochs = np.arange(1, 13)
    table = ends[:, None] * epochs / (epochs + 1.0)
    table[:18, 10:] = np.nan
    return table


def save(path, curves, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, valid=curves.astype(np.float32), **arrays)


class TestLoading:
    def test_npz_files_by_family_and_csv_beside_them(self, curves, tmp_path):
        base = tmp_path / "hpo_curves"
        lengths = np.full(20, 8)
        save(base / "one" / "a.npz", curves, length=lengths, cost=np.ones((20, 12)))
        rows = "\n".join(",".join(map(str, curve[:10])) for curve in curves)
        (base / "b.csv").write_text(rows)
        save(tmp_path / "hpo_curves_3" / "two" / "c.npz", curves)
        found = {(task.family, task.name): task for task in load_tasks(tmp_path)}
        assert sorted(found) == [("hpo_curves", "b"), ("one", "a"), ("two", "c")]
        assert found["one", "a"].max_epochs == 8
        assert found["one", "a"].cost.shape == (20, 8)
        assert found["hpo_curves", "b"].lengths.tolist() == [10] * 20

    def test_what_is_missing_is_named(self, tmp_path):
        with pytest.raises(InvalidParameterError, match="give --data-dir"):
            load_tasks(None)
        with pytest.raises(InvalidParameterError, match="holds no recorded curves"):
            load_tasks(tmp_path)
