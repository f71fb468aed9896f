import json

import numpy as np
import pytest

from benchmarks.hpo.tasks import load_tasks, make_task, scaled_features, thinned
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

    def test_both_folders_are_read(self, curves, tmp_path):
        save(tmp_path / "hpo_curves" / "one" / "a.npz", curves)
        save(tmp_path / "hpo_curves_2" / "two" / "a.npz", curves)
        found = [(task.family, task.name) for task in load_tasks(tmp_path)]
        assert found == [("one", "a"), ("two", "a")]

    def test_features_are_read_with_their_scales_and_categories(self, curves, tmp_path):
        x = np.column_stack([np.geomspace(1e-4, 1e-2, 20), np.arange(20) % 2])
        save(
            tmp_path / "one" / "a.npz",
            curves,
            X=x,
            hp_names=np.array(["rate", "kind"]),
            hp_log=np.array([True, False]),
            meta=json.dumps({"hp_categories": {"kind": ["p", "q"]}}),
        )
        [task] = load_tasks(tmp_path)
        assert task.features.shape == (20, 3)
        assert task.features[:, 0] == pytest.approx(np.linspace(0, 1, 20))
        assert task.features[0, 1:] == pytest.approx([0.5**0.5, 0])

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

    def test_what_is_no_task_is_left_out_and_said(self, curves, tmp_path):
        save(tmp_path / "one" / "good.npz", curves)
        save(tmp_path / "one" / "flat.npz", np.full((4, 3), 0.5))
        (tmp_path / "one" / "torn.npz").write_bytes(b"PK")
        valid = np.linspace(0.1, 0.9, 2 * 4 * 2).reshape(2, 4, 2)
        valid[0] = 0.5
        save(
            tmp_path / "lcdb" / "curves.npz",
            valid,
            anchors=np.array([16, 1600]),
            dataset_names=np.array(["flat", "fine"]),
            max_anchor=np.array([1600, 1600]),
        )
        with pytest.raises(InvalidParameterError, match="half of the config"):
            load_tasks(tmp_path)
        reasons = []
        tasks = load_tasks(tmp_path, reasons)
        assert [task.name for task in tasks] == ["fine", "good"]
        assert [reason.partition(":")[0] for reason in reasons] == [
            "curves.npz",
            "flat.npz",
            "torn.npz",
        ]
        assert "lcdb/flat: half of the configurations" in reasons[0]

    def test_what_is_missing_is_named(self, tmp_path):
        with pytest.raises(InvalidParameterError, match="give --data-dir"):
            load_tasks(None)
        with pytest.raises(InvalidParameterError, match="holds no recorded curves"):
            load_tasks(tmp_path)


class TestTask:
    def test_r_is_the_90_percent_quantile_and_the_best_may_lie_beyond(self, curves):
        task = make_task("one", "a", curves)
        assert task.curves.shape == (20, 10)
        assert task.best == pytest.approx(0.9 * 12 / 13)
        assert task.best > np.nanmax(task.curves)

    def test_regret_goes_from_the_typical_to_the_best(self, curves):
        task = make_task("one", "a", curves)
        assert task.regret(task.best) == 0.0
        assert task.regret(task.typical) == 1.0
        assert task.regret((task.best + task.typical) / 2) == pytest.approx(0.5)
        assert task.regret(0.0) == 1.0

    def test_long_curves_are_thinned_with_their_costs(self):
        table = np.linspace(0, 1, 40)[:, None] * np.arange(1, 201) / 200
        task = make_task("one", "a", table, cost=np.ones(table.shape))
        assert task.max_epochs == 50
        assert task.curves[-1, 0] == pytest.approx(4 / 200)
        assert np.all(task.cost == 4.0)

    def test_a_curve_too_short_to_be_thinned_keeps_its_last_score(self):
        table = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, np.nan, np.nan]])
        assert thinned(table, 3).tolist() == [[0.3], [0.6]]

    def test_scores_outside_0_to_1_declare_their_own_range(self, curves):
        assert make_task("one", "a", curves).score_range == (0.0, 1.0)
        low, high = make_task("one", "a", 10 * curves).score_range
        assert (low, high) == pytest.approx((1.0, 9 * 10 / 11))

    def test_a_table_without_anything_to_find_is_turned_down(self):
        with pytest.raises(InvalidParameterError, match="one/a: half of the config"):
            make_task("one", "a", np.full((4, 3), 0.5))


def test_features_unknown_lie_half_way_and_constants_are_left_out():
    x = np.array([[1.0, 5.0, 0.0], [np.nan, 5.0, 1.0], [3.0, 5.0, np.nan]])
    log, categorical = np.zeros(3, bool), np.array([False, False, True])
    scaled = scaled_features(x, log, categorical)
    half = 0.5**0.5
    assert scaled.tolist() == [[0, half, 0], [0.5, 0, half], [1, 0, 0]]
