"""A live line on a terminal, a bar in a notebook, and lines in a log."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import termios
import threading
from types import SimpleNamespace

import pytest
from example_search import start
from tqdm import notebook

from risingsearch import Budget, RisingSearch
from risingsearch.search import training
from risingsearch.search.progress import ProgressLine
from risingsearch.search.trainable import Functions


class Terminal:
    """A terminal of some width, which standard error is sent to."""

    def __init__(self, columns):
        self.columns = columns
        self.text = ""

    def watch(self, search):
        ours, theirs = pty.openpty()
        size = struct.pack("HHHH", 40, self.columns, 0, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        reader = threading.Thread(target=self._read, args=[ours])
        reader.start()
        try:
            with os.fdopen(theirs, "w") as file, contextlib.redirect_stderr(file):
                return search.run()
        finally:
            reader.join()
            os.close(ours)

    def _read(self, fd):
        with contextlib.suppress(OSError):  # what Linux says when the other end closes
            while chunk := os.read(fd, 4096):
                self.text += chunk.decode()

    def lines(self):
        lines = re.split(r"[\r\n]+", self.text)
        return [line.rstrip() for line in lines if line.strip()]


@pytest.fixture(autouse=True)
def still(monkeypatch):
    """Let no time pass in training, so that there is no advice on slow starts."""
    monkeypatch.setattr(training.time, "perf_counter", lambda: 0.0)


@pytest.fixture
def terminal():
    return Terminal(columns=120)


def train(state):
    state["epochs"] += 1
    if state["top"] < 0:
        raise RuntimeError("broken")
    return state["top"] * (1 - 1 / (state["epochs"] + 1))


def a_search(tops=(0.6, 0.9, 0.8), budget=12, **options):
    return RisingSearch(
        Functions(start, train),
        [{"top": top} for top in tops],
        budget=budget,
        max_epochs=6,
        seed=0,
        shuffle=False,
        progress=True,
        **options,
    )


def test_a_log_file_gets_a_line_every_tenth_of_the_budget(capfd):
    a_search(tops=[0.5] * 10, budget=50, policy="round-robin").run()
    lines = capfd.readouterr().err.splitlines()
    assert [line.split("/")[0] for line in lines] == [str(5 * k) for k in range(1, 11)]
    assert re.match(r"50/50 epochs \[00:00<00:00\], best 0\.\d+ \(arm \d\)", lines[-1])


def test_and_one_at_its_end(capfd):
    def stop(epoch):
        if epoch.number == 7:
            epoch.stop()

    options = {"policy": "round-robin", "callbacks": [stop]}
    a_search(tops=[0.5] * 10, budget=50, **options).run()
    lines = capfd.readouterr().err.splitlines()
    assert [line.split("/")[0] for line in lines] == ["5", "7"]


def test_a_budget_in_seconds_that_is_overrun_is_shown_as_spent(
    terminal, capfd, monkeypatch
):
    monkeypatch.setattr(training.time, "perf_counter", iter(range(0, 1000, 3)).__next__)
    a_search(budget=Budget(seconds=2)).run()
    terminal.watch(a_search(budget=Budget(seconds=2)))
    for line in (capfd.readouterr().err, terminal.lines()[-1]):
        assert re.match(r"2/2 seconds \[\d+:\d+<00:00\], best 0\.\d+ \(arm 0\)", line)


class Widget(SimpleNamespace):
    """What tqdm asks of the widgets of a notebook."""

    value = bar_style = ""

    @classmethod
    def of_a_bar(cls, fp=None, total=None, desc=None, ncols=None):
        parts = [cls(), cls(total=total, style=cls()), cls()]
        return cls(children=parts, layout=cls(), close=lambda: None)


@pytest.fixture
def shown(monkeypatch):
    """Return what is shown in a notebook."""

    class Bar(notebook.tqdm_notebook):
        status_printer = Widget.of_a_bar

    shown = []
    monkeypatch.setattr(notebook, "display", shown.append, raising=False)
    monkeypatch.setattr("tqdm.auto.tqdm", Bar)
    return shown


def test_a_notebook_gets_a_bar(shown, capfd):
    result = a_search().run()
    [container] = shown
    _, bar, text = container.children
    assert (bar.value, bar.total, bar.bar_style) == (12, 12, "success")
    said = text.value.replace("\u2007", " ")
    assert said.startswith("12/12 epochs [00:00&lt;00:00], ")
    assert f"best {result.best_score:.4g} (arm 1)" in said
    assert capfd.readouterr() == ("", "")


def test_only_a_failure_is_shown_as_one(shown):
    def stop(epoch):
        epoch.stop()

    def fail(epoch):
        raise ArithmeticError

    a_search(callbacks=[stop]).run()
    with pytest.raises(ArithmeticError):
        a_search(callbacks=[fail]).run()
    styles = [container.children[1].bar_style for container in shown]
    assert styles == ["success", "danger"]


def test_a_terminal_that_does_not_say_how_large_it_is(terminal):
    terminal.columns = 0
    terminal.watch(a_search())
    assert "12/12 epochs" in terminal.lines()[-1]
    assert max(map(len, terminal.lines())) <= 80


def test_nothing_is_printed_unless_asked_for(terminal):
    terminal.watch(RisingSearch(Functions(start, train), [{"top": 0.5}], budget=3))
    assert terminal.text == ""


def test_the_line_says_all_that_matters(terminal):
    result = terminal.watch(a_search())
    last = terminal.lines()[-1]
    assert re.match(r"12/12 epochs \[00:00<00:00\], ", last)
    assert f"best {result.best_score:.4g} (arm 1)" in last
    assert last.endswith("0 running, 2 paused, 1 finished")


def test_the_line_counts_the_arms_that_have_failed(terminal):
    terminal.watch(a_search(tops=[0.6, -1.0, 0.8]))
    assert terminal.lines()[-1].endswith("finished, 1 failed")


def test_the_line_ends_when_the_search_breaks_off(terminal):
    def interrupt(epoch):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        terminal.watch(a_search(callbacks=[interrupt]))
    assert terminal.text.endswith("\n")
    assert terminal.lines()[-1].startswith("1/12 epochs")


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_it_never_wraps(columns):
    terminal = Terminal(columns)
    terminal.watch(a_search(tops=[0.5] * 30, budget=120))
    assert 25 < max(len(line) for line in terminal.lines()) < columns


class Waiting(SimpleNamespace):
    """A scheduler of many arms, in the words of the line."""

    max_epochs, budget, spent, unit = 100, 90_000, 45_678, "epochs"
    best_score, best_arm = 0.50512, 1334
    stop_rule = None

    def statuses(self):
        counts = {"running": 12, "paused": 1345, "finished": 100, "failed": 23}
        return [status for status, n in counts.items() for _ in range(n)]


@pytest.mark.parametrize("columns", [75, 90, 110, 160])
def test_the_numbers_of_arms_are_never_cut(columns, monkeypatch):
    terminal = Terminal(columns)
    note = "the jobs wait for a partition that is down"
    line = ProgressLine(Waiting(), lambda: note)

    def run():
        with line:
            line.show()

    terminal.watch(SimpleNamespace(run=run))
    last = terminal.lines()[-1]
    assert "12 running, 1345 paused, 100 finished, 23 failed" in last
    assert len(last) < columns
    assert ("best 0.5051" in last) == (columns > 75)
    assert ("(arm 1334)" in last) == (columns > 90)
    assert (note in last) == (columns > 110)
