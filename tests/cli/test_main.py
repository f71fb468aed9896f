"""What the command line prints, where, and how it ends."""

import argparse
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

import risingsearch
from risingsearch.cli.main import _parser, main
from risingsearch.curves import ENVIRONMENTS, list_environments
from risingsearch.errors import InvalidParameterError, SearchFailedError, missing
from risingsearch.policies import list_policies


@pytest.fixture
def demo(monkeypatch):
    """Replace the demo by one that remembers how it was called."""
    calls = []

    def run_demo(out, seed):
        calls.append((out, seed))
        print("training")

    module = SimpleNamespace(run_demo=run_demo, calls=calls)
    monkeypatch.setitem(sys.modules, "risingsearch.cli.demo", module)
    return module


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


@pytest.mark.parametrize(
    "arguments", [(name, "none") for name in ("plan", "run", "resume")]
)
def test_what_is_not_there_is_said_before_what_is_not_installed(
    arguments, monkeypatch, capsys
):
    for name in [name for name in sys.modules if "risingsearch.scripts." in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydantic", None)
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert f"risingsearch: {arguments[1]} " in said
    assert "pydantic" not in said


def test_python_runs_it_as_a_module():
    command = [sys.executable, "-m", "risingsearch", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"risingsearch {risingsearch.__version__}\n"


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
        assert "auto is looks-then-slope" in text

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
        auto = next(row for row in rows if row["name"] == "looks-then-slope")
        assert auto["parameters"]["later_share"] == 0.2


class TestDemo:
    def test_runs_where_and_with_what_seed_it_is_told(self, demo, tmp_path, capsys):
        assert main(["demo", "--out", str(tmp_path / "new"), "--seed", "7"]) == 0
        assert demo.calls == [(tmp_path / "new", 7)]
        assert capsys.readouterr().out == "training\n"

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (missing("scikit-learn", extra="sklearn"), 2),
            (InvalidParameterError("budget must be\nat least 1"), 2),
            (SearchFailedError("every configuration failed"), 3),
            (SearchFailedError("the executor died", result=None), 3),
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


POLICIES = "import risingsearch.cli.main as m; raise SystemExit(m.main(['policies']))"


def test_a_reader_may_stop_reading():
    command = [sys.executable, "-c", POLICIES]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
    process.stderr.close()


def test_every_argument_has_its_help():
    def arguments_of(parser, name):
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for command, child in action.choices.items():
                    yield from arguments_of(child, command)
            else:
                yield name, action.dest, action.help

    arguments = list(arguments_of(_parser(), "risingsearch"))
    assert len(arguments) > 40
    assert [argument[:2] for argument in arguments if not argument[2]] == []


def test_commands_are_listed_in_the_order_in_which_they_are_used(capsys):
    main([])
    text = capsys.readouterr().err
    order = ("plan", "run", "watch", "list", "report", "export", "simulate")
    places = [text.index(f"\n    {command} ") for command in order]
    assert places == sorted(places)


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh", "fish"])
def test_a_shell_completes_every_command(shell, capsys):
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    commands = ("plan", "run", "resume", "watch", "status", "report", "completion")
    assert [command for command in commands if command not in script] == []


@pytest.mark.parametrize(
    ("words", "offered"),
    [("run --wo", "--workers"), ("status cur", "curves"), ("completion z", "zsh")],
)
def test_bash_completes_options_paths_and_choices(words, offered, tmp_path, capsys):
    pytest.importorskip("shtab")
    (tmp_path / "curves").mkdir()
    main(["completion", "bash"])
    ask = f"COMP_WORDS=(risingsearch {words}) COMP_CWORD=2; _shtab_risingsearch"
    script = f'{capsys.readouterr().out}\n{ask}\necho "${{COMPREPLY[@]}}"'
    bash = ["bash", "-c", script]
    done = subprocess.run(bash, cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.decode().split() == [offered]
