"""The faces of a search take the same options, with the same names and defaults."""

import inspect
from dataclasses import fields

import pytest

from risingsearch import RisingSearch, Scheduler
from risingsearch.integrations.optuna import RisingSampler
from risingsearch.integrations.ray import RisingScheduler
from risingsearch.integrations.sklearn import RisingSearchCV
from risingsearch.scheduling.options import SearchOptions
from risingsearch.scripts.sweep import Sweep

LACKS = {
    Scheduler: {
        "n_candidates": "n_arms: a scheduler draws no candidates",
        "prior": "its proposer has learnt from it",
        "timeout": "it has no clock",
        "callbacks": "its caller knows what happens",
        "run_dir": "it has no disk",
        "patience": "a rule of StoppingScheduler",
        "target_score": "a rule of StoppingScheduler",
    },
    RisingSearch: {"n_candidates": "it is given the candidates"},
    RisingSearchCV: {"seed": "random_state, as everywhere in scikit-learn"},
    RisingSampler: {
        "n_jobs": "study.optimize has it",
        "deterministic": "processes of a study decide by what its storage holds",
        "timeout": "study.optimize has it",
        "run_dir": "a study has a storage",
    },
    RisingScheduler: {
        "n_candidates": "num_samples of Ray",
        "max_failures": "FailureConfig of Ray",
        "enqueue": "points_to_evaluate of Ray's searchers",
        "prior": "trials come from Ray's searcher",
        "timeout": "time_budget_s of Ray",
        "run_dir": "Ray has a storage path",
    },
    Sweep: {
        "n_candidates": "candidates, a number or all",
        "n_jobs": "workers, a number or auto",
        "callbacks": "tracker",
        "run_dir": "an argument of the command",
    },
}
OTHER_DEFAULTS = {
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
