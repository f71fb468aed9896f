import copy
import math
import pickle
import threading
import time

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

import risingsearch.integrations.optuna as rising
from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.integrations.optuna import trials
from risingsearch.integrations.optuna.trials import give_up
from tests.integrations.optuna.test_heartbeats import RETRY

N_EPOCHS = "rising:n_epochs"


def slices(study):
    """Return the trials that have trained."""
    return [trial for trial in study.trials if trial.user_attrs.get(N_EPOCHS)]


def empty_trials(study):
    return [trial for trial in study.trials if trial.user_attrs.get(N_EPOCHS) == 0]


def test_the_budget_is_spent_to_the_last_epoch(objective, make_study):
    study = make_study(budget=100)
    study.optimize(objective)
    assert objective.trained.total() == 100
    assert set(objective.trained.values()) == {1}


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_best_arms_get_the_epochs(objective, make_study, direction):
    objective.sign = 1.0 if direction == "maximize" else -1.0
    study = make_study(budget=150, direction=direction)
    study.optimize(objective)
    best = rising.best_arm(study)
    assert best.epochs > 10
    assert abs(best.params["x"] - 0.3) < 0.15


def test_an_arm_comes_back_as_it_was(objective, make_study):
    study = make_study(budget=100)
    study.optimize(objective)
    known = {}
    revived = 0
    for trial in slices(study):
        arm = trial.user_attrs["rising:arm"]
        n_before = trial.user_attrs.get("rising:from_epoch", 0)
        params, curve = known.get(arm, (trial.params, {}))
        revived += arm in known
        assert n_before == len(curve)
        assert trial.params == params
        assert trial.intermediate_values.items() >= curve.items()
        known[arm] = trial.params, trial.intermediate_values
    assert revived > 10


def test_the_seed_decides(make_study, objective):
    def found(seed):
        study = make_study(seed=seed)
        study.optimize(objective)
        return [(trial.params, trial.user_attrs) for trial in study.trials]

    assert found(1) == found(1)
    assert found(1) != found(2)


@pytest.mark.parametrize("n_arms", [1, 5, 1000])
def test_no_more_arms_are_opened_than_asked_for(objective, make_study, n_arms):
    study = make_study(budget=150, n_candidates=n_arms)
    study.optimize(objective)
    arms = rising.arm_results(study)
    assert len(arms) == n_arms if n_arms < 1000 else 5 < len(arms) < 150
    assert objective.trained.total() == min(150, 20 * n_arms)


def test_an_arm_with_all_its_epochs_is_complete(objective, make_study):
    study = make_study(budget=200)
    study.optimize(objective)
    for result in rising.arm_results(study):
        assert (result.state == "complete") == (result.epochs == 20)
    assert study.best_trial.value == rising.best_arm(study).best_score


def test_threads_share_the_budget(objective, make_study):
    counting = threading.Lock()

    def locked(trial):
        with counting:
            return objective(trial)

    study = make_study(budget=100)
    study.optimize(locked, n_jobs=4)
    assert objective.trained.total() == 100
    assert set(objective.trained.values()) == {1}


def test_the_search_goes_on_where_it_was_stopped(objective, make_study):
    study = make_study(budget=60)
    study.optimize(objective, n_trials=20)
    study.optimize(objective)
    assert objective.trained.total() == 60
    assert set(objective.trained.values()) == {1}
    with pytest.warns(
        UserWarning, match="the budget of 60 epochs is spent, so nothing"
    ):
        study.optimize(objective)
    assert objective.trained.total() == 60
    assert len(empty_trials(study)) == 1


def test_conditional_spaces_come_back_with_their_branch(make_study, objective):
    def suggest(trial):
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            return trial.suggest_float("alpha", 0.0, 1.0)
        return trial.suggest_int("width", 1, 9) / 10

    objective.suggest = suggest
    study = make_study(budget=100)
    study.optimize(objective)
    assert objective.trained.total() == 100
    for result in rising.arm_results(study):
        own = {"a": "alpha", "b": "width"}[result.params["kind"]]
        assert set(result.params) == {"kind", own}


def test_enqueued_trials_open_arms(objective, make_study):
    study = make_study(budget=60)
    for known in ({"x": 0.25}, {"x": 0.75, "x0": 1.0}):
        study.enqueue_trial(known)
    with pytest.warns(UserWarning, match="enqueued parameter 'x0'; did you mean 'x'"):
        study.optimize(objective)
    assert [study.trials[i].params["x"] for i in range(2)] == [0.25, 0.75]
    assert objective.trained.total() == 60
    assert objective.trained[0, 0] == objective.trained[1, 0] == 1


def test_what_is_enqueued_is_opened_though_the_policy_would_open_fewer(
    objective, make_study
):
    study = make_study(budget=60, min_epochs=4)  # which the policy gives to six
    known = [{"x": i / 20} for i in range(12)]
    for params in known:
        study.enqueue_trial(params)
    study.optimize(objective)
    results = rising.arm_results(study)
    assert [result.params for result in results] == known
    assert all(result.epochs >= 4 for result in results)
    assert objective.trained.total() == 60


def test_a_sampler_enqueues_what_the_study_has_not(objective, make_study):
    known = [{"x": 0.25}, {"x": 0.75}, {"x": 2.0}]
    study = make_study(budget=40, enqueue=known, min_epochs=3)
    with pytest.warns(UserWarning, match=r"2.0 is out of range"):
        study.optimize(objective, n_trials=4)
    study.sampler = rising.RisingSampler(40, 20, enqueue=known, min_epochs=3)
    study.optimize(objective)
    results = rising.arm_results(study)
    assert [result.params for result in results[:3]] == known
    assert all(result.params["x"] <= 1.0 for result in results[3:])
    assert all(result.epochs >= 3 for result in results[:3])
    assert objective.trained.total() == 40


@pytest.mark.parametrize("storage", [None, "sqlite://"])
def test_what_is_enqueued_outside_its_range_continues(objective, make_study, storage):
    objective.suggest = lambda trial: trial.suggest_float("x", 0.0, 1.0)
    known = [{"x": np.float32(2.0)}]  # which a database does not hold as it is
    study = make_study(budget=40, enqueue=known, study={"storage": storage})
    with pytest.warns(UserWarning, match=r"2.0 is out of range"):
        study.optimize(objective)
    assert rising.best_arm(study).params == {"x": 2.0}
    assert rising.best_arm(study).n_trials > 1
    assert objective.trained.total() == 40


def test_two_threads_open_what_is_enqueued_once(objective, make_study, monkeypatch):
    read = trials.all_trials
    slowly = lambda study: (time.sleep(0.02), read(study))[1]  # noqa: E731
    monkeypatch.setattr(trials, "all_trials", slowly)
    study = make_study(budget=40, enqueue=[{"x": 0.25}])
    study.optimize(objective, n_jobs=4)
    opened = [result.params["x"] for result in rising.arm_results(study)]
    assert opened.count(0.25) == 1


def test_a_study_stops_when_nothing_better_is_found_and_can_go_on(
    objective, make_study
):
    study = make_study(budget=60, patience=6)
    study.optimize(objective)
    n_epochs = objective.trained.total()
    assert n_epochs < 60
    with pytest.warns(UserWarning, match="the patience of 6 .* so nothing was left"):
        study.optimize(objective)
    assert objective.trained.total() == n_epochs
    study.sampler = rising.RisingSampler(60, 20, seed=1)
    study.optimize(objective)
    assert objective.trained.total() == 60


def test_enqueued_trials_beyond_the_budget_train_nothing(objective, make_study):
    study = make_study(budget=5)
    for i in range(8):
        study.enqueue_trial({"x": i / 10})
    study.optimize(objective)
    assert objective.trained.total() == 5
    assert all(trial.state.is_finished() for trial in study.trials)


@pytest.mark.filterwarnings("ignore:Inconsistent parameter values")
def test_a_narrowed_range_leaves_arms_as_they_are(objective, make_study):
    study = make_study(budget=60)
    study.optimize(objective, n_trials=20)
    before = {result.id: result.params for result in rising.arm_results(study)}
    objective.suggest = lambda trial: 1.0 - trial.suggest_float("x", 0.4, 0.5)
    study.optimize(objective)
    for result in rising.arm_results(study):
        if result.id in before:
            assert result.params == before[result.id]
        else:
            assert 0.4 <= result.params["x"] <= 0.5


def test_changed_choices_are_an_error_that_retires_the_arm(objective, make_study):
    choices = [0.1, 0.9]
    objective.suggest = lambda trial: trial.suggest_categorical("x", choices)
    study = make_study(budget=60)
    study.optimize(objective, n_trials=20)
    choices.append(0.5)
    with pytest.raises(ValueError, match="does not support dynamic value space"):
        study.optimize(objective)
    assert study.trials[20:][0].state == TrialState.FAIL


def test_a_nan_report_retires_the_arm(objective, make_study):
    top = objective.score
    objective.score = lambda x, epoch: math.nan if x < 0.9 else top(x, epoch)
    study = make_study(budget=60)
    study.optimize(objective)
    assert objective.trained.total() == 60
    bad = [r for r in rising.arm_results(study) if math.isnan(r.best_score)]
    assert bad
    assert {(result.n_trials, result.state) for result in bad} == {(1, "failed")}
    assert math.isfinite(rising.best_arm(study).best_score)


def test_an_exception_charges_the_slice_and_retires_the_arm(objective, make_study):
    def failing(trial):
        if trial.number % 3 == 1:
            rising.arm(trial)
            raise OSError("no disk")
        return objective(trial)

    study = make_study(budget=60)
    study.optimize(failing, catch=(OSError,))
    failed = [t for t in slices(study) if t.state == TrialState.FAIL]
    assert failed
    assert objective.trained.total() < 60
    assert sum(result.charged for result in rising.arm_results(study)) == 60
    for trial in failed:
        later = study.trials[trial.number + 1 :]
        arms = {t.user_attrs.get("rising:arm") for t in later}
        assert trial.user_attrs["rising:arm"] not in arms


def test_a_trial_that_never_reports_is_charged_an_epoch(make_study):
    study = make_study(budget=12)
    with pytest.warns(UserWarning, match="did not ask for its arm"):
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0))
    assert len(study.trials) == 12
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE}


def test_an_objective_that_returns_early_has_ended(objective, make_study):
    objective.n_epochs = 3
    study = make_study(budget=60, max_epochs=20)
    study.optimize(objective)
    assert objective.trained.total() == 60
    assert max(result.epochs for result in rising.arm_results(study)) == 3


def test_an_objective_longer_than_max_epochs_is_refused(objective, make_study):
    study = make_study(budget=60, max_epochs=8)
    with pytest.raises(InvalidParameterError, match="more than max_epochs=8 times"):
        study.optimize(objective)


def unaware(trial, trained, low):
    """Report and stop as Optuna's tutorial does."""
    x = trial.suggest_float("x", low, 1.0)
    for epoch in range(20):
        trained.append((trial.number, epoch))
        score = (1.0 - (x - 0.3) ** 2) * (1.0 - 1.0 / (epoch + 2))
        trial.report(score, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return score


@pytest.mark.parametrize("low", [0.0, 1.0])  # a single value is not sampled
def test_trials_that_never_ask_are_stopped_and_never_revived(make_study, low):
    trained = []
    study = make_study(budget=150)
    with pytest.warns(UserWarning, match="did not ask for its arm"):
        study.optimize(lambda trial: unaware(trial, trained, low))
    assert len(trained) == len(set(trained)) == 150
    states = [trial.state for trial in study.trials]
    assert set(states) == {TrialState.COMPLETE, TrialState.PRUNED}
    assert all("rising:arm" not in trial.user_attrs for trial in study.trials)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("inherit", [True, False])
def test_a_retried_slice_stays_the_same(objective, make_study, inherit):
    retry = RETRY(inherit_intermediate_values=inherit)
    study = make_study(budget=30, max_failures=0)
    study.optimize(objective, n_trials=12)
    trial = study.ask()
    arm = rising.arm(trial)
    # What fail_stale_trials does for a process that died.
    study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
    retry(study, study.trials[trial.number])
    again = study.trials[-1]
    assert again.user_attrs == trial.user_attrs
    study.optimize(objective)
    assert set(objective.trained.values()) == {1}
    assert (arm.id, arm.from_epoch) in objective.trained
    assert objective.trained.total() == 30 - 1


def test_the_slice_of_a_process_that_died_is_given_out_again(objective, make_study):
    study = make_study(budget=60, give_up_after=0.05)
    study.optimize(objective, n_trials=12)
    dead = study.ask()  # and nothing more is heard of it
    arm = rising.arm(dead)
    dead.report(0.5, arm.from_epoch)  # after which it saved no checkpoint
    study.sampler = rising.RisingSampler(60, 20, seed=1, give_up_after=0.05)
    study.optimize(objective)
    assert objective.trained.total() == 60
    assert set(objective.trained.values()) == {1}
    assert sum(result.epochs for result in rising.arm_results(study)) == 60


def test_what_a_process_that_died_has_saved_is_not_trained_again(
    objective, make_study, tmp_path
):
    options = {"epochs_per_job": 4, "checkpoint_dir": tmp_path, "give_up_after": 0.05}
    study = make_study(budget=60, **options)
    study.optimize(objective, n_trials=12)
    dead = study.ask()
    params = dict(dead.params)
    arm = rising.arm(dead)
    for epoch in range(arm.from_epoch, arm.from_epoch + 2):
        dead.report(0.99, epoch)  # a score that its arm is chosen for again
    with arm.save() as folder:
        (folder / "state").write_text("after two epochs")
    dead.report(0.1, arm.from_epoch + 2)
    continued = []

    def resumes(trial):
        again = rising.arm(trial)
        if again.id == arm.id:
            continued.append((again.from_epoch, again.checkpoint, trial.params))
        return objective(trial)

    study.sampler = rising.RisingSampler(60, 20, seed=1, **options)
    study.optimize(resumes)
    from_epoch, checkpoint, again_params = continued[0]
    assert from_epoch == arm.from_epoch + 2
    assert (checkpoint / "state").read_text() == "after two epochs"
    assert again_params == params
    assert objective.trained.total() == 60 - 2
    assert sum(result.epochs for result in rising.arm_results(study)) == 60


def test_a_process_that_died_before_it_began_costs_nothing(objective, make_study):
    study = make_study(budget=60, give_up_after=0.05)
    study.optimize(objective, n_trials=12)
    for trial in study.get_trials(states=(TrialState.WAITING,)):
        study._storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING)
        study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
    study._storage.create_new_trial(study._study_id)
    study.sampler = rising.RisingSampler(60, 20, seed=1, give_up_after=0.05)
    study.optimize(objective)
    assert objective.trained.total() == 60


@pytest.mark.parametrize("n_before", [0, 12])
@pytest.mark.parametrize("by", ["study", "sampler"])
@pytest.mark.parametrize("suggested", [None, [], ["x"], ["x", "y"]])
def test_what_was_enqueued_is_opened_though_its_process_died(
    objective, make_study, suggested, by, n_before
):
    objective.suggest = lambda trial: sum(
        trial.suggest_float(name, 0.0, 1.0) for name in "xy"
    )
    options = {"budget": 60, "give_up_after": 0.05}
    study = make_study(**options)
    study.optimize(objective, n_trials=n_before)
    enqueued = [{"x": 0.25, "y": 0.5}, {"x": 0.75, "y": 0.5}]
    own = enqueued if by == "sampler" else []
    for params in enqueued if by == "study" else []:
        study.enqueue_trial(params)
    study.sampler = make_study(**options, enqueue=own).sampler
    if suggested is None:  # it died before its epochs were decided
        if study._pop_waiting_trial_id() is None:
            study._storage.create_new_trial(study._study_id)
    else:
        dead = study.ask()
        for name in suggested:
            dead.suggest_float(name, 0.0, 1.0)
    for _ in range(2):  # processes
        study.sampler = make_study(**options, enqueue=own).sampler
        study.optimize(objective, n_trials=4)
    study.optimize(objective)
    opened = [result.params for result in rising.arm_results(study)]
    assert [opened.count(params) for params in enqueued] == [1, 1]
    assert objective.trained.total() == 60


def test_what_two_processes_give_up_at_once_is_opened_once(objective, make_study):
    study = make_study(budget=40, n_candidates=2)
    study.enqueue_trial({"x": 0.25})
    dead = study.trials[study.ask().number]
    for _ in range(2):
        give_up(study, [dead])
    study.optimize(objective)
    opened = [result.params["x"] for result in rising.arm_results(study)]
    assert len(opened) == 2
    assert opened.count(0.25) == 1
    assert objective.trained.total() == 40


def test_a_process_that_was_only_slow_ends_its_trial_and_counts_for_nothing(
    objective, make_study, tmp_path
):
    options = {"give_up_after": 0.05, "checkpoint_dir": tmp_path}
    study = make_study(budget=60, **options)
    study.optimize(objective, n_trials=12)
    slow = study.ask()
    arm = rising.arm(slow)
    study.sampler = rising.RisingSampler(60, 20, seed=1, **options)
    study.optimize(objective)
    assert objective.trained.total() == 60
    slow.report(5.0, arm.from_epoch)
    assert slow.should_prune()
    with pytest.raises(optuna.TrialPruned, match="gave this trial up"), arm.save():
        pass
    study.tell(slow, state=TrialState.PRUNED)
    with pytest.warns(UserWarning, match="nothing was left to train"):
        study.optimize(objective)
    assert objective.trained.total() == 60
    assert rising.best_arm(study).best_score < 1.0


def test_a_sampler_travels_to_other_processes(objective, make_study):
    study = make_study(budget=60)
    study.optimize(objective, n_trials=20)
    study.sampler = pickle.loads(pickle.dumps(copy.deepcopy(study.sampler)))
    study.pruner = pickle.loads(pickle.dumps(copy.deepcopy(study.pruner)))
    study.optimize(objective)
    assert objective.trained.total() == 60
    assert set(objective.trained.values()) == {1}


def test_a_study_with_two_objectives_is_refused(objective, make_study):
    study = optuna.create_study(
        directions=["maximize", "minimize"],
        sampler=rising.RisingSampler(10, 5),
        pruner=rising.RisingPruner(),
    )
    with pytest.raises(InvalidParameterError, match="one objective; got 2"):
        study.optimize(objective)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"policy": "hyperband"}, "policy='looks-then-slope', .* policy='hyperband'"),
        ({"max_epochs": 12}, "with max_epochs=20, and this sampler has max_epochs=12"),
        ({"budget": 40}, "budget=60, and .* budget=40: .*the budget may be larger"),
    ],
)
def test_a_study_is_continued_as_it_was_begun(objective, make_study, other, message):
    study = make_study()
    study.optimize(objective, n_trials=4)
    study.sampler = make_study(**other).sampler
    with pytest.raises(RunDirError, match=message):
        study.optimize(objective)
    study.sampler = make_study(budget=80).sampler
    study.optimize(objective)
    assert objective.trained.total() == 80  # of which the refused trial had none


def test_another_pruner_is_warned_of(objective, make_study):
    study = make_study(budget=5)
    study.pruner = optuna.pruners.NopPruner()
    with (
        pytest.warns(RuntimeWarning, match=r"needs pruner=RisingPruner\(\)"),
        pytest.raises(InvalidParameterError, match="its slice of the budget has 1: "),
    ):
        study.optimize(objective, n_trials=1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": 0}, "budget must be a whole number of at least 1; got 0"),
        ({"budget": "8h"}, "limit time by study.optimize"),
        ({"max_epochs": 1.5}, "max_epochs must be a whole number"),
        ({"epochs_per_job": 0}, "epochs_per_job must be a whole number of at least 1"),
        (
            {"give_up_after": -1.0},
            "give_up_after must be a finite number of at least 0",
        ),
        (
            {"base": "tpe"},
            r"base must be a sampler of Optuna, .*TPESampler\(\); got 'tpe'",
        ),
        ({"base": optuna.samplers.TPESampler}, "base must be a sampler of Optuna"),
        ({"checkpoint_dir": 3}, "checkpoint_dir must be a path, as .*; got 3"),
        ({"artifact_store": "here"}, "artifact_store must be one of optuna.artifacts"),
        (
            {"checkpoint_dir": "here", "artifact_store": object()},
            "give checkpoint_dir or artifact_store, not both",
        ),
    ],
)
def test_what_is_wrong_is_said_at_once(given, message):
    with pytest.raises(InvalidParameterError, match=message):
        rising.RisingSampler(**{"budget": 10, "max_epochs": 5} | given)


def test_a_study_whose_budget_is_spent_says_so_when_it_is_asked(objective, make_study):
    study = make_study(budget=30)
    study.optimize(objective)
    spent = "the budget of 30 epochs is spent, so nothing was left to train"
    with pytest.warns(UserWarning, match=spent):
        trial = study.ask()
    with pytest.raises(optuna.TrialPruned, match=spent):
        trial.suggest_float("x", 0.0, 1.0)
    with pytest.raises(optuna.TrialPruned, match=spent):
        rising.arm(trial)
    study.tell(trial, state=TrialState.PRUNED)
    assert sum(result.epochs for result in rising.arm_results(study)) == 30


def test_a_study_that_waits_for_a_trial_does_not_say_that_its_budget_is_spent(
    make_study,
):
    study = make_study(budget=3, max_epochs=3, epochs_per_job=3)
    first = study.ask()
    first.suggest_float("x", 0.0, 1.0)
    rising.arm(first)
    second = study.ask()
    with pytest.raises(optuna.TrialPruned, match="went to others"):
        second.suggest_float("x", 0.0, 1.0)
