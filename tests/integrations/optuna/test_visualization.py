"""Optuna's plots draw one complete trial per arm, once the study is finalized."""

import matplotlib as mpl
import pytest
from optuna.visualization import matplotlib as plots

import risingsearch.integrations.optuna as rising

mpl.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


@pytest.fixture
def results(objective, make_study):
    def suggest(trial):
        trial.suggest_float("y", 0.0, 1.0)
        return 1.0 - (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2

    objective.suggest = suggest
    study = make_study(budget=100)
    study.optimize(objective)
    rising.finalize(study)
    return study, rising.arm_results(study)


@pytest.fixture
def study(results):
    return results[0]


@pytest.fixture
def arms(results):
    return results[1]


def test_optimization_history(study, arms):
    drawn = plots.plot_optimization_history(study)
    values = drawn.collections[0].get_offsets()[:, 1]
    assert sorted(values) == sorted(arm.best_score for arm in arms)
    assert max(drawn.lines[0].get_ydata()) == rising.best_arm(study).best_score


def test_intermediate_values(study, arms):
    drawn = plots.plot_intermediate_values(study)
    curves = [list(line.get_ydata()) for line in drawn.lines]
    assert all(list(arm.curve.values()) in curves for arm in arms)
