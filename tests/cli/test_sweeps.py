"""A sweep from its file to its results."""

import csv
import json
from pathlib import Path

import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace

from risingsearch import RisingSearch
from risingsearch.arms import Job
from risingsearch.cli.main import main
from risingsearch.scheduling.events import Returned
from risingsearch.storage.journal import Journal, create, read
from risingsearch.storage.run_directory import saved_header
from tests.cli.sweeping import BASH, BASH_SWEEP, exported, json_of


def test_a_plan_says_what_is_opened_first_unused_and_when_judged(folder, capsys):
    plan = json_of(capsys, "plan", "sweep.yaml")
    assert not {"opened_first", "epochs_each_before_it_is_judged"} & plan.keys()
    asked = "min_epochs: 3\nenqueue: [{top: 77, n: 1}]\ncandidates: 1\n"
    unused = BASH_SWEEP.replace("  top:", "  n: {type: choice, values: [1]}\n  top:")
    Path("sweep.yaml").write_text(unused + asked)
    plan = json_of(capsys, "plan", "sweep.yaml")
    assert plan["opened_first"] == [{"top": 77, "n": 1}]
    assert plan["parameters_in_no_argument"] == ["n"]
    assert plan["epochs_each_before_it_is_judged"] == 3
    assert plan["epochs_that_none_can_use"] == 24 - 2 * 8


def test_a_timeout_alone_is_the_budget(folder, capsys):
    by_the_clock = BASH_SWEEP.replace("budget: 24", "timeout: 0.2\ncandidates: 1000")
    Path("sweep.yaml").write_text(by_the_clock)
    assert json_of(capsys, "plan", "sweep.yaml")["budget_wall_seconds"] == 0.2
    reason = json_of(capsys, "run", "sweep.yaml")["stop_reason"]
    assert reason == "the budget of 0.2 wall-clock seconds is spent"
    Path("sweep.yaml").write_text(by_the_clock.replace("0.2", "0.5"))
    assert main(["run", "sweep.yaml"]) == 2
    assert "resume runs/sweep --budget +N" in capsys.readouterr().err


def test_a_bash_script_from_plan_to_export(folder, capsys):
    plan = json_of(capsys, "plan", "sweep.yaml")
    assert (plan["budget_epochs"], plan["resumes"]) == (24, False)
    assert (plan["metric"], plan["direction"]) == ("score", "maximize")
    assert plan["epochs_to_train_all_in_full"] == 8 * plan["configurations"]
    assert plan["budget_in_full_trainings"] == 3.0
    assert "parameters_in_no_argument" not in plan
    assert not Path("runs").exists()

    found = json_of(capsys, "run", "sweep.yaml")
    assert found["epochs"] == 24
    assert found["run"] == "runs/sweep"
    assert json_of(capsys, "plan", "sweep.yaml")["resumes"]
    top, epoch = found["best_params"]["top"], found["best_epoch"]
    assert found["best_score"] == 1000 * top * epoch // (epoch + 2)
    assert Path(found["checkpoint"], "state").read_text() == f"{epoch}\n"

    assert main(["status", "runs/sweep"]) == 0
    status = capsys.readouterr().out
    assert "the budget of 24 epochs is spent" in status
    assert "metric       score" in status
    assert json_of(capsys, "resume", "runs/sweep", "--budget", "+6")["epochs"] == 30

    assert main(["export", "runs/sweep", "--out", "epochs.csv"]) == 0
    with Path("epochs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    assert {row["param_top"] for row in rows if row["arm"] == str(found["best_arm"])}
    assert main(["report", "runs/sweep"]) == 0
    page = Path("runs", "sweep", "report.html").read_text()
    assert "<title>sweep" in page
    assert "<dd>bash train.sh &#x27;{top}&#x27;</dd>" in page
    assert "<dt>top</dt><dd>int, low 1, high 50</dd>" in page
    export = ["export", "runs/sweep"]
    assert main([*export, "--out", "epochs.parquet"]) == 0
    assert len(pd.read_parquet("epochs.parquet")) == 30
    assert main([*export, "--format", "parquet"]) == 2
    assert main([*export, "--out", "epochs.xlsx"]) == 2
    assert "epochs.xlsx names no format: end it in .csv" in capsys.readouterr().err
    log = Path("runs", "sweep", "arms", f"arm-{found['best_arm']:06d}", "log.txt")
    assert f"arm {top} at epoch 1\n" in log.read_text()


def test_a_sweep_and_its_run_are_not_confused(folder, capsys):
    Path("runs", "sweep").mkdir(parents=True)
    assert main(["status", "runs/sweep"]) == 0
    assert "no epoch is recorded yet" in capsys.readouterr().out
    for command in ("resume", "status", "export", "report", "watch"):
        with pytest.raises(SystemExit, match="2"):
            main([command, "sweep.yaml"])
        assert "give the directory of its run, as runs/sweep" in capsys.readouterr().err
    for command in ("plan", "run"):
        with pytest.raises(SystemExit, match="2"):
            main([command, "runs/sweep"])
        assert "by: risingsearch resume runs/sweep" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["learning_rate: lr", "policy_params: {eta: 2}"])
def test_a_plan_refuses_what_a_run_would(folder, capsys, wrong):
    Path("sweep.yaml").write_text(f"{BASH_SWEEP}{wrong}\n")
    said = []
    for command in ("plan", "run"):
        assert main([command, "sweep.yaml"]) == 2
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    assert not Path("runs").exists()


def test_runs_are_compared_on_one_page(folder, capsys):
    for run_dir in ("runs/one", "runs/two"):
        assert main(["run", "sweep.yaml", "--run-dir", run_dir]) == 0
    capsys.readouterr()
    assert main(["report", "runs/one", "runs/two"]) == 0
    assert capsys.readouterr().out == "comparison.html\n"
    page = Path("comparison.html").read_text()
    assert '<th scope="col">one</th><th scope="col">two</th>' in page
    assert main(["report", "runs/one", "runs/two", "--out", "page.html"]) == 0
    assert Path("page.html").exists()
    assert main(["report", "runs/one", "runs/one"]) == 2
    assert "runs/one is named twice" in capsys.readouterr().err


def test_a_report_is_printed_for_programs(folder, capsys):
    json_of(capsys, "run", "sweep.yaml")
    data = json_of(capsys, "report", "runs/sweep")
    best = data["all_arms"][data["best_arm"]]
    assert best["params"] == data["best_params"]
    assert max(best["curve"]) == best["best_score"] == data["best_score"]
    assert best["reason"] == "has used all its epochs"
    assert data["space"] == {"top": "int, low 1, high 50"}
    assert not Path("runs/sweep/report.html").exists()
    rows = json_of(capsys, "export", "runs/sweep")
    assert [row | {"seconds": None} for row in rows] == exported("runs/sweep", capsys)
    json_of(capsys, "run", "sweep.yaml", "--run-dir", "runs/same")
    assert list(json_of(capsys, "report", "runs/sweep", "runs/same")) == [
        "sweep",
        "same",
    ]
    assert main(["report", "runs/sweep", "--json", "--out", "x.html"]) == 2
    assert "leave it out with --json" in capsys.readouterr().err


def test_known_configurations_first_and_an_early_end(folder, capsys):
    knobs = "min_epochs: 3\npatience: 5\nenqueue: [{top: 60}, {top: 7}]\n"
    Path("sweep.yaml").write_text(BASH_SWEEP + knobs)
    first = json_of(capsys, "run", "sweep.yaml")
    assert first["epochs"] < 24
    assert first["best_params"] == {"top": 60}
    assert first["stop_reason"].startswith("the patience of 5 epochs without a new ")
    result = RisingSearch.saved_result("runs/sweep")
    opened = list(dict.fromkeys(result.history["arm"]))
    assert [result.candidates[arm]["top"] for arm in opened[:2]] == [60, 7]
    assert all(arm.epochs >= 3 for arm in result.arms if arm.epochs)
    assert main(["status", "runs/sweep"]) == 0
    assert first["stop_reason"] in capsys.readouterr().out
    assert main(["report", "runs/sweep"]) == 0
    assert first["stop_reason"] in Path("runs/sweep/report.html").read_text()
    capsys.readouterr()
    Path("sweep.yaml").write_text(BASH_SWEEP + knobs.replace("patience: 5", ""))
    assert json_of(capsys, "run", "sweep.yaml")["epochs"] == 24
    Path("sweep.yaml").write_text(BASH_SWEEP + knobs.replace("{top: 7}", "{top: 8}"))
    assert main(["run", "sweep.yaml"]) == 2
    assert "enqueue[1].top is 8 in the sweep" in capsys.readouterr().err


def test_without_a_seed_each_run_has_its_own_and_keeps_it(folder):
    more = "error_score: -5.0\ncandidates: 20\n"
    Path("sweep.yaml").write_text(BASH_SWEEP.replace("seed: 0\n", more))
    for run_dir in ("one", "other", "one"):  # the last is the first once more
        assert main(["run", "sweep.yaml", "--run-dir", run_dir]) == 0
    assert main(["resume", "one", "--budget", "+2"]) == 0
    one, other = (RisingSearch.saved_result(name) for name in ("one", "other"))
    assert one.n_epochs == 26
    assert one.candidates != other.candidates
    assert saved_header(Path("one"))["settings"]["error_score"] == -5.0


def test_a_budget_in_hours_is_extended_by_hours(folder, capsys):
    sweep = BASH_SWEEP.replace("budget: 24", "budget: {hours: 1e-9}\ncandidates: 3")
    Path("sweep.yaml").write_text(sweep)
    before = json_of(capsys, "run", "sweep.yaml")["epochs"]
    arguments = ["resume", "runs/sweep", "--budget", "+1", "--json"]
    assert main(arguments) == 0
    said = capsys.readouterr()
    assert "the settings of the last run, from runs/sweep/sweep.json" in said.err
    found = json.loads(said.out)
    assert found["epochs"] > before
    assert found["budget"] == {"hours": 1e-9 + 1}
    assert main([*arguments[:3], "+1s"]) == 0
    assert " of 1.00028 hours" in capsys.readouterr().out


def test_a_plan_says_what_the_starts_of_a_begun_sweep_took(folder, capsys):
    assert "share_of_time_starting" not in json_of(capsys, "plan", "sweep.yaml")
    journal = Path("runs", "sweep", "journal.jsonl")
    journal.parent.mkdir(parents=True)
    create(journal, {"settings": {}})
    written = Journal(journal, read(journal))
    for number in range(5):
        job, scores = Job(number, 0, 2, number), (0.1, 0.2)
        took = Returned(job=job, scores=scores, elapsed=32.0, startup=30.0)
        written.append(took.to_json())
    plan = json_of(capsys, "plan", "sweep.yaml")
    assert plan["share_of_time_starting"] == 0.9375
    assert "30 s a start, 1 s an epoch" in plan["advice"]


def test_workers_share_the_gpus_that_there_are(folder, capsys, monkeypatch):
    Path("train.sh").write_text(
        BASH.replace('\\"epoch\\"', '\\"gpu\\": $CUDA_VISIBLE_DEVICES, \\"epoch\\"')
    )
    sweep = BASH_SWEEP.replace("budget: 24", "budget: 1gpu-h\ncandidates: 9")
    Path("sweep.yaml").write_text(f"{sweep}workers: auto\ngpus: 0.5\n")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    plan = json_of(capsys, "plan", "sweep.yaml")
    assert (plan["workers"], plan["gpus"]) == (4, [["4"], ["6"], ["4"], ["6"]])
    found = json_of(capsys, "run", "sweep.yaml")
    assert {row["gpu"] for row in exported("runs/sweep", capsys)} == {4, 6}
    seconds = RisingSearch.saved_result("runs/sweep").training_seconds
    assert found["spent"] == pytest.approx(seconds * 0.5 / 3600)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert main(["resume", "runs/sweep"]) == 0
    capsys.readouterr()
    assert main(["status", "runs/sweep"]) == 0
    assert "worker 1: 1, worker 2: 1\n" in capsys.readouterr().out
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert main(["plan", "sweep.yaml"]) == 2
    assert "gpus is 0.5, and no GPU is seen here" in capsys.readouterr().err


def test_a_budget_is_what_the_script_says_it_costs(folder, capsys):
    script = BASH.replace('\\"epoch\\"', '\\"dollars\\": $1, \\"epoch\\"')
    Path("train.sh").write_text(script)
    sweep = BASH_SWEEP.replace("budget: 24", "budget: {cost: 300}\ncandidates: 9")
    Path("sweep.yaml").write_text(f"{sweep}cost: dollars\n")
    found = json_of(capsys, "run", "sweep.yaml")
    rows = exported("runs/sweep", capsys)
    assert found["budget"] == {"cost": 300}
    assert found["spent"] == sum(row["cost"] for row in rows)
    assert all(row["cost"] == row["param_top"] for row in rows)
    for wrong, message in (
        ("dollar", "the script reports None as 'dollars'"),
        ('dollars\\": -1, \\"other', "the script reports -1 as 'dollars'"),
    ):
        Path("train.sh").write_text(script.replace("dollars", wrong))
        assert main(["run", "sweep.yaml", "--run-dir", wrong[:7]]) == 3
        assert message in capsys.readouterr().err


def test_another_sweep_is_refused_in_the_same_run(folder, capsys):
    assert (
        json_of(capsys, "plan", "sweep.yaml", "--budget", "12")["budget_epochs"] == 12
    )
    planned = json_of(capsys, "plan", "sweep.yaml", "--budget", "1h")
    assert planned["configurations"] == 50  # there are no more
    assert json_of(capsys, "run", "sweep.yaml", "--budget", "12")["epochs"] == 12
    assert main(["resume", "runs/sweep", "--budget", "+4"]) == 0
    back = "with 50: put it back to continue, or begin another search with --r"
    for before, after, *messages in (
        ("24", "18", "add to it with risingsearch resume runs/sweep --budget +N\n"),
        ("24", "8", "budget is 8 in the sweep, and runs/sweep was begun with 12"),
        ("24", "{hours: 1}\ncandidates: 24", "and runs/sweep was begun with 12"),
        ("high: 50", "high: 60", "parameters.top.high is 60 in the sweep", back),
    ):
        Path("sweep.yaml").write_text(BASH_SWEEP.replace(before, after))
        budget = ["--budget", "12"] if before == "high: 50" else []
        assert main(["run", "sweep.yaml", *budget]) == 2
        said = capsys.readouterr().err
        assert [message for message in messages if message not in said] == []


def test_a_column_of_a_file_has_one_kind_of_value(folder, capsys):
    kinds = ["plain", "a=1", 1, -2.5, True]
    values = f"{{type: choice, values: {json.dumps(kinds)}}}"
    sweep = BASH_SWEEP.replace("{type: int, low: 1, high: 50}", values)
    Path("sweep.yaml").write_text(sweep.replace("24", "5\ncandidates: all"))
    Path("train.sh").write_text(BASH.replace("1000 * $1 * epoch", "epoch"))
    assert main(["run", "sweep.yaml"]) == 0
    assert {row["param_top"] for row in exported("runs/sweep", capsys)} <= {*kinds}
    assert main(["export", "runs/sweep", "--out", "epochs.parquet"]) == 0
    assert set(pd.read_parquet("epochs.parquet")["param_top"]) <= {*map(str, kinds)}


def test_a_file_that_cannot_be_written(folder, capsys):
    assert main(["run", "sweep.yaml"]) == 0
    for kind in ("csv", "json", "parquet"):
        out = ["--format", kind, "--out", "none/epochs"]
        assert main(["export", "runs/sweep", *out]) == 2
        assert "none/epochs cannot be written" in capsys.readouterr().err
    for place in (".", "/"):
        assert main(["report", "runs/sweep", "--out", place]) == 2
        assert f"{place} cannot be written (it is a folder)" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["+many", "5", "+0"])
def test_more_budget_is_a_number_with_a_plus(folder, capsys, given):
    with pytest.raises(SystemExit):
        main(["resume", "runs/sweep", f"--budget={given}"])
    assert "must be an amount such as +100, +8h" in capsys.readouterr().err


def test_the_line_wins_over_the_file(folder, capsys):
    line = ["--workers", "2", "--seed", "7", "--timeout", "500"]
    plan = json_of(capsys, "plan", "sweep.yaml", *line)
    assert plan["workers"] == 2
    assert main(["run", "sweep.yaml", *line]) == 0
    same = BASH_SWEEP.replace("seed: 0", "seed: 7\nworkers: 2\ntimeout: 500.0")
    Path("sweep.yaml").write_text(same)
    assert main(["run", "sweep.yaml", "--run-dir", "runs/file"]) == 0
    last = [json.loads(Path(f"runs/{name}/sweep.json").read_text().partition("\n")[2])
            for name in ("sweep", "file")]  # fmt: skip
    assert last[0] == last[1]
    begun = [saved_header(Path("runs", name))["settings"] for name in ("sweep", "file")]
    assert begun[0] == begun[1]
    capsys.readouterr()
    more = ["--workers", "1", "--budget", "+2", "--json"]
    assert main(["resume", "runs/sweep", *more]) == 0
    assert json.loads(capsys.readouterr().out)["epochs"] == 26
    last = Path("runs/sweep/sweep.json").read_text()
    assert "workers" not in json.loads(last.partition("\n")[2])["sweep"]
    assert main(["run", "sweep.yaml", "--workers", "1001"]) == 2
    assert "sweep.yaml with --workers 1001: workers: must" in capsys.readouterr().err


def test_a_timeout_on_the_line_is_the_budget_where_the_file_has_none(folder, capsys):
    Path("sweep.yaml").write_text(BASH_SWEEP.replace("budget: 24", "candidates: 9"))
    plan = json_of(capsys, "plan", "sweep.yaml", "--timeout", "0.5")
    assert plan["budget_wall_seconds"] == 0.5


def test_the_report_of_a_space_in_a_file_says_it(folder, capsys):
    space = ConfigurationSpace({"top": (1, 50), "rate": (0.0, 0.5), "kind": ["a", "b"]})
    space.to_yaml("space.yaml")
    begin, end = BASH_SWEEP.index("parameters:"), BASH_SWEEP.index("budget:")
    named = f"{BASH_SWEEP[:begin]}space: space.yaml\n{BASH_SWEEP[end:]}"
    Path("sweep.yaml").write_text(named)
    assert main(["run", "sweep.yaml"]) == 0
    assert main(["report", "runs/sweep"]) == 0
    page = Path("runs/sweep/report.html").read_text()
    for name, said in {"top": "1 to 50", "rate": "0 to 0.5", "kind": "a, b"}.items():
        assert f"<dt>{name}</dt><dd>{said}</dd>" in page


def test_a_plan_is_written_as_a_file_is(folder, capsys):
    asked = "enqueue: [{top: 9, rate: 0.012345678}]\n"
    layers = "  layers: {type: choice, values: [[64, 64]], when: {top: 8}}\n"
    rate = "  rate: {type: uniform, low: 0.0, high: 1.0}\n"
    sweep = BASH_SWEEP.replace("budget:", rate + layers + "budget:") + asked
    Path("sweep.yaml").write_text(sweep)
    assert main(["plan", "sweep.yaml"]) == 0
    said = capsys.readouterr().out
    assert "opened first                 top 9, rate 0.0123457" in said
    assert "resumes                      false" in said
    assert "parameters in no argument    rate, layers" in said
    assert not set("{}'") & set(said)
