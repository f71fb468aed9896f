"""Lines come once, in order and whole, in little memory."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from risingsearch.errors import ScriptError
from risingsearch.scripts import lines
from risingsearch.scripts.lines import (
    MOST_KEYS,
    JsonLines,
    Line,
    Lines,
    PlainLines,
    ReportFile,
    reader_of,
)


def texts(found):
    return [line.text for line in found]


@given(st.lists(st.binary(max_size=40)), st.sampled_from([b"\n", b"\r\n", b"\r", b"a"]))
def test_lines_do_not_depend_on_how_they_are_cut(pieces, end):
    pieces = [piece + end for piece in pieces]
    split = Lines()
    found = [line for piece in pieces for line in split.add(piece)]
    found += split.end()
    whole = b"".join(pieces).decode(errors="replace")
    expected = whole.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert "".join(texts(found)) == "\n".join(expected)
    assert all(line == Line(line.text) for line in found)
    assert all(text.endswith("\n") for text in texts(found)[:-1])


def test_a_line_without_an_end_comes_in_pieces(monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 10)
    split = Lines()
    found = [line for _ in range(5) for line in split.add(b"123456")]
    found += split.add(b"7\nnext\n")
    assert found == [
        Line("123456123456", ends=False),
        Line("123456123456", begins=False, ends=False),
        Line("1234567\n", begins=False),
        Line("next\n"),
    ]


def test_a_file_may_only_get_longer(tmp_path):
    path = tmp_path / "told.jsonl"
    file = ReportFile(tmp_path, "told.jsonl")
    assert texts(file.new_lines()) == []
    path.write_text("one\ntwo\nthr")
    assert texts(file.new_lines()) == ["one\n", "two\n"]
    assert texts(file.new_lines()) == []
    assert texts(file.new_lines(all_of_it=True)) == ["thr"]
    path.write_text("1\n")
    with pytest.raises(ScriptError, match="the script has begun"):
        list(file.new_lines())


@pytest.mark.parametrize("kind", ["named pipe", "folder", "symbolic link"])
def test_something_else_in_the_place_of_the_file(tmp_path, kind):
    file = ReportFile(tmp_path, "told")
    path = tmp_path / "told"
    if kind == "named pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/etc/passwd")
    with pytest.raises(ScriptError, match=f"in told cannot be read .*it is a {kind}"):
        list(file.new_lines())


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
