"""What a script adds to a file is read while it runs, once and in order."""

import io
import subprocess
import sys
import textwrap

import pytest

from risingsearch.errors import ScriptError
from risingsearch.script_reports import ReportFile, kill, reports


@pytest.fixture
def reported(tmp_path):
    """Return what a program reports, in a file where one is named."""

    def run(program, *, timeout=None, log=None, file=None):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program)],
            stdout=subprocess.PIPE,
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
            print('{"loss": 3}', end="", file=file)
        print('{"loss": 7, "printed": true}')
    """
    log = io.StringIO()
    told = reported(program, log=log, file="told.jsonl")
    assert next(told) == {"loss": 1}
    (tmp_path / "seen").touch()
    assert list(told) == [{"loss": 2}, {"loss": 3}]
    assert log.getvalue() == '{"loss": 7, "printed": true}\n'


def test_a_file_that_is_written_anew_is_read_anew(tmp_path):
    path = tmp_path / "told.jsonl"
    file = ReportFile(path)
    assert file.new_lines() == []
    path.write_text("one\ntwo\nthr")
    assert file.new_lines() == ["one", "two"]
    assert file.new_lines() == []
    path.write_text("1\n")
    assert file.new_lines() == ["1"]
    path.write_text("1\nun")
    assert file.new_lines(all_of_it=True) == ["un"]


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
