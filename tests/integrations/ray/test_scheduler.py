"""The twelve pitfalls of pausing trials in Ray Tune, and what else users rely on.

``fake_tune`` plays Ray's controller; ``test_fit.py`` has Ray itself.
"""

import itertools
import json
import math
import pickle
from collections import Counter

import pytest
from ray.train import CheckpointConfig
from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter
from ray.tune.search.searcher import Searcher

from risingsearch import Callback, Scheduler
from risingsearch.errors import InvalidParameterError, RunDirError, SearchFailedError
from risingsearch.integrations.ray import RisingScheduler, results
from risingsearch.integrations.ray.experiment import lift_limit
from risingsearch.storage.journal import Journal, create, read

POLICIES = [
    ("auto", True),
    ("auto", False),
    ("successive-halving", False),
    ("hyperband", True),
]


def charged(tune):
    return sum(arm.charged for arm in tune.scheduler.explain().values())


def history(tune):
    keys = ("arm", "epoch", "score", "round", "job", "reason")
    return [[row[key] for key in keys] for row in tune.scheduler.history]


def lines(tune):
    journal = tune.folder / "experiment" / "risingsearch-journal.jsonl"
    return [json.loads(line) for line in journal.read_text().splitlines()[1:]]


def told(tune):
    """Return the epochs that the journal has, by trial."""
    trials, epochs = {}, Counter()
    for line in lines(tune):
        if line["event"] == "opened":
            trials[line["arm"]] = line["trial"]
        elif line["event"] in ("result", "failed"):
            arm, from_epoch, *_ = line["job"]
            epochs[trials[arm]] = from_epoch + len(line["scores"])
    return epochs


def as_recorded_before(event):
    """Return an event as recorded before metrics and checkpoint had these names."""
    if event["event"] not in ("result", "failed"):
        return event
    others = ("seconds", "calls", "ended", "metrics", "checkpoint")
    before = {name: value for name, value in event.items() if name not in others}
    before["results"] = event.get("metrics", [])
    if "checkpoint" in event:
        metrics = event["metrics"][-1]
        before["checkpoint"] = {"name": event["checkpoint"], "metrics": metrics}
    return before


class StopAtFive(Callback):
    def on_epoch(self, epoch):
        if epoch.epoch == 5:
            epoch.stop()


class TestBudget:
    def test_a_callback_ends_it_once_what_trains_is_back(self, fake_tune):
        options = {"n_jobs": 1, "epochs_per_job": 1, "tune": {"n_samples": 1}}
        tune = fake_tune(callbacks=[StopAtFive()], **options)
        assert tune.run()
        assert len(tune.trained) == tune.scheduler.n_epochs == 6

    @pytest.mark.parametrize(("policy", "deterministic"), POLICIES)
    def test_no_epoch_is_trained_twice_nor_beyond_the_budget(
        self, fake_tune, policy, deterministic
    ):
        tune = fake_tune(policy=policy, deterministic=deterministic)
        assert tune.run()
        assert len(set(tune.trained)) == len(tune.trained) == tune.scheduler.n_epochs
        assert tune.scheduler.n_epochs <= 40
        if policy == "auto":
            assert tune.scheduler.n_epochs == 40

    @pytest.mark.parametrize("budget", [1, 2, 7])
    def test_it_is_exact_however_small_it_is(self, fake_tune, budget):
        tune = fake_tune(budget)
        assert tune.run()
        assert len(tune.trained) == budget

    def test_every_trial_gets_its_min_epochs(self, fake_tune):
        tune = fake_tune(min_epochs=4, epochs_per_job=1)
        assert tune.run()
        assert min(Counter(trial for trial, _ in tune.trained).values()) >= 4
        assert len(tune.trained) == 40

    @pytest.mark.parametrize(
        ("rule", "reason"),
        [
            ({"patience": 6}, "the patience of 6 epochs without a new best"),
            ({"target_score": 0.5}, "the target_score of 0.5 is reached"),
        ],
    )
    def test_it_ends_early_where_that_is_enough(self, fake_tune, rule, reason):
        tune = fake_tune(**rule)
        assert tune.run()
        assert tune.scheduler.n_epochs == len(tune.trained) < 40
        assert tune.scheduler.stop_reason.startswith(reason)
        assert tune.scheduler.stop_reason in tune.scheduler.debug_string()

    def test_it_ends_when_all_trials_have_all_their_epochs(self, fake_tune):
        tune = fake_tune(500, max_epochs=5)
        assert tune.run()
        assert set(Counter(trial for trial, _ in tune.trained).values()) == {5}
        assert len(tune.trained) == 8 * 5

    def test_it_decides_as_a_search_with_as_many_jobs(self, fake_tune):
        tune = fake_tune(deterministic=True, tune={"n_samples": 8})
        assert tune.run()
        sizes = {"n_arms": 8, "budget": 40, "max_epochs": 10}
        scheduler = Scheduler(**sizes, n_jobs=2, deterministic=True, seed=0)
        tops = [(arm * 7 % 11) / 11 + 0.1 for arm in range(8)]
        jobs = []
        while not scheduler.done:
            while (job := scheduler.ask()) is not None:
                jobs.append(job)
            job = jobs.pop(0)
            epochs = range(job.from_epoch + 1, job.from_epoch + job.n_epochs + 1)
            scheduler.tell(job, [tops[job.arm] * (1 - 1 / (e + 1)) for e in epochs])
        mine = [(row["arm"], row["epoch"]) for row in tune.scheduler.history]
        assert mine == [(row["arm"], row["epoch"]) for row in scheduler.history]

    def test_the_same_seed_gives_the_same_run_in_any_finishing_order(self, fake_tune):
        histories = []
        for seed in range(4):
            tune = fake_tune(deterministic=True, tune={"seed": seed})
            assert tune.run()
            histories.append(history(tune))
        assert all(history == histories[0] for history in histories)


class TestPausing:
    def test_a_trial_that_is_due_again_is_not_paused_but_saved(self, fake_tune):
        tune = fake_tune(6, epochs_per_job=1, tune={"n_samples": 1})
        tune.is_function = False
        decisions, saves = [], []
        take, save = tune.scheduler.on_trial_result, tune._schedule_trial_save
        tune.scheduler.on_trial_result = lambda *args: (
            decisions.append(take(*args)) or decisions[-1]
        )
        tune._schedule_trial_save = lambda trial: saves.append(trial) or save(trial)
        assert tune.run()
        assert decisions == ["CONTINUE"] * 5 + ["STOP"]
        assert len(saves) == 5

    def test_new_trials_wait_until_they_are_chosen(self, fake_tune):
        tune = fake_tune(tune={"n_slots": 4})
        training = []
        while not tune.is_finished():
            tune.step()
            running = [t for t in tune.trials if t.status == Trial.RUNNING]
            training.append(sum(not trial.is_saving for trial in running))
        assert max(training) == 2

    def test_the_searcher_is_asked_only_when_a_trial_is_opened(self, fake_tune):
        tune = fake_tune(tune={"n_samples": 1000})
        assert tune.run()
        assert tune.search_alg.n_proposed == len(tune.trials) <= 40

    def test_choosing_changes_nothing_until_the_trial_runs(self, fake_tune):
        tune = fake_tune(n_jobs=1)
        tune.step()
        for _ in range(30):
            chosen = tune.scheduler.choose_trial_to_run(tune)
            before = tune.scheduler.n_epochs, len(tune.trials)
            assert tune.scheduler.choose_trial_to_run(tune) is chosen
            assert (tune.scheduler.n_epochs, len(tune.trials)) == before
            tune.step()

    def test_it_ends_though_trials_are_paused(self, fake_tune):
        tune = fake_tune(12)
        assert tune.run()
        assert {trial.status for trial in tune.trials} == {Trial.TERMINATED}

    def test_results_are_not_buffered(self):
        assert not RisingScheduler(9).supports_buffered_results


class TestCheckpoints:
    @pytest.mark.parametrize("is_function", [True, False])
    def test_a_trial_without_one_is_refused(self, fake_tune, is_function):
        tune = fake_tune()
        tune.is_function = is_function
        tune.saves = lambda trial, epoch: False
        with pytest.raises(RunDirError, match=r"give tune\.report a checkpoint"):
            tune.run()
        assert len(tune.trained) <= 3

    def test_a_trial_that_does_not_load_it_is_found_out(self, fake_tune):
        tune = fake_tune()
        tune.restores = False
        with pytest.raises(RunDirError, match="resumed after epoch 1 and reports e"):
            tune.run()

    def test_one_that_is_deleted_is_a_failure_of_its_trial(self, fake_tune):
        tune = fake_tune()
        while tune.n_in(Trial.PAUSED) < 4:
            tune.step()
        kept = {t for t in tune.trials if t.checkpoint and t.status == Trial.PAUSED}
        for trial in kept:
            for file in (tune.folder / "experiment" / trial.trial_id).rglob("*.json"):
                file.unlink()
        assert tune.run()
        assert len(set(tune.trained)) == len(tune.trained)
        assert charged(tune) == 40

    def test_the_newest_is_kept_though_another_is_better(self, fake_tune):
        config = CheckpointConfig(
            num_to_keep=1,
            checkpoint_score_attribute="score",
            checkpoint_score_order="min",
        )
        tune = fake_tune(tune={"checkpoint_config": config})
        assert tune.run()
        assert len(set(tune.trained)) == len(tune.trained) == 40


class TestScores:
    @pytest.mark.parametrize(
        ("lost", "deterministic"), [(math.nan, True), (math.inf, False)]
    )
    def test_a_trial_whose_score_is_not_finite_is_stopped(
        self, fake_tune, lost, deterministic
    ):
        tune = fake_tune(deterministic=deterministic)
        tune.score = lambda trial, epoch: (
            lost
            if trial.trial_id == tune.id_of(3) and epoch == 2
            else trial.config["top"]
        )
        assert tune.run()
        assert max(e for t, e in tune.trained if t == tune.id_of(3)) == 2
        assert len(tune.trained) == charged(tune) == 40
        assert tune.scheduler.explain()[tune.id_of(3)].status == "failed"

    def test_minimising_is_maximising_the_negative(self, fake_tune):
        one = fake_tune()
        one.run()
        other = fake_tune(mode="min")
        score = one.score
        other.score = lambda trial, epoch: -score(trial, epoch)
        other.run()
        assert [(r["arm"], r["score"]) for r in one.scheduler.history] == [
            (r["arm"], -r["score"]) for r in other.scheduler.history
        ]

    def test_a_result_without_the_metric_goes_by(self, fake_tune):
        tune = fake_tune()
        tune.step()
        decision = tune.scheduler.on_trial_result(tune, tune.trials[0], {"other": 1})
        assert decision == TrialScheduler.CONTINUE
        assert tune.scheduler.n_epochs == 0

    def test_the_last_result_counts_that_only_completion_brings(self, fake_tune):
        tune = fake_tune()
        tune.ends = lambda trial, epoch: epoch == 4
        assert tune.run()
        assert len(tune.trained) == charged(tune) == 8 * 4
        epochs = [arm.epochs for arm in tune.scheduler.explain().values()]
        assert epochs == [4] * 8

    def test_a_last_result_that_comes_again_does_not(self, fake_tune):
        tune = fake_tune(epochs_per_job=5)
        while not tune.trained:
            tune.step()
        tune.stop_trial(
            next(t for t in tune.trials if t.trial_id == tune.trained[0][0])
        )
        assert tune.run()
        assert len(tune.trained) == charged(tune)


class TestFailures:
    def test_a_trial_that_failed_is_charged_and_retired(self, fake_tune):
        tune = fake_tune(epochs_per_job=3)
        tune.fails = lambda trial, epoch: trial.trial_id == tune.id_of(1) and epoch == 2
        assert tune.run()
        arm = tune.scheduler.explain()[tune.id_of(1)]
        assert (arm.status, arm.epochs, arm.charged) == ("failed", 1, 2)
        assert "retired: the trial failed" in arm.reason
        assert charged(tune) == 40
        assert len(tune.trained) == 40 - 1

    @pytest.mark.parametrize("lost", [True, False])
    def test_a_mistake_that_all_trials_share_ends_it(self, fake_tune, lost):
        tune = fake_tune(tune={"n_samples": 20})
        tune.score = lambda trial, epoch: math.nan
        tune.fails = lambda trial, epoch: not lost
        cause = "no score is finite" if lost else "the trial failed"
        with pytest.raises(SearchFailedError, match=f"{cause}: none of the 1. arms"):
            tune.run()
        assert len(tune.scheduler.explain()) <= 12
        other = tune.restored()
        other.score = lambda trial, epoch: 0.5
        other.fails = lambda trial, epoch: False
        assert other.run()
        assert charged(other) == 40

    def test_a_mistake_of_the_first_trials_does_not(self, fake_tune):
        tune = fake_tune(tune={"n_samples": 20})
        tune.fails = lambda trial, epoch: int(trial.trial_id.split("_")[1]) > 0
        assert tune.run()
        assert charged(tune) > 20

    @pytest.mark.parametrize(
        ("is_function", "deterministic"), [(True, True), (False, False)]
    )
    def test_ray_tries_it_again_from_its_checkpoint(
        self, fake_tune, is_function, deterministic
    ):
        tune = fake_tune(
            epochs_per_job=3, deterministic=deterministic, tune={"max_failures": 1}
        )
        tune.is_function = is_function
        failed = set()

        def fails(trial, epoch):
            if epoch == 5 and not failed:
                failed.add(trial.trial_id)
                return True
            return False

        tune.fails = fails
        assert tune.run()
        assert failed
        assert charged(tune) == 40
        again = len(tune.trained) - len(set(tune.trained))
        assert again == (0 if is_function else len(failed))  # epoch 4 was not saved
        for arm in tune.scheduler.explain().values():
            mine = {e for t, e in tune.trained if t == arm_id(tune, arm.arm)}
            assert arm.epochs == len(mine)


def arm_id(tune, arm):
    return next(id_ for id_, a in tune.scheduler.explain().items() if a.arm == arm)


class TestRestoring:
    @pytest.mark.parametrize(
        ("is_function", "slice_", "num_to_keep", "every"),
        [
            (True, None, 1, 1),
            (False, None, None, 1),
            (True, 3, None, 1),
            (True, 4, 1, 1),
            (True, 3, 1, 3),
            (False, 3, 1, 1),
        ],
    )
    def test_killed_after_any_step_the_epoch_told_is_the_epoch_trained(
        self, fake_tune, is_function, slice_, num_to_keep, every
    ):
        budget = 40 - 40 % every  # else the last job ends where nothing is saved
        config = CheckpointConfig(num_to_keep=num_to_keep)
        for n_steps in itertools.count(3, 29):
            tune = fake_tune(
                budget,
                max_epochs=9,
                epochs_per_job=slice_,
                tune={"checkpoint_config": config, "n_samples": 6},
            )
            tune.is_function = is_function
            tune.saves = lambda trial, epoch: epoch % every == 0
            if tune.run(n_steps):
                break
            known = told(tune)
            before = len(tune.trained)
            if n_steps % 2:  # Ray's snapshot is as new as it can be, or older
                tune.save_to_dir()
            other = tune.restored()
            assert other.run()
            again = other.trained[before:]
            assert not [(id_, epoch) for id_, epoch in again if epoch <= known[id_]]
            assert charged(other) == budget
            assert len(other.trained) - budget <= before - sum(known.values())
            if is_function and every == 1:  # what was reported is not lost
                assert len(other.trained) == len(set(other.trained)) == budget
            rows = results(tune.folder / "experiment")
            assert len(rows) == budget
            assert all(row["epoch"] == row["metrics"]["epoch"] for row in rows)

    @pytest.mark.parametrize(("is_function", "slice_"), [(True, 1), (False, 3)])
    def test_a_journal_of_an_earlier_release_continues(
        self, fake_tune, is_function, slice_
    ):
        tune = fake_tune(epochs_per_job=slice_, tune={"max_failures": 1})
        tune.is_function = is_function
        failed = []
        tune.fails = lambda trial, epoch: (
            epoch == 2 and not failed and not failed.append(trial)
        )
        while len(tune.trained) < 25:
            tune.step()
        journal = tune.folder / "experiment" / "risingsearch-journal.jsonl"
        header, events, _ = read(journal)
        create(journal, header)
        rewritten = Journal(journal, read(journal))
        for event in events:
            rewritten.append(as_recorded_before(event))
        rows, known = results(tune.folder / "experiment"), told(tune)
        assert len(rows) == sum(known.values()) > 15
        other = tune.restored()
        assert other.run()
        again = other.trained[25:]
        assert not [(id_, epoch) for id_, epoch in again if epoch <= known[id_]]
        assert charged(other) == 40
        assert results(tune.folder / "experiment")[: len(rows)] == rows

    def test_an_epoch_that_a_resumed_trial_leaves_out_is_found_out(self, fake_tune):
        tune = fake_tune(epochs_per_job=2)
        start = tune.start

        def start_ahead(trial):
            start(trial)
            tune.epoch[trial] += tune.epoch[trial] == 2

        tune.start = start_ahead
        with pytest.raises(RunDirError, match="after epoch 2 and reports epoch 4"):
            tune.run()

    @pytest.mark.parametrize("max_failures", [0, 2])
    def test_an_epoch_that_cannot_be_saved_is_not_trained_under_another_number(
        self, fake_tune, max_failures
    ):
        tune = fake_tune(
            deterministic=False, tune={"max_failures": max_failures, "n_samples": 4}
        )
        tune.is_function, saved = False, tune.saved

        def save(trial):
            if trial.trial_id == tune.id_of(0) and tune.epoch[trial] == 2:
                tune.decisions.pop(trial)
                tune.fail(trial)
            else:
                saved(trial)

        tune.saved = save
        assert tune.run()
        rows = results(tune.folder / "experiment")
        assert all(row["epoch"] == row["metrics"]["epoch"] for row in rows)

    def test_what_cannot_be_restored_does_not_begin_anew(self, fake_tune):
        tune = fake_tune()
        tune.run(40)
        journal = tune.folder / "experiment" / "risingsearch-journal.jsonl"
        content = journal.read_bytes()
        journal.write_bytes(content.replace(b"result", b"resolt", 1))
        with pytest.raises(RunDirError, match="is damaged in line"):
            tune.restored()
        journal.unlink()
        scheduler = tune.scheduler = pickle.loads(tune.saved_scheduler)
        trained = next(trial for trial in tune.trials if trial.last_result)
        with pytest.raises(RunDirError, match="is missing, which holds the earlier"):
            scheduler.on_trial_add(tune, trained)
        with pytest.raises(RunDirError):  # Ray hides the first
            scheduler.choose_trial_to_run(tune)

    def test_a_new_experiment_in_the_same_folder_begins_anew(self, fake_tune):
        fake_tune().run()
        tune = fake_tune()
        assert tune.run()
        assert len(tune.trained) == 40

    @pytest.mark.parametrize("resume_errored", [True, False])
    def test_failed_trials_are_tried_again_where_ray_resumes_them(
        self, fake_tune, resume_errored
    ):
        tune = fake_tune()
        tune.fails = lambda trial, epoch: trial.trial_id == tune.id_of(0)
        while len(tune.trained) < 30:
            tune.step()
        tune.save_to_dir()
        other = tune.restored(resume_errored=resume_errored)
        other.fails = lambda trial, epoch: False
        assert other.run()
        arm = other.scheduler.explain()[tune.id_of(0)]
        assert (arm.charged > 1) == (arm.status != "failed") == resume_errored
        assert charged(other) == 40

    def test_where_ray_has_begun_anew_nothing_is_changed(self, fake_tune):
        tune = fake_tune()
        tune.run(40)
        before = lines(tune)
        tune.snapshot = []
        other = tune.restored()
        other.prefix, other.search_alg.n_proposed = "anew", 0
        with pytest.raises(RunDirError, match="Ray could not restore the trials"):
            other.step()
        assert lines(tune) == before

    def test_what_ray_knows_of_a_trial_is_stored_before_it_trains(self, fake_tune):
        tune = fake_tune()
        stored = tune.folder / "experiment" / "state.json"
        while not tune.is_finished():
            tune.step()
            opened = sum(line["event"] == "opened" for line in lines(tune))
            assert int(stored.read_text()) >= opened

    def test_a_trial_that_ray_has_lost_is_failed(self, fake_tune):
        tune = fake_tune()
        tune.run(40)
        tune.snapshot = tune.snapshot[1:]
        other = tune.restored()
        assert other.run()
        assert charged(other) == 40


class TestSearchers:
    def test_a_searcher_that_runs_dry_leaves_the_budget_to_its_trials(self, fake_tune):
        tune = fake_tune(tune={"n_samples": 100})
        tune.search_alg.runs_dry_after = 5
        assert tune.run()
        assert len(tune.trials) == 5
        assert len(tune.trained) == 40

    def test_limits_are_kept_for_trials_that_train(self):
        grid = BasicVariantGenerator(max_concurrent=3)
        assert lift_limit(grid) == 3
        assert lift_limit(grid) is None

        class Random(Searcher):
            pass

        limiter = ConcurrencyLimiter(Random(metric="m", mode="max"), max_concurrent=2)

        class Generator:
            searcher = limiter

        assert lift_limit(Generator) == 2
        assert limiter.max_concurrent > 1000


class TestSettings:
    def test_metric_and_mode_are_given_once(self):
        scheduler = RisingScheduler(9, metric="score")
        assert not scheduler.set_search_properties("other", "max")
        assert scheduler.set_search_properties(None, "max")
        assert not scheduler.set_search_properties(None, "min")
        assert scheduler.metric == "score"

    def test_without_them_nothing_begins(self, fake_tune):
        tune = fake_tune(metric=None)
        with pytest.raises(InvalidParameterError, match="needs a metric and a mode"):
            tune.step()

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"budget": 0}, "budget"),
            ({"mode": "maximize"}, "mode must be one of"),
            ({"n_jobs": 0}, "n_jobs"),
            ({"policy_params": {"nope": 1}}, "nope"),
        ],
    )
    def test_what_is_wrong_is_said_at_once(self, given, message):
        with pytest.raises(InvalidParameterError, match=message):
            RisingScheduler(**{"budget": 9} | given)

    def test_an_unknown_policy_is_said_at_once(self):
        with pytest.raises(InvalidParameterError, match="did you mean"):
            RisingScheduler(9, policy="cure")

    def test_it_serves_one_experiment(self, fake_tune):
        tune = fake_tune()
        tune.run()
        other = fake_tune(scheduler=tune.scheduler)
        with pytest.raises(InvalidParameterError, match="serves one experiment"):
            other.step()


class TestStatus:
    def test_it_says_where_it_stands(self, fake_tune):
        tune = fake_tune()
        assert tune.scheduler.debug_string() == "RisingScheduler: 0 of 40 epochs"
        assert tune.scheduler.best_trial_id is None
        tune.run()
        assert tune.scheduler.debug_string() == (
            "RisingScheduler (looks-then-slope): 40 of 40 epochs, 8 trials "
            f"opened, best score {tune.scheduler.best_score:.4g} by "
            f"{tune.scheduler.best_trial_id} at epoch {tune.scheduler.best_epoch}; "
            "the budget of 40 epochs is spent"
        )

    def test_it_tells_the_history_by_trial(self, fake_tune):
        tune = fake_tune()
        tune.run()
        rows = tune.scheduler.history
        assert len(rows) == 40
        best = max(rows, key=lambda row: row["score"])
        assert best["trial_id"] == tune.scheduler.best_trial_id
        assert best["score"] == tune.scheduler.best_score
        assert best["epoch"] == tune.scheduler.best_epoch
        assert {row["trial_id"] for row in rows} == set(tune.scheduler.explain())
