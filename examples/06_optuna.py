"""
Optuna: trials that pause
=========================

``RisingSampler`` and ``RisingPruner`` make each trial a slice of an arm: a trial that
is pruned may go on later, as another trial, where it was. Any sampler of Optuna
proposes the parameters.
"""

import optuna
from sklearn.datasets import load_diabetes
from sklearn.linear_model import SGDRegressor
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

import risingsearch.integrations.optuna as rising
from risingsearch.plotting import plot_curves

optuna.logging.set_verbosity(optuna.logging.WARNING)
X, y = load_diabetes(return_X_y=True)
X, X_valid, y, y_valid = train_test_split(scale(X), scale(y), random_state=0)
models = {}  # by arm, so that they can resume


def objective(trial):
    params = {
        "alpha": trial.suggest_float("alpha", 1e-6, 1.0, log=True),
        "eta0": trial.suggest_float("eta0", 1e-6, 1e-1, log=True),
    }
    arm = rising.arm(trial)
    model = models.setdefault(arm.id, SGDRegressor(random_state=0, **params))
    for epoch in range(arm.from_epoch, 20):
        model.partial_fit(X, y)
        score = model.score(X_valid, y_valid)
        trial.report(score, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return score


study = optuna.create_study(
    direction="maximize",
    sampler=rising.RisingSampler(budget=80, max_epochs=20, seed=0),
    pruner=rising.RisingPruner(),
)
study.optimize(objective)
best = rising.best_arm(study)
print(f"{len(study.trials)} trials, best R2 {best.best_score:.3f}: {best.params}")

# %%
# The trials of an arm are one curve.

history = [
    {"arm": result.id, "epoch": step + 1, "score": score}
    for result in rising.arm_results(study)
    for step, score in result.curve.items()
]
plot_curves(history, metric="R2")
