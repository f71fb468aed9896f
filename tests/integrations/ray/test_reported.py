"""What trials have reported, from the journal: read, and given back to Ray."""

import json
from pathlib import Path

import numpy as np
import pytest
from ray.tune.callback import CallbackList

from risingsearch.errors import RunDirError
from risingsearch.integrations.ray import results


def stopped(fake_tune, n_epochs=25, **options):
    """Return an experiment whose process is killed after so many epochs.

    Ray has its state from the last time that a trial was opened, and its logger has
    written nothing.
    """
    tune = fake_tune(**options)
    while len(tune.trained) < n_epochs:
        tune.step()
    return tune


def told(tune):
    """Return the scores on disk, by trial."""
    scores = {}
    for row in results(tune.folder / "experiment"):
        scores.setdefault(row["trial_id"], []).append(row["score"])
    return scores


def logged(trial):
    """Return what the data frame of a trial is read from."""
    file = Path(trial.path, "result.json")
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_every_epoch_told_has_its_row(fake_tune):
    tune = fake_tune()
    assert tune.run()
    rows = results(tune.folder / "experiment")
    names = ("trial_id", "epoch", "score")
    history = sorted([row[name] for name in names] for row in tune.scheduler.history)
    assert sorted([row[name] for name in names] for row in rows) == history
    tops = {trial.trial_id: trial.config for trial in tune.trials}
    assert all(row["params"] == tops[row["trial_id"]] for row in rows)
    assert all(row["metrics"]["score"] == row["score"] for row in rows)


def test_a_folder_without_a_journal_is_refused(tmp_path):
    with pytest.raises(RunDirError, match="give the folder of an experiment with a"):
        results(tmp_path)


def test_a_restored_experiment_knows_what_each_trial_has_reported(fake_tune):
    tune = stopped(fake_tune)
    other = tune.restored()
    for trial in other.trials:
        scores = told(tune).get(trial.trial_id, [])
        if scores:
            assert trial.last_result["score"] == scores[-1]
            assert trial.metric_analysis["score"]["max"] == max(scores)
        assert [line["score"] for line in logged(trial)] == scores


def test_at_the_end_no_epoch_is_lacking_and_none_is_there_twice(fake_tune):
    tune = stopped(fake_tune)
    trial_id, (first, *_) = next(iter(told(tune).items()))
    [trial] = [trial for trial in tune.trials if trial.trial_id == trial_id]
    Path(trial.path).mkdir(parents=True, exist_ok=True)
    not_told = {"score": 0.5, "training_iteration": 10**6, "time_total_s": 1e6}
    known = {"score": first, "training_iteration": 1, "time_total_s": 0.5}
    lines = json.dumps(known) + "\n" + json.dumps(not_told) + '\n{"score": 0.'
    Path(trial.path, "result.json").write_text(lines)
    [restored] = [t for t in tune.restored().trials if t.trial_id == trial_id]
    assert [line["score"] for line in logged(restored)] == told(tune)[trial_id]


def test_what_was_logged_is_stored_before_a_paused_trial_goes_on(fake_tune):
    tune = stopped(fake_tune)
    for trial in tune.trials:
        trial.init_local_path()
        Path(trial.local_path, "result.json").write_text("{}\n")
    assert not any(logged(trial) for trial in tune.trials)
    tune.run()
    went_on = {id_ for id_, epoch in tune.trained[25:] if epoch > 1}
    assert went_on >= {t.trial_id for t in tune.trials if logged(t)} != set()


def test_metrics_are_noted_as_the_numbers_they_are(fake_tune):
    tune = fake_tune()
    tune.score = lambda trial, epoch: np.float32(0.5)
    assert tune.run()
    [score] = {row["metrics"]["score"] for row in results(tune.folder / "experiment")}
    assert score == 0.5


def test_without_the_logger_no_file_is_written(fake_tune):
    tune = stopped(fake_tune)
    tune._callbacks = CallbackList([])
    assert not any(logged(trial) for trial in tune.restored().trials)


def test_nested_parameters_go_by_their_path(fake_tune):
    tune = fake_tune(n_jobs=1)
    make_trial = tune.search_alg.make_trial

    def nested(number):
        trial = make_trial(number)
        trial.config |= {"net": {"width": 8, "act": None, "data": object()}}
        return trial

    tune.search_alg.make_trial = nested
    assert tune.run()
    first = results(tune.folder / "experiment")[0]["params"]
    assert first == {"top": 0.1, "net/width": 8, "net/act": None}
