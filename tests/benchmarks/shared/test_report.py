import csv

from benchmarks.shared import report

ROWS = [{"what": "first", "value": 0.123456}, {"what": "second", "value": 7}]


def test_write_leaves_results_and_summary(tmp_path, capsys):
    report.write(tmp_path, "Title", ROWS, ["- a note"])
    with (tmp_path / "results.csv").open() as file:
        assert [row["value"] for row in csv.DictReader(file)] == ["0.123456", "7"]
    text = (tmp_path / "summary.md").read_text()
    assert text.startswith("# Title\n\n| what   | value  |\n")
    assert "| first  | 0.1235 |" in text
    assert text.endswith("- a note\n")
    assert text in capsys.readouterr().out
