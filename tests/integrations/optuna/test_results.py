import pytest

import risingsearch.integrations.optuna as rising


@pytest.fixture
def searched(objective, make_study):
    study = make_study(budget=60)
    study.optimize(objective)
    return study


def test_finalize_shows_one_complete_trial_per_arm(searched):
    results = {result.id: result for result in rising.arm_results(searched)}
    n_before = len(searched.trials)
    rising.finalize(searched)
    added = searched.trials[n_before:]
    own = [result for result in results.values() if result.state == "complete"]
    assert len(added) + len(own) == len(results)
    for trial in added:
        result = results[trial.user_attrs["rising:final"]]
        assert trial.value == result.best_score
        assert trial.params == result.params
        assert trial.intermediate_values == result.curve
    best = rising.best_arm(searched)
    assert searched.best_params == best.params
    assert searched.best_value == best.best_score
    n_trials = len(searched.trials)
    rising.finalize(searched)
    assert len(searched.trials) == n_trials


def test_a_value_that_was_not_reported_is_warned_of(objective, make_study):
    objective.n_epochs = 5
    study = make_study(budget=40, max_epochs=5)
    with pytest.warns(UserWarning, match="has not reported"):
        study.optimize(lambda trial: -objective(trial))


def test_a_search_goes_on_after_finalize(objective, searched):
    rising.finalize(searched)
    searched.sampler = rising.RisingSampler(80, 20, seed=1)
    searched.optimize(objective)
    assert objective.trained.total() == 80
    assert set(objective.trained.values()) == {1}
    assert sum(result.epochs for result in rising.arm_results(searched)) == 80


def test_arms_are_a_table(searched):
    frame = rising.arms(searched)
    assert frame.epochs.sum() == frame.charged.sum() == 60
    assert frame.best_score.max() == rising.best_arm(searched).best_score
    assert set(frame.columns) == {
        "epochs",
        "charged",
        "best_score",
        "best_epoch",
        "last_score",
        "state",
        "n_trials",
        "opened_by_prior",
        "feasible",
        "params_x",
    }


def test_finalize_keeps_values_enqueued_outside_their_range(objective, make_study):
    study = make_study(budget=40)
    study.enqueue_trial({"x": 1.25})
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(objective)
    rising.finalize(study)
    [final] = [t for t in study.trials if t.user_attrs.get("rising:final") == 0]
    assert final.params == {"x": 1.25}
