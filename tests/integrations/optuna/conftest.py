from collections import Counter

import optuna
import pytest

import risingsearch.integrations.optuna as rising


@pytest.fixture(autouse=True)
def quiet(quiet_optuna):
    """Keep Optuna quiet in all of these tests."""


class Rising:
    """An objective that rises to a top, and counts the epochs it trains by arm."""

    def __init__(self, n_epochs=20, sign=1.0):
        self.n_epochs = n_epochs
        self.sign = sign
        self.trained = Counter()

    def suggest(self, trial):
        return 1.0 - (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2

    def score(self, top, epoch):
        return self.sign * top * (1.0 - 1.0 / (epoch + 2))

    def __call__(self, trial):
        top = self.suggest(trial)
        arm = rising.arm(trial)
        for epoch in range(arm.from_epoch, self.n_epochs):
            self.trained[arm.id, epoch] += 1
            trial.report(self.score(top, epoch), epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return self.score(top, self.n_epochs - 1)


@pytest.fixture
def objective():
    return Rising()


@pytest.fixture
def make_study():
    def make(budget=60, max_epochs=20, direction="maximize", study=None, **options):
        sampler = rising.RisingSampler(budget, max_epochs, **{"seed": 0} | options)
        return optuna.create_study(
            direction=direction,
            sampler=sampler,
            pruner=rising.RisingPruner(),
            **(study or {}),
        )

    return make
