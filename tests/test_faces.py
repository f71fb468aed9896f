"""All interfaces of a search take the same options, names and defaults."""

import inspect
import math
import re
from dataclasses import fields

import pytest

from risingsearch import RisingSearch, Scheduler
from risingsearch.budget import Budget
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.optuna import RisingSampler
from risingsearch.integrations.ray import RisingScheduler
from risingsearch.integrations.sklearn import RisingSearchCV
from risingsearch.scheduling.options import SearchOptions
from risingsearch.scripts.sweep import Sweep

LACKS = {
    Scheduler: {
        "n_candidates": "n_arms: a scheduler draws no candidates",
        "prior": "its proposer has learnt from it",
        "confirm": "its caller trains",
        "learning_rate": "its proposer knows it",
        "timeout": "it has no clock",
        "epoch_timeout": "it starts no processes",
        "callbacks": "its caller knows what happens",
        "run_dir": "it has no disk",
        "patience": "a rule of Scheduler.stop_when",
        "target_score": "a rule of Scheduler.stop_when",
        "executor": "its caller trains",
        "shuffle": "opening_order",
        "progress": "its caller shows it",
        "max_checkpoint_bytes": "it has no disk",
        "checkpoints": "it has no disk",
        "metric": "it knows scores alone",
        "fingerprint": "it has no disk",
    },
    RisingSearch: {},
    RisingSearchCV: {
        "seed": "random_state, as everywhere in scikit-learn",
        "proposer": "the default one knows the space",
        "direction": "scorers are maximized, as everywhere in scikit-learn",
        "shuffle": "candidates are drawn in random order",
        "progress": "verbose, as everywhere in scikit-learn",
        "max_checkpoint_bytes": "models of estimators are small",
        "metric": "scoring, as everywhere in scikit-learn",
        "fingerprint": "it knows data and estimator itself",
        "epoch_costs": "resource says them",
        "confirm": "its predictions tell how far a score can be trusted",
    },
    RisingSampler: {
        "n_jobs": "study.optimize has it",
        "deterministic": "processes of a study decide by what its storage holds",
        "timeout": "study.optimize has it",
        "epoch_timeout": "it starts no processes",
        "run_dir": "a study has a storage",
        "learning_rate": "base proposes the parameters",
        "proposer": "base proposes the parameters",
        "executor": "study.optimize trains",
        "direction": "optuna.create_study has it",
        "shuffle": "trials come in the order in which base proposes them",
        "progress": "study.optimize has show_progress_bar",
        "max_checkpoint_bytes": "checkpoint_dir or artifact_store",
        "checkpoints": "checkpoint_dir or artifact_store",
        "metric": "optuna.study.Study.set_metric_names",
        "fingerprint": "a study has a storage",
        "epoch_costs": "an epoch is a report of the objective",
        "confirm": "a trial has one seed",
    },
    RisingScheduler: {
        "n_candidates": "num_samples of Ray",
        "max_failures": "FailureConfig of Ray",
        "enqueue": "points_to_evaluate of Ray's searchers",
        "prior": "trials come from Ray's searcher",
        "learning_rate": "trials come from Ray's searcher",
        "timeout": "time_budget_s of Ray",
        "epoch_timeout": "a stopper of Ray, which has the processes",
        "run_dir": "Ray has a storage path",
        "proposer": "trials come from Ray's searcher",
        "executor": "Ray trains",
        "direction": "mode, as everywhere in Ray",
        "shuffle": "trials come in the order of Ray's searcher",
        "progress": "Ray has a reporter",
        "max_checkpoint_bytes": "CheckpointConfig of Ray",
        "checkpoints": "Ray has a storage path",
        "fingerprint": "Ray has a storage path",
        "epoch_costs": "an epoch is a result that is reported to Ray",
        "confirm": "a trial has one seed",
    },
    Sweep: {
        "n_candidates": "candidates, a number or all",
        "n_jobs": "workers, a number or auto",
        "callbacks": "tracker",
        "run_dir": "an argument of the command",
        "proposer": "the default one knows the space",
        "executor": "workers and launcher",
        "shuffle": "candidates are drawn in random order",
        "progress": "always shown",
        "max_checkpoint_bytes": "scripts write their checkpoints",
        "fingerprint": "it knows the sweep itself",
        "epoch_costs": "an epoch is a line that a script reports",
        "confirm": "an arm has one folder; examples tell more",
    },
}
OTHER_DEFAULTS = {
    (Scheduler, "proposer"): "None, for it knows no configurations",
    (Sweep, "metric"): "score, which a file of another release may have",
    (RisingSearchCV, "n_candidates"): "auto, as n_candidates of HalvingRandomSearchCV",
    (RisingSearchCV, "error_score"): "NaN, as everywhere in scikit-learn",
}
FACES = [face for face in LACKS if face is not Sweep]
DEFAULTS = {field.name: field.default for field in fields(SearchOptions)}


@pytest.mark.parametrize("face", LACKS, ids=lambda face: face.__name__)
def test_a_face_lacks_no_option_but_for_a_reason(face):
    has = Sweep.model_fields if face is Sweep else inspect.signature(face).parameters
    assert DEFAULTS.keys() - has == LACKS[face].keys()


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
def test_defaults_are_the_same_on_all_faces(face):
    parameters = inspect.signature(face).parameters
    for name, default in DEFAULTS.items():
        given = parameters[name].default if name in parameters else inspect._empty
        if given is not inspect._empty and (face, name) not in OTHER_DEFAULTS:
            assert given == default, name


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.__name__)
def test_every_option_of_a_face_is_documented(face):
    for name in DEFAULTS.keys() - LACKS[face].keys():
        entry = rf"^    (\w+, )*{name}(, \w+)*( :.*)?$"
        assert re.search(entry, face.__doc__, re.MULTILINE), name


def test_the_keys_of_a_sweep_have_the_same_defaults():
    for name, default in DEFAULTS.items():
        field = Sweep.model_fields.get(name)
        if (Sweep, name) in OTHER_DEFAULTS:
            continue
        if field is not None and not field.is_required():
            given = field.get_default(call_default_factory=True)
            assert (given or None) == (default or None), name


def test_a_face_hands_on_what_is_not_at_its_default():
    options = SearchOptions(budget=9, min_epochs=1, seed=3, enqueue=(), policy="asha")
    given = options.non_defaults()
    assert given == {"budget": Budget.of(9), "seed": 3, "policy": "asha"}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("budget", 0),
        ("max_epochs", 1.5),
        ("min_epochs", None),
        ("n_candidates", 0),
        ("n_jobs", 0),
        ("deterministic", "yes"),
        ("seed", -1),
        ("error_score", math.nan),
        ("max_failures", -1),
        ("target_score", "high"),
        ("patience", True),
        ("policy_params", [1]),
        ("direction", "up"),
        ("error_score", "rise"),
        ("shuffle", None),
        ("progress", 1),
        ("max_checkpoint_bytes", 0),
        ("metric", ""),
        ("fingerprint", [1]),
        ("confirm", "much"),
    ],
)
def test_an_option_outside_its_range_is_refused_by_name(name, wrong):
    with pytest.raises(InvalidParameterError, match=rf"^{name} must be "):
        SearchOptions(**{name: wrong})
