"""The start of a script is what its epochs leave of its time."""

import math

import pytest

from risingsearch.scripts.pace import Pace


def startup(times):
    """Return the start of a script that begins at 0 and ends at the last time."""
    clock = iter([0.0, *times])
    pace = Pace(lambda: next(clock))
    for _ in times[:-1]:
        pace.reported()
    return pace.startup()


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ((31.0, 32.0, 33.0, 33.0), 30.0),
        ((31.0, 32.0, 33.0, 35.0), 32.0),  # it ends slowly too
        ((1.0, 2.0, 2.0), 0.0),
        ((1.0, 3.0, 3.0), 0.0),  # the first epoch was quicker
    ],
)
def test_two_reports_tell_start_and_epochs_apart(times, seconds):
    assert startup(times) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "times",
    [
        (31.0, 31.0),  # one epoch
        (9.0,),  # none
        (33.0, 33.001, 33.002, 33.1),  # printed at once, at the end
    ],
)
def test_less_does_not(times):
    assert math.isnan(startup(times))
