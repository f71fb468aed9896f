import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.simulation.calls import read_calls, read_parameters


def test_names_may_have_parameters_and_come_again_with_others():
    calls = read_calls(" auto , asha(), cure-ucb(sigma=0.1), cure-ucb(eps=0.5)")
    assert calls == {
        "auto": ("auto", {}),
        "asha()": ("asha", {}),
        "cure-ucb(sigma=0.1)": ("cure-ucb", {"sigma": 0.1}),
        "cure-ucb(eps=0.5)": ("cure-ucb", {"eps": 0.5}),
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("1e-3", 0.001),
        ("true", True),
        ("null", None),
        ("bernoulli", "bernoulli"),
        ("n+1", "n+1"),
        ("'two words'", "two words"),
        ("[0, 1]", [0, 1]),
        ("(-1.5, 2)", (-1.5, 2)),
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
        ("auto asha", "must be NAME or NAME"),
        ("(eta=3)", "must be NAME or NAME"),
        ("asha(eta=3", "bracket must be closed"),
        ("asha(3)", "must be parameter=value; got '3'"),
        ("asha(eta=)", "must be parameter=value"),
        ("asha(eta=3, eta=4)", "eta twice"),
        ("asha(eta=__import__('os').getcwd())", "a value must be"),
        ("auto, auto", "got 'auto' twice"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(InvalidParameterError, match=message):
        read_calls(text)
