"""What the command says of the history, and how it changes it."""

import json

import optuna
import pytest

from risingsearch import Functions, RisingSearch
from risingsearch.cli.main import main
from risingsearch.priors.history import SETTING, read_history

CANDIDATES = [{"top": 0.1 * k, "kind": "ab"[k % 2]} for k in range(8)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(SETTING, str(tmp_path / "history"))
    return tmp_path / "history"


def train(state):
    state["epochs"] += 1
    return state["top"] * (1 - 0.5 ** state["epochs"])


def search(**options):
    start = {"epochs": 0}
    functions = Functions(lambda params, seed: start | params, train)
    options = {"budget": 20, "max_epochs": 4, "seed": 0} | options
    return RisingSearch(functions, CANDIDATES, **options).run()


def names(folder):
    entries, damaged = read_history(folder)
    assert damaged == []
    return [entry.name for entry in entries]


def test_the_list_has_a_line_for_every_search_the_newest_first(folder, capsys):
    search(run_dir="first")
    best = search(run_dir="second").best_score
    assert main(["history"]) == 0
    head, second, first = capsys.readouterr().out.splitlines()
    assert " ".join(head.split()) == "date name runs best score parameters"
    assert second.split()[2] == "second"
    name, _, *others = first.split()[2:]
    assert (name, others) == ("first", [f"{best:.6g}", "(score)", "top,", "kind"])


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_list_fits_the_terminal(folder, capsys, monkeypatch, width):
    search(run_dir="a-run-directory-with-a-long-name-that-a-person-recognises")
    monkeypatch.setenv("COLUMNS", str(width))
    table = folder.parent / "runs.csv"
    names = [f"layer_{k}_units" for k in range(20)]
    row = ",".join("1" * 20)
    table.write_text(f"{','.join(names)},accuracy\n" + f"{row},0.5\n" * 4)
    assert main(["history", "add", "runs.csv"]) == 0
    capsys.readouterr()
    assert main(["history"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= max(width, 74)
    assert "0.5 (accuracy)" in lines[1] + lines[2]
    if width == 120:
        assert "layer_0_units, layer_1_units" in lines[1] + lines[2]


def test_studies_that_minimise_show_their_own_score_and_are_replaced(folder, capsys):
    study = optuna.create_study(
        storage="sqlite:///studies.db", study_name="night", direction="minimize"
    )
    for n_trials in (5, 2):
        study.optimize(lambda trial: trial.suggest_float("rate", 0.1, 1), n_trials)
        assert main(["history", "add", "sqlite:///studies.db", "studies.db"]) == 0
    [entry], _ = read_history(folder)
    assert (entry.name, entry.n_runs) == ("study night", 7)
    assert entry.best_score == study.best_value
    assert entry.search.direction == "minimize"
    capsys.readouterr()
    assert main(["history"]) == 0
    assert f"{study.best_value:.6g} (value)" in capsys.readouterr().out


def test_a_run_that_has_grown_takes_the_place_of_its_entry(folder, monkeypatch):
    monkeypatch.delenv(SETTING)
    functions = Functions(lambda params, seed: {"epochs": 0} | params, train)
    grown = RisingSearch(
        functions, CANDIDATES, budget=10, max_epochs=4, seed=0, run_dir="runs/one"
    )
    for _ in range(2):
        before = grown.run().n_epochs
        for source in ("runs/one", "runs"):
            assert main(["history", "add", source, "--folder", "history"]) == 0
        [entry], _ = read_history(folder)
        assert entry.n_epochs == before
        grown.extend(10)


def test_a_trial_of_an_experiment_more_takes_the_place_of_its_entry(folder):
    for k in range(2):
        for name in range(4 + k):
            trial = folder.parent / "ray" / "tuned" / f"trial_{name}"
            trial.mkdir(parents=True, exist_ok=True)
            (trial / "params.json").write_text(json.dumps({"rate": name}))
            (trial / "result.json").write_text(json.dumps({"acc": name}) + "\n")
        assert main(["history", "add", "ray", "ray/tuned"]) == 0
        [entry], _ = read_history(folder)
        assert (entry.name, entry.n_runs) == ("tuned", 4 + k)


def test_a_direction_that_the_run_contradicts_is_bad_input(folder, capsys):
    search(run_dir="run", direction="minimize")
    assert main(["history", "add", "run", "--direction", "maximize"]) == 2
    assert "its direction is 'minimize'" in capsys.readouterr().err


def test_json_has_the_facts(folder, capsys):
    result = search()
    assert main(["history", "--json"]) == 0
    [facts] = json.loads(capsys.readouterr().out)
    assert facts["name"] == "train: top, kind"
    assert facts["name_with_date"] == f"{facts['name']} {facts['date']}"
    assert facts["runs"] == len(result.curves)
    assert facts["epochs"] == result.n_epochs
    assert facts["parameters"] == ["top", "kind"]
    assert facts["direction"] == "maximize"
    assert facts["metric"] == "score"
    assert facts["best_score"] == result.best_score
    assert facts["best_params"] == result.best_params


def test_it_says_how_to_opt_in(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(SETTING, raising=False)
    assert main(["history"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"set the environment variable {SETTING} to a folder" in printed.err
    assert main(["history", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    for action in ("add", "remove"):
        assert main(["history", action, "run"]) == 2
        assert f"environment variable {SETTING}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert main(["history", "--folder", "empty"]) == 0
    assert capsys.readouterr().out == "No search is in empty yet.\n"


def test_runs_are_added_once(folder, monkeypatch, capsys):
    monkeypatch.delenv(SETTING)
    for name in ("runs/one", "runs/two"):
        search(run_dir=name, direction="minimize")
    assert main(["history", "--folder", "history", "add", "runs/one"]) == 0
    assert capsys.readouterr().out.startswith("added one, of 20")
    assert main(["history", "add", "runs", "--folder", "history"]) == 0
    assert sorted(names(folder)) == ["one", "two"]
    entries, _ = read_history(folder)
    assert {entry.search.direction for entry in entries} == {"minimize"}
    monkeypatch.setenv(SETTING, str(folder))
    search(run_dir="runs/one", direction="minimize")  # finished again
    assert sorted(names(folder)) == ["one", "two"]


def test_a_table_is_added_and_bad_sources_are_refused(folder, tmp_path, capsys):
    table = tmp_path / "runs.csv"
    table.write_text("rate,loss\n0.1,0.5\n0.2,0.4\n0.3,0.6\n0.4,0.7\n")
    options = ["--score", "loss", "--direction", "minimize"]
    for _ in range(2):
        assert main(["history", "add", "runs.csv", *options]) == 0
    [entry], _ = read_history(folder)
    assert entry.best_score == 0.4
    assert entry.best_params == {"rate": 0.2}
    assert main(["history", "add", "nowhere"]) == 2
    assert "there is no earlier search at" in capsys.readouterr().err


def test_searches_are_removed_by_name(folder, capsys):
    search(run_dir="runs/one")
    search(run_dir="others/one")
    search(run_dir="runs/two")
    assert main(["history", "remove", "two", "three"]) == 2
    assert "no search in" in capsys.readouterr().err
    assert len(names(folder)) == 3
    assert main(["history", "remove", "two"]) == 0
    assert capsys.readouterr().out.startswith("removed two, of 20")
    assert main(["history", "remove", "one"]) == 2
    assert "2 searches in" in capsys.readouterr().err
    entries, _ = read_history(folder)
    assert main(["history", "remove", *(one.search.name for one in entries)]) == 0
    assert names(folder) == []


def test_a_damaged_file_is_named_and_the_rest_is_shown(folder, capsys):
    search(run_dir="run")
    (folder / "notes.txt").write_text("mine")
    assert main(["history"]) == 0
    printed = capsys.readouterr()
    assert "notes.txt" in printed.err
    assert len(printed.out.splitlines()) == 2


def test_a_folder_that_is_none_is_bad_input(folder, capsys):
    search(run_dir="run")
    (folder.parent / "file").write_text("")
    assert main(["history", "--folder", "file"]) == 2
    assert main(["history", "add", "run", "--folder", "file"]) == 2
    assert "cannot be written (it must be a folder)" in capsys.readouterr().err
