from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier

from benchmarks.peers import cheap


def test_both_searches_are_shown_with_their_time_and_test_score(monkeypatch, tmp_path):
    task = cheap.Task(
        "flowers", SGDClassifier(), {"alpha": [1e-4, 1.0]}, *load_iris(return_X_y=True)
    )
    monkeypatch.setattr(cheap, "tasks", lambda out, data_dir: [task])
    monkeypatch.setattr(cheap, "SECONDS", 0.3)
    head, _, row = cheap.compare(tmp_path, [0, 1], None).splitlines()
    assert all(word in head for word in ("test score", "lead", "CPU s", "tried"))
    assert "flowers" in row
    assert "nan" not in row
