import optuna
import pytest

import risingsearch.integrations.optuna as rising
from risingsearch import InvalidParameterError
from tests.search.curve_search import Listener


def objective(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    arm = rising.arm(trial)
    for epoch in range(arm.from_epoch, 9):
        trial.report((x - 0.3) ** 2 + 1 / (epoch + 1), epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return (x - 0.3) ** 2 + 1 / 9


def a_study(listener, **options):
    return optuna.create_study(
        sampler=rising.RisingSampler(40, 9, seed=0, callbacks=[listener]),
        pruner=rising.RisingPruner(),
        load_if_exists=True,
        **options,
    )


def curves(epochs):
    told = {}
    for epoch in epochs:
        told.setdefault(epoch.arm, []).append((epoch.epoch, epoch.score))
    return told


def expected(study):
    return {
        result.id: [(step + 1, score) for step, score in result.curve.items()]
        for result in rising.arm_results(study)
    }


def test_every_epoch_of_a_study_is_told_once():
    listener = Listener()
    study = a_study(listener)
    study.optimize(objective)
    assert curves(listener.epochs) == expected(study)
    [begun], [ended] = listener.begun, listener.ended
    assert begun.direction == "minimize"
    best = rising.best_arm(study)
    assert (ended.best_arm, ended.best_score) == (best.id, best.best_score)
    assert ended.best_params == best.params
    assert {epoch.params["x"] for epoch in listener.epochs if epoch.arm == best.id} == {
        best.params["x"]
    }
    assert listener.epochs[-1].budget_left == 0
    assert all(epoch.seconds >= 0 for epoch in listener.epochs)


def test_another_process_begins_with_what_was_told_before(tmp_path):
    storage = optuna.storages.JournalStorage(
        optuna.storages.journal.JournalFileBackend(str(tmp_path / "study"))
    )
    before, later = Listener(), Listener()
    a_study(before, storage=storage, study_name="s").optimize(objective, n_trials=5)
    study = a_study(later, storage=storage, study_name="s")
    study.optimize(objective)
    [begun] = later.begun
    assert begun.search == before.begun[0].search
    assert curves(begun.earlier)
    assert curves((*begun.earlier, *later.epochs)) == expected(study)


def test_what_is_no_callback():
    with pytest.raises(InvalidParameterError, match="Callbacks or functions"):
        rising.RisingSampler(40, 9, callbacks=["print"])


def test_a_function_hears_of_epochs_and_stops_the_study():
    seen = []

    def stop(epoch):
        seen.append(epoch)
        if epoch.number >= 3:
            epoch.stop()

    study = a_study(stop)
    study.optimize(objective)
    assert 3 <= len(seen) < 40
    assert curves(seen) == expected(study)
