"""Searches of other libraries: how a space is told, and how one is left out."""

import pytest

from benchmarks.peers.environments import NotInstalledError
from benchmarks.spaces import outside
from benchmarks.spaces.foundry import cast, conditions
from benchmarks.spaces.outside import active, declared, installed


def test_a_configuration_has_the_parameters_of_its_part_alone():
    [problem, *_] = cast(conditions)
    told = declared(problem)
    assert told["part"] == ("choice", [[0, 1, 2]])
    assert told["1 adam_beta"] == ("uniform", [0.0, 0.999])
    assert told["2 lion_decay"] == ("loguniform", [1e-6, 1e-1])
    flat = {name: given[0] for name, (_, given) in told.items()} | {"part": 1}
    assert set(active(problem, flat)) == set(problem.parts[1])
    assert active(problem, flat)["optimizer"] == "adam"


def test_what_cannot_be_installed_is_left_out_with_the_reason(
    tmp_path, monkeypatch, capsys
):
    def python_of(name, packages, cache):
        if name == "smac":
            raise NotInstalledError("no wheel")
        return cache / "python"

    monkeypatch.setattr(outside, "python_of", python_of)
    assert list(installed(["NGOpt", "SMAC3"], tmp_path)) == ["NGOpt"]
    assert "left out: SMAC3: not installed: no wheel" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(outside.PEERS))
def test_every_peer_has_a_runner(name):
    folder = outside.ROOT / "benchmarks/spaces/runners"
    assert (folder / f"{outside.PEERS[name].runner}.py").is_file()
