"""A line becomes a report where it has the metric; else the keys are recalled."""

import re

import pytest

from risingsearch.errors import ScriptError
from risingsearch.scripts.lines import Line
from risingsearch.scripts.readers import MOST_KEYS, JsonLines, PlainLines, reader_of


def test_the_keys_of_lines_without_the_metric():
    reader = reader_of("accuracy")
    assert isinstance(reader, JsonLines)
    assert reader.missed == "no line of JSON with an epoch and 'accuracy'"
    assert reader.read(Line("accuracy is fine")) is None
    assert reader.read(Line('{"epoch": 1, "acc": 0.5}')) is None
    assert reader.read(Line('{"acc": 0.5, "loss": 2}')) is None
    assert reader.missed.endswith("the keys seen were epoch, acc, loss")
    for i in range(MOST_KEYS):
        reader.read(Line(f'{{"key{i}": 1}}'))
    assert reader.missed.count(",") == MOST_KEYS - 1


def test_a_pattern_that_names_the_epoch():
    reader = reader_of(re.compile(r"(?P<score>[\d.]+) at (?P<epoch>\d+)"))
    assert isinstance(reader, PlainLines)
    assert reader.read(Line("0.5 at 7")) == {"epoch": 7, "score": 0.5}
    assert reader.read(Line("1e3 at 8")) == {"epoch": 8, "score": 3.0}


def test_of_a_long_line_the_end_is_searched():
    reader = PlainLines(re.compile(r"\w+ acc: ([0-9.]+)"))
    assert reader.read(Line("x" * 2**20)) is None
    assert reader.read(Line("x" * 2**20 + " acc: 0.5"))["score"] == 0.5


@pytest.mark.parametrize("text", ["loss: ...", "loss: "])
def test_what_a_pattern_finds_is_a_number(text):
    reader = PlainLines(re.compile("loss: (.*)"))
    with pytest.raises(ScriptError, match="which is no number, in 'loss:"):
        reader.read(Line(text))
    assert reader.read(Line("loss: nan"))["score"] != 0
