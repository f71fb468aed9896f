"""The best configuration of a run, in the forms that other programs read."""

import json
import math
import shlex
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from risingsearch import Functions, RisingSearch
from risingsearch.cli.best import for_hydra
from risingsearch.cli.main import main
from tests.cli.sweeping import BASH_SWEEP, json_of

PARAMS = {
    "optim.lr": 1e-05,
    "name": "it's ${here}",
    "layers": (64, 32),
    "on": "yes",
    "bias": True,
    "clip": None,
}


def printed(capsys, *arguments):
    capsys.readouterr()
    assert main(["best", *arguments]) == 0
    return capsys.readouterr().out


@pytest.fixture
def run_dir(tmp_path):
    trainable = Functions(lambda params, seed: params, lambda state: 0.5)
    path = tmp_path / "run"
    RisingSearch(trainable, [PARAMS], budget=1, run_dir=path, seed=0).run()
    return str(path)


def test_the_command_trains_the_winner_again(folder, capsys):
    json_of(capsys, "run", "sweep.yaml")
    best = json_of(capsys, "status", "runs/sweep")
    output = subprocess.check_output(printed(capsys, "runs/sweep"), shell=True)
    lines = [json.loads(line) for line in output.splitlines() if line[:1] == b"{"]
    assert max(line["score"] for line in lines) == best["best_score"]
    assert lines[-1]["epoch"] == 8
    Path("state").unlink()
    longer = printed(capsys, "runs/sweep", "--epochs", "11")
    output = subprocess.check_output(longer, shell=True)
    assert json.loads(output.splitlines()[-1])["epoch"] == 11


def test_a_script_that_needs_no_change_is_given_no_variables(folder, capsys):
    Path("plain.sh").write_text('for i in $(seq "$2"); do echo "acc: $1$i"; done')
    Path("plain.yaml").write_text(
        BASH_SWEEP.replace("train.sh", "plain.sh").replace(
            '"{top}"]',
            '"{top}", "{epochs}"]\nresume: false\nmetric: {regex: "acc: {number}"}',
        )
    )
    json_of(capsys, "run", "plain.yaml")
    top = json_of(capsys, "best", "runs/plain")["top"]
    assert printed(capsys, "runs/plain") == f"bash plain.sh {top} 8\n"


def test_values_come_back_from_every_form_as_they_were(run_dir, capsys):
    values = {**PARAMS, "layers": [64, 32]}
    assert json.loads(printed(capsys, run_dir, "--json")) == values
    for version in ((1, 1), (1, 2)):
        yaml = YAML(typ="safe", pure=True)
        yaml.version = version
        text = printed(capsys, run_dir, "--yaml").replace("...\n", "")
        assert yaml.load(text) == values
    arguments = shlex.split(printed(capsys, run_dir, "--args"))
    assert arguments[:3] == [
        "--optim.lr=1e-05",
        "--name=it's ${here}",
        "--layers=[64, 32]",
    ]
    assert shlex.split(printed(capsys, run_dir, "--hydra")) == [
        "optim.lr=1e-05",
        r"name='it\'s \${here}'",
        "layers=[64,32]",
        "on=yes",
        "bias=true",
        "clip=null",
    ]


def test_a_run_without_a_command_or_a_winner_is_refused(run_dir, tmp_path, capsys):
    assert main(["best", run_dir]) == 2
    assert "print the values by --yaml" in capsys.readouterr().err
    trainable = Functions(lambda params, seed: params, lambda state: math.nan)
    lost = tmp_path / "lost"
    with pytest.raises(Exception, match="finite"):
        RisingSearch(trainable, [{"a": 1}], budget=1, run_dir=lost).run()
    assert main(["best", str(lost), "--json"]) == 2
    assert "no finite score yet" in capsys.readouterr().err


HYDRA = [
    (1e22, "1e+22"),
    (-math.inf, "-inf"),
    ("true", "'true'"),
    ("resnet/18.b-x", "resnet/18.b-x"),
    ("1e-05", "'1e-05'"),
    ("", "''"),
    ("ends in \\", r"'ends in \\'"),
    ("a\\b,c", r"'a\b,c'"),
    ({"x": [1.5, "a b"]}, "{x:[1.5,'a b']}"),
]


@pytest.mark.parametrize(("value", "text"), HYDRA)
def test_a_value_is_quoted_for_hydra_where_it_must_be(value, text):
    assert for_hydra(value) == text


@pytest.mark.parametrize(("value", "text"), HYDRA)
def test_hydra_reads_a_value_as_it_was(value, text):
    parsers = pytest.importorskip("hydra.core.override_parser.overrides_parser")
    override = parsers.OverridesParser.create().parse_override(f"name={text}")
    assert override.value() == value
