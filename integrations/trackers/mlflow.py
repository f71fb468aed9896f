"""MLflow: a parent run for a search, a child for each arm, a step for each epoch."""

import re
import tempfile
import time
from collections.abc import Callable, Mapping
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
MOST_RUNS = 50_000
"""Runs in one answer that MLflow allows."""
LONGEST = 5000
"""Characters of a value that MLflow allows."""


class _MLflowRuns(SearchLog):
    """The runs of a search, recognised by their tags."""

    def connect(self) -> None:
        from mlflow import MlflowClient

        self._client = client = MlflowClient(self.tracker.tracking_uri)
        name = self.tracker.experiment
        known = client.get_experiment_by_name(name)
        if known is None:
            self._experiment = client.create_experiment(name)
        else:
            self._experiment = known.experiment_id
        of_search = f"tags.`{SEARCH}` = '{self.search.search}'"
        self._ids: dict[str, str] = {}
        self._winners: list[str] = []
        for run in client.search_runs(
            [self._experiment], of_search, max_results=MOST_RUNS
        ):
            tags = run.data.tags
            self._ids[tags.get(RUN, SEARCH_RUN)] = run.info.run_id
            if WINNER in tags:
                self._winners.append(run.info.run_id)
        self.params[SEARCH_RUN] = shown(self.settings())
        self.open_run(SEARCH_RUN)

    def open_run(self, run: str) -> int:
        if run in self._ids:
            run_id = self._ids[run]
            self._client.update_run(run_id, status="RUNNING")
            score = self.metric
            if run == SEARCH_RUN:
                score = f"best_{self.metric}"
            logged = self._client.get_metric_history(run_id, _allowed(score))
            return max((metric.step for metric in logged), default=0)
        tags = {SEARCH: self.search.search}
        name = f"search {self.search.search[:8]}"
        if run != SEARCH_RUN:
            name = run.replace("-", " ")
            tags |= {
                "mlflow.parentRunId": self._ids[SEARCH_RUN],
                RUN: run,
                ARM: name.split()[1],
            }
        created = self._client.create_run(
            self._experiment,
            tags=tags,
            run_name=name,
        )
        run_id = created.info.run_id
        self._ids[run] = run_id
        for key, value in self.params[run].items():
            text = str(value)[:LONGEST]
            self._client.log_param(run_id, _allowed(key), text)
        return 0

    def log(
        self,
        run: str,
        step: int,
        values: Mapping[str, float],
    ) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self._client.log_batch(
            self._ids[run],
            metrics=[
                Metric(_allowed(name), value, now, step)
                for name, value in values.items()
            ],
        )

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
                self._register(search, winner, search.save_best)
        parent = self._ids[SEARCH_RUN]
        reason = search.stop_reason
        self._client.set_tag(parent, "risingsearch.stop_reason", reason or UNFINISHED)
        self._client.set_terminated(parent, "FINISHED" if reason else "KILLED")

    def _register(
        self,
        search: SearchFacts,
        winner: str,
        save_best: Callable[[Path], object],
    ) -> None:
        """Log the checkpoint of the best epoch as another version of a model."""
        from mlflow.exceptions import MlflowException

        model = self.tracker.registered_model
        tags = {
            SEARCH: search.search,
            "risingsearch.epoch": str(search.best_epoch),
        }
        of_winner = f"name = '{model}' and run_id = '{winner}'"
        versions = self._client.search_model_versions(of_winner)
        if any(version.tags == tags for version in versions):
            return
        with tempfile.TemporaryDirectory(prefix="risingsearch-") as folder:
            save_best(Path(folder))
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

    Raises
    ------
    MissingDependencyError
        If mlflow is not installed, when the search begins.

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
    """Return a name as MLflow allows it.

    Examples
    --------
    >>> _allowed("layer[0]/size")
    'layer_0_/size'
    """
    return re.sub(r"[^\w./: -]", "_", name)
