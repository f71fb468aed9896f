"""A command of W&B passes the same arguments here."""

import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.trainable import fields_of, filled
from risingsearch.scripts.wandb_command import Argument, translated

CHOICE = {"type": "choice", "values": ["a", "b"]}
FLAG = {"type": "choice", "values": [True, False]}
ARGUMENTS = [Argument("lr", "lr"), Argument("seed", "seed_", CHOICE)]
VALUES = {"lr": 0.5, "seed_": "a", "params": '{"lr": 0.5}'}


@pytest.mark.parametrize(
    ("macro", "words"),
    [
        ("args", ["--lr=0.5", "--seed=a"]),
        ("args_no_boolean_flags", ["--lr=0.5", "--seed=a"]),
        ("args_no_equals", ["--lr", "0.5", "--seed", "a"]),
        ("args_no_hyphens", ["lr=0.5", "seed=a"]),
        ("args_append_hydra", ["+lr=0.5", "+seed=a"]),
        ("args_override_hydra", ["++lr=0.5", "++seed=a"]),
        ("args_json", ['{"lr": 0.5}']),
        ("env", ["/usr/bin/env"]),
        ("interpreter", ["python"]),
        ("program", ["{train}.py"]),
    ],
)
def test_macros(macro, words):
    command, flags = translated(["x", f"${{{macro}}}", 3], "{train}.py", ARGUMENTS)
    assert [filled(word, VALUES) for word in command] == ["x", *words, "3"]
    assert flags == {}


def test_without_a_command():
    command, _ = translated(None, "train.py", ARGUMENTS[:1])
    assert command == ["/usr/bin/env", "python", "train.py", "--lr={lr}"]


def test_words_stay_as_they_are():
    words = ["{a}", "b${c", "$d", "--x={y}"]
    command, _ = translated(words, None, ARGUMENTS)
    assert [filled(word, VALUES) for word in command] == words


def test_a_flag_is_there_where_it_is_set():
    arguments = [*ARGUMENTS, Argument("net.amp", "net.amp", FLAG)]
    command, flags = translated(["${args_no_boolean_flags}"], None, arguments)
    assert command == ["--lr={lr}", "--seed={seed_}", "{net.amp_flag}"]
    assert fields_of(command[-1]) == list(flags)
    assert flags["net.amp_flag"] == {
        "type": "fixed",
        "value": "--net.amp",
        "when": {"net.amp": True},
    }


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("train", "command must be a list, and not empty; got 'train'"),
        ([], "command must be a list, and not empty; got []"),
        (
            ["${args_json_file}"],
            "${args_json_file} has no equal here: pass ${args_json}",
        ),
        (["x", "--data=${envvar:DATA}"], "has no equal here: the script inherits its"),
        (["${arguments}"], "command: ${arguments} has no equal here: W&B has ${env}"),
        (["${program}"], "program must be the path of a script; got None"),
    ],
)
def test_what_is_refused(command, message):
    with pytest.raises(InvalidParameterError) as raised:
        translated(command, None, ARGUMENTS)
    assert message in str(raised.value)


def test_a_flag_among_other_values_is_refused():
    mixed = Argument("a", "a", {"type": "choice", "values": [True, "x"]})
    with pytest.raises(InvalidParameterError, match="give it values of one kind"):
        translated(["${args_no_boolean_flags}"], None, [mixed])
