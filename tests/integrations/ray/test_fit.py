"""Experiments that Ray Tune runs itself."""

import contextlib
import json
import math
import re
import subprocess
import sys
import tempfile
import time
import types
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from ray import cloudpickle, tune
from ray.tune.search.optuna import OptunaSearch

from risingsearch.integrations.ray import RisingScheduler, results
from tests.search.curve_search import Listener

DRIVER = Path(__file__).with_name("driver.py")
LOG = {}  # where trials write what they train


@pytest.fixture(scope="module", autouse=True)
def session(ray_address):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
        patch.setenv("RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS", "0")
        cloudpickle.register_pickle_by_value(sys.modules[__name__])  # actors lack it
        yield
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def fit(tmp_path):
    """Return a function that runs an experiment, and counts the epochs it trains.

    A trial takes all of the session's processors: one process trains them all.
    """
    LOG["log"] = str(tmp_path / "log")

    def run(trainable, param_space, scheduler, **config):
        tuner = tune.Tuner(
            tune.with_resources(trainable, {"cpu": 2}),
            param_space=None if param_space is None else param_space | LOG,
            tune_config=tune.TuneConfig(
                metric="score",
                mode="max",
                reuse_actors=True,
                scheduler=scheduler,
                **config,
            ),
            run_config=tune.RunConfig(
                name="experiment", storage_path=str(tmp_path), verbose=0
            ),
        )
        return tuner.fit(), Counter((tmp_path / "log").read_text().splitlines())

    return run


class Trainable(tune.Trainable):
    """An epoch is a step; ``odd`` says what becomes of it at the second."""

    def setup(self, config):
        self.config, self.epoch = config, 0

    def step(self):
        self.epoch += 1
        odd = self.config["odd"] if self.epoch == 2 else None
        if odd == "fails":
            raise OSError("no disk")
        with open(self.config["log"], "a") as file:
            file.write(f"{self.trial_id} {self.epoch}\n")
        score = 1.0 - 1.0 / (self.epoch + 1)
        return {
            "score": math.nan if odd == "is lost" else score,
            "epoch": self.epoch,
            "done": odd == "is done",
        }

    def save_checkpoint(self, folder):
        Path(folder, "epoch").write_text(str(self.epoch))

    def load_checkpoint(self, folder):
        self.epoch = int(Path(folder, "epoch").read_text())

    def reset_config(self, config):
        self.setup(config)
        return True


def train(config):
    epoch = 0
    checkpoint = tune.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            epoch = int(Path(folder, "epoch").read_text())
    while epoch < 8:
        epoch += 1
        with open(config["log"], "a") as file:
            file.write(f"{tune.get_context().get_trial_id()} {epoch}\n")
        result = {"score": config["top"] * (1 - 1 / (epoch + 1)), "epoch": epoch}
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "epoch").write_text(str(epoch))
            kept = tune.Checkpoint.from_directory(folder)
            tune.report(result, checkpoint=kept)


def test_a_class_whose_trials_end_in_all_ways(fit):
    heard = Listener()
    scheduler = RisingScheduler(24, 7, n_jobs=1, seed=0, callbacks=[heard])
    ends = ["", "fails", "is lost", "is done", ""]
    results, trained = fit(Trainable, {"odd": tune.grid_search(ends)}, scheduler)
    assert set(trained.values()) == {1}
    arms = {result.config["odd"]: None for result in results}
    for trial_id, arm in scheduler.explain().items():
        arms[ends[int(trial_id.rpartition("_")[2])]] = arm
    assert arms["fails"].reason == "retired: OSError: no disk"
    assert arms["is lost"].status == "failed"
    assert arms["is done"].reason == "ended before its last epoch"
    assert [arms[end].epochs for end in ("fails", "is lost", "is done")] == [1, 2, 2]
    assert results.num_errors == 1
    assert scheduler.n_epochs == len(trained) + 1  # the one that failed
    best = results.get_best_result(scope="all")
    assert best.metrics["trial_id"] == scheduler.best_trial_id
    assert best.metrics["epoch"] == scheduler.best_epoch == 7
    told = [
        (epoch.metrics["trial_id"], epoch.score)
        for epoch in heard.epochs
        if math.isfinite(epoch.score)
    ]
    assert told == [
        (row["trial_id"], row["score"])
        for row in scheduler.history
        if math.isfinite(row["score"])
    ]
    assert {epoch.params["odd"] for epoch in heard.epochs} == set(ends)
    [ended] = heard.ended
    assert (ended.metric, ended.best_score) == ("score", scheduler.best_score)


def space(trial):
    if trial.suggest_categorical("kind", ["low", "high"]) == "low":
        top = trial.suggest_float("low", 0.1, 0.5)
    else:
        top = trial.suggest_float("high", 0.5, 1.0)
    return {"top": top, **LOG}


@pytest.mark.slow
def test_a_function_in_a_conditional_space_of_optuna(fit):
    scheduler = RisingScheduler(10, 8, seed=0)
    searcher = OptunaSearch(space=space, metric="score", mode="max", seed=0)
    results, trained = fit(
        train,
        None,
        scheduler,
        search_alg=searcher,
        num_samples=3,
        max_concurrent_trials=1,
    )
    assert not results.errors
    assert set(trained.values()) == {1}
    assert len(trained) == scheduler.n_epochs == 10
    assert len(scheduler.explain()) > 1


def test_killed_and_restored_it_trains_and_logs_nothing_told_again(
    tmp_path, tensorboard_curves, ray_address
):
    def start():
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", str(DRIVER), str(tmp_path), ray_address],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def trained():
        file = tmp_path / "trained"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.split() for line in lines]

    driver = start()
    while len(trained()) < 8:
        assert driver.poll() is None
        time.sleep(0.01)
    driver.kill()
    driver.communicate()
    known = told(tmp_path / "experiment")
    printed, _ = start().communicate()
    found = json.loads(printed.splitlines()[-1])
    assert found["errors"] == 0
    # Ray may let a killed driver's actors go on for a while.
    by_driver = defaultdict(list)
    for driver_id, trial_id, epoch in trained():
        by_driver[driver_id].append((trial_id, int(epoch)))
    _, again = by_driver.values()
    assert not [(id_, epoch) for id_, epoch in again if epoch <= known[id_]]
    assert len(again) <= 18 - sum(known.values())
    scores = defaultdict(list)
    for row in results(tmp_path / "experiment"):
        scores[row["trial_id"]].append(row["score"])
        assert row["epoch"] == row["metrics"]["epoch"] == len(scores[row["trial_id"]])
    assert sum(map(len, scores.values())) == 18
    assert found["last"] == {id_: told[-1] for id_, told in scores.items()}
    logged = [
        [score for _, told in sorted(curve.items()) for score in told]
        for curve in tensorboard_curves(tmp_path / "runs").values()
    ]
    assert len(logged) == len(scores)
    for curve, known in zip(sorted(logged), sorted(scores.values()), strict=True):
        assert curve == pytest.approx(known)  # TensorBoard has four bytes for each


def told(folder):
    """Return the epochs that the journal has, by trial."""
    epochs, trials = Counter(), {}
    journal = folder / "risingsearch-journal.jsonl"
    for line in journal.read_text().splitlines()[1:]:
        event = {}
        with contextlib.suppress(json.JSONDecodeError):  # a torn last line
            event = json.loads(line)
        if event.get("event") == "opened":
            trials[event["arm"]] = event["trial"]
        elif event.get("event") in ("result", "failed"):
            arm, from_epoch, *_ = event["job"]
            epochs[trials[arm]] = from_epoch + len(event["scores"])
    return epochs


@pytest.mark.slow
def test_the_guide_tells_the_truth(tmp_path, monkeypatch):
    text = (Path(__file__).parents[3] / "docs" / "ray.md").read_text()
    first, second, restore, read = re.findall(
        r"^```\n(.*?)^```$", text, re.DOTALL | re.M
    )
    guide = types.ModuleType("guide")
    monkeypatch.setitem(sys.modules, "guide", guide)
    monkeypatch.setattr("ray.train.constants.DEFAULT_STORAGE_PATH", str(tmp_path))
    cloudpickle.register_pickle_by_value(guide)
    exec(first, vars(guide))
    assert guide.scheduler.n_epochs == 40
    # Trials may tie, and then the order in which they end says which one is named.
    named = guide.best.metrics["trial_id"]
    rows = [row for row in guide.scheduler.history if row["trial_id"] == named]
    assert max(row["score"] for row in rows) == guide.scheduler.best_score > 0.85
    guide.path = guide.results.experiment_path
    exec(restore, vars(guide))
    assert len(guide.results) == len(guide.scheduler.explain())
    exec(read, vars(guide))
    assert len(guide.rows) == 40
    exec(second, vars(guide))
    assert guide.scheduler.n_epochs == 30
    cloudpickle.unregister_pickle_by_value(guide)


def test_a_function_among_the_callbacks_ends_the_experiment(fit):
    def stop(epoch):
        if epoch.number == 4:
            epoch.stop()

    scheduler = RisingScheduler(40, 8, n_jobs=1, seed=0, callbacks=[stop])
    fit(Trainable, {"odd": tune.grid_search(["", ""])}, scheduler)
    assert 4 <= scheduler.n_epochs < 14
