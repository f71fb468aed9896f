"""Results of an experiment, as its journal tells them."""

from pathlib import Path

from ray.tune.experiment import Trial
from ray.tune.result import TIME_TOTAL_S, TRAINING_ITERATION

from risingsearch.arms import Configuration
from risingsearch.errors import RunDirError
from risingsearch.json_values import Json, plain
from risingsearch.scheduling.events import Event, Returned, TrialOpened, event_of
from risingsearch.storage.journal import read

NAME = "risingsearch-journal.jsonl"
# Ray brings files of this kind back from remote storage, and only there they may be:
# what it brings back from a folder of this machine, it would write over the file again.
REMOTE_NAME = "risingsearch-journal.json"


def results(path: str | Path) -> list[Json]:
    """Return one row per epoch that trials were told of, in the order of the telling.

    It reads the journal of ``RisingScheduler``, also while the experiment runs. Epochs
    whose checkpoint was not safe yet, or that a failure was charged, are not in it.

    Parameters
    ----------
    path : str or Path
        Folder of the experiment, ``results.experiment_path``; with remote storage, a
        copy of it on this machine.

    Returns
    -------
    list of dict
        ``trial_id``; ``params``, the plain values of its config, with nested ones as
        ``"a/b"``; ``epoch``, from 1; ``score``; ``metrics``, all plain values reported.

    Raises
    ------
    RunDirError
        If there is no journal in the folder, or it is damaged.

    Examples
    --------
    >>> results("digits")
    Traceback (most recent call last):
    risingsearch.errors.RunDirError: digits has no risingsearch-journal.jsonl and no \
risingsearch-journal.json: give the folder of an experiment with a RisingScheduler
    """
    journals = [Path(path, name) for name in (NAME, REMOTE_NAME)]
    existing = next(filter(Path.exists, journals), None)
    if existing is None:
        raise RunDirError(
            f"{path} has no {NAME} and no {REMOTE_NAME}: give the folder of an "
            "experiment with a RisingScheduler"
        )
    opened: dict[int, TrialOpened] = {}
    rows: list[Json] = []
    for event in map(recorded_event, read(existing).events):
        if isinstance(event, TrialOpened):
            opened[event.arm] = event
        elif isinstance(event, Returned):
            of_arm = opened[event.job.arm]
            recorded = zip(event.scores, event.metrics, strict=True)
            for epoch, (score, metrics) in enumerate(
                recorded, event.job.from_epoch + 1
            ):
                rows.append(
                    {
                        "trial_id": of_arm.trial,
                        "params": of_arm.params,
                        "epoch": epoch,
                        "score": score,
                        "metrics": metrics,
                    }
                )
    return rows


def recorded_event(line: Json) -> Event:
    """Return the event of a line in the journal of an experiment."""
    if "results" in line:  # as earlier releases have recorded metrics and checkpoint
        checkpoint = line.pop("checkpoint", None)
        line["metrics"] = line.pop("results")
        line["checkpoint"] = checkpoint["name"] if checkpoint else None
        if line["event"] == Returned.name:
            line["ended"] = True  # with fewer scores than epochs
    return event_of(line)


Stamp = tuple[object, object]
"""Tells the results of a trial apart, and its checkpoints."""


def stamp_of(metrics: Configuration) -> Stamp:
    """Return the stamp that tells a result of a trial from its others."""
    # The count of iterations begins again for functions where an experiment is
    # restored.
    return metrics.get(TRAINING_ITERATION), metrics.get(TIME_TOTAL_S)


def last_stamp(trial: Trial) -> Stamp:
    """Return the stamp of the result that a trial's newest checkpoint holds."""
    newest = trial.latest_checkpoint_result
    if newest is None:
        return (None, None)
    return stamp_of(newest.metrics)


def plain_metrics(metrics: Configuration) -> Json:
    """Return the metrics that a journal can hold: text, numbers and booleans.

    Parameters
    ----------
    metrics : dict
        Those of a result.

    Returns
    -------
    dict
        The others left out.

    Examples
    --------
    >>> plain_metrics({"loss": 0.5, "weights": [0.1, 0.2], "name": "a"})
    {'loss': 0.5, 'name': 'a'}
    """
    values = {name: plain(value) for name, value in metrics.items()}
    kinds = (str, bool, int, float)
    return {name: value for name, value in values.items() if isinstance(value, kinds)}
