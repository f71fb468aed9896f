"""What the stores of trackers hold, read by other means than the trackers' own."""

import struct
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
    from wandb.proto.wandb_internal_pb2 import Record

    values = defaultdict(lambda: defaultdict(list))
    for path in Path(folder).glob("wandb/*run-*/run-*-arm-*.wandb"):
        arm = values[int(path.stem.rpartition("-")[2])]
        for data in records(path.read_bytes()):
            history = Record.FromString(data).history
            logged = {
                i.key or ".".join(i.nested_key): i.value_json for i in history.item
            }
            if metric in logged:
                arm[int(logged["_step"])].append(float(logged[metric]))
    return dict(values)


def records(content):
    """Yield the records of a log of LevelDB: blocks of 32 KiB, records in parts."""
    part, at, data = struct.Struct("<IHB"), 7, b""  # checksum, length, kind
    while at + part.size <= len(content):
        if (left := (1 << 15) - at % (1 << 15)) < part.size:
            at += left
            continue
        _, length, kind = part.unpack_from(content, at)
        at += part.size + length
        if kind == 0 or at > len(content):
            return
        data += content[at - length : at]
        if kind in (1, 4):  # it is whole
            yield data
            data = b""


STORES = {"mlflow": in_mlflow, "tensorboard": in_tensorboard, "wandb": in_wandb}
