"""New arms by the model of a space that is known from the arms alone."""

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.distributions import IntDistribution as Whole

import risingsearch.integrations.optuna as rising
from risingsearch.integrations.optuna.prior import OpenedArms
from risingsearch.integrations.optuna.proposals import inferred

PROPOSES = {"policy": "asha"}  # every arm that it opens


def proposed(study):
    return [trial for trial in study.trials if "rising:like" in trial.user_attrs]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_arms_are_proposed_near_the_best(objective, make_study, direction):
    objective.sign = 1.0 if direction == "maximize" else -1.0
    study = make_study(budget=100, direction=direction, **PROPOSES)
    study.optimize(objective)
    arms = {result.id: result for result in rising.arm_results(study)}
    opened_by_model = [trial for trial in proposed(study) if trial.number in arms]
    assert len(opened_by_model) > 10
    off = [abs(trial.params["x"] - 0.3) for trial in opened_by_model]
    assert sum(off) / len(off) < 0.15
    for trial in opened_by_model:
        assert set(trial.user_attrs["rising:like"]) <= set(range(trial.number))


@pytest.mark.parametrize(("finite", "budget"), [(False, 80), (True, 40)])
def test_a_study_that_is_taken_up_again_proposes_the_same(
    objective, make_study, finite, budget
):
    if finite:
        objective.suggest = lambda trial: 1 / trial.suggest_int("n", 1, 14)
    whole = make_study(budget=budget, **PROPOSES)
    whole.optimize(objective)
    study = make_study(budget=budget, **PROPOSES)
    while len(study.trials) < len(whole.trials):
        study.sampler = make_study(budget=budget, **PROPOSES).sampler
        study.optimize(objective, n_trials=7)
    assert [t.params for t in study.trials] == [t.params for t in whole.trials]
    assert proposed(study)


def test_parameters_of_a_branch_are_proposed_with_it(objective, make_study):
    drawn = []

    def suggest(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        x = trial.suggest_float(f"x of {kind}", 0.0, 1.0)
        return (kind == "a") - (x - 0.3) ** 2

    objective.suggest = suggest
    study = make_study(budget=100, **PROPOSES)
    sample = study.sampler.base.sample_independent
    study.sampler.base.sample_independent = lambda *given: (
        drawn.append(given[1].number) or sample(*given)
    )
    study.optimize(objective)
    assert not set(drawn) & {trial.number for trial in proposed(study)}
    best = rising.best_arm(study)
    assert best.params["kind"] == "a"
    assert abs(best.params["x of a"] - 0.3) < 0.1


def arms(*params):
    """Return arms with these parameters."""
    kinds = {
        "depth": Whole(1, 3),
        "kind": CategoricalDistribution(["a", "b", "c"]),
        "fixed": Whole(1, 1),
    }
    trials = [
        optuna.trial.create_trial(
            params=one,
            distributions={n: kinds.get(n, FloatDistribution(0, 1)) for n in one},
            value=0.0,
        )
        for one in params
    ]
    return OpenedArms(None, dict(enumerate(trials)))


def test_when_a_parameter_applies_is_learnt_from_the_arms():
    space = inferred(
        arms(
            {"depth": 1, "fixed": 1, "kind": "a", "x": 0.5},
            {"depth": 2, "fixed": 1, "second": 0.1, "kind": "a", "x": 0.5},
            {"depth": 2, "fixed": 1, "second": 0.2, "kind": "b", "x": 0.1, "y": 0.1},
            {"depth": 1, "fixed": 1, "kind": "c", "x": 0.1},
        )
    )
    assert {one.name: one.needs for one in space.coordinates} == {
        "depth": (),
        "kind": (),
        "x": (),
        "second": ("depth",),
        "y": ("kind",),
    }
    third = next(one for one in space.coordinates if one.name == "second")
    assert third.is_active({"depth": 3})  # no arm has said so
    assert not third.is_active({"depth": 1})


def test_what_no_other_parameter_explains_applies_always():
    space = inferred(arms({"x": 0.1}, {"x": 0.2, "y": 0.1}, {"x": 0.3}))
    assert [(k.name, k.needs) for k in space.coordinates] == [("x", ()), ("y", ())]


def mixed(trial):
    kind = trial.suggest_categorical("kind", [None, True])
    step = trial.suggest_float("step", 0.1, 0.3, step=0.1)
    return (kind is None) + step + trial.suggest_int("n", 2, 5, step=3)


def branches(trial):
    kind = trial.suggest_categorical("kind", ["a", "b"])
    return (kind == "a") + trial.suggest_int(f"n of {kind}", 1, 6)


def whole(trial):
    return trial.suggest_int("n", 1, 12, log=True)


@pytest.mark.parametrize("suggest", [mixed, branches, whole])
@pytest.mark.parametrize(("policy", "n_jobs"), [("auto", 1), ("auto", 3), ("asha", 1)])
def test_no_configuration_of_a_finite_space_is_repeated_while_one_is_untried(
    objective, make_study, suggest, policy, n_jobs
):
    objective.suggest = suggest
    objective.n_epochs = 4
    study = make_study(budget=32, n_candidates=20, policy=policy, max_epochs=4)
    study.optimize(objective, n_jobs=n_jobs)
    opened = [result.params for result in rising.arm_results(study)]
    different = [params for i, params in enumerate(opened) if params not in opened[:i]]
    n_unknown = n_jobs - 1  # opened before any parameter is known
    assert len(different) >= min(len(opened), 12) - n_unknown
    assert len(opened) > 8


def test_an_objective_without_anything_to_choose_has_its_budget(objective, make_study):
    objective.suggest = lambda trial: 1.0
    study = make_study(budget=40)
    study.optimize(objective)
    assert objective.trained.total() == 40
