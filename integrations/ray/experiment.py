"""One experiment: Ray's trials on the one side, the arms of a search on the other."""

import logging
import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import ray
from ray.train.constants import CHECKPOINT_DIR_NAME
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial
from ray.tune.result import CONFIG_PREFIX, SHOULD_CHECKPOINT
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter, SearchAlgorithm
from ray.tune.utils import flatten_dict

from risingsearch.arms import Configuration, Job
from risingsearch.errors import InvalidParameterError, RunDirError, SearchFailedError
from risingsearch.integrations.ray.arms import Arms
from risingsearch.integrations.ray.checkpoints import (
    bring_results_up_to_date,
    bring_up_to_date,
    check_continues,
    number_of,
    store_log,
)
from risingsearch.integrations.ray.results import last_stamp, plain_metrics, stamp_of
from risingsearch.integrations.ray.writing import ExperimentJournal
from risingsearch.scheduling.events import Ended, Event, TrialOpened, TrialReported
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.callbacks import Callback, CallbackList
from risingsearch.search.first_failures import FirstFailures

logger = logging.getLogger(__name__)

CONTINUE = str(TrialScheduler.CONTINUE)
PAUSE = str(TrialScheduler.PAUSE)
STOP = str(TrialScheduler.STOP)
WAITS = (Trial.PENDING, Trial.PAUSED)
# Of pending trials: Ray then neither asks the searcher nor starts a trial by itself.
NONE_BY_ITSELF = -1


class Experiment:
    """Reports trials to the scheduler, and its decisions to Ray."""

    # Every trial is added as paused, so that Ray starts none that was not chosen. A
    # job is told when its last result comes in, before its checkpoint is saved.

    def __init__(
        self,
        controller: TuneController,
        trial: Trial,
        *,
        budget: int,
        key: str,
        make_scheduler: Callable[[int], Scheduler],
        metric: str,
        time_attr: str,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.controller = controller
        self.metric = metric
        self.time_attr = time_attr
        self.trials: dict[str, Trial] = {}
        self._pool: list[str] = []  # trials that are no arm yet
        self._retries: list[str] = []  # trials that failed, and Ray tries again
        controller.update_max_pending_trials(NONE_BY_ITSELF)
        new = {
            "key": key,
            "limit": lift_limit(controller.search_alg),
            "n_arms": min(controller.search_alg.total_samples or budget, budget),
        }
        self._journal = ExperimentJournal(trial, new)
        header = self._journal.header
        self._limit = header["limit"]
        self.scheduler = make_scheduler(header["n_arms"])
        self.arms = Arms(self.scheduler, self._journal.events, self._write)
        self._teller = CallbackList(
            callbacks,
            lambda: self.scheduler,
            search=key,
            metric=metric,
            params=self.arms.params.__getitem__,
            reports=self.arms.reports,
            stop=partial(setattr, self, "_is_stopped", True),
        )
        self._is_stopped = False
        self._failures = FirstFailures(self.scheduler)

    def _write(self, event: Event, trial_id: str | None) -> None:
        trial = None
        if trial_id is not None:
            trial = self.trials.get(trial_id)
        self._journal.write(event, trial)

    def add(self, trial: Trial) -> None:
        """Add a trial that is new, restored, or tried again after a failure."""
        trial_id = trial.trial_id
        if self.trials.get(trial_id) is trial:
            self._retries.append(trial_id)
            self.controller._set_trial_status(trial, Trial.PAUSED)
            return
        self.trials[trial_id] = trial
        record = self.arms.records[trial_id]
        if trial.storage.trial_dir_name and not trial.is_finished():  # restored
            bring_up_to_date(trial, record.checkpoint, record.reported)
        if record.results:
            bring_results_up_to_date(trial, record.results)
        if trial.is_finished():
            return
        trial.set_status(Trial.PAUSED)  # Ray files it by that after this call
        if record.arm is None:
            self._pool.append(trial_id)
        elif self.arms.status(trial_id) == "failed" and trial.num_failures:
            self._retries.append(trial_id)  # as ``resume_errored`` says

    def record_result(self, trial: Trial, result: Configuration) -> str:
        """Record a result.

        Parameters
        ----------
        trial : Trial
            The trial that has reported it.
        result : dict
            What it has reported, with what Ray adds.

        Returns
        -------
        str
            The next decision for the trial: ``CONTINUE``, ``PAUSE`` or ``STOP``.
        """
        trial_id = trial.trial_id
        record = self.arms.records[trial_id]
        if self.metric not in result:
            return CONTINUE
        if record.job is None:  # it trains unasked
            return STOP
        check_continues(trial, result, self.time_attr, record.results)
        self._report(trial, record.job, result)
        if not record.is_trained:
            return CONTINUE
        is_lost = record.is_lost
        self.arms.tell(trial_id)
        if is_lost or self.arms.is_over(trial_id) or self.is_done:
            return STOP
        return self._continue_or_pause(trial, result)

    def _report(self, trial: Trial, job: Job, result: Configuration) -> None:
        n_before = len(self.arms.records[trial.trial_id].reports)
        config = f"{CONFIG_PREFIX}/"  # which is known
        reported = {k: v for k, v in result.items() if not k.startswith(config)}
        report = TrialReported(
            trial=trial.trial_id,
            epoch=job.from_epoch + n_before + 1,
            score=float(result[self.metric]),
            result=plain_metrics(reported),
            number=number_of(trial, result),
            safe=CHECKPOINT_DIR_NAME in result,
        )
        self.arms.record(report)

    def _continue_or_pause(self, trial: Trial, result: Configuration) -> str:
        """Let a trial train on if it is the one that is due; pause it otherwise."""
        job = None if (self._is_stopped or self._retries) else self.scheduler.peek()
        due = None
        if job is not None:
            due = self.arms.trial.get(job.arm)
        if due != trial.trial_id or not self._has_room:
            return PAUSE
        self.arms.begin()
        if not result.get(SHOULD_CHECKPOINT):  # else Ray saves by itself
            self.controller._schedule_trial_save(trial)
        return CONTINUE

    def fail(self, trial: Trial) -> None:
        """Record that a trial failed; Ray may add it again."""
        if self.arms.records[trial.trial_id].job is not None:
            self.arms.fail(trial.trial_id, _reason(trial), last_stamp(trial))
        self._journal.stop_waiting(trial)

    def complete(self, trial: Trial, result: Configuration) -> None:
        """Record that a trial ended or was stopped, with a result that may be new."""
        record = self.arms.records[trial.trial_id]
        if record.job is not None:
            is_new = stamp_of(result) not in map(stamp_of, record.results[-1:])
            if self.metric in result and is_new:
                self._report(trial, record.job, result)
            self.arms.tell(trial.trial_id)
        self._journal.stop_waiting(trial)

    def choose(self) -> Trial | None:
        """Return a trial that is to train now, the same until it does.

        Returns
        -------
        Trial or None
            None if no trial can train now.

        Raises
        ------
        RunDirError
            If Ray has not restored the trials.
        SearchFailedError
            If the first arms have failed.
        """
        opened = self.arms.trial.values()
        if opened and self.trials.keys().isdisjoint(opened):
            raise RunDirError(
                "Ray could not restore the trials and has begun anew; its log says "
                "why: mend its files, which a crash may have cut; nothing is changed"
            )
        self._journal.write_saved()
        self._tell_trained()
        self._close_finished()
        self._teller.follow(done=False)
        if self._failures.are_enough():
            raise SearchFailedError(
                f"{self.arms.first_failure or 'no score is finite'}: none of the "
                f"{len(opened)} arms opened has a finite score, so the search "
                "has stopped; correct the cause, and continue by Tuner.restore"
            )
        while not self._is_stopped and self._ask_next():
            self._tell_trained()
        if self.is_done:
            self._journal.write_saved()  # what was taken up now
            self._teller.follow(done=True)
            self.controller.search_alg.set_finished()
            for trial in self.trials.values():  # or paused ones would keep it running
                self._stop(trial)
            return None
        chosen = [self.trials[trial_id] for trial_id in self.arms.in_training]
        # Those that are not waiting for an actor yet come first.
        for trial in chosen:
            if trial.status == Trial.PAUSED:
                store_log(trial)
                return trial
        return next((t for t in chosen if t.status == Trial.PENDING), None)

    def _tell_trained(self) -> None:
        """Tell the jobs whose epochs were all reported before a restore."""
        for trial_id in self.arms.in_training:
            if self.arms.records[trial_id].is_trained:
                self.arms.tell(trial_id)

    @property
    def is_done(self) -> bool:
        """Whether nothing will ever train again."""
        ended = self._is_stopped or (self.scheduler.done and not self._retries)
        return ended and not self.scheduler.in_flight

    @property
    def _has_room(self) -> bool:
        n_jobs = self.scheduler.n_jobs
        if not n_jobs:  # as many as the cluster holds
            trial = next(iter(self.trials.values()))
            n_jobs = _n_on_cluster(trial)
        room = n_jobs
        if self._limit is not None:
            room = min(n_jobs, self._limit)
        return len(self.scheduler.in_flight) < room

    def _ask_next(self) -> bool:
        """Ask for the job that is due; return whether there may be more."""
        job = self.scheduler.peek()
        if not (job or self._retries) or not self._has_room:
            return False
        if self._retries and self.arms.status(self._retries[0]) != "running":
            self._try_again(self._retries.pop(0))
            return True
        if job is None:
            return False
        trial_id = self.arms.trial.get(job.arm) or self._open(job.arm)
        if trial_id is None:
            if not self.controller.search_alg.is_finished():
                return False
            unopened = set(range(self.scheduler.n_arms)) - self.arms.trial.keys()
            self.arms.record(Ended(arms=sorted(unopened)))
            return True
        trial = self.trials.get(trial_id)
        if _is_gone(trial) or self._lacks_checkpoint(trial):
            self.arms.record(Ended(arms=[job.arm]))
        else:
            self.arms.begin()
        return True

    def _open(self, arm: int) -> str | None:
        """Give an arm a trial that is none yet, if the searcher has one."""
        if not self._pool:
            trial = self.controller.search_alg.next_trial()
            if trial is None:
                return None
            self.controller.add_trial(trial)
        trial_id = self._pool.pop(0)
        trial = self.trials[trial_id]
        self.arms.record(TrialOpened(arm=arm, trial=trial_id, params=_params_of(trial)))
        trial.init_local_path()  # its folder, to be found again
        self._journal.save_trials(self.controller)
        return trial_id

    def _try_again(self, trial_id: str) -> None:
        if self._lacks_checkpoint(self.trials[trial_id]):
            return
        try:
            self.arms.begin(again=self.arms.records[trial_id].arm)
        except InvalidParameterError as error:
            logger.warning("trial %s is not tried again: %s", trial_id, error)

    def _lacks_checkpoint(self, trial: Trial) -> bool:
        """Whether a trial would resume before its last epoch: that was not saved."""
        record = self.arms.records[trial.trial_id]
        if not record.told or trial.is_saving or record.reported:
            return False
        lacks = last_stamp(trial) != stamp_of(record.told[-1])
        if lacks:
            msg = "trial %s trains no more: saving its last epoch has failed"
            logger.warning(msg, trial.trial_id)
        return lacks

    def _close_finished(self) -> None:
        """Stop the trials of arms that are over; fail those that Ray has ended."""
        for trial_id in self.arms.trial.values():
            record = self.arms.records[trial_id]
            trial = self.trials.get(trial_id)
            if not _is_gone(trial):
                if self.arms.is_over(trial_id) and trial_id not in self._retries:
                    self._stop(trial)
            elif record.job is not None:
                has_ended = trial is not None and trial.status != Trial.ERROR
                if has_ended and record.reports:
                    self.arms.tell(trial_id)
                else:
                    self.arms.fail(trial_id, "Ray has ended the trial")

    def _stop(self, trial: Trial) -> None:
        if trial.status in WAITS:
            self.controller.stop_trial(trial)


def _is_gone(trial: Trial | None) -> bool:
    """Whether Ray trains a trial no more."""
    return trial is None or bool(trial.is_finished())


def _params_of(trial: Trial) -> Configuration:
    """Return the plain values of a trial's config, nested ones by their path."""
    flat = flatten_dict(trial.config)
    allowed = plain_metrics(flat)
    return {k: value for k, value in flat.items() if value is None or k in allowed}


def _n_on_cluster(trial: Trial) -> int:
    """Return how many trials like this one the cluster holds."""
    available = ray.cluster_resources()
    needed = trial.placement_group_factory.required_resources.items()
    fits = [available.get(name, 0.0) / amount for name, amount in needed if amount > 0]
    return max(1, math.floor(min(fits, default=1.0)))


def lift_limit(search_alg: SearchAlgorithm) -> int | None:
    """Return ``max_concurrent_trials``, and let the searcher propose beyond it."""
    # Ray counts paused trials too: a limit of two would never open a third arm. The
    # scheduler keeps it instead, for trials that train.
    limits = []
    if isinstance(search_alg, BasicVariantGenerator) and search_alg.max_concurrent:
        limits.append(search_alg.max_concurrent)
        search_alg.max_concurrent = 0
    searcher = getattr(search_alg, "searcher", None)
    while searcher is not None:
        if isinstance(searcher, ConcurrencyLimiter):
            limits.append(searcher.max_concurrent)
            searcher.max_concurrent = sys.maxsize
            searcher.searcher.set_max_concurrency(sys.maxsize)  # the inner limit
        searcher = getattr(searcher, "searcher", None)
    return min(limits, default=None)


def _reason(trial: Trial) -> str:
    """Return the last line of the error of a trial."""
    text = "the trial failed"
    if trial.run_metadata.error_filename and Path(trial.error_file).exists():
        text = Path(trial.error_file).read_text().strip() or text
    return text.splitlines()[-1]
