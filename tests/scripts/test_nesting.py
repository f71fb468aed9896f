"""Parameters in groups have flat names in the search, and groups in the script."""

import json
import sys

import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.nesting import flattened, nested
from risingsearch.scripts.sweep import checked_sweep
from risingsearch.scripts.trainable import CommandTrainable

LR = {"type": "log-uniform", "low": 1e-4, "high": 1.0}
KIND = {"type": "choice", "values": ["sgd", "adam"]}
NESTED = {
    "optimizer": {"parameters": {"kind": KIND, "lr": LR}},
    "sgd": {
        "when": {"optimizer.kind": "sgd"},
        "parameters": {
            "deep": {"parameters": {"momentum": {"type": "fixed", "value": 0.9}}}
        },
    },
}


def sweep_of(parameters, command=("x",)):
    given = {"command": list(command), "budget": 20, "max_epochs": 3}
    return checked_sweep(given | {"parameters": parameters}, "a.yaml")


def test_names_have_a_dot_for_each_group():
    sweep = sweep_of(NESTED, ["{optimizer.lr}", "{sgd.deep.momentum}"])
    assert list(sweep.parameters) == ["optimizer.kind", "optimizer.lr",
                                      "sgd.deep.momentum"]  # fmt: skip
    for one in sweep.draw():
        assert ("sgd.deep.momentum" in one) == (one["optimizer.kind"] == "sgd")


def test_flat_names_say_the_same():
    flat = flattened(NESTED)
    assert sweep_of(flat).parameters == sweep_of(NESTED).parameters
    assert sweep_of(flat).draw() == sweep_of(NESTED).draw()


def test_a_configuration_gets_its_groups_back():
    drawn = sweep_of(NESTED).draw()[0]
    tree = nested(drawn)
    assert tree["optimizer"] == {
        "kind": drawn["optimizer.kind"],
        "lr": drawn["optimizer.lr"],
    }


def test_a_script_gets_groups_as_json_and_dotted_names_as_arguments(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import json, os, sys\n"
        "told = [json.loads(os.environ['RISINGSEARCH_PARAMS']), *sys.argv[1:]]\n"
        "print(json.dumps({'epoch': 1, 'score': 1, 'told': told}))\n"
    )
    command = [sys.executable, str(script)]
    command += ["{params}", "--lr={optimizer.lr}", "{{{sgd.momentum}}}", "{not-here}"]
    own = CommandTrainable(command, tmp_path / "arms")
    own.arms[1] = 0
    [told] = own.train_epochs(own.start({"optimizer.lr": 0.5, "sgd.momentum": 1}, 1), 1)
    params = {"optimizer": {"lr": 0.5}, "sgd": {"momentum": 1}}
    assert told["told"] == [params, json.dumps(params), "--lr=0.5", "{1}"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"a": {"parameters": {}}}, "a.parameters must be a mapping, and not empty"),
        ({"a": {"parameters": [1]}}, "a.parameters must be a mapping, and not empty"),
        (
            {"a.b": LR, "a": {"parameters": {"b": LR}}},
            "a.b stands twice: in a group, and with a dot in its name",
        ),
        (
            {"a": LR, "a.b": LR},
            "parameters.a is a parameter, and a group with a.b",
        ),
        (
            {"a": {"parameters": {"b": {**LR, "low": 0}}}},
            "parameters.a.b.low must be",
        ),
        ({"a": {"parameters": {"b": 3}}}, "parameters.a.b"),
        ({"a": {"parameters": {"b": LR}, "low": 3}}, "parameters.a needs a type"),
        (
            {"a": {"parameters": {"b": LR}, "when": 3}},
            "a.when must be a mapping; got",
        ),
        (
            {
                "k": KIND,
                "a": {
                    "when": {"k": "sgd"},
                    "parameters": {"b": {**LR, "when": {"k": "adam"}}},
                },
            },
            "a.b.when names k, which the group that it is in names too",
        ),
        ({"a": {"parameters": {"1b": LR}}}, "parameters.a.1b: a parameter is named w"),
        ({"a..b": LR}, "parameters.a..b: a parameter is named with letters, digits"),
        ({"a b": LR}, "parameters.a b: a parameter is named with letters"),
        (
            {"a": {"when": {"z": 1}, "parameters": {"b": LR}}},
            "parameters.a.b.when names",
        ),
    ],
)
def test_what_is_refused(parameters, message):
    with pytest.raises(InvalidParameterError) as raised:
        sweep_of(parameters)
    assert message in str(raised.value)
