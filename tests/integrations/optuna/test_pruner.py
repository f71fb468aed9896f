import math
import pickle

import optuna
import pytest
from optuna.trial import TrialState

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.optuna import RisingPruner


def run(curves, direction="maximize", **options):
    """Train a trial per curve; return how many reports each has made."""
    study = optuna.create_study(direction=direction, pruner=RisingPruner(**options))
    sign = 1 if direction == "maximize" else -1

    def objective(trial):
        for epoch, score in enumerate(curves[trial.number]):
            trial.report(sign * score, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return sign * score

    study.optimize(objective, n_trials=len(curves))
    return [len(trial.intermediate_values) for trial in study.trials]


GOOD = [1 - 1 / (epoch + 2) for epoch in range(20)]
FLAT = [0.5] * 20
LATE = [0.05 * epoch + 0.1 for epoch in range(20)]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_what_cannot_win_is_stopped(direction):
    assert run([GOOD, FLAT], direction, n_startup_trials=1) == [20, 4]


def test_a_late_bloomer_that_may_still_win_goes_on():
    assert run([GOOD, LATE], n_startup_trials=1) == [20, 20]


def test_nothing_is_stopped_before_some_have_completed():
    assert run([GOOD, FLAT, FLAT, FLAT], n_startup_trials=3) == [20, 20, 20, 4]


@pytest.mark.parametrize(("n_warmup_steps", "n"), [(0, 4), (3, 4), (7, 8), (50, 20)])
def test_nothing_is_stopped_while_it_warms_up(n_warmup_steps, n):
    options = {"n_startup_trials": 1, "n_warmup_steps": n_warmup_steps}
    assert run([GOOD, FLAT], **options) == [20, n]


def test_a_diverged_trial_is_stopped_at_once():
    diverged = [0.1, math.nan, 0.2, 0.3]
    assert run([GOOD, diverged], n_startup_trials=1) == [20, 2]


def test_the_length_of_a_trial_may_be_told():
    short = [0.1 * epoch for epoch in range(6)]
    assert run([GOOD, short], n_startup_trials=1) == [20, 6]
    assert run([GOOD, short], n_startup_trials=1, max_epochs=6) == [20, 4]


def test_steps_need_not_be_epochs():
    study = optuna.create_study(
        direction="maximize", pruner=RisingPruner(n_startup_trials=1)
    )

    def objective(trial):
        for epoch, score in enumerate([GOOD, FLAT][trial.number]):
            trial.report(score, 100 * epoch + 7)
            if trial.should_prune():
                raise optuna.TrialPruned
        return score

    study.optimize(objective, n_trials=2)
    assert [trial.state for trial in study.trials] == [
        TrialState.COMPLETE,
        TrialState.PRUNED,
    ]


def test_a_trial_without_reports_is_not_stopped():
    study = optuna.create_study(pruner=RisingPruner(n_startup_trials=0))
    assert not study.ask().should_prune()


def test_it_can_be_pickled():
    pruner = pickle.loads(pickle.dumps(RisingPruner(9, n_warmup_steps=3)))
    assert (pruner.max_epochs, pruner.n_warmup_steps) == (9, 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_epochs": 0}, "max_epochs must be a whole number of at least 1"),
        ({"n_startup_trials": -1}, "n_startup_trials must be a whole number"),
        ({"n_warmup_steps": 0.5}, "n_warmup_steps must be a whole number"),
    ],
)
def test_what_is_wrong_is_said(given, message):
    with pytest.raises(InvalidParameterError, match=message):
        RisingPruner(**given)
