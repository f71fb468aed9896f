"""Lines come once, in order and whole, in little memory."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from risingsearch.errors import ScriptError
from risingsearch.scripts.output import (
    MOST_KEYS,
    JsonLines,
    Lines,
    PlainLines,
    ReportFile,
    reader_of,
)


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


def test_the_keys_of_lines_without_the_metric():
    reader = reader_of("accuracy")
    assert isinstance(reader, JsonLines)
    assert reader.missed == "no line of JSON with an epoch and 'accuracy'"
    assert reader.read("accuracy is fine") is None
    assert reader.read('{"epoch": 1, "acc": 0.5}') is None
    assert reader.read('{"acc": 0.5, "loss": 2}') is None
    assert reader.missed.endswith("the keys seen were epoch, acc, loss")
    for i in range(MOST_KEYS):
        reader.read(f'{{"key{i}": 1}}')
    assert reader.missed.count(",") == MOST_KEYS - 1


def test_a_pattern_that_names_the_epoch():
    reader = reader_of({"regex": r"(?P<score>[\d.]+) at (?P<epoch>\d+)"})
    assert isinstance(reader, PlainLines)
    assert reader.read("0.5 at 7") == {"epoch": 7, "score": 0.5}
    assert reader.read("1e3 at 8") == {"epoch": 8, "score": 3.0}


@pytest.mark.parametrize("text", ["loss: ...", "loss: "])
def test_what_a_pattern_finds_is_a_number(text):
    reader = PlainLines(re.compile("loss: (.*)"))
    with pytest.raises(ScriptError, match="which is no number, in 'loss:"):
        reader.read(text)
    assert reader.read("loss: nan")["score"] != 0
