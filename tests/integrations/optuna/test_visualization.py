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


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_param_importances(study):
    [bars] = optuna.visualization.plot_param_importances(study).data
    assert set(bars.y) == {"x", "y"}
    assert sum(bars.x) == pytest.approx(1.0)


def test_parallel_coordinate(study, arms):
    drawn = optuna.visualization.plot_parallel_coordinate(study).data
    if drawn[0].type == "parcoords":  # until Optuna 4
        lines = drawn[0].dimensions[0]["values"]
    else:
        lines = [line for line in drawn if line.mode == "lines"]
    assert len(lines) == len(arms)


def test_slice(study, arms):
    for points in optuna.visualization.plot_slice(study).data:
        assert sorted(points.y) == sorted(arm.best_score for arm in arms)


def test_contour(study, arms):
    plot = optuna.visualization.plot_contour(study, params=["x", "y"])
    points = next(drawn for drawn in plot.data if drawn.type == "scatter")
    drawn = sorted(zip(points.x, points.y, strict=True))
    assert drawn == sorted((a.params["x"], a.params["y"]) for a in arms)
