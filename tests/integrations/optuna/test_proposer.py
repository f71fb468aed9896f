import sys

import numpy as np
import optuna
import pytest

from risingsearch.errors import InvalidParameterError, MissingDependencyError
from risingsearch.integrations.optuna import SamplerProposer
from risingsearch.scheduling.proposers import Opened


def opened(features, n):
    """Open the first arms, whose end is high where the first feature is near 0.3."""
    arms = np.arange(n)
    ends = 1.0 - np.abs(features[arms, 0] - 0.3)
    return Opened(arms, np.full(n, 10), ends, np.full(n, True), 10)


def test_what_looks_like_the_best_is_proposed():
    features = np.random.default_rng(1).uniform(size=(400, 2))
    proposer = SamplerProposer(features)
    unopened = np.arange(60, 400)
    proposed = [
        proposer.propose(opened(features, 60), unopened, np.random.default_rng(seed))
        for seed in range(10)
    ]
    assert set(proposed) <= set(unopened.tolist())
    assert np.median(np.abs(features[proposed, 0] - 0.3)) < 0.1


def test_the_seed_decides():
    features = np.random.default_rng(1).uniform(size=(100, 2))
    known, unopened = opened(features, 30), np.arange(30, 100)

    def propose(seed):
        rng = np.random.default_rng(seed)
        return SamplerProposer(features).propose(known, unopened, rng)

    assert propose(0) == propose(0)
    assert len({propose(seed) for seed in range(5)}) > 1


def test_any_sampler_serves():
    features = np.random.default_rng(1).uniform(size=(50, 2))
    proposer = SamplerProposer(
        features, lambda seed: optuna.samplers.RandomSampler(seed)
    )
    arm = proposer.propose(
        opened(features, 10), np.array([49]), np.random.default_rng(0)
    )
    assert arm == 49


def test_optunas_messages_are_as_before():
    level = optuna.logging.get_verbosity()
    features = np.random.default_rng(1).uniform(size=(20, 1))
    proposer = SamplerProposer(features)
    proposer.propose(opened(features, 12), np.array([19]), np.random.default_rng(0))
    assert optuna.logging.get_verbosity() == level


def test_what_is_missing_is_said(monkeypatch):
    with pytest.raises(InvalidParameterError, match="features must be a table"):
        SamplerProposer([1.0])
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingDependencyError, match=r"risingsearch\[optuna\]"):
        SamplerProposer([[1.0]])
