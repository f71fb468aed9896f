"""Optuna's plots draw one complete trial per arm, once the study is finalized."""

import optuna
import pytest

import risingsearch.integrations.optuna as rising

pytest.importorskip("plotly")


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
    values, best = optuna.visualization.plot_optimization_history(study).data[:2]
    assert sorted(values.y) == sorted(arm.best_score for arm in arms)
    assert max(best.y) == rising.best_arm(study).best_score


def test_intermediate_values(study, arms):
    plot = optuna.visualization.plot_intermediate_values(study)
    curves = [list(line.y) for line in plot.data]
    assert all(list(arm.curve.values()) in curves for arm in arms)
