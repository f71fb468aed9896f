"""What a script adds to a file is read while it runs, once and in order."""

import io
import subprocess
import sys
import textwrap

import psutil
import pytest

from risingsearch.errors import ScriptError
from risingsearch.scripts import output
from risingsearch.scripts.output import ReportFile, kill, reports


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def reported(tmp_path):
    """Return what a program reports, in a file where one is named."""

    def run(program, *, timeout=None, log=None, file=None):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            start_new_session=True,
        )
        try:
            yield from reports(
                process,
                "loss",
                timeout=timeout,
                log=log or io.StringIO(),
                file=None if file is None else ReportFile(tmp_path / file),
            )
        finally:
            kill(process)

    return run


def test_lines_of_a_file_as_they_come(reported, tmp_path):
    (tmp_path / "told.jsonl").write_text('{"loss": 9}\n')  # of earlier epochs
    program = """
        import pathlib, time
        with open("told.jsonl", "a") as file:
            print('{"loss": 1}', file=file, flush=True)
            while not pathlib.Path("seen").exists():
                time.sleep(0.01)
            print('not a report', file=file)
            print('{"loss": 2}', file=file)
            print('{"loss": 3, "text": "a\u2028b"}', end="", file=file)
        print('{"loss": 7, "printed": true}')
    """
    log = io.StringIO()
    told = reported(program, log=log, file="told.jsonl")
    assert next(told) == {"loss": 1}
    (tmp_path / "seen").touch()
    assert list(told) == [{"loss": 2}, {"loss": 3, "text": "a\u2028b"}]
    assert log.getvalue() == '{"loss": 7, "printed": true}\n'


def test_a_file_may_only_get_longer(tmp_path):
    path = tmp_path / "told.jsonl"
    file = ReportFile(path)
    assert file.new_lines() == []
    path.write_text("one\ntwo\nthr")
    assert file.new_lines() == ["one", "two"]
    assert file.new_lines() == []
    assert file.new_lines(all_of_it=True) == ["thr"]
    path.write_text("1\n")
    with pytest.raises(ScriptError, match="the script has begun"):
        file.new_lines()


@pytest.mark.parametrize("file", [None, "told.jsonl"])
def test_a_script_that_closes_its_output_and_hangs(reported, file):
    program = "import os, time; os.close(1); os.close(2); time.sleep(60)"
    with pytest.raises(ScriptError, match="has reported no epoch"):
        list(reported(program, timeout=0.5, file=file))


def test_chatter_is_no_report_and_does_not_buy_time(reported):
    program = """
        import time
        while True:
            print("still here", flush=True)
            time.sleep(0.1)
    """
    with pytest.raises(ScriptError, match="has reported no epoch"):
        list(reported(program, timeout=0.5))


def test_no_json_in_a_file(reported):
    program = "open('told.jsonl', 'w').write('{\"loss\": 0.1')"
    with pytest.raises(ScriptError, match="reports what is no JSON"):
        list(reported(program, file="told.jsonl"))


def test_what_a_script_leaves_running_is_not_waited_for(reported):
    program = """
        import subprocess, sys
        sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
        subprocess.Popen(sleeper, start_new_session=True)  # has the same output
        print('{"loss": 1}')
    """
    assert list(reported(program)) == [{"loss": 1}]


def test_a_progress_bar_is_no_part_of_a_report(reported):
    program = """
        import sys
        print("0%|          | 0/1", end="", file=sys.stderr, flush=True)
        print('{"loss": 1}', flush=True)
        print('{"loss": 2}', file=sys.stderr)
    """
    log = io.StringIO()
    assert list(reported(program, log=log)) == [{"loss": 1}]
    assert "0/1" in log.getvalue()


def test_a_line_without_an_end_is_cut(reported, monkeypatch):
    monkeypatch.setattr(output, "LONGEST", 1000)
    log = io.StringIO()
    program = "print('x' * 2500); print('{\"loss\": 1}')"
    assert list(reported(program, log=log)) == [{"loss": 1}]
    assert log.getvalue().startswith("x" * 2500 + "\n")


def test_what_runs_in_a_session_of_its_own_ends_too(reported, tmp_path):
    program = """
        import subprocess, sys, time
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(60)"],
            start_new_session=True,
        )
        open("child", "w").write(str(child.pid))
        time.sleep(60)
    """
    with pytest.raises(ScriptError, match="has reported no epoch"):
        list(reported(program, timeout=1))
    child = int((tmp_path / "child").read_text())
    assert not is_running(child)
