"""One experiment: Ray's trials on the one side, the arms of a search on the other."""

import logging
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray.train.constants import CHECKPOINT_DIR_NAME
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial
from ray.tune.result import SHOULD_CHECKPOINT
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter

from risingsearch.errors import InvalidParameterError, RunDirError, SearchFailedError
from risingsearch.integrations.ray import journal
from risingsearch.integrations.ray.arms import Arms, Stamp, TrialJob, stamp_of
from risingsearch.json_values import as_json, from_json
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.callbacks import Callback, CallbackList
from risingsearch.search.first_failures import FirstFailures
from risingsearch.storage.journal import Event

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
    # slice is told when its last result comes in, before its checkpoint is saved.

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
        self._seen: dict[str, Stamp] = {}  # of the last result of each
        controller.update_max_pending_trials(NONE_BY_ITSELF)
        new: Event = {
            "key": key,
            "limit": lift_limit(controller.search_alg),
            "n_arms": min(controller.search_alg.total_samples or budget, budget),
        }
        self._record = journal.ExperimentJournal.of(trial)
        known = self._record.resume(key)
        if known is None and trial.has_reported_at_least_once:
            raise RunDirError(
                f"{self._record.path} is missing, which holds the earlier decisions: "
                "put it back, or begin a new experiment"
            )
        if known is None:
            self._record.begin(new)
        header, events = known or (new, [])
        self._limit = header["limit"]
        self.arms = Arms(make_scheduler(header["n_arms"]), self._note)
        self.arms.replay(events)
        # Of trials not yet restored:
        self._checkpoints: dict[str, Event] = {
            self.arms.trial[event["job"][0]]: event["checkpoint"]
            for event in events
            if "checkpoint" in event
        }
        self._teller = CallbackList(
            callbacks,
            lambda: self.scheduler,
            search=header["key"],
            metric=metric,
            params=lambda arm: from_json(self.arms.params[arm]),
            reports=self.arms.reports,
            stop=partial(setattr, self, "_is_stopped", True),
        )
        self._is_stopped = False
        self._failures = FirstFailures(self.scheduler)

    @property
    def scheduler(self) -> Scheduler:
        """Decides."""
        return self.arms.scheduler

    def _note(self, event: Event, trial_id: str | None = None) -> None:
        trial = None if trial_id is None else self.trials.get(trial_id)
        if trial is None:
            self._record.note(event)
        elif "failure" in event:
            self._record.note(event | journal.checkpoint_of(trial))
        else:
            self._record.note(event, trial, self._seen.get(trial.trial_id))

    def add(self, trial: Trial) -> None:
        """Add a trial that is new, restored, or tried again after a failure."""
        trial_id = trial.trial_id
        if self.trials.get(trial_id) is trial:
            self._retries.append(trial_id)
            self._seen[trial_id] = journal.last_stamp(trial)
            self.controller._set_trial_status(trial, Trial.PAUSED)
            return
        self.trials[trial_id] = trial
        ahead = self.arms.ahead.get(trial_id, [])
        if trial.storage.trial_dir_name and not trial.is_finished():  # restored
            journal.bring_up_to_date(
                trial, self._checkpoints.pop(trial_id, None), ahead
            )
        results = [*self.arms.results.get(trial_id, ())]
        results += [from_json(report["result"]) for report in ahead]
        if results:
            journal.bring_results_up_to_date(trial, results)
        if trial.is_finished():
            return
        trial.set_status(Trial.PAUSED)  # Ray files it by that after this call
        self._seen[trial_id] = journal.last_stamp(trial)
        if trial_id not in self.arms.arm:
            self._pool.append(trial_id)
            return
        if self.arms.status(trial_id) == "failed" and trial.num_failures:
            self._retries.append(trial_id)  # as ``resume_errored`` says

    def record_result(self, trial: Trial, result: Mapping[str, Any]) -> str:
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
        if self.metric not in result:
            return CONTINUE
        slice_ = self.arms.slices.get(trial.trial_id)
        if slice_ is None:  # it trains unasked
            return STOP
        if len(slice_.scores) == slice_.n_before:
            rows = [*self.arms.results.get(trial.trial_id, ())]
            rows += from_json(slice_.results)
            counts = [row.get(self.time_attr) for row in rows]
            journal.check_continues(trial, result, self.time_attr, counts)
        self._add(trial, slice_, result)
        if not slice_.is_over:
            return CONTINUE
        self.arms.tell(trial.trial_id)
        if slice_.is_lost or self.arms.is_over(trial.trial_id) or self.is_done:
            return STOP
        return self._continue_or_pause(trial, result)

    def _add(
        self,
        trial: Trial,
        slice_: TrialJob,
        result: Mapping[str, Any],
    ) -> None:
        self._seen[trial.trial_id] = stamp_of(result)
        slice_.scores.append(float(result[self.metric]))
        slice_.results.append(as_json(journal.reported(result)))
        report: Event = {
            "event": "reported",
            "trial": trial.trial_id,
            "epoch": slice_.job.from_epoch + len(slice_.scores),
            "score": as_json(slice_.scores[-1]),
            "result": slice_.results[-1],
            "number": journal.number_of(trial, result),
            "safe": CHECKPOINT_DIR_NAME in result,
        }
        self._record.note_at_once(report)

    def _continue_or_pause(self, trial: Trial, result: Mapping[str, object]) -> str:
        """Let a trial train on if it is the one that is due; pause it otherwise."""
        job = None if (self._is_stopped or self._retries) else self.scheduler.peek()
        due = None if job is None else self.arms.trial.get(job.arm)
        if due != trial.trial_id or not self._has_room:
            return PAUSE
        self.arms.begin()
        if not result.get(SHOULD_CHECKPOINT):  # else Ray saves by itself
            self.controller._schedule_trial_save(trial)
        return CONTINUE

    def fail(self, trial: Trial) -> None:
        """Record that a trial failed; Ray may add it again."""
        trial_id = trial.trial_id
        if trial_id in self.arms.slices:
            self.arms.fail(trial_id, _reason(trial), journal.last_stamp(trial))
        self._record.stop_waiting(trial)

    def complete(self, trial: Trial, result: Mapping[str, object]) -> None:
        """Record that a trial ended or was stopped, with a result that may be new."""
        slice_ = self.arms.slices.get(trial.trial_id)
        if slice_ is not None:
            is_new = stamp_of(result) != self._seen.get(trial.trial_id)
            if self.metric in result and is_new:
                self._add(trial, slice_, result)
            self.arms.tell(trial.trial_id)
        self._record.stop_waiting(trial)

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
        if self.arms.arm and not self.arms.arm.keys() & self.trials.keys():
            raise RunDirError(
                "Ray could not restore the trials and has begun anew; its log says "
                "why: mend its files, which a crash may have cut; nothing is changed"
            )
        self._record.write_ready()
        self._take_up()
        self._close_finished()
        self._teller.follow(done=False)
        if self._failures.are_enough():
            raise SearchFailedError(
                f"{self.arms.first_failure or 'no score is finite'}: none of the "
                f"{len(self.arms.arm)} arms opened has a finite score, so the search "
                "has stopped; correct the cause, and continue by Tuner.restore"
            )
        while not self._is_stopped and self._ask_next():
            self._take_up()
        if self.is_done:
            self._record.write_ready()  # what was taken up now
            self._teller.follow(done=True)
            self.controller.search_alg.set_finished()
            for trial in self.trials.values():  # or paused ones would keep it running
                self._stop(trial)
            return None
        waiting = [
            self.trials[trial_id]
            for trial_id in self.arms.slices
            if self.trials[trial_id].status in WAITS
        ]
        # Those that are not waiting for an actor yet come first.
        waiting.sort(key=lambda trial: trial.status == Trial.PENDING)
        if not waiting:
            return None
        if waiting[0].status == Trial.PAUSED:
            journal.store_log(waiting[0])
        return waiting[0]

    def _take_up(self) -> None:
        for trial_id in [id_ for id_ in self.arms.slices if self.arms.ahead.get(id_)]:
            self.arms.take_up(trial_id)

    @property
    def is_done(self) -> bool:
        """Whether nothing will ever train again."""
        ended = self._is_stopped or (self.scheduler.done and not self._retries)
        return not self.arms.slices and ended

    @property
    def _has_room(self) -> bool:
        n_jobs = self.scheduler.n_jobs
        if not n_jobs:  # as many as the cluster holds
            trial = next(iter(self.trials.values()))
            n_jobs = _n_on_cluster(trial)
        room = n_jobs if self._limit is None else min(n_jobs, self._limit)
        return len(self.scheduler.in_flight) < room

    def _ask_next(self) -> bool:
        """Ask for the job that is due; return whether there may be more."""
        job = self.scheduler.peek()
        if not (job or self._retries) or not self._has_room:
            return False
        if self._retries and self.arms.status(self._retries[0]) != "running":
            again = self._retries.pop(0)
            if self._lacks_checkpoint(again):
                return True
            try:
                self.arms.begin(again)
            except InvalidParameterError as error:
                logger.warning("trial %s is not tried again: %s", again, error)
            return True
        if job is None:
            return False
        trial_id = self.arms.trial.get(job.arm) or self._proposed()
        if trial_id is None:
            if not self.controller.search_alg.is_finished():
                return False
            self.arms.end(self.arms.unopened)
            return True
        if trial_id not in self.arms.arm:
            self.arms.open(job.arm, trial_id, journal.params_of(self.trials[trial_id]))
            self.trials[trial_id].init_local_path()  # its folder, to be found again
            self._record.save_trials(self.controller)
        if self._is_gone(trial_id) or self._lacks_checkpoint(trial_id):
            self.arms.end([job.arm])
        else:
            self.arms.begin()
        return True

    def _lacks_checkpoint(self, trial_id: str) -> bool:
        """Whether a trial would resume before its last epoch: that was not saved."""
        results = self.arms.results.get(trial_id)
        trial = self.trials[trial_id]
        if not results or trial.is_saving or self.arms.ahead.get(trial_id):
            return False
        lacks = journal.last_stamp(trial) != stamp_of(results[-1])
        if lacks:
            msg = "trial %s trains no more: saving its last epoch has failed"
            logger.warning(msg, trial_id)
        return lacks

    def _is_gone(self, trial_id: str) -> bool:
        """Whether Ray trains a trial no more."""
        trial = self.trials.get(trial_id)
        return trial is None or bool(trial.is_finished())

    def _proposed(self) -> str | None:
        """Return a trial that is no arm yet, if the searcher has one."""
        if not self._pool:
            trial = self.controller.search_alg.next_trial()
            if trial is not None:
                self.controller.add_trial(trial)
        return self._pool.pop(0) if self._pool else None

    def _close_finished(self) -> None:
        """Stop the trials of arms that are over; fail those that Ray has ended."""
        for trial_id in list(self.arms.arm):
            if self._is_gone(trial_id):
                slice_ = self.arms.slices.get(trial_id)
                trial = self.trials.get(trial_id)
                if slice_ and slice_.scores and trial and trial.status != Trial.ERROR:
                    self.arms.tell(trial_id)
                elif slice_:
                    self.arms.fail(trial_id, "Ray has ended the trial", journal.NONE)
            elif self.arms.is_over(trial_id) and trial_id not in self._retries:
                self._stop(self.trials[trial_id])

    def _stop(self, trial: Trial) -> None:
        if trial.status in WAITS:
            self.controller.stop_trial(trial)


def _n_on_cluster(trial: Trial) -> int:
    """Return how many trials like this one the cluster holds."""
    available = ray.cluster_resources()
    needed = trial.placement_group_factory.required_resources.items()
    fits = [available.get(name, 0.0) / amount for name, amount in needed if amount > 0]
    return max(1, math.floor(min(fits, default=1.0)))


def lift_limit(search_alg: Any) -> int | None:
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
