"""What a script adds to a file is read while it runs, once and in order."""

import io
import math
import os
import sys
import textwrap
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from risingsearch.errors import ScriptError, SetupError
from risingsearch.scripts import output
from risingsearch.scripts.output import Lines, Pace, ReportFile, reports
from risingsearch.scripts.processes import Script
from risingsearch.scripts.readers import JsonLines, reader_of
from tests.scripts.test_living import is_alive


@pytest.fixture
def reported(tmp_path):
    """Return what a program reports, in a file where one is named."""

    def run(program, *, timeout=None, log=None, file=None):
        command = [sys.executable, "-c", textwrap.dedent(program)]
        report_file = None if file is None else ReportFile(tmp_path, file)
        log = log or io.StringIO()
        script = Script(command, tmp_path, {}, tmp_path)
        try:
            yield from reports(
                script, JsonLines("loss"), timeout=timeout, log=log, file=report_file
            )
        finally:
            script.end()

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


@pytest.mark.parametrize("file", [None, "told.jsonl"])
def test_a_script_that_closes_its_output_and_hangs(reported, file):
    program = "import os, time; os.close(1); os.close(2); time.sleep(3600)"
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


def test_what_a_script_leaves_running_is_not_waited_for(reported):
    program = """
        import subprocess, sys
        sleeper = [sys.executable, "-c", "import time; time.sleep(3600)"]
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


@pytest.mark.parametrize("line", ['{"loss": 0.1', '{"loss": 1, "a": nothing}'])
@pytest.mark.parametrize("file", [None, "told"])
def test_a_report_that_is_no_json(reported, line, file):
    where = "sys.stdout" if file is None else "open('told', 'a')"
    program = f"import sys; print({line!r}, file={where})"
    with pytest.raises(ScriptError, match="invalid JSON"):
        list(reported(program, file=file))


@pytest.mark.parametrize("file", [None, "told"])
@pytest.mark.parametrize("ending", ["os.kill(os.getpid(), 9)", "os._exit(3)"])
def test_a_line_that_was_cut_by_the_end_of_its_script(reported, file, ending):
    where = "sys.stdout" if file is None else "open('told', 'a')"
    program = f"""
        import os, sys
        print('{{"loss": 1}}\\n{{"loss": 22', file={where}, end="", flush=True)
        {ending}
    """
    told = reported(program, file=file)
    assert next(told) == {"loss": 1}
    with pytest.raises(ScriptError, match="the script ended with"):
        next(told)


def test_output_waits_for_its_reader(reported, tmp_path):
    """A script is held up by what is not read, instead of filling the memory."""
    program = """
        import os
        print('{"loss": 1}', flush=True)
        for i in range(200):
            os.write(1, b"x" * 99_999 + b"\\n")
        print('{"loss": 2}', flush=True)
    """
    with (tmp_path / "log").open("w") as log:
        told = reported(program, log=log)
        tracemalloc.start()
        try:
            assert next(told) == {"loss": 1}
            assert list(told) == [{"loss": 2}]
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 20_000_000 / 4  # of what was printed


def test_what_a_script_that_ended_well_leaves_in_its_own_session_ends(
    reported, tmp_path
):
    program = """
        import os, time
        print('{"loss": 1}', flush=True)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.closerange(0, 3)
                open("new", "w").write(str(os.getpid()))
                os.rename("new", "pid")
                time.sleep(3600)
            os._exit(0)
        while not os.path.exists("pid"):
            time.sleep(0.01)
    """
    assert list(reported(program)) == [{"loss": 1}]
    assert not is_alive(int((tmp_path / "pid").read_text()))
    assert not (tmp_path / "running.json").exists()


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ((31.0, 32.0, 33.0, 33.0), 30.0),
        ((31.0, 32.0, 33.0, 35.0), 32.0),  # it ends slowly too
        ((1.0, 3.0, 3.0), 0.0),  # the first epoch was quicker
        ((31.0, 31.0), math.nan),  # one epoch
        ((33.0, 33.001, 33.002, 33.1), math.nan),  # printed at once, at the end
    ],
)
def test_two_reports_tell_start_and_epochs_apart(times, seconds):
    clock = iter([0.0, *times])
    pace = Pace(lambda: next(clock))
    for _ in times[:-1]:
        pace.reported()
    assert pace.startup() == pytest.approx(seconds, nan_ok=True)


@given(st.lists(st.binary(max_size=40)), st.sampled_from([b"\n", b"\r\n", b"\r", b"a"]))
def test_lines_do_not_depend_on_how_they_are_cut(pieces, end):
    pieces = [piece + end for piece in pieces]
    split = Lines()
    found = [line for piece in pieces for line in split.add(piece)]
    found += split.end()
    whole = b"".join(pieces).decode(errors="replace")
    expected = whole.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert "".join(found) == "\n".join(expected)
    assert all(line.endswith("\n") for line in found[:-1])


def test_a_line_without_an_end_comes_in_pieces(monkeypatch):
    monkeypatch.setattr(output, "LONGEST", 10)
    split = Lines()
    found = [line for _ in range(4) for line in split.add(b"123456")]
    assert [*found, *split.end()] == ["123456123456"] * 2


def test_a_file_may_only_get_longer(tmp_path):
    path = tmp_path / "told.jsonl"
    file = ReportFile(tmp_path, "told.jsonl")
    assert list(file.new_lines()) == []
    path.write_text("one\ntwo\nthr")
    assert list(file.new_lines()) == ["one\n", "two\n"]
    assert list(file.new_lines()) == []
    assert list(file.new_lines(all_of_it=True)) == ["thr"]
    path.write_text("1\n")
    with pytest.raises(ScriptError, match="the script has begun"):
        list(file.new_lines())


def test_something_else_in_the_place_of_the_file(tmp_path):
    file = ReportFile(tmp_path, "told")
    os.mkfifo(tmp_path / "told")
    with pytest.raises(ScriptError, match=r"in told cannot be read .*is a named pipe"):
        list(file.new_lines())


def test_a_print_beside_a_logger_ends_the_search(tmp_path):
    program = """
        import logging, sys
        logging.basicConfig()
        for _ in range(2):
            print("acc: 0.5", flush=True)
            logging.warning("acc: 0.5")
    """
    script = Script([sys.executable, "-c", textwrap.dedent(program)], tmp_path, {})
    reader = reader_of({"regex": "acc: {number}"})
    try:
        with pytest.raises(SetupError, match="output and in standard error, last"):
            list(reports(script, reader, timeout=None, log=io.StringIO()))
    finally:
        script.end()
