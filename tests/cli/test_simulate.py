"""What the command line prints, where, and how it ends."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import risingsearch
from risingsearch.cli.main import main
from risingsearch.curves import ENVIRONMENTS, list_environments
from risingsearch.errors import (
    ExecutorFailedError,
    InvalidParameterError,
    SearchFailedError,
    missing,
)
from risingsearch.policies import list_policies


@pytest.fixture
def demo(monkeypatch):
    """Replace the demo by one that remembers how it was called."""
    calls = []

    def run_demo(out, seed):
        calls.append((out, seed))
        print("training")
        return {"best_score": 0.9, "left": float("inf"), "files": (str(out),)}

    module = SimpleNamespace(run_demo=run_demo, calls=calls)
    monkeypatch.setitem(sys.modules, "risingsearch.cli.demo", module)
    return module


@pytest.fixture
def empty_folder(monkeypatch, tmp_path):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def no_constant(name):
    raise AssertionError(name)


def raising(error):
    def run_demo(out, seed):
        raise error

    return run_demo


def test_without_a_command_it_prints_the_help_and_fails(capsys):
    assert main([]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "usage: risingsearch" in printed.err
    assert "policies" in printed.err
    assert "demo" in printed.err


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"risingsearch {risingsearch.__version__}\n"


def test_an_unknown_command_is_bad_input(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["dance"])
    assert "invalid choice: 'dance'" in capsys.readouterr().err


def test_help_imports_no_numpy():
    code = (
        "import sys\n"
        "from risingsearch.cli.main import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "finally:\n"
        "    assert 'numpy' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert b"exit codes" in done.stdout


class TestPolicies:
    def test_tells_all_there_is_to_know_of_every_policy(self, capsys):
        assert main(["policies"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        for info in list_policies():
            start = text.index(f"{info.name} {info.summary.replace('``', '')}")
            entry = text[start:]
            assert f"{info.paper} ({info.provenance})" in entry
            for name, value in info.parameters.items():
                assert f"{name}={value}" in entry
        assert "auto is screened-damped-slope" in text

    def test_fits_a_terminal_of_80_columns(self, capsys):
        main(["policies"])
        lines = capsys.readouterr().out.splitlines()
        assert max(len(line) for line in lines) < 80
        assert all(line == line.rstrip() for line in lines)

    def test_json_is_strict_and_complete(self, capsys):
        assert main(["policies", "--json"]) == 0
        rows = json.loads(capsys.readouterr().out, parse_constant=no_constant)
        assert [row["name"] for row in rows] == [info.name for info in list_policies()]
        assert set(rows[0]) == set(list_policies()[0]._fields)
        auto = next(row for row in rows if row["name"] == "screened-damped-slope")
        assert auto["parameters"]["reward_range"] == ["-inf", "inf"]


class TestDemo:
    def test_runs_where_and_with_what_seed_it_is_told(self, demo, tmp_path, capsys):
        assert main(["demo", "--out", str(tmp_path / "new"), "--seed", "7"]) == 0
        assert demo.calls == [(tmp_path / "new", 7)]
        assert capsys.readouterr().out == "training\n"

    def test_json_leaves_stdout_to_the_result(self, demo, tmp_path, capsys):
        assert main(["demo", "--out", str(tmp_path), "--json"]) == 0
        printed = capsys.readouterr()
        assert json.loads(printed.out) == {
            "best_score": 0.9,
            "left": "inf",
            "files": [str(tmp_path)],
        }
        assert printed.err == "training\n"

    @pytest.mark.parametrize("seed", ["-1", "1.5", "one"])
    def test_a_seed_that_is_none_is_bad_input(self, demo, seed, capsys):
        with pytest.raises(SystemExit, match="2"):
            main(["demo", f"--seed={seed}"])
        assert "whole number of at least 0" in capsys.readouterr().err

    def test_a_file_in_place_of_the_folder_is_bad_input(self, demo, tmp_path, capsys):
        (tmp_path / "taken").touch()
        with pytest.raises(SystemExit, match="2"):
            main(["demo", "--out", str(tmp_path / "taken")])
        assert "must be a folder" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (missing("scikit-learn", extra="sklearn"), 2),
            (InvalidParameterError("budget must be\nat least 1"), 2),
            (SearchFailedError("every configuration failed"), 3),
            (ExecutorFailedError("the executor died", result=None), 3),
            (KeyboardInterrupt(), 130),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_an_error_is_one_line_and_an_exit_code(self, demo, error, code, capsys):
        demo.run_demo = raising(error)
        assert main(["demo"]) == code
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("risingsearch: ")
        assert printed.err.count("\n") == 1
        assert " ".join(str(error).split()) in printed.err

    def test_an_error_of_another_kind_is_a_bug_and_keeps_its_traceback(self, demo):
        demo.run_demo = raising(ZeroDivisionError())
        with pytest.raises(ZeroDivisionError):
            main(["demo"])


class TestEnvironments:
    def test_tells_all_there_is_to_know_of_every_environment(self, capsys):
        assert main(["environments"]) == 0
        printed = capsys.readouterr().out
        text = " ".join(printed.split())
        for info in list_environments():
            entry = text[text.index(f"{info.name} {info.summary}") :]
            assert f"{info.paper} ({info.setting})" in entry
            for name, value in info.parameters.items():
                assert (name if value is ... else f"{name}={value}") in entry
        assert max(map(len, printed.splitlines())) < 80

    def test_json_is_strict_and_complete(self, capsys):
        assert main(["environments", "--json"]) == 0
        rows = json.loads(capsys.readouterr().out, parse_constant=no_constant)
        assert [row["name"] for row in rows] == list(ENVIRONMENTS)
        imdb = next(row for row in rows if row["name"] == "imdb")
        assert imdb["parameters"]["data_dir"] == "required"


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

    def test_parameters_of_the_environment(self, capsys):
        command = "simulate ltf --policies round-robin --runs 2 --horizon 50 --json"
        regrets = []
        for n_arms in ("2", "5"):
            assert main([*command.split(), "--param", f"n_arms={n_arms}"]) == 0
            report = json.loads(capsys.readouterr().out)
            assert report["parameters"] == {"n_arms": int(n_arms)}
            regrets.append(report["rows"][0]["mean_regret"])
        assert regrets[0] < regrets[1]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["lft"], "unknown environment or file 'lft'; did you mean 'ltf'?"),
            (["runs.csv"], "there is no file 'runs.csv'"),
            (["ltf", "--policies", "ash"], "unknown policy 'ash'; did you mean 'asha'"),
            (["ltf", "--policies", "asha(et=2)"], "did you mean 'eta'"),
            (["ltf", "--policies", "asha(eta=1)"], "eta must be"),
            (["ltf", "--policies", "asha(eta"], "--policies: every bracket"),
            (["ltf", "--param", "noise"], "--param: must be parameter=value"),
            (["ltf", "--param", "nois=1"], "did you mean 'noise'"),
            (["ltf", "--param", "noise=1", "--param", "noise=2"], "noise twice"),
            (["imdb"], "imdb needs data_dir"),
            (["ltf", "--minimize"], "--minimize is for recorded curves"),
            (["ltf", "--noise", "0"], "--noise is for recorded curves"),
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
            "--horizon=0", "--horizon=1e3", "--budget=10,", "--budget=-5",
            "--runs=0", "--seed=-1", "--jobs=two", "--noise=-1", "--within=nan",
            "--noise=inf",
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

    def test_without_numba_it_says_once_that_it_is_slow(self, empty_folder):
        code = (
            "import sys\n"
            "sys.modules.update(dict.fromkeys(['numba', 'pandas']))\n"
            "from risingsearch.cli.main import main\n"
            "sys.exit(main(sys.argv[1:]))\n"
        )
        command = "simulate two-arm --policies asha,round-robin --runs 2 --horizon 20"
        done = subprocess.run(
            [sys.executable, "-c", code, *command.split()],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "round-robin" in done.stdout
        assert done.stderr.startswith("risingsearch: simulating without compiling")
        assert done.stderr.count("\n") == 1

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

    def test_noise(self, curves, capsys):
        clean = self.report(capsys, "runs.csv", "--budget", "72")
        noisy = self.report(capsys, "runs.csv", "--budget", "72", "--noise", "0.3")
        assert noisy["noise"] == 0.3
        assert clean["rows"][0]["distance"] < noisy["rows"][0]["distance"]

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
            (["runs.csv", "--policies", "ash"], "did you mean 'asha'"),
            (["runs.txt"], "curves come from"),
            (["empty.csv"], "the file is empty"),
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


def test_a_reader_may_stop_reading():
    code = "import risingsearch.cli.main as m; raise SystemExit(m.main(['policies']))"
    command = [sys.executable, "-c", code]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
    process.stderr.close()
