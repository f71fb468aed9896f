"""
Optuna: boosters that pause
===========================

A pruned ``xgboost.train`` returns no model, so a callback before Optuna's own keeps the
booster, and the slice ends with a checkpoint. XGBoost counts its rounds from 0 after a
resume, so Optuna's callback gets ``arm.trial``: its steps begin at ``arm.from_epoch``.
"""

import tempfile

import optuna
import xgboost
from optuna_integration import XGBoostPruningCallback
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import risingsearch.integrations.optuna as rising

optuna.logging.set_verbosity(optuna.logging.WARNING)
X, y = load_breast_cancer(return_X_y=True)
X, X_valid, y, y_valid = train_test_split(X, y, random_state=0)
train = xgboost.DMatrix(X, y)
valid = xgboost.DMatrix(X_valid, y_valid)


class KeepBooster(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        self.booster, self.score = model, evals_log["valid"]["auc"][-1]


def objective(trial):
    params = {"eta": trial.suggest_float("eta", 1e-3, 1.0, log=True), "nthread": 1}
    params |= {"objective": "binary:logistic", "eval_metric": "auc"}
    arm, keep = rising.arm(trial), KeepBooster()
    saved = arm.checkpoint and xgboost.Booster(model_file=arm.checkpoint / "model.json")
    try:
        xgboost.train(
            params,
            train,
            num_boost_round=9 - arm.from_epoch,
            evals=[(valid, "valid")],
            xgb_model=saved,
            callbacks=[keep, XGBoostPruningCallback(arm.trial, "valid-auc")],
            verbose_eval=False,
        )
    except optuna.TrialPruned:
        with arm.save() as folder:
            keep.booster.save_model(folder / "model.json")
        raise
    return keep.score


study = optuna.create_study(
    direction="maximize",
    sampler=rising.RisingSampler(30, max_epochs=9, checkpoint_dir=tempfile.mkdtemp()),
    pruner=rising.RisingPruner(),
)
study.optimize(objective)

best = rising.best_arm(study)
print(f"{int(rising.arms(study).epochs.sum())} rounds, eta {best.params['eta']:.3f}")
