import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.simulation.calls import read_calls, read_parameters


def test_names_alone():
    assert read_calls("auto,asha") == {"auto": ("auto", {}), "asha": ("asha", {})}
    assert read_calls(" auto , asha() ") == {
        "auto": ("auto", {}),
        "asha()": ("asha", {}),
    }


def test_a_name_may_come_again_with_other_parameters():
    calls = read_calls("cure-ucb(sigma=0.1), cure-ucb(sigma=1, eps=0.5)")
    assert list(calls.values()) == [
        ("cure-ucb", {"sigma": 0.1}),
        ("cure-ucb", {"sigma": 1, "eps": 0.5}),
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("10_000", 10_000),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("null", None),
        ("None", None),
        ("bernoulli", "bernoulli"),
        ("n+1", "n+1"),
        ("'two words'", "two words"),
        ("'3'", "3"),
        ("[0, 1]", [0, 1]),
        ("(-1.5, 2)", (-1.5, 2)),
        ("runs/curves.npz", "runs/curves.npz"),
        ("../a-b.csv", "../a-b.csv"),
    ],
)
def test_values(text, value):
    [(_, parameters)] = read_calls(f"policy(one={text}, two = 2)").values()
    assert parameters == {"one": value, "two": 2}
    assert type(parameters["one"]) is type(value)
    assert read_parameters([f" one={text} "]) == {"one": value}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing empty"),
        ("auto,,asha", "nothing empty"),
        ("auto asha", "must be NAME or NAME"),
        ("(eta=3)", "must be NAME or NAME"),
        ("asha(eta=3)x", "must be NAME or NAME"),
        ("asha)eta=3(", "must be NAME or NAME"),
        ("asha(eta=3", "bracket must be closed"),
        ("asha(3)", "must be parameter=value; got '3'"),
        ("asha(eta=)", "must be parameter=value"),
        ("asha(eta=3, eta=4)", "eta twice"),
        ("asha(eta=3, )", "nothing empty"),
        ("asha(eta=__import__('os').getcwd())", "a value must be"),
        ("asha(eta=1+1)", "a value must be"),
        ("asha(eta={1: 2})", "a value must be"),
        ("auto, auto", "got 'auto' twice"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(InvalidParameterError, match=message):
        read_calls(text)
