import csv

from benchmarks.demo import suite
from risingsearch.cli.demo import OWN, DemoRun


def runs(search, scores):
    return [
        DemoRun(search, seed, [(1, 0.1), (9, score)], score, 270, 60, 1.0)
        for seed, score in enumerate(scores)
    ]


def test_what_is_left_is_a_row_per_run_and_a_page(monkeypatch, tmp_path, capsys):
    asked = []

    def run_all(seeds):
        asked.append(list(seeds))
        return [*runs(OWN, [0.9, 0.8]), *runs("other", [0.5, 0.6])]

    monkeypatch.setattr(suite, "run_all", run_all)
    suite.run(tmp_path, scale="default", seed=0, seeds=2)
    assert asked == [[0, 1]]
    with (tmp_path / "results.csv").open() as file:
        scores = [float(row["score"]) for row in csv.DictReader(file)]
    assert scores == [0.9, 0.8, 0.5, 0.6]
    assert (tmp_path / "best-by-epochs.png").is_file()
    page = (tmp_path / "summary.md").read_text()
    assert "2 of 2" in page
    assert capsys.readouterr().out == page + "\n"
