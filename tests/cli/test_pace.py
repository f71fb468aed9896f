"""What is done again and again waits in proportion to what it took."""

from contextlib import suppress

import pytest

from risingsearch.cli import pace
from risingsearch.cli.pace import Pace


@pytest.fixture
def clock(monkeypatch):
    """Replace the clocks by one that is set by hand."""
    now = {"time": 0.0}
    monkeypatch.setattr(pace.time, "monotonic", lambda: now["time"])
    monkeypatch.setattr(pace.time, "process_time", lambda: now["time"])
    return now


def work(given, clock, seconds):
    with given.measured():
        clock["time"] += seconds


def test_the_first_time_is_due_at_once(clock):
    assert Pace(0.1).is_due


def test_it_takes_its_share_of_the_time_and_no_more(clock):
    given = Pace(0.1)
    work(given, clock, 2.0)
    clock["time"] = 21.9
    assert not given.is_due
    clock["time"] = 22.0
    assert given.is_due


def test_what_is_done_before_it_is_due_is_waited_for_too(clock):
    given = Pace(0.5)
    work(given, clock, 1.0)
    work(given, clock, 1.0)
    clock["time"] = 4.9
    assert not given.is_due
    clock["time"] = 5.0
    assert given.is_due


def test_what_fails_counts_as_well(clock):
    given = Pace(0.1)
    with suppress(KeyError), given.measured():
        clock["time"] += 1.0
        raise KeyError
    assert not given.is_due
