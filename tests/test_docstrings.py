"""The docstrings of public names, held against the numpydoc standard."""

import importlib

import pytest
from numpydoc.validate import validate

PUBLIC = [
    "risingsearch",
    "risingsearch.curves",
    "risingsearch.integrations.dask",
    "risingsearch.integrations.optuna",
    "risingsearch.integrations.ray",
    "risingsearch.integrations.sklearn",
    "risingsearch.integrations.torch",
    "risingsearch.integrations.trackers",
    "risingsearch.plotting",
    "risingsearch.policies",
    "risingsearch.priors",
    "risingsearch.proposers",
    "risingsearch.simulation",
    "risingsearch.testing",
]
CHECKED = {
    "GL01": "the text has to start on the line of the quotes",
    "PR01": "a parameter is not documented",
    "RT01": "what it returns is not documented",
    "EX01": "there is no example",
}


@pytest.mark.parametrize("module_name", PUBLIC)
def test_public_names_have_complete_docstrings(module_name):
    module = importlib.import_module(module_name)
    incomplete = {}
    for name in module.__all__:
        if callable(getattr(module, name)):
            codes = {code for code, _ in validate(f"{module_name}.{name}")["errors"]}
            lacking = [CHECKED[code] for code in sorted(codes & CHECKED.keys())]
            if lacking:
                incomplete[name] = lacking
    assert incomplete == {}
