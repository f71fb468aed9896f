"""LightGBM with the callback of Optuna; the guide has XGBoost's."""

import lightgbm
import numpy as np
import optuna
import pytest
from optuna_integration import LightGBMPruningCallback
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import risingsearch.integrations.optuna as rising

N_ROUNDS = 12


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True)
    return train_test_split(X, y, test_size=0.25, random_state=0)


def with_lightgbm(rows, trained):
    X, X_valid, y, y_valid = rows
    data = lightgbm.Dataset(X, y, free_raw_data=False)
    valid = lightgbm.Dataset(X_valid, y_valid, reference=data, free_raw_data=False)

    def objective(trial):
        params = {
            "objective": "binary",
            "metric": "auc",
            "verbosity": -1,
            "num_threads": 1,
            "learning_rate": trial.suggest_float("learning_rate", 1e-3, 1.0, log=True),
            "num_leaves": trial.suggest_int("num_leaves", 2, 32),
        }
        arm = rising.arm(trial)
        kept = []
        saved = arm.checkpoint and lightgbm.Booster(
            model_file=arm.checkpoint / "model.txt"
        )
        try:
            booster = lightgbm.train(
                params,
                data,
                N_ROUNDS - arm.from_epoch,
                valid_sets=[valid],
                init_model=saved,
                callbacks=[
                    lambda env: kept.append(env.model),
                    LightGBMPruningCallback(trial, "auc", valid_name="valid_0"),
                ],
            )
        except optuna.TrialPruned:
            trained.append(len(kept))
            with arm.save() as folder:
                kept[-1].save_model(folder / "model.txt")
            raise
        trained.append(len(kept))
        return booster.best_score["valid_0"]["auc"]

    return objective


def test_slices_train_no_round_twice(make_study, rows, tmp_path):
    trained = []
    study = make_study(
        budget=60, max_epochs=N_ROUNDS, direction="maximize", checkpoint_dir=tmp_path
    )
    study.optimize(with_lightgbm(rows, trained))
    assert sum(trained) == 60
    results = rising.arm_results(study)
    assert sum(result.epochs for result in results) == 60
    assert max(result.n_trials for result in results) > 1
    assert all(np.isfinite(list(result.curve.values())).all() for result in results)
