import optuna
import pytest
from optuna.trial import TrialState

import risingsearch.integrations.optuna as rising
from risingsearch.errors import InvalidParameterError


def train(study, trial, trained):
    arm = rising.arm(trial)
    for epoch in range(arm.from_epoch, arm.from_epoch + arm.n_epochs):
        trained.append((arm.id, epoch))
        trial.report(1.0 - 1.0 / (epoch + 2), epoch)
    study.tell(trial)


def test_many_trials_are_open_at_once(make_study):
    study = rising.RisingStudy(make_study(budget=100))
    trained = []
    most = 0
    while not study.done:
        trials = []
        while len(trials) < 5 and (trial := study.ask()) is not None:
            trial.suggest_float("x", 0.0, 1.0)
            rising.arm(trial)
            trials.append(trial)
        most = max(most, len(trials))
        assert trials
        for trial in reversed(trials):
            train(study, trial, trained)
    assert most == 5
    assert len(trained) == len(set(trained)) == 100


def test_nothing_is_handed_out_beyond_the_budget(make_study):
    study = rising.RisingStudy(make_study(budget=3, epochs_per_job=1))
    trials = []
    while (trial := study.ask()) is not None:
        rising.arm(trial)
        trials.append(trial)
    assert 1 < len(trials) <= 3
    assert not study.done
    trained = []
    while trials:
        train(study, trials.pop(), trained)
        trials += [trial] if (trial := study.ask()) is not None else []
    assert len(trained) == 3
    assert study.done


def test_an_arm_that_has_a_value_has_ended(make_study):
    study = rising.RisingStudy(make_study(budget=10, epochs_per_job=1))
    trial = study.ask()
    rising.arm(trial)
    trial.report(0.5, 0)
    study.tell(trial, 0.5)
    assert study.study.trials[0].state == TrialState.COMPLETE
    while (trial := study.ask()) is not None:
        assert rising.arm(trial).id != 0
        train(study, trial, [])


def test_a_failed_trial_is_told_as_such(make_study):
    study = rising.RisingStudy(make_study(budget=10, epochs_per_job=1))
    study.tell(study.ask(), state=TrialState.FAIL)
    assert study.study.trials[0].state == TrialState.FAIL


def test_what_cannot_be_searched_is_refused():
    with pytest.raises(
        InvalidParameterError, match="takes a study with sampler=Rising"
    ):
        rising.RisingStudy(optuna.create_study())
    two = optuna.create_study(
        directions=["minimize", "minimize"], sampler=rising.RisingSampler(10, 5)
    )
    with pytest.raises(InvalidParameterError, match="one objective"):
        rising.RisingStudy(two)
