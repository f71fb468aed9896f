"""Ray Tune without its processes: what its controller does with a scheduler.

Written after ``ray/tune/execution/tune_controller.py`` (2.60). Trials, their
checkpoints and the storage are Ray's own; actors are numbers here, and each step
handles one event, drawn from those that are due.
"""

import itertools
import json
import math
import pickle
import random
from pathlib import Path

import pytest
from ray.train import Checkpoint
from ray.train._internal.session import _TrainingResult
from ray.train._internal.storage import StorageContext
from ray.tune.experiment import Trial
from ray.tune.result import SHOULD_CHECKPOINT

from risingsearch.integrations.ray import RisingScheduler

PREFIXES = itertools.count()


class Searcher:
    """Proposes configurations one after the other."""

    def __init__(self, make_trial, n_samples, n_proposed=0):
        self.make_trial = make_trial
        self.total_samples = n_samples
        self.n_proposed = n_proposed
        self.finished = False
        self.runs_dry_after = math.inf

    def next_trial(self):
        if self.n_proposed >= min(self.total_samples, self.runs_dry_after):
            self.finished = True
        if self.finished:
            return None
        self.n_proposed += 1
        return self.make_trial(self.n_proposed - 1)

    def is_finished(self):
        return self.finished

    def set_finished(self):
        self.finished = True


class FakeTune:
    """Plays an experiment; attributes that tests set say what goes wrong."""

    def __init__(self, scheduler, folder, n_samples=8, n_slots=2, seed=0, **trial):
        self.saved_scheduler = pickle.dumps(scheduler)  # as Tuner does before it begins
        self.scheduler = scheduler
        self.folder = folder
        self.n_slots = n_slots
        self.trial_options = trial
        self.prefix = f"t{next(PREFIXES)}"
        self.random = random.Random(seed)
        self.search_alg = Searcher(self.make_trial, n_samples)
        self.max_pending = 200
        self.trials, self.staged = [], []
        self.epoch, self.decisions, self.clock = {}, {}, itertools.count()
        self.trained = []  # (trial, epoch), in all processes
        self.snapshot = None
        self.is_function = True
        self.saves = lambda trial, epoch: True
        self.score = lambda trial, epoch: trial.config["top"] * (1 - 1 / (epoch + 1))
        self.fails = lambda trial, epoch: False
        self.ends = lambda trial, epoch: False
        self.restores = True  # whether a trial loads its checkpoint

    def id_of(self, number):
        return f"{self.prefix}_{number}"

    def make_trial(self, number):
        trial = Trial(
            "fake",
            trial_id=self.id_of(number),
            config={"top": (number * 7 % 11) / 11 + 0.1},
            storage=StorageContext(self.folder, "experiment"),
            stub=True,
            **self.trial_options,
        )
        trial.relative_logdir = trial.storage.trial_dir_name = trial.trial_id
        return trial

    # ------------------------------------------------- what schedulers may call

    def update_max_pending_trials(self, n):
        self.max_pending = n

    def get_trials(self):
        return self.trials

    def add_trial(self, trial):
        trial.create_placement_group_factory()
        self.trials.append(trial)
        self.scheduler.on_trial_add(self, trial)

    def _set_trial_status(self, trial, status):
        trial.set_status(status)

    def _schedule_trial_save(self, trial):
        trial.temporary_state.saving_to = object()

    def save_to_dir(self):
        Path(self.folder, "staging").mkdir(exist_ok=True)
        Path(self.folder, "staging", "state.json").write_text(str(len(self.trials)))
        self.snapshot = [
            (trial.get_json_state(), trial.run_metadata.get_json_state())
            for trial in self.trials
        ]
        self.n_saved = self.search_alg.n_proposed

    def stop_trial(self, trial):
        if trial.is_finished():
            return
        if trial.status == Trial.RUNNING:
            self.scheduler.on_trial_complete(self, trial, dict(trial.last_result))
        else:
            self.scheduler.on_trial_remove(self, trial)
        self.leave(trial, Trial.TERMINATED)

    # ----------------------------------------------------------------- its loop

    def run(self, n_steps=5000):
        """Go on until the experiment is finished; return whether it is."""
        for _ in range(n_steps):
            if self.is_finished():
                return True
            self.step()
        return self.is_finished()

    def is_finished(self):
        done = all(trial.is_finished() for trial in self.trials)
        return done and bool(self.trials) and self.search_alg.is_finished()

    def step(self):
        while self.n_in(Trial.PENDING) < self.max_pending:
            trial = self.search_alg.next_trial()
            if trial is None:
                break
            self.add_trial(trial)
        chosen = self.scheduler.choose_trial_to_run(self)
        if chosen is not None:
            assert chosen.status in (Trial.PENDING, Trial.PAUSED)
            self.stage(chosen)
        for trial in self.trials:  # Ray starts what is pending without asking
            if trial.status == Trial.PENDING and len(self.staged) < self.max_pending:
                self.stage(trial)
        events = list(self.events())
        if events:
            event, trial = self.random.choice(events)
            event(trial)

    def n_in(self, status):
        return sum(trial.status == status for trial in self.trials)

    def stage(self, trial):
        if trial not in self.staged:
            trial.set_status(Trial.PENDING)
            self.staged.append(trial)

    def events(self):
        room = self.n_slots - self.n_in(Trial.RUNNING)
        yield from ((self.start, trial) for trial in self.staged[: max(0, room)])
        for trial in self.trials:
            if trial.status == Trial.RUNNING:
                yield (self.saved if trial.is_saving else self.train), trial

    def start(self, trial):
        self.staged.remove(trial)
        trial.set_status(Trial.RUNNING)
        self.epoch[trial] = 0
        newest = trial.latest_checkpoint_result
        if newest is not None:
            kept = Path(newest.checkpoint.path, "epoch.json")
            if not kept.exists():
                self.fail(trial)
            elif self.restores:
                self.epoch[trial] = json.loads(kept.read_text())

    def train(self, trial):
        epoch = self.epoch[trial] = self.epoch[trial] + 1
        if self.fails(trial, epoch):
            self.fail(trial)
            return
        self.trained.append((trial.trial_id, epoch))
        now = next(self.clock)
        result = {"score": self.score(trial, epoch), "epoch": epoch}
        result |= {"training_iteration": epoch, "time_total_s": now + 0.5}
        if self.is_function:
            saves = self.saves(trial, epoch)
            result["checkpoint_dir_name"] = self.store(trial).name if saves else None
            result[SHOULD_CHECKPOINT] = saves
        if self.ends(trial, epoch):
            decision = "STOP"
        else:
            decision = self.scheduler.on_trial_result(self, trial, dict(result))
        trial.update_last_result(result)
        if decision == "PAUSE" or (
            result.get(SHOULD_CHECKPOINT) and decision != "STOP"
        ):
            self._schedule_trial_save(trial)
        self.decisions[trial] = decision
        if not trial.is_saving:
            self.execute(trial)

    def saved(self, trial):
        trial.temporary_state.saving_to = None
        if self.saves(trial, self.epoch[trial]):
            folder = self.store(trial)
            checkpoint = Checkpoint(str(folder), trial.storage.storage_filesystem)
            metrics = dict(trial.last_result)
            trial.on_checkpoint(_TrainingResult(checkpoint, metrics))
        self.execute(trial)

    def store(self, trial):
        """Write a checkpoint; a function's is stored before it is reported."""
        index = trial.storage.current_checkpoint_index + 1
        folder = Path(trial.path, f"checkpoint_{index:06d}")
        folder.mkdir(parents=True, exist_ok=True)
        Path(folder, "epoch.json").write_text(str(self.epoch[trial]))
        return folder

    def execute(self, trial):
        decision = self.decisions.pop(trial)
        if decision == "PAUSE":
            self.leave(trial, Trial.PAUSED)
        elif decision == "STOP":
            self.stop_trial(trial)

    def leave(self, trial, status):
        trial.temporary_state.saving_to = None
        trial.set_status(status)
        self.epoch.pop(trial, None)
        if trial in self.staged:
            self.staged.remove(trial)

    def fail(self, trial):
        trial.run_metadata.num_failures += 1
        self.leave(trial, Trial.ERROR)
        self.scheduler.on_trial_error(self, trial)
        if trial.should_recover():
            trial.set_status(Trial.PENDING)
            self.scheduler.on_trial_add(self, trial)

    # ------------------------------------------------------- killed and restored

    def restored(self, *, resume_errored=False):
        """Return the experiment as another process restores it."""
        scheduler = pickle.loads(self.saved_scheduler)
        other = FakeTune(scheduler, self.folder, n_slots=self.n_slots)
        own = {"scheduler", "search_alg", "trials", "staged", "epoch", "decisions"}
        own |= {"max_pending"}
        vars(other).update({k: v for k, v in vars(self).items() if k not in own})
        n_samples = self.search_alg.total_samples
        other.search_alg = Searcher(other.make_trial, n_samples, self.n_saved)
        for state, metadata in self.snapshot:
            trial = Trial.from_json_state(state[0], stub=True)
            trial.restore_run_metadata(metadata)
            errored = resume_errored and trial.status == Trial.ERROR
            if errored or not trial.is_finished():
                trial.set_status(Trial.PENDING)
            other.add_trial(trial)
        return other


@pytest.fixture
def fake_tune(tmp_path, monkeypatch):
    """Return a function that makes an experiment."""
    staging = str(tmp_path / "staging")
    monkeypatch.setattr(StorageContext, "experiment_driver_staging_path", staging)

    def make(budget=40, max_epochs=10, *, scheduler=None, tune=None, **options):
        options = {"metric": "score", "mode": "max", "n_jobs": 2, "seed": 0} | options
        scheduler = scheduler or RisingScheduler(budget, max_epochs, **options)
        return FakeTune(scheduler, tmp_path, **(tune or {}))

    return make
