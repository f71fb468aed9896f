import csv

from sklearn.datasets import load_breast_cancer

from benchmarks.adapters import winner


def test_every_kind_of_search_is_judged(monkeypatch, tmp_path):
    monkeypatch.setattr(winner, "tables", lambda: [load_breast_cancer(return_X_y=True)])
    monkeypatch.setattr(winner, "BUDGET", 12)
    winner.run(tmp_path, scale="quick", seed=0)
    with (tmp_path / "results.csv").open() as file:
        rows = {row["searches of"]: row for row in csv.DictReader(file)}
    assert rows.keys() == {*winner.METRICS, "hold-out", "folds", "all"}
    assert rows["all"]["n"] == "3"
    assert all(0.0 <= float(row["held"]) <= 1.0 for row in rows.values())
