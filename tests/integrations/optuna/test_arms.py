import shutil

import optuna
import pytest

import risingsearch.integrations.optuna as rising
from risingsearch.errors import InvalidParameterError

N_EPOCHS = 20


class Saving:
    """Goes on from a checkpoint that holds the epochs it has behind it."""

    def __init__(self):
        self.resumed = []
        self.lost = lambda arm: None  # called before an arm is asked for

    def __call__(self, trial):
        top = trial.suggest_float("x", 0.0, 1.0)
        self.lost(trial)
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


def kept(place, tmp_path):
    """Return the names of what is kept."""
    if "checkpoint_dir" in place:
        return [p.name for p in place["checkpoint_dir"].glob("*/*")]
    return [p.name for p in (tmp_path / "artifacts").iterdir()]


def test_arms_go_on_from_their_checkpoints(make_study, place):
    objective = Saving()
    study = make_study(budget=100, **place)
    study.optimize(objective)
    assert len(objective.resumed) > 20
    assert sum(result.epochs for result in rising.arm_results(study)) == 100


def test_two_checkpoints_are_kept_of_each_arm(make_study, place, tmp_path):
    study = make_study(budget=100, **place)
    study.optimize(Saving())
    n_slices = [result.n_trials for result in rising.arm_results(study)]
    assert max(n_slices) > 3
    assert len(kept(place, tmp_path)) <= sum(min(2, n) for n in n_slices)
    assert not list(tmp_path.glob("checkpoints/.new-*"))


@pytest.mark.filterwarnings("ignore:The reported value is ignored")
def test_a_lost_checkpoint_falls_back_to_the_one_before(make_study, place, tmp_path):
    objective = Saving()

    def lose(trial):
        saved = trial.user_attrs.get("rising:checkpoint", [])
        if len(saved) == 2 and not lost:
            lost.append(trial.number)
            if "checkpoint_dir" in place:
                shutil.rmtree(place["checkpoint_dir"] / saved[0][1])
            else:
                (tmp_path / "artifacts" / saved[0][1]).unlink()

    lost = []
    objective.lost = lose
    study = make_study(budget=100, epochs_per_job=2, **place)
    message = "resumes from epoch 2 instead of 4; .* there is no"
    with pytest.warns(RuntimeWarning, match=message):
        study.optimize(objective)
    assert lost


def test_with_no_checkpoint_left_the_arm_starts_over(make_study, tmp_path):
    objective = Saving()

    def lose(trial):
        if trial.user_attrs.get("rising:checkpoint") and not lost:
            lost.append(trial.number)
            shutil.rmtree(tmp_path)

    lost = []
    objective.lost = lose
    study = make_study(budget=60, epochs_per_job=2, checkpoint_dir=tmp_path)
    with pytest.warns() as said:
        study.optimize(objective, n_trials=30)
    texts = [str(warning.message) for warning in said]
    assert any("from epoch 0 instead of 2" in text for text in texts)


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


def test_an_arm_says_what_it_is(make_study):
    study = make_study(budget=5, epochs_per_job=3)
    arm = rising.arm(study.ask())
    assert repr(arm) == "TrialArm(id=0, from_epoch=0, n_epochs=3, checkpoint=None)"


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
