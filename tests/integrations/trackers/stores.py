"""What the stores of trackers hold, read by other means than the trackers' own."""

from collections import defaultdict
from pathlib import Path

from searching import mlflow_uri


def in_mlflow(metric="accuracy", uri=None, experiment="digits"):
    """Return all values by step, by arm: more than one where it was logged twice."""
    client, _, children = runs_in_mlflow(uri, experiment)
    values = {}
    for run in children:
        arm = int(run.data.tags["risingsearch.arm"])
        assert arm not in values, "an arm is one run"
        values[arm] = defaultdict(list)
        for one in client.get_metric_history(run.info.run_id, metric):
            values[arm][one.step].append(one.value)
    return values


def runs_in_mlflow(uri=None, experiment="digits"):
    """Return a client, the one parent run, and its child runs."""
    from mlflow import MlflowClient

    client = MlflowClient(uri or mlflow_uri())
    found = client.get_experiment_by_name(experiment)
    runs = client.search_runs([found.experiment_id])
    [parent] = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    children = [run for run in runs if run is not parent]
    parents = {run.data.tags["mlflow.parentRunId"] for run in children}
    assert parents == {parent.info.run_id}
    return client, parent, children


def in_tensorboard(metric="accuracy", folder="tensorboard"):
    """Return all values by step, by arm."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    values = {}
    [search] = Path(folder).iterdir()
    for run in search.glob("arm-*"):
        accumulator = EventAccumulator(str(run), purge_orphaned_data=False)
        accumulator.Reload()
        arm = int(run.name.removeprefix("arm-"))
        values[arm] = defaultdict(list)
        for scalar in accumulator.Scalars(metric):
            values[arm][scalar.step].append(scalar.value)
    return values


def in_wandb(metric="accuracy", folder="."):
    """Return all values by step, by arm."""
    from risingsearch.integrations.trackers.wandb import history

    files = Path(folder).glob("wandb/*run-*/run-*-arm-*.wandb")
    ids = {path.stem.removeprefix("run-") for path in files}
    values = {}
    for run_id in ids:
        arm = int(run_id.rpartition("-")[2])
        values[arm] = defaultdict(list)
        for step, logged in history(Path(folder), run_id):
            values[arm][step].append(logged[metric])
    return values


STORES = {"mlflow": in_mlflow, "tensorboard": in_tensorboard, "wandb": in_wandb}
