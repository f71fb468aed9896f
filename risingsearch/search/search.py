"""The generic search: anything trainable, on any executor, under one budget."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from risingsearch.arms import ArmList, Configuration, EpochFacts, Params, Report
from risingsearch.budget import Budget
from risingsearch.checks import kept_path
from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.policies import Policy
from risingsearch.proposers.base import Proposer
from risingsearch.scheduling.options import SearchOptions
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.arguments import (
    header_of,
    problem_of_proposals,
    proposer_of,
)
from risingsearch.search.callbacks import Callback, CallbackList, checked_callbacks
from risingsearch.search.examples import EXAMPLES
from risingsearch.search.loop import Embedding, Loop
from risingsearch.search.repeats import divided
from risingsearch.search.results import SearchResult
from risingsearch.search.run import Run, key_of, resolved
from risingsearch.search.run_log import RunLog, check_kind
from risingsearch.search.trainable import (
    Seeds,
    Trainable,
    checked_trainable,
    trains_anew,
)
from risingsearch.search.training import InProcess
from risingsearch.search.workers import workers_to_resume
from risingsearch.space import Space, is_space
from risingsearch.storage.files import check_owner
from risingsearch.storage.run_directory import (
    RunDirectory,
    damage_as_error,
    gc_paused,
    is_held,
)


class RisingSearch:
    """Search that gives every epoch of a budget to the candidate that uses it best.

    Parameters
    ----------
    trainable : Trainable
        An object with ``start(params, seed) -> state`` and ``train(state) -> score``,
        optionally ``save`` and ``load``; plain functions go into ``Functions``.
    candidates : iterable of dict, or a space
        The parameters of every arm, at least one. More than the budget can try is fine:
        the policy opens as many as are worth it, in random order. Or the space that
        they are drawn from: a dict with a list or a distribution (of scipy, of Optuna)
        for each parameter, a ``ConfigurationSpace``, a ``Space``, or a list of spaces.
    policy : str or callable, default "auto"
        Decides who trains next; see ``Scheduler``.
    proposer : Proposer, "auto" or None, default "auto"
        Which candidate is opened next, if the policy leaves it open. "auto" models the
        final scores over the parameters, with ``policy="auto"``, and proposes others in
        a space; None keeps the order, and so does ``shuffle=False``.
    budget : int, str or Budget, optional
        Epochs over all arms; training time, ``Budget(hours=8)`` or "8h", or GPU-hours,
        ``Budget(gpu_hours=20)`` or "20gpu-h", summed over all workers; wall-clock
        time, ``Budget(wall_hours=8)`` or "8wall-h", from the start of ``run`` to its
        end; or any cost that ``train`` returns, ``Budget(cost=50)``. Optional if there
        is a ``timeout``.
    executor : concurrent.futures.Executor, optional
        Where jobs run: processes, threads, or a Dask cluster, by its client or
        ``client.get_executor()``; by default this process. It is not shut down.
    n_jobs : int, optional
        Jobs in flight at most; by default as many as the executor has workers, if it
        says. Without an executor, more than 1 starts so many worker processes, and
        replaces those that die.
    callbacks : sequence of Callback or callable
        They get the facts of every epoch; a function is used as ``on_epoch``.
    n_candidates : int, optional
        Configurations of a space that are tried at most, each once. By default as many
        are drawn as the policy asks for, 500 under a budget in time; in a space with
        distributions as many others are drawn whenever all have been opened.
    max_epochs, policy_params, epochs_per_job, min_epochs, max_failures
        See ``Scheduler``.
    deterministic, direction, epoch_costs
        See ``Scheduler``.
    error_score : float or "raise", optional
        The score that a failed epoch counts as, by default the worst so far; "raise"
        stops at the first failure with its exception.
    seed : int, optional
        Seed of the arms, of their opening order and of the policy's draws.
    shuffle : bool, default True
        Open the candidates in random order; False keeps theirs, but for arms that
        a ``prior`` has opened first.
    timeout : float, optional
        Wall-clock seconds: the budget if no other is given; else ``run`` ends after so
        many seconds at the latest, and continues when it is called again.
    epoch_timeout : float, optional
        Seconds that an epoch may take: after those it is ended with its process, and
        has failed. For ``n_jobs`` without an executor, or a ``GpuPool``.
    progress : bool, default False
        Show one live line on a terminal or a bar in a notebook; elsewhere, such as in a
        log file, print a line every tenth of the budget or every minute.
    run_dir : path, optional
        Directory that keeps the search: a search made with the same arguments continues
        from there, or ``RisingSearch.resume``. Every state is saved when its job ends,
        by the trainable's ``save`` or by pickle; metrics that are no JSON, as text.
        States are unpickled, which can run any code: a directory of another user, or
        one that everybody can write to, is refused.
    max_checkpoint_bytes : int, optional
        Space for the checkpoints; the search stops, to be resumed, where the arms that
        can still train need more.
    checkpoints : str, optional
        URL of an object store for the checkpoints, such as "s3://bucket/runs/first",
        with the credentials of the environment; by default they are in ``run_dir``.
    metric : str, optional
        Name of the score in figures and reports, by which ``train`` may return it too;
        by default ``"score"``, or the one that is saved in ``run_dir``.
    fingerprint : dict, optional
        JSON values that have to be the same when ``run_dir`` is opened again, such as a
        digest of the data.
    prior : source or list of sources, optional
        Earlier searches that say which candidates are opened first; see
        ``risingsearch.priors.earlier_searches``. Not read again by a resumed search.
    learning_rate : str, dict or False, optional
        Which parameter of a space is the learning rate, by which the first arms of
        at most five full trainings are proposed: its name, or a dict of it and a good
        value. By default it is known by a name such as ``lr`` or ``eta0``, and the
        first of ``enqueue`` or the middle of the range is good. False is for none.
    patience : int, optional
        Epochs of the whole search without a new best score after which it ends.
    target_score : float, optional
        The search ends once its best score is as good. It and ``patience`` may be
        others when a search is resumed; ``stop_reason`` says which of them ended it.
    enqueue : sequence of dict, optional
        Known configurations, opened first and in this order, with the parameters of the
        candidates. A number stands for that candidate.
    confirm : float or str, optional
        Share of the budget, 0.05 or "5 %", that is kept to train the best arms again
        with other seeds, until their best epochs, when the search is over. Their scores
        correct the best one; see ``SearchResult.corrected_score``. As many of the best
        five are trained, in turn, as can be trained twice.

    Raises
    ------
    InvalidParameterError, NotTrainableError
        If an argument is outside its range, or nothing can be learnt from an earlier
        search.
    RunDirError
        If ``run_dir`` holds a search with other arguments (the message names one),
        cannot be used, is damaged, is in use, or others own it or can write to it.
    SetupError
        If the store of ``checkpoints`` cannot be reached, or has lost them.

    Examples
    --------
    >>> from risingsearch.search.trainable import Functions
    >>> def start(params, seed):
    ...     return {"epochs": 0, **params}
    >>> def train(state):
    ...     state["epochs"] += 1
    ...     return state["top"] * (1 - 1 / (state["epochs"] + 1))
    >>> search = RisingSearch(
    ...     Functions(start, train),
    ...     [{"top": 0.6}, {"top": 0.9}, {"top": 0.8}],
    ...     budget=12,
    ...     max_epochs=6,
    ...     seed=0,
    ... )
    >>> result = search.run()
    >>> result.best_params, result.n_epochs
    ({'top': 0.9}, 12)
    >>> result.best_state()["epochs"]
    6
    """

    def __init__(
        self,
        trainable: Trainable,
        candidates: Iterable[Configuration] | Configuration | Space,
        *,
        policy: str | Callable[..., Policy] = "auto",
        proposer: Proposer | str | None = "auto",
        budget: int | str | Budget | None = None,
        max_epochs: int | None = None,
        executor: Executor | None = None,
        n_jobs: int | None = None,
        deterministic: bool = False,
        callbacks: Sequence[Callback | Callable[[EpochFacts], object]] = (),
        policy_params: Params | None = None,
        epochs_per_job: int | None = None,
        direction: str = "maximize",
        error_score: float | str | None = None,
        max_failures: int = 0,
        seed: int | None = None,
        n_candidates: int | None = None,
        shuffle: bool = True,
        timeout: float | None = None,
        epoch_timeout: float | None = None,
        progress: bool = False,
        run_dir: str | Path | None = None,
        max_checkpoint_bytes: int | None = None,
        checkpoints: str | None = None,
        metric: str | None = None,
        fingerprint: Configuration | None = None,
        prior: Any = None,
        learning_rate: str | Mapping[str, float] | bool | None = None,
        epoch_costs: Sequence[float] | None = None,
        min_epochs: int = 1,
        patience: int | None = None,
        target_score: float | None = None,
        enqueue: Iterable[Configuration | int] = (),
        confirm: float | str | None = None,
    ) -> None:
        if n_candidates is not None and not is_space(candidates):
            raise InvalidParameterError(
                f"n_candidates is for a space, not for a list; got {n_candidates!r}"
            )
        options = SearchOptions(
            policy=policy,
            proposer=proposer,
            budget=budget,
            max_epochs=max_epochs,
            executor=executor,
            n_jobs=n_jobs,
            deterministic=deterministic,
            callbacks=callbacks,
            policy_params=policy_params,
            epochs_per_job=epochs_per_job,
            direction=direction,
            error_score=error_score,
            max_failures=max_failures,
            seed=seed,
            n_candidates=n_candidates,
            shuffle=shuffle,
            timeout=timeout,
            epoch_timeout=epoch_timeout,
            progress=progress,
            run_dir=run_dir,
            max_checkpoint_bytes=max_checkpoint_bytes,
            checkpoints=checkpoints,
            metric=metric,
            fingerprint=fingerprint,
            prior=prior,
            learning_rate=learning_rate,
            epoch_costs=epoch_costs,
            min_epochs=min_epochs,
            patience=patience,
            target_score=target_score,
            enqueue=enqueue,
            confirm=confirm,
        )
        self._make(trainable, candidates, options)

    @classmethod
    def _of(
        cls,
        trainable: Trainable,
        candidates: Any,
        options: SearchOptions,
        run: Run | None = None,
        embedding: Embedding | None = None,
    ) -> RisingSearch:
        """Return the search with these options; ``run`` is one that was read."""
        search = cls.__new__(cls)
        search._make(trainable, candidates, options, run, embedding)
        return search

    def _make(
        self,
        trainable: Trainable,
        candidates: Any,
        options: SearchOptions,
        run: Run | None = None,
        embedding: Embedding | None = None,
    ) -> None:
        """Put the parts together; ``run`` is one that was read to be continued."""
        if run is None and options.run_dir is not None:
            options = replace(options, run_dir=kept_path("run_dir", options.run_dir))
            run = Run.at(options.run_dir)
        self.trainable = checked_trainable(trainable)
        entropy = options.seed
        if entropy is None and run is not None:
            entropy = run.entropy
        self._seeds = Seeds(entropy)
        options, everyone, workers = resolved(options, candidates, run, self._seeds)
        self.candidates: list[Params] = everyone
        n_arms = len(everyone)
        space = everyone.space
        embedding = embedding or Embedding()
        budget, kept = divided(Budget.of(options.budget), options.confirm)
        self.scheduler = Scheduler(
            options.policy,
            n_arms,
            budget,
            options.max_epochs,
            options.policy_params,
            options.epochs_per_job,
            options.direction,
            self._seeds.of_policy,
            deterministic=options.deterministic,
            n_jobs=options.n_jobs,
            error_score=options.failure_score,
            max_failures=options.max_failures,
            opening_order=self._seeds.order(n_arms) if options.shuffle else None,
            proposer=embedding.around(proposer_of(options, everyone, self._seeds)),
            epoch_costs=options.epoch_costs,
            min_epochs=options.min_epochs,
            enqueue=options.enqueue,
            trains_anew=trains_anew(self.trainable),
        )
        if isinstance(options.proposer, Proposer):
            self.scheduler.check_proposals(problem_of_proposals(everyone, space))
        self.scheduler.stop_when(options.patience, options.target_score)
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        begun = now if run is None else run.header.get("begun")
        metric = options.metric or "score"
        self._log = RunLog(
            self.trainable,
            everyone,
            self.scheduler,
            dict if space is None else space.restored,
            seed_of=self._seeds.of_arm,
            metric=metric,
            begun=begun,
            kept=kept,
        )
        self._confirm = options.confirm
        self.save_best: Callable[[Path], object] | None = self._log.save_best
        key = secrets.token_hex(8)
        if options.run_dir is not None:
            header = header_of(options, everyone, self.trainable, self._seeds.entropy)
            header |= {"metric": metric, "begun": begun}
            header["own_processes"] = workers.is_own
            directory = RunDirectory(
                options.run_dir, options.max_checkpoint_bytes, options.checkpoints
            )
            check_owner(directory.path)
            self._log.open(directory, header, run)
            key = key_of(directory.path, self._seeds.entropy)
        self._callbacks = CallbackList(
            options.callbacks,
            lambda: self.scheduler,
            search=key,
            metric=metric,
            params=self.candidates.__getitem__,
            reports=self._log.reports,
            stop=self.stop,
        )
        self._loop = Loop(
            self._log,
            workers,
            self._callbacks,
            options,
            seed_of=self._seeds.of_arm,
            seed_of_repeat=self._seeds.of_repeat,
            embedding=embedding,
        )

    @classmethod
    def resume(
        cls,
        run_dir: str | Path,
        trainable: Trainable,
        *,
        executor: Executor | None = None,
        policy: Callable[..., Policy] | None = None,
        proposer: Proposer | None = None,
        callbacks: Sequence[Callback | Callable[[EpochFacts], object]] = (),
        timeout: float | None = None,
        epoch_timeout: float | None = None,
        patience: int | None = None,
        target_score: float | None = None,
        progress: bool = False,
        max_checkpoint_bytes: int | None = None,
        checkpoints: str | None = None,
    ) -> RisingSearch:
        """Return the search of a directory, as it was when its process ended.

        ``run`` then continues: only jobs that never came back are trained again. One
        that trained in this process at two kills counts as failed, or at
        ``max_failures + 1`` if these are more. States, and candidates that JSON cannot
        hold, are unpickled, which can run any code; ``saved_result`` only reads.

        Parameters
        ----------
        run_dir : path
            The directory. It must belong to you, and not be writable by everybody.
        trainable : Trainable
            The one that the search was made with.
        executor : concurrent.futures.Executor, optional
            Where jobs run; by default in ``n_jobs`` worker processes if the search had
            such, else in this process, one after the other.
        policy, proposer : optional
            Needed if they were objects, of the same name; a name is saved.
        callbacks, timeout, epoch_timeout, progress, patience, target_score, \
        max_checkpoint_bytes
            As for a new search.
        checkpoints : str, optional
            Where the checkpoints are now, if the object store has been moved.

        Raises
        ------
        RunDirError
            If there is no search, or as for a new one.
        """
        path = kept_path("run_dir", run_dir)
        check_owner(path)
        run = Run.open(path)
        check_kind(path, run.header["settings"], {})
        objects = {"policy": policy, "proposer": proposer}
        with damage_as_error(path):
            options = run.options(objects, unpickle=True)
            candidates = run.candidates(unpickle=True)
        is_own = run.header.get("own_processes", False)
        options = replace(
            options,
            executor=workers_to_resume(executor, options.n_jobs, is_own=is_own),
            callbacks=callbacks,
            timeout=timeout,
            epoch_timeout=epoch_timeout,
            patience=patience,
            target_score=target_score,
            progress=progress,
            run_dir=path,
            max_checkpoint_bytes=max_checkpoint_bytes,
            checkpoints=checkpoints,
        )
        return cls._of(trainable, candidates, options, run)

    @classmethod
    def saved_result(cls, run_dir: str | Path) -> SearchResult:
        """Return the result so far of the search in a directory, without changing it.

        Also while another process searches there. Nothing is unpickled or run, so any
        directory can be read: the best state takes ``resume``, candidates that JSON
        cannot hold have one parameter, ``"as_text"``, and a policy that is an object
        lacks the index parts of the arms as they are now.

        Parameters
        ----------
        run_dir : path
            The directory; without a search, or damaged, it is a ``RunDirError``.

        Returns
        -------
        SearchResult
            As ``run`` would return it if it ended now.
        """
        path = kept_path("run_dir", run_dir)
        is_running = is_held(path)
        return Replayed.of(Run.open(path)).result(is_running=is_running)

    def run(self) -> SearchResult:
        """Train until the scheduler is done; return the result.

        After an exception of a callback, another call of ``run`` continues there; jobs
        still in flight are recorded then. Without an executor, Ctrl-C stops at the end
        of the epoch in training, and nothing is lost; a second one does not wait. With
        an executor, or at the second, the jobs in flight are trained again by the next
        ``run``, and charged once. After Ctrl-C ``result`` returns the result so far.

        Returns
        -------
        SearchResult
            The best configuration and all epochs so far, as ``result`` has it.

        Raises
        ------
        SearchFailedError
            If no arm has had a finite score; the first failure is the cause. Ten arms
            that have failed, and none that has not, end a run; the next tries others.
            Or if the executor died; its ``result`` holds the result so far.
        SetupError
            If the trainable says that no arm can be trained as things are.
        """
        return self._run(None)

    def _run(self, on_report: Callable[[Report], None] | None) -> SearchResult:
        """Run as an interface around the search does, which is told of every job."""
        with self._log.held(), self._callbacks.running(self.save_best):
            self._log.release()  # what programs have asked for is trained here
            self._loop.run(on_report)
            self._log.note_stop()
            self._log.save_state()
        if self._loop.interrupted:
            raise KeyboardInterrupt
        gave_up = self._loop.gave_up
        if gave_up or self.scheduler.best_arm is None:
            raise self._log.all_failed(self._loop.first_job, early=gave_up)
        return self.result()

    def stop(self) -> None:
        """End the search once the jobs in flight are back."""
        self._loop.stop()

    def extend(self, budget: int | str | Budget) -> None:
        """Add to the budget; ``run`` then continues, and nothing is retrained.

        Parameters
        ----------
        budget : int, str or Budget
            How much more, in the unit of the budget, above 0.
        """
        more = Budget.of(budget)
        more = more.in_unit(self.scheduler.unit) or more
        self._log.extend(*divided(more, self._confirm))

    def stop_when(
        self, patience: int | None = None, target_score: float | None = None
    ) -> None:
        """Have ``run`` end by another ``patience`` and ``target_score``, if any."""
        self.scheduler.stop_when(patience, target_score)

    def resize(self, n_jobs: int) -> None:
        """Have so many jobs in flight from here on, for an executor of another size."""
        self._log.resize(n_jobs)

    def retry_failed(self) -> int:
        """Have ``run`` first try every arm again that has failed; return how many.

        Each resumes from its last checkpoint in the ``run_dir``; without one it trains
        again from its first epoch, which is not charged. One more failure retires it
        again. Its failed epochs stay charged, also to its ``max_epochs``.
        """
        statuses = self.scheduler.statuses()
        failed = [arm for arm, status in enumerate(statuses) if status == "failed"]
        self._loop.to_retry = failed
        return len(failed)

    def seed_of(self, arm: int) -> int:
        """Return the seed that ``start`` gives an arm, whenever it is opened."""
        return self._seeds.of_arm(arm)

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """The callbacks, which may be replaced between two runs."""
        return tuple(self._callbacks.callbacks)

    @callbacks.setter
    def callbacks(self, callbacks: Sequence[object]) -> None:
        self._callbacks.callbacks = checked_callbacks(callbacks)

    @property
    def reports(self) -> Mapping[int, Report]:
        """The reports of the jobs so far, by job number."""
        return self._log.reports

    def result(self) -> SearchResult:
        """Return the result so far, with scores that no decision may see yet."""
        return self._log.result()

    def explain(self) -> ArmList:
        """Return where every arm stands, and why; see ``Scheduler.explain``.

        Printed, its last line says how many are level with the best one.
        """
        arms = self.scheduler.explain()
        return arms.with_standing(lambda: self.result().standing)

    def _repr_html_(self) -> str:
        return self.result()._repr_html_()


class Replayed(NamedTuple):
    """The search of a directory, replayed from its journal only to be shown."""

    search: RisingSearch
    run: Run

    @classmethod
    def of(cls, run: Run) -> Replayed:
        """Replay the search of a directory; nothing is unpickled."""
        with gc_paused(), damage_as_error(run.path):
            options = run.options({}, unpickle=False)
            candidates = run.candidates(unpickle=False)
            options = replace(
                options,
                seed=run.entropy,
                learning_rate=None,
                executor=InProcess(is_elastic=options.n_jobs is None),
            )
            if run.left_out is None:
                options = replace(options, prior=run.prior(candidates) or None)
            never = _NeverTrained(trains_anew=run.header.get("trains_anew", False))
            search = RisingSearch._of(never, candidates, options)
            search._log.examples.folder = run.path / EXAMPLES
            search._log.replay(run.saved.events, run.saved.n_in_state, run.saved.state)
        return cls(search, run)

    def result(self, *, is_running: bool) -> SearchResult:
        """Return the result of the search; jobs in flight run, or were interrupted."""
        path, header = self.run.path, self.run.header
        self.search._log.is_abandoned = not is_running
        with gc_paused(), damage_as_error(path):
            result = self.search.result()
            metric = header.get("metric") or result.metric
        msg = f"the best state is in {path}: RisingSearch.resume gives it"
        return replace(
            result,
            left_out=self.run.left_out,
            metric=metric,
            begun=header.get("begun"),
            _best_checkpoint=RunDirError(msg),
        )

    def refreshed(self) -> Replayed:
        """Return the search with its new events; this one must not be used any more."""
        n_before = len(self.run.saved.events)
        run = self.run.refreshed()
        with gc_paused(), damage_as_error(run.path):
            self.search._log.replay(run.saved.events[n_before:], 0, None)
        return self._replace(run=run)


class _NeverTrained(NamedTuple):
    """Stand-in for the trainable of a search that only shows its result."""

    trains_anew: bool

    def start(self, params: Configuration, seed: int) -> None:
        """Return no state."""

    def train(self, state: None) -> float:
        """Return no score."""
        return math.nan
