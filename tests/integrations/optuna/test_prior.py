"""A study that learns from earlier searches: what it opens first, and what it shows."""

import pickle

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

import risingsearch.integrations.optuna as rising
from risingsearch.errors import InvalidParameterError
from risingsearch.priors import EarlierSearch


def earlier(best=0.3, name="May", most=1.0, **more):
    """Return a search of ``x``, which was best at a value of it."""
    params = [{"x": x, **more} for x in np.linspace(0.0, most, 20)]
    ends = [1.0 - (one["x"] - best) ** 2 for one in params]
    return EarlierSearch(name, params, [np.array([end]) for end in ends])


def by_prior(study):
    return [result for result in rising.arm_results(study) if result.opened_by_prior]


def lies_around_what_did_well(study):
    """Whether arms by the prior lie at the best of May, and spread around it."""
    off = [abs(result.params["x"] - 0.3) for result in by_prior(study)]
    return min(off) < 0.05 and max(off) < 0.3


def trained(trial, top):
    arm = rising.arm(trial)
    for epoch in range(arm.from_epoch, 20):
        score = top * (1.0 - 1.0 / (epoch + 2))
        trial.report(score, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return score


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_what_did_well_earlier_is_opened_first(objective, make_study, direction):
    objective.sign = 1.0 if direction == "maximize" else -1.0
    prior = [earlier(), earlier(name="June")]
    study = make_study(budget=100, direction=direction, prior=prior)
    study.optimize(objective)
    assert objective.trained.total() == 100
    opened = rising.arm_results(study)
    assert not opened[0].opened_by_prior  # before it, no parameters are known
    assert len(by_prior(study)) >= 5
    assert lies_around_what_did_well(study)
    assert rising.arms(study)["opened_by_prior"].sum() == len(by_prior(study))
    assert len({result.params["x"] for result in opened}) == len(opened)
    trust = study.sampler.trust_in_prior(study)
    assert set(trust) == {"May", "June"}
    assert sum(trust.values()) > 0.5


def test_an_earlier_study_is_a_prior(objective, make_study, tmp_path):
    storage = f"sqlite:///{tmp_path}/studies.db"
    stored = {"storage": storage, "study_name": "before"}
    before = make_study(budget=40, study=stored)
    before.optimize(objective)
    for source in (before, storage):
        study = make_study(prior=source)
        study.optimize(objective)
        assert by_prior(study)
        assert list(study.sampler.trust_in_prior(study)) == ["study before"]


def test_arms_that_are_open_at_the_same_time_differ(make_study):
    study = make_study(budget=120, max_epochs=10, prior=earlier())
    seen, trials = [], True
    while trials:
        trials = []
        while len(trials) < 4 and (trial := rising.ask(study)) is not None:
            x = trial.suggest_float("x", 0.0, 1.0)
            arm = rising.arm(trial)
            if arm.from_epoch == 0:
                seen.append(x)
            trials.append((trial, arm, x))
        for trial, arm, x in trials:
            for epoch in range(arm.from_epoch, arm.from_epoch + arm.n_epochs):
                trial.report((1 - (x - 0.3) ** 2) * (1 - 1 / (epoch + 2)), epoch)
            study.tell(trial, state=TrialState.PRUNED)
    assert len(by_prior(study)) >= 4
    assert len(set(seen)) == len(seen)


def test_every_process_suggests_the_same(objective, make_study):
    study = make_study(budget=100, prior=earlier())
    study.optimize(objective, n_trials=3)
    copied = pickle.loads(pickle.dumps(study.sampler))
    other = optuna.create_study(
        direction="maximize", sampler=copied, pruner=rising.RisingPruner()
    )
    for trial in study.trials:
        other.add_trial(trial)
    asked = [each.ask().suggest_float("x", 0.0, 1.0) for each in (study, other)]
    assert asked[0] == asked[1]
    assert by_prior(study)[-1].params == {"x": asked[0]}
    assert copied.trust_in_prior(other) == study.sampler.trust_in_prior(study)


def test_what_is_enqueued_is_opened_as_it_is(objective, make_study):
    study = make_study(prior=earlier())
    for x in (0.9, 0.8, 0.7):
        study.enqueue_trial({"x": x})
    study.optimize(objective)
    first = rising.arm_results(study)[:3]
    assert [result.params["x"] for result in first] == [0.9, 0.8, 0.7]
    assert not any(result.opened_by_prior for result in first)
    assert lies_around_what_did_well(study)


def test_a_parameter_that_not_every_arm_has_is_left_to_the_base(make_study):
    def objective(trial):
        top = 1.0 - (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2
        trial.suggest_int("only", 1, 1)  # no choice
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            top -= trial.suggest_float("y", 0.0, 0.1)
        return trained(trial, top)

    of_y = EarlierSearch(
        "of y",
        [{"y": y} for y in np.linspace(0.0, 0.1, 8)],
        [np.array([-y]) for y in np.linspace(0.0, 0.1, 8)],
    )
    first = {"kind": "a"}  # so that y is known
    prior = [earlier(**first), of_y]
    study = make_study(budget=100, prior=prior, enqueue=[first], seed=0)
    study.optimize(objective)
    assert lies_around_what_did_well(study)
    assert {"a", "b"} == {r.params["kind"] for r in rising.arm_results(study)}
    for result in by_prior(study):
        assert ("y" in result.params) == (result.params["kind"] == "a")
    assert list(study.sampler.trust_in_prior(study)) == ["May"]


@pytest.mark.parametrize(
    ("suggest", "best", "most"),
    [
        (lambda trial: trial.suggest_float("x", 1e-4, 1.0, log=True), 0.3, 1.0),
        (lambda trial: trial.suggest_int("x", 1, 64, log=True), 20.0, 64.0),
        (lambda trial: trial.suggest_categorical("x", range(9)), 3.0, 9.0),
    ],
)
def test_every_kind_of_parameter_is_suggested(make_study, suggest, best, most):
    def objective(trial):
        return trained(trial, 1.0 - (suggest(trial) - best) ** 2)

    prior = [earlier(best, most=most), earlier(best, "June", most)]
    study = make_study(budget=60, prior=prior, n_candidates=8)
    study.optimize(objective)
    assert by_prior(study)
    assert sum(result.epochs for result in rising.arm_results(study)) <= 60


def test_a_prior_that_cannot_be_used_is_an_error_if_it_is_alone(objective, make_study):
    with pytest.raises(InvalidParameterError, match="there is no earlier search at"):
        make_study(prior="none.csv")
    foreign = EarlierSearch("foreign", [{"z": 1.0}] * 4, [np.array([0.5])] * 4)
    study = make_study(prior=foreign)
    with pytest.raises(InvalidParameterError, match="foreign: nothing of it can be"):
        study.optimize(objective)
    assert not study.get_trials(states=[optuna.trial.TrialState.RUNNING])
    study = make_study(prior=[foreign, earlier()])
    with pytest.warns(RuntimeWarning, match="1 of its 2 searches are skipped"):
        study.optimize(objective)
    assert list(study.sampler.trust_in_prior(study)) == ["May"]


def test_what_cannot_be_used_anywhere_is_refused_before_the_first_trial(make_study):
    few = EarlierSearch("few", [{"x": 0.1}] * 3, [np.array([0.5])] * 3)
    for prior, words in (
        (few, "few: nothing of it can be used here: it needs 4 runs, and has 3"),
        (optuna.create_study(), "of its 0 runs, none has"),
    ):
        with pytest.raises(InvalidParameterError, match=words):
            make_study(prior=prior)


def test_a_trial_that_is_asked_for_is_failed_where_a_prior_is_refused(make_study):
    foreign = EarlierSearch("foreign", [{"z": 1.0}] * 4, [np.array([0.5])] * 4)
    study = make_study(prior=foreign)

    def search():
        while (trial := rising.ask(study)) is not None:
            trial.suggest_float("x", 0.0, 1.0)
            arm = rising.arm(trial)
            for epoch in range(arm.from_epoch, arm.from_epoch + arm.n_epochs):
                trial.report(0.5, epoch)
            study.tell(trial, state=TrialState.PRUNED)

    with pytest.raises(InvalidParameterError, match="foreign: nothing of it can be"):
        search()
    assert study.trials[-1].state == TrialState.FAIL


@pytest.mark.parametrize("prior", [None, earlier(best=0.6, name="June")])
def test_a_study_goes_on_with_another_prior_or_none(objective, make_study, prior):
    storage = optuna.storages.InMemoryStorage()
    stored = {"storage": storage, "study_name": "one", "load_if_exists": True}
    make_study(prior=earlier(), study=stored).optimize(objective, n_trials=4)
    again = make_study(prior=prior, study=stored)
    again.optimize(objective)
    assert objective.trained.total() == 60
    names = [] if prior is None else ["June"]
    assert list(again.sampler.trust_in_prior(again)) == names
