"""What `risingsearch watch` shows of a run, in a terminal and elsewhere."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading

import pytest
from rich.console import Console

from risingsearch import Functions, RisingSearch
from risingsearch.cli.main import main
from risingsearch.cli.screen import Screen
from risingsearch.cli.status import RunView
from risingsearch.storage.run_directory import JOURNAL
from tests.search.example_search import start

PROGRAM = "import sys; from risingsearch.cli.main import main; sys.exit(main())"
TOPS = (0.3, 0.9, 0.6, 0.5)


def train(state):
    state["epochs"] += 1
    if state["top"] == 0.5 and state["epochs"] == 2:
        raise ValueError("too hot")
    return state["top"] * (1 - 0.7 ** state["epochs"])


def a_search(run_dir, train=train, **options):
    candidates = [{"top": top, "[red]": "\x1b[2J"} for top in TOPS]
    given = {"budget": 16, "max_epochs": 6, "seed": 0, "epochs_per_job": 1, **options}
    trainable = Functions(start, train)
    return RisingSearch(trainable, candidates, run_dir=run_dir, **given)


@pytest.fixture
def run_dir(tmp_path):
    a_search(tmp_path / "run").run()
    return tmp_path / "run"


def frame(run_dir, width=100, height=40):
    """Return the lines that a terminal of a size shows."""
    console = Console(width=width, height=height, force_terminal=True, no_color=True)
    options = console.options.update(width=width, height=height)
    lines = console.render_lines(Screen(RunView(run_dir)), options, pad=False)
    return ["".join(segment.text for segment in line) for line in lines]


def row_of(lines, arm):
    (row,) = [line for line in lines if line.split()[:1] == [str(arm)]]
    return row.split()


class TestFrame:
    def test_says_how_far_it_is_and_what_was_found(self, run_dir):
        result = RisingSearch.saved_result(run_dir)
        lines = frame(run_dir)
        assert lines[0].endswith("run  finished")
        assert lines[2].startswith("16 of 16 epochs")
        assert f"best  {result.best_score:.6g}: arm 1, epoch" in lines[3]
        assert "4 opened of 4: 0 running" in lines[4]
        assert "1 failed" in lines[4]
        assert any("arm 3, after epoch 1: too hot" in line for line in lines)
        assert any("budget of 16 epochs is spent" in line for line in lines)

    def test_has_a_row_for_every_arm_with_its_epochs_and_best_score(self, run_dir):
        result = RisingSearch.saved_result(run_dir)
        lines = frame(run_dir)
        for arm in result.arms:
            row = row_of(lines, arm.arm)
            assert row[1:4] == [str(arm.epochs), f"{arm.best_score:.5g}", arm.status]

    def test_the_strip_has_a_block_for_each_epoch_of_an_arm(self, run_dir):
        result = RisingSearch.saved_result(run_dir)
        head, *rows = [
            line for line in frame(run_dir) if "\u2588" in line or "when" in line
        ]
        begin = head.index("when")
        for row in rows:
            arm = int(row.split()[0])
            strip = row[begin : begin + 16]
            trained = [k for k, told in enumerate(result.history) if told["arm"] == arm]
            assert [k for k, block in enumerate(strip) if block != " "] == trained

    def test_an_arm_that_rises_has_a_curve_that_rises(self, run_dir):
        curve = row_of(frame(run_dir), 1)[-1]
        assert len(curve) == RisingSearch.saved_result(run_dir).arms[1].epochs
        assert list(curve) == sorted(curve)
        assert curve[-1] == "\u2588"

    def test_a_long_name_is_cut_and_not_the_state(self, tmp_path):
        run_dir = tmp_path / ("a-long-name-" * 8)
        a_search(run_dir).run()
        assert frame(run_dir, width=60)[0].endswith("…  finished")

    @pytest.mark.parametrize("width", [20, 39, 60, 80, 200])
    def test_fits_the_terminal(self, run_dir, width):
        assert max(map(len, frame(run_dir, width=width))) <= width
        assert len(frame(run_dir, width=width, height=14)) <= 20

    def test_in_a_low_terminal_the_best_arm_stays_and_the_rest_are_counted(
        self, tmp_path
    ):
        candidates = [{"top": k / 40} for k in range(40)]
        RisingSearch(
            Functions(start, train), candidates, budget=80, seed=0, run_dir=tmp_path
        ).run()
        best = RisingSearch.saved_result(tmp_path).best_arm
        lines = frame(tmp_path, height=18)
        assert row_of(lines, best)
        assert any(line.endswith("more") for line in map(str.strip, lines))

    def test_what_a_user_wrote_neither_marks_up_nor_moves_the_cursor(self, run_dir):
        text = "\n".join(frame(run_dir, width=200))
        assert "[red] ?[2J" in text
        assert "\x1b" not in text


def test_a_run_in_progress_says_what_trains_why_and_for_how_long(tmp_path, capsys):
    frames, facts = [], []

    def watched(state):
        frames.append(frame(tmp_path))
        assert main(["status", str(tmp_path), "--json"]) == 0
        facts.append(json.loads(capsys.readouterr().out))
        return train(state)

    result = a_search(tmp_path, watched, budget=10).run()
    for lines, row in zip(frames, result.history, strict=True):
        assert lines[0].endswith("running")
        now = f"now  arm {row['arm']}, epoch {row['epoch']}: {row['reason']}"
        assert any(line.startswith(now) for line in lines)
    assert all("left" in lines[2] for lines in frames[1:])
    assert [one["state"] for one in facts] == ["running"] * 10
    arms = [job["arm"] for one in facts for job in one["training"]]
    assert arms == result.history["arm"]
    assert all(one["seconds_left"] >= 0 for one in facts[1:])
    assert frame(tmp_path)[0].endswith("finished")


class TestCommand:
    def test_prints_one_frame_where_there_is_no_terminal(self, run_dir, capsys):
        for arguments in ([], ["--once"]):
            assert main(["watch", str(run_dir), *arguments]) == 0
            printed = capsys.readouterr().out
            assert "finished" in printed
            assert "\x1b" not in printed

    def test_status_has_the_facts_of_a_frame(self, run_dir, capsys):
        assert main(["status", str(run_dir), "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["state"] == "finished"
        assert (facts["spent"], facts["budget"]) == (16, {"epochs": 16})
        assert (facts["best_arm"], facts["arms"]["failed"]) == (1, 1)
        assert "training" not in facts

    def test_a_directory_that_is_not_there_yet_is_waited_for(self, tmp_path, capsys):
        assert main(["watch", str(tmp_path / "later")]) == 0
        assert "the directory does not exist yet" in capsys.readouterr().out
        assert main(["status", str(tmp_path / "later")]) == 2

    def test_a_run_that_has_stopped_says_how_to_go_on(self, tmp_path, capsys):
        search = a_search(tmp_path)
        search.callbacks = [lambda epoch: epoch.stop()]
        search.run()
        assert main(["watch", str(tmp_path)]) == 0
        printed = capsys.readouterr().out
        assert "stopped" in printed
        assert "run the program that began it again" in printed

    @pytest.mark.parametrize("options", [[], ["--once"]])
    def test_what_is_no_run_is_bad_input_in_one_sentence(
        self, tmp_path, capsys, options
    ):
        (tmp_path / "file").touch()
        assert main(["watch", str(tmp_path), *options]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        (line,) = printed.err.splitlines()
        assert "name the run directory" in line

    def test_a_damaged_run_is_bad_input_in_one_sentence(self, run_dir, capsys):
        journal = run_dir / JOURNAL
        journal.write_bytes(journal.read_bytes().replace(b'"started"', b'"st4rted"', 1))
        assert main(["watch", str(run_dir)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "is damaged in line 2" in line

    def test_without_rich_it_says_what_to_install(self, run_dir, capsys, monkeypatch):
        monkeypatch.setitem(sys.modules, "rich.console", None)
        assert main(["watch", str(run_dir)]) == 2
        assert 'pip install "risingsearch[cli]"' in capsys.readouterr().err


class Terminal:
    """A process that believes it is in a terminal, and all that it shows."""

    def __init__(self, *arguments):
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 90, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color"},
        )
        os.close(theirs)
        self.shown = ""

    def until(self, *words):
        """Read until one of the words is shown, or the process has ended."""
        while not any(word in self.shown for word in words):
            ready, _, _ = select.select([self._ours], [], [], 60)
            assert ready, f"nothing new is shown: {self.shown}"
            try:
                self.shown += os.read(self._ours, 65536).decode(errors="replace")
            except OSError:  # it has ended
                return

    def end(self):
        self.until("\0")
        os.close(self._ours)
        return self.process.wait()


class TestInATerminal:
    def test_it_follows_a_search_and_ends_with_it(self, tmp_path):
        run_dir = tmp_path / "a" / "run"
        terminal = Terminal("watch", str(run_dir))
        terminal.until("does not exist yet")
        seen = threading.Event()
        search = a_search(run_dir)

        def wait_until_seen(epoch):
            if not seen.is_set():
                terminal.until("running")
                seen.set()

        search.callbacks = [wait_until_seen]
        search.run()
        assert terminal.end() == 0
        assert "16 of 16 epochs" in terminal.shown
        assert "the budget of 16 epochs is spent" in terminal.shown

    def test_ctrl_c_leaves_without_an_error(self, tmp_path):
        terminal = Terminal("watch", str(tmp_path))
        terminal.until("no epoch is recorded yet")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 0
        assert "Traceback" not in terminal.shown
