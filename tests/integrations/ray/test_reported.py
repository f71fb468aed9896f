"""What trials have reported, from the journal: read, and given back to Ray."""

from pathlib import Path

import numpy as np
import pytest

from risingsearch.errors import RunDirError
from risingsearch.integrations.ray import results
from risingsearch.integrations.ray.checkpoints import _n_held


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
        if scores:  # and what was reported since
            epoch = trial.last_result["epoch"]
            assert epoch >= len(scores)
            assert trial.last_result["score"] == tune.score(trial, epoch)
            assert trial.metric_analysis["score"]["max"] == tune.score(trial, epoch)


def test_what_was_logged_is_stored_before_a_paused_trial_goes_on(fake_tune):
    tune = stopped(fake_tune)
    for trial in tune.trials:
        trial.init_local_path()
        Path(trial.local_path, "result.json").write_text("{}\n")
    stored = {t.trial_id: Path(t.path, "result.json") for t in tune.trials}
    assert not any(file.exists() for file in stored.values())
    tune.run()
    went_on = {id_ for id_, epoch in tune.trained[25:] if epoch > 1}
    assert went_on >= {id_ for id_, file in stored.items() if file.exists()} != set()


@pytest.mark.parametrize(
    ("numbers", "safe", "stored", "n_held"),
    [
        ([None], [], {0}, 0),  # stored by a process whose report was lost
        ([None, 0, 1], [True, True], {0, 1, 2}, 2),  # a function
        ([3, 4, 5], [True, True], {5, 6}, 2),  # which keeps the newest only
        ([3, None, None, 4], [True] * 3, {3}, 0),  # saves the last of a slice
        ([3, None, None, 4], [True] * 3, {4}, 3),
        ([None, 0], [False], {0}, 0),  # a class: it may be half of one
        ([3, 4], [False], {3, 4}, 0),
        ([3, 4], [False], {4}, 1),  # whole, as the one before it is deleted
        ([3, 4, 4, 5], [False] * 3, {3, 4}, 2),
        ([3, 4], [False], {7}, 0),  # lost: the trial fails
    ],
)
def test_a_restored_trial_resumes_where_its_epoch_is_known(
    numbers, safe, stored, n_held
):
    assert _n_held(numbers, safe, stored) == n_held


def test_metrics_are_noted_as_the_numbers_they_are(fake_tune):
    tune = fake_tune()
    tune.score = lambda trial, epoch: np.float32(0.5)
    assert tune.run()
    [score] = {row["metrics"]["score"] for row in results(tune.folder / "experiment")}
    assert score == 0.5


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
