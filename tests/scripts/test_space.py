"""Draws are what the file says, conditions hold, and all configurations are found."""

import json
import math
from decimal import Decimal
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from risingsearch.errors import InvalidParameterError
from risingsearch.scripts import space
from risingsearch.scripts.space import Uniform
from risingsearch.scripts.sweep import checked_sweep, read_sweep
from risingsearch.space.by_name import known_estimators

LOWS = st.floats(-1e9, 1e9).map(lambda number: round(number, 3))
STEPS = st.sampled_from([0.1, 0.25, 1.0, 3.0])
COUNTS = st.integers(1, 10**6)
SEEDS = st.integers(0, 2**32)

LR = {"type": "log-uniform", "low": 1e-4, "high": 1.0}
KIND = {"type": "choice", "values": ["sgd", "adam", "sgd"]}
PARAMETERS = {
    "optimizer": KIND,
    "momentum": {"type": "uniform", "low": 0.0, "high": 0.9, "step": 0.3,
                 "when": {"optimizer": "sgd"}},
    "nesterov": {"type": "choice", "values": [False, True],
                 "when": {"optimizer": "sgd"}},
    "dampening": {"type": "choice", "values": [0], "when": {"nesterov": True}},
    "depth": {"type": "int", "low": 2, "high": 6, "step": 2},
}  # fmt: skip


def draws(parameter, seed=0, n=20):
    rng = np.random.default_rng(seed)
    return [parameter.kind.value(place) for place in rng.random(n)]


def sweep_of(parameters, **changes):
    given = {"command": ["x"], "budget": 9, "max_epochs": 3}
    given |= {"parameters": parameters, "seed": 0}
    return checked_sweep(given | changes, "a.yaml")


@given(LOWS, COUNTS, STEPS, st.floats(0.0, 0.9), SEEDS)
def test_a_number_is_at_its_steps(low, n, step, more, seed):
    highest = Decimal(repr(low)) + n * Decimal(repr(step))
    high = float(highest + Decimal(repr(more * step)))
    parameter = Uniform(type="uniform", low=low, high=high, step=step)
    for value in draws(parameter, seed):
        assert low <= value <= high
        k = (Decimal(repr(value)) - Decimal(repr(low))) / Decimal(repr(step))
        assert k == k.to_integral_value()


def test_all_configurations_are_those_that_draws_find():
    listed = [json.dumps(one) for one in sweep_of(PARAMETERS, candidates="all").draw()]
    drawn = [json.dumps(one) for one in sweep_of(PARAMETERS, candidates=500).draw()]
    assert len(listed) == len(set(listed)) == 4 * 2 * 3 + 3
    assert sorted(drawn) == sorted(listed)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"a": {"type": "uniform", "low": 0, "high": 1}}, "all, and a has no end of"),
        ({"a": {"type": "normal", "mu": 0, "sigma": 1}}, "all, and a has no end of"),
        (
            {name: {"type": "int", "low": 1, "high": 20} for name in "ab"},
            "candidates: all are more than 300 configurations; say how many are drawn",
        ),
    ],
)
def test_there_are_too_many_to_draw_all(monkeypatch, parameters, message):
    monkeypatch.setattr(space, "MOST_CANDIDATES", 300)
    with pytest.raises(InvalidParameterError, match=message):
        sweep_of(parameters, candidates="all").draw()


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ({"type": "uniform", "low": 1, "high": 0}, "low must be below high; got 1"),
        ({"type": "uniform", "low": 0, "high": 1, "step": 2}, "step 2 is wider than"),
        ({"type": "int", "low": 0, "high": 3, "log": True}, "must be at least 1; got"),
        ({"type": "int", "low": 1, "high": 3, "log": True, "step": 2}, "leave out one"),
        ({"type": "log-uniform", "low": 0, "high": 3}, "a.low must be greater than 0"),
        ({"type": "choice", "values": [{"a": 1}]}, "a value is a number, text, true"),
        ({"type": "choice", "values": [math.nan]}, "a number must be finite"),
        (
            {"type": "choice", "values": []},
            "a.values: List should have at least 1 item",
        ),
        ({"parameters": {"b": LR}}, "parameters.a needs a type"),
        (LR | {"when": {"z": 1}}, "parameters.a.when names ['z']"),
    ],
)
def test_invalid_parameters(parameter, message):
    with pytest.raises(InvalidParameterError) as raised:
        sweep_of({"a": parameter})
    assert message in str(raised.value)


def test_names_may_have_dots_but_no_spaces():
    assert "net.lr" in sweep_of({"net.lr": LR}, command=["{net.lr}"]).draw()[0]
    with pytest.raises(InvalidParameterError, match=r"parameters\.a b: a name has"):
        sweep_of({"a b": LR})


def space_file(folder, suffix):
    configspace = pytest.importorskip("ConfigSpace")
    space = configspace.ConfigurationSpace(
        {"lr": (1e-3, 1.0), "kind": ["sgd", "adam"], "momentum": (0.5, 0.9)}
    )
    space.add(configspace.EqualsCondition(space["momentum"], space["kind"], "sgd"))
    path = folder / f"space.{suffix}"
    (space.to_yaml if suffix == "yaml" else space.to_json)(path)
    return path


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_the_space_may_be_a_file_of_configspace(tmp_path, suffix):
    space_file(tmp_path, suffix)
    file = tmp_path / "sweep.yaml"
    file.write_text(
        f"command: [train, '--lr={{lr}}']\nspace: space.{suffix}\n"
        "budget: 10\nmax_epochs: 5\ncandidates: 12\nseed: 3\n"
        "enqueue: [{lr: 0.5, kind: adam}]\n"
    )
    drawn = read_sweep(file).draw()
    assert drawn[0] == {"lr": 0.5, "kind": "adam"}
    assert len(drawn) == 13
    for one in drawn:
        assert ("momentum" in one) == (one["kind"] == "sgd")
        assert json.loads(json.dumps(one)) == one
    described = read_sweep(file).model_dump(mode="json", exclude_defaults=True)
    (tmp_path / f"space.{suffix}").unlink()
    assert checked_sweep(described, "the run").draw() == drawn


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"space": {"x": 1}}, "space has no hyperparameters"),
        ({"space": 3}, "space must be a mapping; got 3"),
        ({"parameters": {"a": LR}}, "give either parameters or space, a file of"),
        ({"enqueue": [{"lr": 5, "kind": "sgd"}]}, "sweep: 'momentum' is missing"),
        ({"candidates": "all"}, "candidates: all, and lr has no end of them"),
    ],
)
def test_invalid_spaces(tmp_path, changes, message):
    content = json.loads(space_file(tmp_path, "json").read_text())
    given = {"command": ["x"], "space": content, "budget": 9, "max_epochs": 3}
    with pytest.raises(InvalidParameterError) as raised:
        list(islice(checked_sweep(given | changes, "a.yaml").draw(), 1))
    assert message in str(raised.value)


class TestNamedSpace:
    NAMED = {"command": ["x"], "space": "auto", "budget": 20, "max_epochs": 4}  # noqa: RUF012

    def test_is_that_of_the_estimator_and_begins_with_its_default(self):
        known = {"num_leaves": 9, "learning_rate": 0.2, "min_child_samples": 3,
                 "subsample_freq": 0, "colsample_bytree": 0.5, "reg_alpha": 0.1,
                 "reg_lambda": 0.1}  # fmt: skip
        given = {"estimator": "LGBMRegressor", "seed": 1, "enqueue": [known]}
        sweep = checked_sweep(self.NAMED | given, "a.yaml")
        space, default, _ = known_estimators()["LGBMRegressor"]
        assert sweep.candidate_space.names == list(space)
        assert sweep.draw()[:2] == sweep.enqueue == [default, known]
        for params in sweep.draw():
            assert ("subsample" in params) == (params["subsample_freq"] == 1)
        kept = sweep.model_dump(mode="json", exclude_defaults=True)
        assert checked_sweep(kept, "the run").draw() == sweep.draw()

    def test_a_default_may_be_a_list_and_none_is_text_for_a_number(self):
        nets = checked_sweep(self.NAMED | {"estimator": "MLPRegressor"}, "a.yaml")
        assert nets.draw()[0]["hidden_layer_sizes"] == [100]
        machines = checked_sweep(self.NAMED | {"estimator": "SVC"}, "a.yaml")
        assert machines.enqueue == []

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({}, "space: auto needs estimator: LGBMClassifier, say"),
            ({"estimator": "SVC", "parameters": {"a": LR}}, "and no parameters"),
            ({"estimator": "SVCC"}, "'SVCC'; did you mean 'SVC'"),
            ({"estimator": "SVC", "space": "a.yaml"}, "estimator is for space: auto"),
        ],
    )
    def test_one_sentence_about_what_is_missing(self, changes, message):
        with pytest.raises(InvalidParameterError) as raised:
            checked_sweep(self.NAMED | changes, "a.yaml")
        assert message in str(raised.value)
