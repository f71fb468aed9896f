"""Optuna's own test cases for samplers.

Not taken up: ``MultiObjectiveSamplerTestCase``; one budget serves one objective.
"""

import functools

import optuna
import pytest

from risingsearch.integrations.optuna import RisingSampler

cases = pytest.importorskip("optuna.testing.pytest_samplers", reason="since Optuna 5")

pytestmark = [
    # The cases make their studies with Optuna's default pruner, and report nothing.
    pytest.mark.filterwarnings("ignore:RisingSampler needs pruner"),
    pytest.mark.filterwarnings("ignore:the objective did not ask for its arm"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]


BASES = {
    "tpe": optuna.samplers.TPESampler,
    "random": optuna.samplers.RandomSampler,
    "grouped": functools.partial(
        optuna.samplers.TPESampler, multivariate=True, group=True
    ),
}
relative = functools.partial(
    optuna.samplers.TPESampler, n_startup_trials=0, multivariate=True
)


def make(base):
    return RisingSampler(1000, 10, base=base(), seed=0)


class OverSeveral:
    @pytest.fixture(params=BASES.values(), ids=BASES.keys())
    def sampler(self, request):
        return functools.partial(make, request.param)


class TestBasic(OverSeveral, cases.BasicSamplerTestCase):
    pass


class TestSingleOnly(OverSeveral, cases.SingleOnlySamplerTestCase):
    pass


class TestRelative(cases.RelativeSamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return functools.partial(make, relative)
