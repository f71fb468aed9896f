"""A sweep that learns from earlier searches: what it opens, and what it keeps."""

import json

import pytest

from risingsearch.cli.main import main
from risingsearch.scripts.sweep import read_sweep
from risingsearch.search.search import RisingSearch
from tests.cli.sweeping import BASH

SWEEP = """
command: [bash, train.sh, "{top}"]
parameters:
  top: {type: int, low: 1, high: 200}
budget: 16
max_epochs: 4
candidates: 40
seed: 0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder that is not the current one, with the sweep's earlier runs."""
    (tmp_path / "sweeps").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.sh").write_text(BASH)
    rows = [f"{top},{200 - top}" for top in range(1, 200, 9)]
    (tmp_path / "sweeps/runs.csv").write_text("\n".join(["top,val_loss", *rows]))
    return tmp_path / "sweeps"


def write(folder, prior):
    path = folder / "sweep.yaml"
    path.write_text(f"{SWEEP}prior: {json.dumps(prior)}\n")
    return str(path)


def result(capsys, *arguments):
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def opened(run_dir="runs/sweep"):
    found = RisingSearch.saved_result(run_dir)
    return [found.candidates[arm]["top"] for arm in found.opened_by_prior]


LOSS = {"path": "runs.csv", "score": "val_loss", "direction": "minimize", "name": "May"}


def test_what_did_well_earlier_is_opened_first(folder, capsys):
    result(capsys, "run", write(folder, LOSS))
    found = RisingSearch.saved_result("runs/sweep")
    assert list(found.trust_in_prior) == ["May"]
    assert max(opened()) > 190
    assert min(opened()) > 100


def test_what_came_of_it_is_said_in_the_words_of_the_report(folder, capsys):
    hostile = "\x1b[31m\u202e\n" + "a" * 300
    runs = (folder / "runs.csv").read_text()
    (folder / "fewer.csv").write_text(runs.rpartition("\n")[0])
    fewer = LOSS | {"path": "fewer.csv"}
    sweep = write(folder, [LOSS, fewer, LOSS | {"name": hostile}])
    assert main(["run", sweep]) == 0
    ran = capsys.readouterr().out
    assert main(["status", "runs/sweep"]) == 0
    status = capsys.readouterr().out
    facts = result(capsys, "status", "runs/sweep")
    assert list(facts["trust_in_prior"]) == ["May 1", "May 2", hostile]
    assert facts["opened_by_prior"]
    for text in (ran, status):
        assert all(line.isprintable() and len(line) < 200 for line in text.splitlines())
        lines = [line for line in text.splitlines() if line.startswith("trust in ")]
        assert [line.split("  ")[0] for line in lines[:2]] == [
            "trust in May 1",
            "trust in May 2",
        ]
        assert lines[2].startswith("trust in \\x1b[31m\\u202e\\n")
        shares = [f"{share:.2f}" for share in facts["trust_in_prior"].values()]
        assert [line.split()[-1] for line in lines] == shares
        [opened] = [line for line in text.splitlines() if "arms opened by" in line]
        assert f" {len(facts['opened_by_prior'])} (" in opened
    main(["report", "runs/sweep"])
    page = (folder.parent / "runs/sweep/report.html").read_text()
    assert "trust in May 1" in page
    assert "arms opened by prior" in page


def test_the_plan_reads_what_the_run_would(folder, capsys):
    planned = result(capsys, "plan", write(folder, LOSS))
    assert planned["earlier_searches"] == ["May"]
    assert planned["earlier_runs"] == 23
    assert main(["plan", write(folder, LOSS)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert ["earlier", "searches", "May"] in [line.split() for line in told]
    assert ["earlier", "runs", "23"] in [line.split() for line in told]
    (folder / "sweep.yaml").write_text(SWEEP)
    assert "earlier_runs" not in result(capsys, "plan", folder / "sweep.yaml")


@pytest.mark.parametrize(
    ("prior", "where"),
    [
        ("no/none.csv", "sweeps/no/none.csv"),
        ("sqlite:///none.db", "none.db"),  # a URL is none from the file's folder
    ],
)
def test_a_missing_path_is_shown_in_full(folder, capsys, prior, where):
    sweep = write(folder, prior)
    for command in ("plan", "run"):
        assert main([command, sweep]) == 2
        assert str(folder.parent / where) in capsys.readouterr().err


def test_a_run_goes_on_with_the_prior_it_was_begun_with(folder, capsys):
    sweep = write(folder, LOSS)
    result(capsys, "run", sweep)
    before = opened()
    (folder / "runs.csv").unlink()  # it is not needed any more
    assert result(capsys, "run", sweep)["epochs"] == 16
    assert result(capsys, "resume", "runs/sweep", "--budget", "+8")["epochs"] == 24
    assert opened()[: len(before)] == before
    assert RisingSearch.saved_result("runs/sweep").trust_in_prior["May"] > 0.3
    assert result(capsys, "status", "runs/sweep")["epochs"] == 24


def test_a_run_is_a_prior_of_the_next(folder, capsys):
    result(capsys, "run", write(folder, LOSS), "--run-dir", folder / "first")
    result(capsys, "run", write(folder, ["first", LOSS]))
    trust = RisingSearch.saved_result("runs/sweep").trust_in_prior
    assert list(trust) == ["first", "May"]


def test_paths_are_from_the_folder_of_the_file_and_urls_stay(folder):
    storage, there = "sqlite:///studies.db", str(folder / "there.csv")
    prior = read_sweep(folder / write(folder, ["a.csv", storage, there])).earlier()
    sources = [source.source for source in prior]
    assert sources == [folder / "a.csv", storage, folder / "there.csv"]


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ("none.csv", "there is no earlier search at"),
        ("two.csv", "a table needs score and direction: name its score"),
        ({"path": "a", "of": "b"}, "prior.0.of is no key of a sweep"),
        ([], "prior is an empty list: leave it out, or give at least one"),
        ({**LOSS, "score": "accuracy"}, "score must be one of 'top', 'val_loss'; got"),
    ],
)
def test_what_cannot_be_used_is_one_line(folder, capsys, prior, words):
    (folder / "two.csv").write_text("top,one,two\n1,2,3\n4,5,6\n")
    assert main(["run", write(folder, prior)]) == 2
    captured = capsys.readouterr().err
    assert words in captured
    assert captured.count("\n") == 1
