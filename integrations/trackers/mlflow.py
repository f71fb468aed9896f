"""MLflow: a parent run for a search, a child for each arm, a step for each epoch."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from risingsearch.arms import EpochFacts, SearchFacts
from risingsearch.integrations.trackers.tracker import (
    SearchLog,
    Tracker,
    numbers,
    shown,
)

SEARCH, ARM = "risingsearch.search", "risingsearch.arm"
FAILURE, WINNER = "risingsearch.failure", "risingsearch.winner"
STOP_REASON = "risingsearch.stop_reason"
PARENT = "mlflow.parentRunId"
CHECKPOINT = "checkpoint"
MOST = 50_000
"""Runs in one answer, as MLflow allows."""
LONGEST = 5000
"""Characters of a value, as MLflow allows."""


class MLflowTracker(Tracker):
    """Logs a search to MLflow.

    A search is a parent run, each arm a child run with its parameters and a step per
    epoch; an arm that is paused and revived stays one run. The child run of the best
    arm is tagged ``risingsearch.winner``.

    Parameters
    ----------
    tracking_uri : str, optional
        Of the store or the server; by default as MLflow has it, from
        ``MLFLOW_TRACKING_URI``, say.
    experiment : str, default "risingsearch"
        Name of the experiment; it is made if need be.
    registered_model : str, optional
        Name in the model registry. At the end, the checkpoint of the best epoch is
        logged to the winner's run and registered as another version of that model.

    Raises
    ------
    MissingDependencyError
        When a search begins, if MLflow is not installed.

    Examples
    --------
    >>> tracker = MLflowTracker("sqlite:///runs.db", experiment="digits")
    >>> tracker.experiment
    'digits'
    """

    package = "mlflow"

    def __init__(
        self,
        tracking_uri: str | None = None,
        *,
        experiment: str = "risingsearch",
        registered_model: str | None = None,
    ) -> None:
        super().__init__()
        self.tracking_uri = tracking_uri
        self.experiment = experiment
        self.registered_model = registered_model

    def open(self, search: SearchFacts) -> SearchLog:
        """Open the run of a search, and make it if need be."""
        return _MLflowRuns(
            search, self.tracking_uri, self.experiment, self.registered_model
        )


class _MLflowRuns:
    """The runs of a search, recognised by their tags."""

    def __init__(
        self,
        search: SearchFacts,
        tracking_uri: str | None,
        experiment: str,
        registered_model: str | None,
    ) -> None:
        from mlflow import MlflowClient

        self._client = client = MlflowClient(tracking_uri)
        self._metric = _allowed(search.metric)
        self._model = registered_model
        found = client.get_experiment_by_name(experiment)
        self._experiment = (
            client.create_experiment(experiment)
            if found is None
            else found.experiment_id
        )
        self._last: dict[str, int] = {}  # logged step, by run
        self._failures: dict[int, str | None] = {}  # of arms that have trained
        self._parent = self._parent_run(search)
        self._children: dict[int, str] = {
            int(run.data.tags[ARM]): run.info.run_id
            for run in self._found(PARENT, self._parent)
        }

    def write(self, epochs: list[EpochFacts]) -> None:
        """Log those of the epochs that the store does not have yet."""
        for epoch in epochs:
            run_id = self._child(epoch)
            if not epoch.is_lost:
                values = {self._metric: epoch.score, **numbers(epoch)}
                self._log(run_id, self._metric, epoch.epoch, values)
            if epoch.failure:
                self._client.set_tag(run_id, FAILURE, epoch.failure[:LONGEST])
            self._failures[epoch.arm] = epoch.failure
            if epoch.is_best:
                best = f"best_{self._metric}"
                values = {best: epoch.best_score, "best_arm": float(epoch.arm)}
                self._log(self._parent, best, epoch.number, values)

    def close(self, search: SearchFacts) -> None:
        """Say which arm has won, and that its run and the others have ended."""
        for arm, failure in self._failures.items():
            status = "FAILED" if failure else "FINISHED"
            self._client.set_terminated(self._children[arm], status)
        if search.best_arm is not None:
            self._crown(search, self._children[search.best_arm])
        reason = search.stop_reason or "stopped before its end"
        self._client.set_tag(self._parent, STOP_REASON, reason)
        status = "FINISHED" if search.stop_reason else "KILLED"
        self._client.set_terminated(self._parent, status)

    def _parent_run(self, search: SearchFacts) -> str:
        for run in self._found(SEARCH, search.search):
            self._client.update_run(run.info.run_id, status="RUNNING")
            return str(run.info.run_id)
        settings = {
            "policy": search.policy,
            "metric": search.metric,
            "direction": search.direction,
            f"budget_{search.unit}": search.budget,
            "max_epochs": search.max_epochs,
        }
        name = f"search {search.search[:8]}"
        return self._made(name, {SEARCH: search.search}, settings)

    def _child(self, epoch: EpochFacts) -> str:
        """Return the run of an epoch's arm."""
        run_id = self._children.get(epoch.arm)
        if run_id is None:
            tags = {PARENT: self._parent, ARM: str(epoch.arm)}
            run_id = self._made(f"arm {epoch.arm}", tags, epoch.params)
            self._children[epoch.arm] = run_id
        elif epoch.arm not in self._failures:
            self._client.update_run(run_id, status="RUNNING")
        return run_id

    def _found(self, tag: str, value: str) -> list[Any]:
        """Return all runs with a tag."""
        wanted = f"tags.`{tag}` = '{value}'"
        found = self._client.search_runs([self._experiment], wanted, max_results=MOST)
        return list(found)

    def _made(self, name: str, tags: dict[str, str], params: Mapping[str, Any]) -> str:
        run_id = self._client.create_run(
            self._experiment, tags=tags, run_name=name
        ).info.run_id
        self._last[run_id] = 0
        for key, value in shown(params).items():
            self._client.log_param(run_id, _allowed(key), str(value)[:LONGEST])
        return str(run_id)

    def _log(
        self, run_id: str, metric: str, step: int, values: Mapping[str, float]
    ) -> None:
        """Log the values of a step, unless the run has it already."""
        from mlflow.entities import Metric

        if run_id not in self._last:
            logged = self._client.get_metric_history(run_id, metric)
            self._last[run_id] = max((one.step for one in logged), default=0)
        if step <= self._last[run_id]:
            return
        now = int(time.time() * 1000)
        metrics = [Metric(_allowed(k), value, now, step) for k, value in values.items()]
        self._client.log_batch(run_id, metrics=metrics)
        self._last[run_id] = step

    def _crown(self, search: SearchFacts, winner: str) -> None:
        """Tag the run of the best arm, and register its checkpoint."""
        for run_id in self._children.values():
            if run_id != winner and WINNER in self._client.get_run(run_id).data.tags:
                self._client.delete_tag(run_id, WINNER)
        self._client.set_tag(winner, WINNER, f"epoch {search.best_epoch}")
        if self._model is not None and search.save_best is not None:
            self._register(search, winner, self._model)

    def _register(self, search: SearchFacts, winner: str, model: str) -> None:
        """Log the checkpoint of the best epoch as another version of a model."""
        from mlflow.exceptions import MlflowException

        tags = {SEARCH: search.search, "risingsearch.epoch": str(search.best_epoch)}
        made = f"name = '{model}' and run_id = '{winner}'"
        versions = self._client.search_model_versions(made)
        if any(version.tags == tags for version in versions):
            return
        assert search.save_best is not None
        with tempfile.TemporaryDirectory(prefix="risingsearch-") as folder:
            search.save_best(Path(folder))
            self._client.log_artifacts(winner, folder, CHECKPOINT)
        with suppress(MlflowException):  # it is there
            self._client.create_registered_model(model)
        uri = self._client.get_run(winner).info.artifact_uri
        source = f"{uri}/{CHECKPOINT}"
        self._client.create_model_version(model, source, winner, tags=tags)


def _allowed(name: str) -> str:
    """Return a name as MLflow allows it.

    Examples
    --------
    >>> _allowed("loss[train]")
    'loss_train_'
    """
    return re.sub(r"[^\w./: -]", "_", name)
