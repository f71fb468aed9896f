"""Spaces between recorded curves."""

import json

import numpy as np
import pytest

from benchmarks.spaces.recorded import of_file

RATES = np.array([0.001, 0.01, 0.1, 0.1, 1.0, 1.0])
OPTIMIZERS = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
DROPOUTS = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
ENDS = np.array([0.3, 0.5, 0.9, 0.6, 0.7, 0.2])


@pytest.fixture
def file(tmp_path):
    valid = ENDS[:, None] * np.linspace(0.5, 1.0, 40)
    valid[4, 20:] = np.nan  # it has ended
    np.savez(
        tmp_path / "task.npz",
        X=np.column_stack([OPTIMIZERS, RATES, DROPOUTS]),
        hp_names=["optimizer", "lr", "dropout"],
        hp_log=[False, True, False],
        valid=valid,
        test=valid - 0.1,
        meta=json.dumps({"hp_categories": {"optimizer": ["sgd", "adam"]}}),
    )
    return tmp_path / "task.npz"


def curve(problem, k, rate=None):
    params = {
        "optimizer": ["sgd", "adam"][int(OPTIMIZERS[k])],
        "lr": rate or RATES[k],
        "dropout": DROPOUTS[k],
    }
    return np.array(list(problem.epochs(params, 0)))


def test_a_recorded_configuration_has_its_own_curve(file):
    problem = of_file(file)
    assert problem.n_epochs == 20
    assert problem.has_test
    for k in (0, 1, 2, 3, 5):
        scores = curve(problem, k)
        assert scores[-1] == pytest.approx([ENDS[k], ENDS[k] - 0.1], abs=1e-3)
        assert scores[9, 0] == pytest.approx(ENDS[k] * 0.744, abs=1e-2)


def test_between_configurations_lie_scores_between_theirs(file):
    low, high = sorted([ENDS[0], ENDS[2]])
    assert low < curve(of_file(file), 0, rate=0.02)[-1, 0] < high


def test_what_has_ended_stays_at_its_last_score(file):
    scores = curve(of_file(file), 4)[:, 0]
    assert scores[-1] == pytest.approx(scores[9], abs=1e-3)
    assert scores[-1] == pytest.approx(ENDS[4] * 0.744, abs=1e-2)


def test_a_share_of_the_epochs_ends_lower(file):
    assert curve(of_file(file, share=0.5), 2)[-1, 0] < 0.75 * ENDS[2]
