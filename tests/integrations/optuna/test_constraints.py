"""Constraints of a study reach what proposes arms, and the best arm satisfies them."""

import warnings

import optuna
import pytest
from optuna.samplers import (
    GPSampler,
    NSGAIISampler,
    PartialFixedSampler,
    TPESampler,
)

import risingsearch.integrations.optuna as rising
from risingsearch.errors import SearchFailedError
from risingsearch.integrations.optuna.study_replica import StudyReplica

pytestmark = [
    pytest.mark.skipif(
        not hasattr(optuna.Trial, "set_constraint"), reason="since Optuna 5"
    ),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]
N_EPOCHS = 6
LIMIT = 0.3  # of x, and the higher x is the better is the score


class Constrained:
    """An objective that rises with x, which has a limit."""

    def __init__(self, set_constraint=lambda trial, x, epoch: None):
        self.set_constraint = set_constraint

    def __call__(self, trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        arm = rising.arm(trial)
        self.set_constraint(trial, x, arm.from_epoch)
        for epoch in range(arm.from_epoch, N_EPOCHS):
            score = x * (1.0 - 0.5 ** (epoch + 1))
            trial.set_user_attr("size", round(x, 3))
            trial.set_user_attr("epoch", epoch)
            trial.report(score, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return score


def always(trial, x, epoch):
    trial.set_constraint("x", x - LIMIT)


def only_at_first(trial, x, epoch):
    if epoch == 0:
        trial.set_constraint("x", x - LIMIT)


def of_params(trial):
    return (trial.params["x"] - LIMIT,)


def of_user_attrs(trial):
    return (trial.user_attrs["size"] - LIMIT,)


def is_allowed(x):
    return x <= LIMIT + 0.001


def with_function(make, function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return make(constraints_func=function)


def tpe(**options):
    return TPESampler(seed=0, n_startup_trials=5, **options)


def partial(**options):
    return PartialFixedSampler({}, tpe(**options))


def gaussian_process(**options):
    return GPSampler(seed=0, n_startup_trials=5, **options)


def genetic(**options):
    return NSGAIISampler(seed=0, population_size=6, **options)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("set_constraint", [always, only_at_first])
def test_the_best_arm_is_feasible_and_trained(make_study, set_constraint, n_jobs):
    study = make_study(budget=100, max_epochs=N_EPOCHS)
    study.optimize(Constrained(set_constraint), n_jobs=n_jobs)
    results = rising.arm_results(study)
    assert sum(result.epochs for result in results) == 100
    for result in results:
        assert result.feasible == (result.params["x"] <= LIMIT)
    best = rising.best_arm(study)
    assert best.feasible
    assert best.epochs > 2
    assert best.params["x"] > LIMIT - 0.1
    rising.finalize(study)
    assert study.best_trial.params == best.params
    assert study.best_value == best.best_score


@pytest.mark.parametrize("policy", ["auto", "asha"])
@pytest.mark.parametrize("make", [tpe, partial, genetic, gaussian_process])
def test_constraints_of_the_trial_reach_the_base(make_study, make, policy):
    options = {"max_epochs": N_EPOCHS, "policy": policy, "n_candidates": 24}
    study = make_study(budget=60, base=make(), **options)
    study.optimize(Constrained(always))
    seen = study.sampler._seen(study)
    assert len(seen) > 8
    for trial in seen:
        assert trial.constraints == {"x": trial.params["x"] - LIMIT}
    assert is_allowed(rising.best_arm(study).params["x"])


@pytest.mark.parametrize("function", [of_params, of_user_attrs])
@pytest.mark.parametrize("make", [tpe, partial, genetic])
def test_the_constraints_function_of_the_base_judges_every_slice(
    make_study, make, function
):
    base = with_function(make, function)
    study = make_study(budget=60, max_epochs=N_EPOCHS, base=base)
    study.optimize(Constrained())
    for trial in study.trials:
        if trial.user_attrs.get("rising:n_epochs"):
            assert trial.constraints == {"0": function(trial)[0]}
    rising.finalize(study)
    assert is_allowed(study.best_trial.params["x"])
    assert study.best_trial.params == rising.best_arm(study).params


def test_fewer_arms_are_proposed_beyond_a_limit(make_study):
    def share_beyond(set_constraint):
        study = make_study(budget=90, max_epochs=N_EPOCHS, policy="asha")
        study.optimize(Constrained(set_constraint))
        xs = [result.params["x"] for result in rising.arm_results(study)][10:]
        return sum(not is_allowed(x) for x in xs) / len(xs)

    assert share_beyond(always) < 0.7
    assert share_beyond(lambda *given: None) > 0.8


def test_an_arm_that_training_makes_feasible_is_trained_until_it_is(make_study):
    def nearer_with_each_slice(trial, x, epoch):
        trial.set_constraint("error", 0.5 ** (epoch + 1) - 0.1)

    study = make_study(budget=40, max_epochs=N_EPOCHS, epochs_per_job=1)
    study.optimize(Constrained(nearer_with_each_slice))
    assert rising.best_arm(study).epochs > 3


@pytest.mark.parametrize("growth", [0.0, 1.0])
def test_an_arm_that_does_not_come_nearer_is_retired(make_study, growth):
    def set_constraint(trial, x, epoch):
        trial.set_constraint("x", (x - LIMIT) * (1.0 + growth * epoch))

    study = make_study(budget=60, max_epochs=N_EPOCHS, epochs_per_job=1)
    study.optimize(Constrained(set_constraint))
    results = rising.arm_results(study)
    assert sum(result.epochs for result in results) == 60
    assert max(result.epochs for result in results if not result.feasible) == 2
    assert rising.best_arm(study).epochs > 2


def test_a_release_that_would_have_retired_an_arm_counts_all_its_slices(
    make_study, monkeypatch
):
    study = make_study(budget=40, max_epochs=N_EPOCHS)
    with monkeypatch.context() as earlier:
        earlier.setattr(StudyReplica, "stays_infeasible", lambda *given: False)
        study.optimize(Constrained(always), n_trials=20)
    study.sampler = make_study(budget=40, max_epochs=N_EPOCHS).sampler
    study.optimize(Constrained(always))
    assert sum(result.epochs for result in rising.arm_results(study)) == 40


def test_the_latest_value_of_a_constraint_counts(make_study):
    def worse_with_each_slice(trial, x, epoch):
        trial.set_constraint("size", epoch - 2.5)

    study = make_study(budget=60, max_epochs=N_EPOCHS, epochs_per_job=1)
    study.optimize(Constrained(worse_with_each_slice))
    for result in rising.arm_results(study):
        assert result.feasible == (result.epochs <= 3)


def test_an_arm_that_was_not_judged_is_not_known_to_be_feasible(make_study):
    def set_constraint(trial, x, epoch):
        if epoch >= 2:
            trial.set_constraint("x", x - 2.0)

    study = make_study(budget=60, max_epochs=N_EPOCHS, epochs_per_job=2)
    study.optimize(Constrained(set_constraint))
    rising.finalize(study)
    results = rising.arm_results(study)
    for result in results:
        assert result.feasible == (result.epochs > 2)
    added = {trial.user_attrs.get("rising:final") for trial in study.trials}
    assert not added & {result.id for result in results if not result.feasible}


def test_without_a_feasible_arm_none_is_the_best(make_study):
    study = make_study(budget=20, max_epochs=N_EPOCHS)
    study.optimize(Constrained(lambda trial, x, epoch: trial.set_constraint("c", 1.0)))
    with pytest.raises(SearchFailedError, match="no arm satisfies all constraints"):
        rising.best_arm(study)
    rising.finalize(study)
    with pytest.raises(ValueError, match="No feasible trials"):
        study.best_trial  # noqa: B018


def test_finalize_keeps_what_the_objective_last_noted(make_study):
    study = make_study(budget=60, max_epochs=N_EPOCHS)
    study.optimize(Constrained(always))
    rising.finalize(study)
    results = {result.id: result for result in rising.arm_results(study)}
    added = [trial for trial in study.trials if "rising:final" in trial.user_attrs]
    assert added
    for trial in added:
        result = results[trial.user_attrs["rising:final"]]
        x = result.params["x"]
        noted = {"size": round(x, 3), "epoch": result.epochs - 1}
        assert trial.user_attrs == noted | {"rising:final": result.id}
        assert trial.constraints == {"x": x - LIMIT}
        assert trial.intermediate_values == result.curve


def test_added_trials_are_no_more_arms_to_the_base(make_study):
    study = make_study(budget=40, max_epochs=N_EPOCHS, base=tpe())
    study.optimize(Constrained(always))
    seen = len(study.sampler._seen(study))
    rising.finalize(study)
    study.sampler = make_study(budget=50, max_epochs=N_EPOCHS, base=tpe()).sampler
    study.sampler.can_start(study)
    assert len(study.sampler._seen(study)) == seen
