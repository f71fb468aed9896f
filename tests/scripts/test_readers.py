"""The lines of a script are read whole, or a sentence says what cannot be read."""

import math

import pytest

from risingsearch.errors import ScriptError, SetupError
from risingsearch.scripts.readers import MOST_KEYS, JsonLines, reader_of

TAUGHT = "val_loss: {number}"


def read(regex, lines):
    reader = reader_of({"regex": regex})
    return [reader.read(line) for line in lines.splitlines()][-1]


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


@pytest.mark.parametrize(
    "before",
    ["epoch 1: ", "50%|###  | 1/2 ", "{'lr': 0.1} ", '{"lr": 0.1} ', "\x1b[2K", "[1] "],
)
def test_text_before_the_json_of_a_report(before):
    record = {"epoch": 1, "loss": 0.5, "more": {"a": 1}}
    line = f'{before}{{"epoch": 1, "loss": 0.5, "more": {{"a": 1}}}}\n'
    assert reader_of("loss").read(line) == record


def test_json_in_colours():
    line = '\x1b[32m{"epoch": \x1b[1m1, "loss": 0.5}\x1b[0m\n'
    assert reader_of("loss").read(line) == {"epoch": 1, "loss": 0.5}


@pytest.mark.parametrize(
    "line",
    [
        'options: {"loss": "mse", "lr": 0.1}',
        'stored {"epoch": 1, "loss": 0.5} in a file',
        'epoch 1: {"result": {"epoch": 1, "loss": 0.5}',
    ],
)
def test_json_in_a_line_of_text_that_is_no_report(line):
    assert reader_of("loss").read(line) is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"epoch": 1, "loss": 1}{"epoch": 2, "loss": 2}', "two epochs in one line"),
        ('{"epoch": 1, "loss": 0.', "invalid JSON"),
        ('{"result": {"epoch": 1, "loss": 1}', "invalid JSON"),
        ('{"epoch": 1, "loss": 1} done', "invalid JSON"),
    ],
)
def test_json_that_is_no_whole_report(line, problem):
    with pytest.raises(ScriptError, match=problem):
        reader_of("loss").read(line)


WHOLE = [
    ("8.5e-05", 8.5e-05),
    ("-0.25", -0.25),
    ("nan", math.nan),
    ("-Infinity", -math.inf),
    ("  9.5", 9.5),  # aligned
    ("93.5%", 93.5),
    ("0.5, acc: 0.9", 0.5),
    ("0.5: 3 left - 12 ms/step", 0.5),
]


@pytest.mark.parametrize("number", ["{number}", "([0-9.]+)", "(?P<score>\\d)", "(.*)"])
@pytest.mark.parametrize(("text", "score"), WHOLE)
def test_a_number_is_read_whole(number, text, score):
    found = read(f"val_loss: {number}", f"epoch 3/10, 1.5e2 s, val_loss: {text}\n")
    assert found == {"epoch": 1, "score": pytest.approx(score, nan_ok=True)}


@pytest.mark.parametrize(
    "epoch", ["{epoch}", "(?P<epoch>[0-9])", "(?P<epoch>{number})"]
)
def test_the_epoch_of_a_line_is_read_whole(epoch):
    line = "epoch 12/20, time: 1.5e2, val_loss: 8.5e-05"
    found = read(f"epoch {epoch}/.* val_loss: (?P<score>[0-9.]+)", line)
    assert found == {"epoch": 12, "score": 8.5e-05}


@pytest.mark.parametrize(
    ("regex", "text"),
    [
        (r"([0-9.]+)$", "8.5e-05"),
        (r"(\d+)%", "93.5%"),
        (r".*([0-9.]+)", "0.25"),
        (TAUGHT, "1,234.5"),
        (TAUGHT, "0,95"),
        (TAUGHT, "\u22120.5"),
        *((TAUGHT, f"12{more}") for more in ("ms", "_", "x10", "/20", " 345", ":30")),
        ("{number}.*", "1.2k"),
        (TAUGHT, "85 %\nval_loss: 0.9"),
        ("(?P<epoch>[0-9]).*: {number}", "epoch 1,000: 0.5"),
        ("loss: {number}", "0.5, loss: 0.6"),
        ("([0-9.]+)", "epoch 1 of 2"),
        ("epoch.*val_acc: {number}", "epoch 1 val_acc: 0.1 best val_acc: 0.99"),
        ("epoch {epoch}.*acc: {number}", "epoch 1 train acc: 0.9 val acc: 0.8"),
        ("^.*: ({number})", "epoch: 1 acc: 0.8"),
        (".*epoch {epoch} .* acc: {number}", "epoch 1 of epoch 9 with acc: 0.8"),
    ],
)
def test_a_part_of_a_number_or_one_of_several_is_refused(regex, text):
    line = text if text.startswith("epoch") else f"val_loss: {text}\n"
    with pytest.raises(SetupError, match=r"the metric's pattern finds") as said:
        read(regex, line)
    assert repr(line.splitlines()[-1]) in str(said.value)


@pytest.mark.parametrize("text", ["loss: ...", "loss: "])
def test_what_a_pattern_finds_is_a_number(text):
    with pytest.raises(ScriptError, match="which is no number, in 'loss:"):
        read("loss: (.*)", text)


@pytest.mark.parametrize(
    ("regex", "line", "found"),
    [
        (r"(?P<score>[\d.]+) at (?P<epoch>\d+)", "0.5 at 7", (7, 0.5)),
        (r"^{epoch},{number},", "3,0.5,0.9", (3, 0.5)),
        (r"\bloss: {number}", "loss: 0.5 - val_loss: 0.6", (1, 0.5)),
        (r"loss: {number}ms", "loss: 12ms", (1, 12.0)),
        (r"best: {number}", "loading 3 files, best-of-2", None),
        (r"[(a\)] loss ([0-9.]+)", ") loss 1e-9", (1, 1e-9)),
        (TAUGHT, "val_loss: none yet", None),
        ("epoch.*?acc: {number}", "epoch 1 acc: 0.1 best acc: 0.9", (1, 0.1)),
        (r"epoch {epoch}.* acc: {number}", "epoch 3, val_acc: 0.1 acc: 0.9", (3, 0.9)),
        (r"epoch.*acc: {number}(?!.*acc)", "epoch 1 acc: 0.1 acc: 0.9", (1, 0.9)),
        (r"epoch.*best acc: *{number}", "epoch 1 acc: 0.1 best acc: -.9", (1, -0.9)),
        (r"{epoch}/9 \| acc: {number}", "2/9 | acc: 0.5", (2, 0.5)),
        (r"acc: {number}", "\x1b[32macc\x1b[0m: \x1b[1;31m0.5\x1b[0m", (1, 0.5)),
    ],
)
def test_where_a_number_stands_is_for_the_pattern_to_say(regex, line, found):
    names = ("epoch", "score")
    expected = None if found is None else dict(zip(names, found, strict=True))
    assert read(regex, line) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("1.5 h", "2 GiB", "900 samples/s", "3 million", "40 percent", "7 out of 9"),
        *("7 \u00f7 9", "2.5 x 10^-2", "2.5 \u00b7 10\u2075", "2.5 e-05", "10\u2074"),
        *("\u0660\u066b\u0669", "\uff10\uff0e\uff15", "\u20130.5", "0\u00b75"),
    ],
)
def test_a_number_whose_meaning_may_change_with_the_line_is_refused(text):
    with pytest.raises(SetupError, match="have the script print numbers such as"):
        read(TAUGHT, f"val_loss: {text}\n")


@pytest.mark.parametrize(
    ("text", "score"),
    [
        *(("-1.#IND", math.nan), ("1.#QO", math.nan), ("nan(ind)", math.nan)),
        *(("\u0664\u0662", 42.0), ("\uff10.\uff15", 0.5), ("0.5 \u00b1 0.1", 0.5)),
        *(("0.5 s: 3", 0.5), ("0.5 after 12 ms", 0.5), ("0.5 (3 min)", 0.5)),
        *(("0.5 min 0.3 max 0.9", 0.5), ("0.5 s/it 3.2", 0.5), ("0.5 g = -1", 0.5)),
        *(("0.5/0.4", 0.5), ("0.5 / 0.4 (test)", 0.5)),
    ],
)
@pytest.mark.parametrize("number", ["{number}", "([0-9.]+)"])
def test_unusual_numbers_are_read_right(number, text, score):
    found = read(f"val_loss: {number}", f"val_loss: {text}\n")
    assert found["score"] == pytest.approx(score, nan_ok=True)


def test_a_pattern_that_names_the_unit_reads_it():
    assert read("took {number} ms", "took 300 ms")["score"] == 300.0


@pytest.mark.parametrize(
    ("usual", "later"),
    [("300 ms 0.3", "1.2 s 0.3"), ("93.5%", "0.9"), ("93.5 %", "9 min 1")],
)
def test_what_may_be_a_unit_is_the_same_behind_all_numbers(usual, later):
    reader = reader_of({"regex": "test {number}"})
    for _ in range(2):
        assert reader.read(f"test {usual}")["score"] in (300.0, 93.5)
    with pytest.raises(SetupError, match=r"followed by .* or "):
        reader.read(f"test {later}")


def test_a_word_before_another_number_may_be_left_out():
    reader = reader_of({"regex": "acc {number}"})
    scores = [reader.read(f"acc 0.5{more}")["score"] for more in ("", " min 0.3", "")]
    assert scores == [0.5, 0.5, 0.5]
