import sqlite3

import numpy as np
import optuna
import pytest

import risingsearch.integrations.optuna as rising
from risingsearch.errors import InvalidParameterError
from risingsearch.priors import earlier_searches

pytestmark = pytest.mark.usefixtures("quiet_optuna")


def objective(trial):
    rate = trial.suggest_float("rate", 0.01, 1.0, log=True)
    trial.suggest_categorical("kind", ["a", None])
    if trial.number == 2:
        raise ValueError
    for step in range(5):
        trial.report(rate / (step + 1), step)
        if step == 2 and trial.number == 3:
            raise optuna.TrialPruned
    return rate / 5


def rising_objective(trial):
    rate = trial.suggest_float("rate", 0.1, 1.0)
    arm = rising.arm(trial)
    for epoch in range(arm.from_epoch, 12):
        trial.report(rate * (1 - 0.8 ** (epoch + 1)), epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return rate * (1 - 0.8**12)


def ordinary_study(storage=None, name="first"):
    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(sampler=sampler, storage=storage, study_name=name)
    study.optimize(objective, n_trials=6, catch=ValueError)
    return study


@pytest.fixture
def rising_study():
    study = optuna.create_study(
        direction="maximize",
        sampler=rising.RisingSampler(60, 12, seed=0),
        pruner=rising.RisingPruner(),
    )
    study.optimize(rising_objective)
    return study


def test_trials_are_runs_with_the_values_they_reported():
    study = ordinary_study()
    study.enqueue_trial({"rate": 0.5})
    [earlier] = earlier_searches(study)
    assert earlier.name == "study first"
    assert earlier.params == [trial.params for trial in study.trials[:6]]
    assert earlier.epochs.tolist() == [5, 5, 0, 3, 5, 5]
    rate = study.trials[0].params["rate"]
    expected = [-rate / step for step in (1, 2, 3, 4, 5)]
    np.testing.assert_allclose(earlier.curves[0], expected)


def test_running_trial_keeps_its_values_and_one_without_is_left_out():
    study = optuna.create_study(direction="maximize")
    first, second = study.ask(), study.ask()
    for trial in (first, second):
        trial.suggest_float("rate", 0.0, 1.0)
    first.report(0.3, 0)
    [earlier] = earlier_searches(study)
    assert [curve.tolist() for curve in earlier.curves] == [[0.3]]
    study.tell(second, 0.7)
    [earlier] = earlier_searches(study)
    assert earlier.scores.tolist() == [0.3, 0.7]


def test_arms_of_a_rising_study_are_one_run_each(rising_study):
    results = rising.arm_results(rising_study)
    assert len(results) < len(rising_study.trials)
    [earlier] = earlier_searches(rising_study)
    assert earlier.params == [result.params for result in results]
    assert earlier.max_epochs == 12
    for result, curve in zip(results, earlier.curves, strict=True):
        assert list(result.curve.values()) == curve.tolist()


def test_finalized_arms_are_not_read_twice(rising_study):
    [before] = earlier_searches(rising_study)
    rising.finalize(rising_study)
    [after] = earlier_searches(rising_study)
    assert before.params == after.params


def test_a_study_contradicts_another_direction(rising_study):
    [earlier] = earlier_searches(rising_study, direction="maximize")
    assert earlier.metric == "value"
    with pytest.raises(
        InvalidParameterError, match=r"study .*'minimize' was given, .*'maximize'"
    ):
        earlier_searches(rising_study, direction="minimize")


def test_one_of_several_objectives_is_asked_for():
    study = optuna.create_study(
        directions=["minimize", "maximize"],
        sampler=optuna.samplers.RandomSampler(seed=0),
    )
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 2.0), n_trials=3)
    with pytest.raises(InvalidParameterError, match="values_0, values_1: name one"):
        earlier_searches(study)
    [earlier] = earlier_searches(study, score="values_1")
    assert earlier.scores.tolist() == [2.0] * 3
    [earlier] = earlier_searches(study, score="values_0")
    assert (earlier.scores < 0).all()


def test_every_study_in_a_database_is_an_earlier_search(tmp_path):
    path = tmp_path / "studies.db"
    url = f"sqlite:///{path}"
    studies = [ordinary_study(url, name) for name in ("first", "second")]
    optuna.create_study(storage=url, study_name="empty")
    before = path.read_bytes()
    read = earlier_searches(url)
    assert [earlier.name for earlier in read] == ["study first", "study second"]
    assert read[0].params == [trial.params for trial in studies[0].trials]
    assert path.read_bytes() == before
    [one, two] = earlier_searches(url, name="old")
    assert (one.name, two.name) == ("old 1", "old 2")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite:///{}/none.db", "there is no file"),
        ("sqlite://", "there is no file"),
        ("sqlite:///{}/other.db", "cannot be read"),
        ("sqlite:///{}/junk.db", "cannot be read"),
        ("redis://localhost", "URL of a database"),
        ("nonsense://x", "URL of a database"),
    ],
)
def test_url_without_studies_is_one_error_and_makes_nothing(url, message, tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("create table trials (x int)")
    other.close()
    (tmp_path / "junk.db").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 20)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InvalidParameterError, match=message):
        earlier_searches(url.format(tmp_path))
    assert sorted(tmp_path.iterdir()) == before


def test_study_without_scores_is_refused():
    with pytest.raises(InvalidParameterError, match="of its 0 runs"):
        earlier_searches(optuna.create_study())
