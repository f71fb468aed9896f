"""MLflow: a parent run for a search, a child for each arm, a step for each epoch."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from risingsearch.arms import EpochFacts, SearchFacts
from risingsearch.integrations.trackers.background import Log
from risingsearch.integrations.trackers.tracker import (
    Tracker,
    numbers,
    require,
    shown,
)

SEARCH, ARM = "risingsearch.search", "risingsearch.arm"
FAILURE, WINNER = "risingsearch.failure", "risingsearch.winner"
BUDGET_LEFT = "risingsearch.budget_left"
STOP_REASON = "risingsearch.stop_reason"
PARENT = "mlflow.parentRunId"
CHECKPOINT = "checkpoint"
MOST = 1000
"""Metrics in one call, as MLflow allows."""
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
        When a search begins, where MLflow is not installed.

    Examples
    --------
    >>> tracker = MLflowTracker("sqlite:///runs.db", experiment="digits")
    >>> tracker.experiment
    'digits'
    """

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

    def check(self) -> None:
        """Raise a MissingDependencyError where MLflow is missing."""
        require("mlflow")

    def open(self, search: SearchFacts) -> Log:
        """Open the run of a search, and make it if need be."""
        return _Runs(search, self.tracking_uri, self.experiment, self.registered_model)


class _Runs(Log):
    """The runs of a search. Their tags say which they are."""

    def __init__(
        self,
        search: SearchFacts,
        tracking_uri: str | None,
        experiment: str,
        registered_model: str | None,
    ) -> None:
        from mlflow import MlflowClient

        self._client = MlflowClient(tracking_uri)
        self._search = search
        self._metric = _allowed(search.metric)
        self._model = registered_model
        self._experiment = self._experiment_id(experiment)
        self._logged: dict[str, set[tuple[str, int]]] = {}  # metrics and steps, by run
        self._parent = self._parent_run()
        self._children: dict[int, str] = {}  # runs by arm
        self._open: dict[int, str | None] = {}  # arms, and what they failed with last
        for run in self._found(PARENT, self._parent):
            arm = int(run.data.tags[ARM])
            self._children[arm] = run.info.run_id
            if run.info.status == "RUNNING":
                self._open[arm] = run.data.tags.get(FAILURE)

    def write(self, epochs: list[EpochFacts]) -> None:
        """Log those of the epochs that the store does not have yet."""
        of_arm = sorted(epochs, key=lambda epoch: epoch.arm)
        for arm, told in groupby(of_arm, key=lambda epoch: epoch.arm):
            self._write_arm(arm, list(told))
        self._log(
            self._parent,
            {
                epoch.number: {
                    f"best_{self._metric}": epoch.best_score,
                    "best_arm": float(epoch.arm),
                }
                for epoch in epochs
                if epoch.is_best
            },
        )
        left = epochs[-1].budget_left
        self._client.set_tag(self._parent, BUDGET_LEFT, f"{left:g}")

    def close(self, search: SearchFacts) -> None:
        """Say which arm has won, and that its run and the others have ended."""
        for arm, failure in self._open.items():
            status = "FAILED" if failure else "FINISHED"
            self._client.set_terminated(self._children[arm], status)
        if search.best_arm is not None:
            self._crown(search, self._children[search.best_arm])
        reason = search.stop_reason or "stopped before its end"
        self._client.set_tag(self._parent, STOP_REASON, reason)
        status = "FINISHED" if search.stop_reason else "KILLED"
        self._client.set_terminated(self._parent, status)

    def _experiment_id(self, name: str) -> str:
        from mlflow.exceptions import MlflowException

        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(self._client.create_experiment(name))
            except MlflowException:  # another process was faster
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
        return str(found.experiment_id)

    def _parent_run(self) -> str:
        search = self._search
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

    def _found(self, tag: str, value: str) -> list[Any]:
        """Return all runs with a tag."""
        runs: list[Any] = []
        token = None
        while True:
            page = self._client.search_runs(
                [self._experiment], f"tags.`{tag}` = '{value}'", page_token=token
            )
            runs += page
            token = page.token
            if not token:
                return runs

    def _made(self, name: str, tags: dict[str, str], params: Mapping[str, Any]) -> str:
        from mlflow.entities import Param

        run = self._client.create_run(self._experiment, tags=tags, run_name=name)
        self._logged[run.info.run_id] = set()
        logged = [
            Param(_allowed(key), str(value)[:LONGEST])
            for key, value in shown(params).items()
        ]
        for begin in range(0, len(logged), 100):
            some = logged[begin : begin + 100]
            self._client.log_batch(run.info.run_id, params=some)
        return str(run.info.run_id)

    def _write_arm(self, arm: int, epochs: list[EpochFacts]) -> None:
        run_id = self._children.get(arm)
        if run_id is None:
            tags = {PARENT: self._parent, ARM: str(arm)}
            run_id = self._made(f"arm {arm}", tags, epochs[0].params)
            self._children[arm] = run_id
        elif arm not in self._open:
            self._client.update_run(run_id, status="RUNNING")
        trained = {
            epoch.epoch: {self._metric: epoch.score, **numbers(epoch)}
            for epoch in epochs
            if not epoch.is_lost
        }
        self._log(run_id, trained)
        failure = epochs[-1].failure
        if failure:
            self._client.set_tag(run_id, FAILURE, failure[:LONGEST])
        self._open[arm] = failure

    def _log(self, run_id: str, values: Mapping[int, Mapping[str, float]]) -> None:
        """Log values by step, but for those that are there already."""
        from mlflow.entities import Metric

        if run_id not in self._logged:
            self._logged[run_id] = self._looked_up(run_id)
        logged = self._logged[run_id]
        now = int(time.time() * 1000)
        metrics = [
            Metric(_allowed(name), value, now, step)
            for step, named in values.items()
            for name, value in named.items()
            if (_allowed(name), step) not in logged
        ]
        for begin in range(0, len(metrics), MOST):
            some = metrics[begin : begin + MOST]
            self._client.log_batch(run_id, metrics=some)
            logged.update((metric.key, metric.step) for metric in some)

    def _looked_up(self, run_id: str) -> set[tuple[str, int]]:
        """Return what a run has."""
        return {
            (name, metric.step)
            for name in self._client.get_run(run_id).data.metrics
            for metric in self._client.get_metric_history(run_id, name)
        }

    def _crown(self, search: SearchFacts, winner: str) -> None:
        """Tag the run of the best arm, and register its checkpoint."""
        for arm in self._children.values():
            if arm != winner and WINNER in self._client.get_run(arm).data.tags:
                self._client.delete_tag(arm, WINNER)
        self._client.set_tag(winner, WINNER, f"epoch {search.best_epoch}")
        self._client.set_tag(self._parent, WINNER, f"arm {search.best_arm}")
        if self._model is not None and search.save_best is not None:
            self._register(search, winner, self._model)

    def _register(self, search: SearchFacts, winner: str, model: str) -> None:
        """Log the checkpoint of the best epoch as another version of a model."""
        from mlflow.exceptions import MlflowException

        tags = {
            SEARCH: search.search,
            ARM: str(search.best_arm),
            "risingsearch.epoch": str(search.best_epoch),
        }
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
        self._client.create_model_version(
            model, f"{uri}/{CHECKPOINT}", winner, tags=tags
        )


def _allowed(name: str) -> str:
    """Return a name as MLflow allows it.

    Examples
    --------
    >>> _allowed("loss[train]")
    'loss_train_'
    """
    return re.sub(r"[^\w./: -]", "_", name)
