"""MLflow: a parent run for a search, a child for each arm, a step for each epoch."""

import re
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from risingsearch.arms import SearchFacts
from risingsearch.integrations.trackers.tracker import (
    SEARCH_RUN,
    SearchLog,
    Tracker,
    shown,
)
from risingsearch.search.results import UNFINISHED

SEARCH = "risingsearch.search"
RUN = "risingsearch.run"
ARM = "risingsearch.arm"
FAILURE = "risingsearch.failure"
WINNER = "risingsearch.winner"
MOST = 50_000
LONGEST = 5000
"""Runs in one answer, and characters of a value, that MLflow allows."""


class _MLflowRuns(SearchLog):
    """The runs of a search, recognised by their tags."""

    def connect(self) -> None:
        from mlflow import MlflowClient

        self._client = client = MlflowClient(self.tracker.tracking_uri)
        name = self.tracker.experiment
        found = client.get_experiment_by_name(name)
        self._experiment = (
            found.experiment_id if found else client.create_experiment(name)
        )
        of_search = f"tags.`{SEARCH}` = '{self.search.search}'"
        runs = client.search_runs([self._experiment], of_search, max_results=MOST)
        self._ids = {r.data.tags.get(RUN, SEARCH_RUN): r.info.run_id for r in runs}
        self._winners = [run.info.run_id for run in runs if WINNER in run.data.tags]
        self.params[SEARCH_RUN] = shown(self.settings())
        self.open_run(SEARCH_RUN)

    def open_run(self, run: str) -> int:
        if run in self._ids:
            self._client.update_run(self._ids[run], status="RUNNING")
            score = f"best_{self.metric}" if run == SEARCH_RUN else self.metric
            logged = self._client.get_metric_history(self._ids[run], _allowed(score))
            return max((one.step for one in logged), default=0)
        tags = {SEARCH: self.search.search}
        name = f"search {self.search.search[:8]}"
        if run != SEARCH_RUN:
            name = run.replace("-", " ")
            tags |= {
                "mlflow.parentRunId": self._ids[SEARCH_RUN],
                RUN: run,
                ARM: name.split()[1],
            }
        made = self._client.create_run(
            self._experiment,
            tags=tags,
            run_name=name,
        )
        self._ids[run] = made.info.run_id
        for key, value in self.params[run].items():
            text = str(value)[:LONGEST]
            self._client.log_param(made.info.run_id, _allowed(key), text)
        return 0

    def log(
        self,
        run: str,
        step: int,
        values: Mapping[str, float],
    ) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(_allowed(k), value, now, step) for k, value in values.items()]
        self._client.log_batch(self._ids[run], metrics=metrics)

    def fail(self, run: str, failure: str) -> None:
        self._client.set_tag(self._ids[run], FAILURE, failure[:LONGEST])

    def close(self, search: SearchFacts) -> None:
        for run in self.params.keys() - {SEARCH_RUN}:  # of arms that have trained
            status = "FAILED" if run in self.failed else "FINISHED"
            self._client.set_terminated(self._ids[run], status)
        if search.best_arm is not None:
            winner = self._ids[f"arm-{search.best_arm}"]
            for run_id in self._winners:
                self._client.delete_tag(run_id, WINNER)
            self._client.set_tag(winner, WINNER, f"epoch {search.best_epoch}")
            if self.tracker.registered_model and search.save_best is not None:
                self._register(search, winner, self.tracker.registered_model)
        parent = self._ids[SEARCH_RUN]
        reason = search.stop_reason
        self._client.set_tag(parent, "risingsearch.stop_reason", reason or UNFINISHED)
        self._client.set_terminated(parent, "FINISHED" if reason else "KILLED")

    def _register(
        self,
        search: SearchFacts,
        winner: str,
        model: str,
    ) -> None:
        """Log the checkpoint of the best epoch as another version of a model."""
        from mlflow.exceptions import MlflowException

        tags = {
            SEARCH: search.search,
            "risingsearch.epoch": str(search.best_epoch),
        }
        made = f"name = '{model}' and run_id = '{winner}'"
        versions = self._client.search_model_versions(made)
        if any(version.tags == tags for version in versions):
            return
        assert search.save_best is not None
        with tempfile.TemporaryDirectory(prefix="risingsearch-") as folder:
            search.save_best(Path(folder))
            self._client.log_artifacts(winner, folder, "checkpoint")
        with suppress(MlflowException):  # it is there
            self._client.create_registered_model(model)
        uri = self._client.get_run(winner).info.artifact_uri
        self._client.create_model_version(
            model,
            f"{uri}/checkpoint",
            winner,
            tags=tags,
        )


@dataclass(eq=False)
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

    Examples
    --------
    >>> tracker = MLflowTracker("sqlite:///runs.db", experiment="digits")
    >>> tracker.experiment
    'digits'
    """

    package = "mlflow"
    runs = _MLflowRuns
    tracking_uri: str | None = None
    _: KW_ONLY
    experiment: str = "risingsearch"
    registered_model: str | None = None


def _allowed(name: str) -> str:
    """Return a name as MLflow allows it."""
    return re.sub(r"[^\w./: -]", "_", name)
