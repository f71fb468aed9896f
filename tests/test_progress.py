"""One line on a terminal that says how far the search is, and nothing elsewhere."""

import io
import os
import time
from types import SimpleNamespace

import pytest

from risingsearch import progress
from risingsearch.arms import Budget
from risingsearch.progress import Progress
from risingsearch.scheduler import Scheduler
from risingsearch.search import RisingSearch
from risingsearch.trainable import Functions


class Terminal(io.StringIO):
    columns = 120

    def isatty(self):
        return True

    def fileno(self):
        return 2

    def lines(self):
        """Return what the line has shown, one after the other."""
        return [line.rstrip() for line in self.getvalue().split("\r")[1:]]


@pytest.fixture
def terminal(monkeypatch):
    terminal = Terminal()
    # Not sys.stderr itself: between fixture and test, pytest puts its own there.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))
    monkeypatch.setattr(
        os, "get_terminal_size", lambda fd: os.terminal_size((terminal.columns, 24))
    )
    return terminal


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only where a test says so."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def train(state):
    if state["top"] < 0:
        raise ValueError("negative")
    state["epochs"] += 1
    return state["top"] * (1 - 1 / (state["epochs"] + 1))


def a_search(tops=(0.6, 0.9, 0.8), **options):
    trainable = Functions(lambda params, seed: {**params, "epochs": 0}, train)
    options = {
        "policy": "round-robin",
        "budget": 12,
        "max_epochs": 4,
        "seed": 0,
        "shuffle": False,
        "progress": True,
        **options,
    }
    return RisingSearch(trainable, [{"top": top} for top in tops], **options)


def a_scheduler(n_arms=3, **options):
    return Scheduler("round-robin", n_arms, **{"budget": 12, **options})


def test_nothing_is_printed_where_nobody_looks(capfd):
    a_search().run()
    assert capfd.readouterr() == ("", "")


def test_nothing_is_printed_unless_asked_for(terminal):
    a_search(progress=False).run()
    assert terminal.getvalue() == ""


def test_a_process_may_have_no_standard_error(monkeypatch):
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=None))
    assert a_search().run().n_epochs == 12


def test_the_line_says_all_that_matters(terminal, clock):
    seen = []

    def minute(search, report):
        clock[0] += 60
        seen.append(search.scheduler.n_epochs)

    a_search((0.6, 0.9, -0.8, 0.8), callbacks=[minute]).run()
    assert terminal.lines() == [
        "0/12 epochs, ? left, 1 running 0 paused 0 finished",
        "1/12 epochs, 11:00 left, best 0.3 (arm 0), 1 running 1 paused 0 finished",
        "2/12 epochs, 10:00 left, best 0.45 (arm 1), 1 running 2 paused 0 finished",
        *[
            f"{n}/12 epochs, {12 - n}:00 left, best {best} (arm 1), "
            f"1 running {paused} paused {finished} finished 1 failed"
            for n, best, paused, finished in [
                (3, 0.45, 2, 0),
                (4, 0.45, 2, 0),
                (5, 0.45, 2, 0),
                (6, 0.6, 2, 0),
                (7, 0.6, 2, 0),
                (8, 0.6, 2, 0),
                (9, 0.675, 2, 0),
                (10, 0.675, 2, 0),
                (11, 0.675, 1, 1),
            ]
        ],
        *[
            f"12/12 epochs, {time}, best 0.72 (arm 1), "
            "0 running 1 paused 2 finished 1 failed"
            for time in ("0:00 left", "in 12:00")
        ],
    ]
    assert seen == list(range(1, 13))


def test_a_second_run_counts_its_own_time(terminal, clock):
    def hour(search, report):
        clock[0] += 3600

    search = a_search(callbacks=[hour], budget=10)
    search.run()
    search.extend(2)
    terminal.truncate(0)
    search.run()
    lines = [line.split(",")[:2] for line in terminal.lines()]
    assert lines == [
        ["10/12 epochs", " ? left"],
        ["11/12 epochs", " 1:00:00 left"],
        ["12/12 epochs", " 0:00 left"],
        ["12/12 epochs", " in 2:00:00"],
    ]


def test_budgets_in_seconds(terminal, clock):
    scheduler = a_scheduler(budget=Budget(seconds=3600.5), max_epochs=9)
    with Progress(scheduler, enabled=True) as line:
        clock[0] += 30
        scheduler.tell(scheduler.ask(), 0.123456789, cost=60.04)
        line.show()
    assert terminal.lines()[0] == (
        "60/3600.5 seconds, 29:29 left, best 0.1235 (arm 0), "
        "0 running 1 paused 0 finished"
    )


def test_an_overrun_leaves_no_time(terminal, clock):
    scheduler = a_scheduler(budget=Budget(seconds=2), max_epochs=9)
    with Progress(scheduler, enabled=True) as line:
        clock[0] += 30
        scheduler.tell(scheduler.ask(), 0.5, cost=3.0)
        line.show()
    assert terminal.lines()[0].startswith("3/2 seconds, 0:00 left")


@pytest.mark.parametrize("columns", [10, 40, 60, 80, 120])
def test_it_never_wraps(terminal, columns):
    terminal.columns = columns
    a_search((0.6, 0.9, -0.8, 0.8)).run()
    whole = [line for line in terminal.getvalue().split("\r") if line]
    assert {len(line.rstrip("\n")) for line in whole} == {columns - 1}


def test_what_has_no_room_is_left_out_whole(terminal, clock):
    terminal.columns = 60
    a_search().run()
    assert terminal.lines()[-1] == (
        "12/12 epochs, in 0:00, best 0.72 (arm 1), 0 running"
    )


def test_eighty_columns_hold_an_ordinary_search(terminal, clock):
    terminal.columns = 80
    scheduler = a_scheduler(n_arms=100, budget=500, max_epochs=9)
    for _ in range(450):
        scheduler.tell(scheduler.ask(), 0.98765)
    scheduler.ask()
    with Progress(scheduler, enabled=True) as line:
        line.show()
    assert terminal.lines()[0].endswith("1 running 99 paused 0 finished")


def test_a_terminal_of_unknown_width_has_80_columns(terminal, monkeypatch):
    def unknown(fd):
        raise OSError

    for width in (unknown, lambda fd: os.terminal_size((0, 0))):
        monkeypatch.setattr(os, "get_terminal_size", width)
        terminal.truncate(0)
        a_search().run()
        assert len(terminal.getvalue().split("\r")[-1]) == 79 + len("\n")


def test_it_looks_at_the_arms_ten_times_a_second_at_most(terminal, clock):
    scheduler = a_scheduler(n_arms=100, budget=100)
    with Progress(scheduler, enabled=True) as line:
        for _ in range(100):
            line.show()
            clock[0] += 0.01
            scheduler.tell(scheduler.ask(), 0.5)
    assert 5 <= len(terminal.lines()) <= 12


def test_and_less_often_where_a_look_takes_long(terminal, clock, monkeypatch):
    scheduler = a_scheduler(n_arms=100, budget=100)
    statuses = scheduler.statuses

    def slow():
        clock[0] += 1.0
        return statuses()

    monkeypatch.setattr(scheduler, "statuses", slow)
    with Progress(scheduler, enabled=True) as line:
        for _ in range(100):
            line.show()
            clock[0] += 1.0
    assert len(terminal.lines()) == 3


def test_the_line_ends_when_the_search_breaks_off(terminal):
    def trip(search, report):
        raise LookupError

    with pytest.raises(LookupError):
        a_search(callbacks=[trip]).run()
    assert terminal.getvalue().endswith("\n")
    assert terminal.lines()[-1].startswith("1/12 epochs, in 0:00, best 0.3 (arm 0)")
