import csv

from benchmarks.demo import suite
from risingsearch.cli.demo import OWN, DemoRun


def runs(scores):
    return [
        DemoRun(seed, [0.0, 0.1, score], score, {"a", "b"})
        for seed, score in enumerate(scores)
    ]


def test_what_is_left_is_a_row_per_run_and_a_page(monkeypatch, tmp_path, capsys):
    scores_of = {OWN: [0.9, 0.8], "other": [0.5, 0.6]}
    asked = []

    def run_seeds(search, seeds):
        asked.append(list(seeds))
        return runs(scores_of[search])

    monkeypatch.setattr(suite, "SEARCHES", scores_of)
    monkeypatch.setattr(suite, "run_seeds", run_seeds)
    suite.run(tmp_path, scale="default", seed=0, seeds=2)
    assert asked == [[0, 1], [0, 1]]
    with (tmp_path / "results.csv").open() as file:
        scores = [float(row["score"]) for row in csv.DictReader(file)]
    assert scores == [0.9, 0.8, 0.5, 0.6]
    assert (tmp_path / "best-by-epochs.png").is_file()
    page = (tmp_path / "summary.md").read_text()
    assert "2 of 2" in page
    assert capsys.readouterr().out == page + "\n"
