import numpy as np
import pytest

from benchmarks.hpo.tasks import load_tasks, make_task
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
        found = {(task.family, task.name): task for task in load_tasks(tmp_path)}
        assert sorted(found) == [("hpo_curves", "b"), ("one", "a")]
        assert found["one", "a"].max_epochs == 8
        assert found["one", "a"].cost.shape == (20, 8)
        assert found["hpo_curves", "b"].lengths.tolist() == [10] * 20

    def test_lcdb_is_a_task_per_large_data_set(self, tmp_path):
        anchors = np.array([16, 400, 1600])
        valid = np.linspace(0.1, 0.9, 3 * 4 * 3).reshape(3, 4, 3)
        valid[0, 0, 2] = np.nan  # a learner that failed
        valid[0, 1] = np.nan  # and one that never ran
        save(
            tmp_path / "lcdb" / "curves.npz",
            valid,
            anchors=anchors,
            dataset_names=np.array(["x", "small", "y"]),
            max_anchor=np.array([1600, 1449, 1600]),
        )
        tasks = load_tasks(tmp_path)
        assert [task.name for task in tasks] == ["x", "y"]
        assert tasks[0].lengths.tolist() == [10, 40, 40]
        assert tasks[1].curves[0, 0] == pytest.approx(valid[2, 0, 0])

    def test_what_is_missing_is_named(self, tmp_path):
        with pytest.raises(InvalidParameterError, match="give --data-dir"):
            load_tasks(None)
        with pytest.raises(InvalidParameterError, match="holds no recorded curves"):
            load_tasks(tmp_path)


class TestTask:
    def test_regret_goes_from_the_typical_to_the_best(self, curves):
        task = make_task("one", "a", curves)
        assert task.regret(task.best) == 0.0
        assert task.regret(task.typical) == 1.0
        assert task.regret((task.best + task.typical) / 2) == pytest.approx(0.5)
        assert task.regret(0.0) == 1.0

    def test_a_table_without_anything_to_find_is_turned_down(self):
        with pytest.raises(InvalidParameterError, match="one/a: half of the config"):
            make_task("one", "a", np.full((4, 3), 0.5))
