import optuna
import pytest
from optuna.trial import TrialState

import risingsearch.integrations.optuna as rising
from risingsearch.errors import InvalidParameterError, RunDirError

N_EPOCHS = 20


class Saving:
    """Resumes from a checkpoint that holds the epochs trained so far."""

    def __init__(self):
        self.resumed = []
        self.saves = lambda epoch: True

    def __call__(self, trial):
        top = trial.suggest_float("x", 0.0, 1.0)
        arm = rising.arm(trial)
        epochs = 0
        if arm.checkpoint:
            epochs = int((arm.checkpoint / "epochs").read_text())
            self.resumed.append((arm.id, epochs))
        assert epochs == arm.from_epoch
        for epoch in range(arm.from_epoch, N_EPOCHS):
            score = top * (1 - 1 / (epoch + 2))
            trial.report(score, epoch)
            if trial.should_prune():
                if self.saves(epoch):
                    with arm.save() as folder:
                        (folder / "epochs").write_text(str(epoch + 1))
                raise optuna.TrialPruned
        return score


@pytest.fixture(params=["folder", "artifacts"])
def place(request, tmp_path):
    if request.param == "folder":
        return {"checkpoint_dir": tmp_path / "checkpoints"}
    (tmp_path / "artifacts").mkdir()
    store = optuna.artifacts.FileSystemArtifactStore(tmp_path / "artifacts")
    return {"artifact_store": store}


def test_arms_go_on_from_their_checkpoints(make_study, place):
    objective = Saving()
    study = make_study(budget=100, **place)
    study.optimize(objective)
    assert len(objective.resumed) > 20
    assert sum(result.epochs for result in rising.arm_results(study)) == 100


def test_two_checkpoints_are_kept_of_each_arm(make_study, tmp_path):
    study = make_study(budget=100, checkpoint_dir=tmp_path)
    study.optimize(Saving())
    n_slices = [result.n_trials for result in rising.arm_results(study)]
    assert max(n_slices) > 3
    assert len(list(tmp_path.iterdir())) <= sum(min(2, n) for n in n_slices)


def test_an_arm_whose_checkpoint_is_lost_fails(make_study, tmp_path):
    study = make_study(budget=100, epochs_per_job=2, checkpoint_dir=tmp_path)
    study.optimize(Saving(), n_trials=20)
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(RunDirError, match=f"its checkpoint of 4 .* in {tmp_path} "):
        study.optimize(Saving())
    study.optimize(Saving(), catch=(RunDirError,))
    assert sum(result.charged for result in rising.arm_results(study)) == 100


def test_an_arm_that_was_saved_before_its_last_epoch_only_fails(make_study, tmp_path):
    objective = Saving()
    objective.saves = lambda epoch: epoch < 2
    study = make_study(budget=100, epochs_per_job=2, checkpoint_dir=tmp_path)
    with pytest.raises(RunDirError, match="no checkpoint of its 4 epochs"):
        study.optimize(objective)


def test_an_exception_while_saving_keeps_nothing(make_study, tmp_path):
    def objective(trial):
        trial.suggest_float("x", 0.0, 1.0)
        with rising.arm(trial).save() as folder:
            (folder / "half").write_text("a")
            raise OSError("no space")

    study = make_study(budget=5, checkpoint_dir=tmp_path)
    with pytest.raises(OSError, match="no space"):
        study.optimize(objective)
    assert not list(tmp_path.glob("*"))
    assert "rising:checkpoint" not in study.trials[0].user_attrs


def test_without_a_place_saving_says_what_to_do(make_study):
    def objective(trial):
        with rising.arm(trial).save():
            pass

    study = make_study(budget=5)
    with pytest.raises(InvalidParameterError, match="checkpoint_dir or an artifact_st"):
        study.optimize(objective)


def test_in_any_other_study_each_trial_is_an_arm():
    study = optuna.create_study(pruner=rising.RisingPruner())
    arm = rising.arm(study.ask())
    assert (arm.id, arm.from_epoch, arm.n_epochs, arm.checkpoint) == (0, 0, None, None)


def test_steps_that_begin_at_zero_again_are_refused(make_study):
    trained = []

    def objective(trial):
        top = trial.suggest_float("x", 0.0, 1.0)
        rising.arm(trial)
        for step in range(N_EPOCHS):
            trained.append(trial.number)
            trial.report(top * step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return top * step

    study = make_study(budget=60)
    with (
        pytest.warns(UserWarning, match="ignored because"),
        pytest.raises(InvalidParameterError, match=r"no new step .* from step \d+ on"),
    ):
        study.optimize(objective)
    assert len(trained) <= 60


def test_a_callback_that_counts_from_zero_is_given_the_trial_of_the_arm(make_study):
    trained = []

    def objective(trial):
        top = trial.suggest_float("x", 0.0, 1.0)
        arm = rising.arm(trial)
        for step in range(N_EPOCHS - arm.from_epoch):
            trained.append(arm.id)
            arm.trial.report(top * (arm.from_epoch + step), step)
            if arm.trial.should_prune():
                raise optuna.TrialPruned
        return top * (N_EPOCHS - 1)

    study = make_study(budget=60)
    study.optimize(objective)
    assert len(trained) == 60
    for result in rising.arm_results(study):
        assert list(result.curve) == list(range(trained.count(result.id)))


def test_should_prune_is_asked_once_for_each_report(make_study):
    def objective(trial):
        top = trial.suggest_float("x", 0.0, 1.0)
        rising.arm(trial)
        trial.report(top, 0)
        trial.should_prune()
        trial.should_prune()
        return top

    study = make_study(budget=60, epochs_per_job=3)
    with pytest.raises(InvalidParameterError, match="no new step before should_prune"):
        study.optimize(objective)


@pytest.mark.parametrize("every", [None, 0, 3])
@pytest.mark.parametrize("ends", [optuna.TrialPruned, None])
def test_an_objective_that_trains_longer_than_its_slice_is_refused(
    make_study, every, ends
):
    trained = []

    def objective(trial):
        top = trial.suggest_float("x", 0.0, 1.0)
        arm = rising.arm(trial)
        for epoch in range(arm.from_epoch, 10):
            trained.append(trial.number)
            trial.report(top * epoch, epoch)
            if every == 0:
                trial.should_prune()  # in vain
            elif every and epoch % every == 0 and trial.should_prune():
                raise optuna.TrialPruned
        if ends:
            raise ends
        return top * 9

    study = make_study(budget=40, max_epochs=10, epochs_per_job=2)
    with pytest.raises(InvalidParameterError, match="its slice of the budget has 2: "):
        study.optimize(objective)
    assert len(trained) <= 10
    assert len(set(trained)) == 1


def train(study, trial, trained):
    arm = rising.arm(trial)
    for epoch in range(arm.from_epoch, arm.from_epoch + arm.n_epochs):
        trained.append((arm.id, epoch))
        trial.report(1.0 - 1.0 / (epoch + 2), epoch)
    study.tell(trial, state=TrialState.PRUNED)


def test_many_trials_are_open_at_once(make_study):
    study = make_study(budget=100)
    trained, most, trials = [], 0, True
    while trials:
        trials = []
        while len(trials) < 5 and (trial := rising.ask(study)) is not None:
            trial.suggest_float("x", 0.0, 1.0)
            rising.arm(trial)
            trials.append(trial)
        most = max(most, len(trials))
        for trial in reversed(trials):
            train(study, trial, trained)
    assert most == 5
    assert len(trained) == len(set(trained)) == 100


def test_nothing_is_handed_out_beyond_the_budget(make_study):
    study = make_study(budget=3, epochs_per_job=1)
    trials, trained = [], []
    while (trial := rising.ask(study)) is not None:
        rising.arm(trial)
        trials.append(trial)
    assert 1 < len(trials) <= 3
    while trials:
        train(study, trials.pop(), trained)
        trials += [trial] if (trial := rising.ask(study)) is not None else []
    assert len(trained) == 3


def test_an_arm_that_has_a_value_has_ended(make_study):
    study = make_study(budget=10, epochs_per_job=1)
    trial = rising.ask(study)
    rising.arm(trial)
    trial.report(0.5, 0)
    study.tell(trial, 0.5)
    assert study.trials[0].state == TrialState.COMPLETE
    while (trial := rising.ask(study)) is not None:
        assert rising.arm(trial).id != 0
        train(study, trial, [])


def test_only_a_study_of_this_sampler_is_asked():
    with pytest.raises(InvalidParameterError, match="needs a RisingSampler; got"):
        rising.ask(optuna.create_study())
