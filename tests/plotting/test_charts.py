"""Lines end up where their values say, inside the chart, as text that is escaped."""

import re
import xml.etree.ElementTree as ET

import pytest

from risingsearch.plotting.charts import (
    HEIGHT,
    WIDTH,
    Line,
    legend,
    line_chart,
    steps,
    thinned,
    ticks,
)


def paths(chart):
    """Return the points of every coloured line."""
    root = ET.fromstring(chart)
    return [
        [tuple(map(float, point.split())) for point in path.get("d")[1:].split("L")]
        for path in root.iter("path")
        if path.get("class", "").startswith("rs-lead")
    ]


def test_higher_values_are_higher_up_and_later_ones_further_right():
    line = Line([(1, 0.2), (2, 0.9), (4, 0.5)], number=0)
    ((low, high, last),) = paths(line_chart([line], x="epochs", y="score"))
    assert low[0] < high[0] < last[0] <= WIDTH
    assert 0 <= high[1] < last[1] < low[1] <= HEIGHT


def test_what_is_outside_of_the_limits_is_drawn_at_the_edge():
    line = Line([(0, -900.0), (1, 0.5)], number=0)
    chart = line_chart([line], x="epochs", y="score", limits=(0.4, 0.5))
    assert all(0 <= y <= HEIGHT for _, y in paths(chart)[0])


@pytest.mark.parametrize(
    "points", [[(0, 0.0)], [(3, 0.5)], [(1, -2.0), (2, -2.0)], [(1, 1e-9), (2, 1e12)]]
)
def test_any_finite_values_can_be_drawn(points):
    root = ET.fromstring(line_chart([Line(points, number=0)], x="x", y="y"))
    assert "nan" not in ET.tostring(root, encoding="unicode")
    assert len(list(root.iter("circle"))) == (len(points) == 1)


def test_names_are_escaped_and_cut():
    hostile = '</svg><script>"&'
    chart = line_chart([Line([(1, 2.0)], hostile, 0)], x=hostile, y=hostile)
    root = ET.fromstring(chart)
    assert root.get("aria-label") == f"{hostile}, over {hostile}"
    assert {element.tag for element in root.iter()} == {"svg", "path", "text", "circle"}
    names = legend([Line([], hostile, 0), Line([], "x" * 99, 1), Line([])])
    first, second = re.findall("<li>.*?</li>", names)
    assert "<script" not in first
    assert "x" * 40 in second
    assert "x" * 60 not in second


def test_six_lines_can_be_told_apart():
    lines = [Line([(1, 1.0), (2, 2.0)], f"run {k}", k) for k in range(6)]
    looks = re.findall(r'<path d="M0 5H24" (.*?)/>', legend(lines))
    assert len(set(looks)) == 6


def test_no_names_no_legend():
    assert legend([Line([(1, 1.0)], number=0)]) == ""


def test_ticks_are_round_and_inside():
    for low, high in [(0.0, 1.0), (-3.0, 7.0), (1e-9, 3e-9), (0.0, 12345.0)]:
        values = ticks(low, high, 5)
        assert 2 <= len(values) <= 7
        assert all(low <= value <= high for value in values)


def test_steps_and_thinning_keep_both_ends():
    points = [(k, float(k % 3)) for k in range(50)]
    for changed in (steps(points), thinned(points, 7)):
        assert changed[0] == points[0]
        assert changed[-1] == points[-1]
    assert len(thinned(points, 7)) == 7
    assert steps([]) == []
