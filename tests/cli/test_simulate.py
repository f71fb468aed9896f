"""What ``risingsearch simulate`` prints, in environments and on recorded curves."""

import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from risingsearch import Functions, RisingSearch
from risingsearch.cli.main import main


@pytest.fixture
def empty_folder(monkeypatch, tmp_path):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def no_constant(name):
    raise AssertionError(name)


@pytest.mark.usefixtures("interpreted")
class TestSimulateAnEnvironment:
    def test_a_table_of_policies_per_horizon(self, capsys):
        command = "simulate two-arm --policies round-robin,cure-ucb(sigma=0.1) --runs 3"
        assert main([*command.split(), "--horizon", "300,100"]) == 0
        printed = capsys.readouterr()
        lines = printed.out.splitlines()
        assert lines[0] == "two-arm: regret against the best single arm"
        words = [line.split()[:1] for line in lines[3:]]
        assert [word[0] for word in words if word] == [
            "100", "cure-ucb(sigma=0.1)", "round-robin",
            "300", "cure-ucb(sigma=0.1)", "round-robin",
        ]  # fmt: skip
        assert printed.err == ""

    def test_json_holds_the_same(self, capsys):
        command = "simulate two-arm --policies round-robin --runs 2 --horizon 50 --json"
        assert main([*command.split(), "--seed", "3", "--param", "noise=0"]) == 0
        report = json.loads(capsys.readouterr().out, parse_constant=no_constant)
        [row] = report.pop("rows")
        assert report == {
            "environment": "two-arm",
            "parameters": {"noise": 0},
            "reference": "best-arm",
            "n_runs": 2,
            "seed": 3,
        }
        assert row["mean_regret"] == pytest.approx(20.0 - 10.0 - 325 / 20_000)
        assert row["low"] == row["high"] == row["mean_regret"]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["lft"], "unknown environment or file 'lft'; did you mean 'ltf'?"),
            (["runs.csv"], "there is no file 'runs.csv'"),
            (["ltf", "--policies", "ash"], "unknown policy 'ash'; did you mean 'asha'"),
            (["ltf", "--policies", "asha(et=2)"], "did you mean 'eta'"),
            (["ltf", "--policies", "asha(eta"], "--policies: every bracket"),
            (["ltf", "--param", "noise"], "--param: must be parameter=value"),
            (["imdb"], "imdb needs data_dir"),
            (["ltf", "--minimize"], "--minimize is for recorded curves"),
            (["ltf", "--within", "0"], "--within is for recorded curves"),
        ],
    )
    def test_bad_input_is_one_line(self, arguments, message, capsys, empty_folder):
        assert main(["simulate", *arguments]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("risingsearch: ")
        assert printed.err.count("\n") == 1
        assert message in printed.err

    @pytest.mark.parametrize(
        "option",
        [
            "--horizon=1e3", "--budget=10,", "--runs=0", "--seed=-1", "--jobs=two",
            "--noise=-1", "--within=nan",
        ],
    )  # fmt: skip
    def test_a_number_that_is_none_is_bad_input(self, option, capsys):
        with pytest.raises(SystemExit, match="2"):
            main(["simulate", "ltf", option])
        assert "must be a" in capsys.readouterr().err

    def test_a_name_goes_before_a_file(self, empty_folder, capsys):
        empty_folder.joinpath("two-arm").touch()
        command = ["--policies", "round-robin", "--horizon", "5", "--runs", "1"]
        assert main(["simulate", "two-arm", *command]) == 0
        assert capsys.readouterr().out.startswith("two-arm: regret")
        assert main(["simulate", "./two-arm", *command]) == 2
        assert "curves come from" in capsys.readouterr().err

    def test_an_interrupt_is_told_by_the_exit_code(self, monkeypatch, capsys):
        def interrupted(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr("risingsearch.simulation.reports.compare", interrupted)
        assert main(["simulate", "ltf", "--policies", "random"]) == 130
        printed = capsys.readouterr()
        assert (printed.out, printed.err) == ("", "risingsearch: interrupted\n")

    def test_on_a_terminal_it_says_what_takes_so_long(self, monkeypatch, capsys):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        command = "simulate two-arm --policies round-robin --runs 1 --horizon 5 --json"
        assert main(command.split()) == 0
        printed = capsys.readouterr()
        assert json.loads(printed.out)
        assert "seconds to compile" in printed.err
        assert "0/1 [" in printed.err


@pytest.mark.usefixtures("interpreted")
class TestSimulateRecordedCurves:
    @pytest.fixture
    def curves(self, empty_folder):
        rng = np.random.default_rng(0)
        height, pace = rng.uniform(0.5, 0.9, (12, 1)), rng.uniform(1, 4, (12, 1))
        curves = height * (1 - np.exp(-np.arange(1, 7) / pace))
        np.savetxt("runs.csv", curves, delimiter=",")
        np.savez("losses.npz", valid=1.0 - curves)
        return curves

    def report(self, capsys, *arguments):
        base = ["--policies", "auto,random-search", "--runs", "20", "--json"]
        assert main(["simulate", *base, *arguments]) == 0
        return json.loads(capsys.readouterr().out, parse_constant=no_constant)

    def test_which_policy_and_which_budget(self, curves, capsys):
        report = self.report(capsys, "runs.csv")
        budgets = [row["budget"] for row in report["rows"] if row["best"]]
        assert budgets == [6, 12, 30, 60, 72]
        assert report["file"] == "runs.csv"
        assert report["form"] == "one row per arm"
        assert report["best"] == pytest.approx(curves.max())
        last = report["rows"][-1]
        assert last["mean_score"] == pytest.approx(curves.max())
        assert last["distance"] == pytest.approx(0.0)
        assert last["epochs"] == 72.0
        assert "would have found" in report["verdict"]

    def test_text_and_json_agree(self, curves, capsys):
        report = self.report(capsys, "runs.csv", "--budget", "24")
        command = "simulate runs.csv --policies auto,random-search --runs 20"
        assert main([*command.split(), "--budget", "24"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        for row in report["rows"]:
            assert f"{row['mean_score']:.4f}" in text
        assert text.endswith(report["verdict"])

    def test_losses(self, curves, capsys):
        higher = self.report(capsys, "runs.csv", "--budget", "24")
        lower = self.report(capsys, "losses.npz", "--budget", "24", "--minimize")
        assert lower["direction"] == "minimize"
        for row, flipped in zip(lower["rows"], higher["rows"], strict=True):
            assert row["policy"] == flipped["policy"]
            assert row["mean_score"] == pytest.approx(1.0 - flipped["mean_score"])
            assert row["distance"] == pytest.approx(flipped["distance"])

    def test_an_exported_run(self, empty_folder, capsys):
        def train(state):
            state["epoch"] += 1
            if state["arm"] == 0 or (state["arm"] == 1 and not tried):
                tried.append(state["arm"])
                raise ValueError
            return 1.0 / (state["arm"] + state["epoch"])

        tried: list[int] = []
        trainable = Functions(lambda arm, seed: {"epoch": 0, **arm}, train)
        options = {"direction": "minimize", "max_failures": 1, "seed": 0}
        arms = [{"arm": arm} for arm in (1, 0, 2)]
        RisingSearch(trainable, arms, budget=12, run_dir="run", **options).run()
        assert main(["export", "run", "--out", "run.csv"]) == 0
        with pytest.warns(RuntimeWarning, match="without a score are left out: 1$"):
            report = self.report(capsys, "run.csv", "--budget", "4")
        assert report["direction"] == "minimize"
        assert report["best"] < 0.25  # the lowest; 0.5 is the highest
        assert main(["simulate", "run"]) == 2
        assert "risingsearch export run --out curves.csv" in capsys.readouterr().err

    def test_how_near_is_near(self, curves, capsys):
        near = self.report(capsys, "runs.csv", "--budget", "12", "--within", "0.5")
        assert "12 epochs would have found" in near["verdict"]
        far = self.report(capsys, "runs.csv", "--budget", "6", "--within", "0")
        assert far["verdict"].startswith("No policy comes within 0.0000 of the best")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["runs.csv", "--param", "a=1"], "--param is for environments"),
            (["runs.csv", "--budget", "73"], "at most the 72 epochs"),
            (["runs.txt"], "curves come from"),
            (["empty.csv"], "cannot read empty.csv"),
        ],
    )
    def test_bad_input_is_one_line(self, curves, arguments, message, capsys):
        for name in ("runs.txt", "empty.csv"):
            Path(name).touch()
        assert main(["simulate", *arguments]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("\n") == 1
        assert message in printed.err


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
def test_the_page_on_simulation_shows_what_the_commands_print(empty_folder, capsys):
    page = Path(__file__).parents[2].joinpath("docs", "simulation.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    exec(next(text for language, text in blocks if language == "python"), {})
    n_shown = 0
    for language, text in blocks:
        command, _, output = text.partition("\n")
        if language == "console" and output and not output.startswith("$"):
            assert main(shlex.split(command.removeprefix("$ risingsearch "))) == 0
            assert capsys.readouterr().out == output
            n_shown += 1
    assert n_shown == 2
