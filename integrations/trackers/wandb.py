"""Weights & Biases: a group for a search, a run for each arm, a step for each epoch."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from risingsearch.arms import EpochFacts, SearchFacts
from risingsearch.checks import checked_choice
from risingsearch.integrations.trackers.tracker import (
    SearchLog,
    Tracker,
    numbers,
    shown,
)

MOST_OPEN = 32
"""Runs that are open at the same time; the least recently used one makes room."""
BLOCK = 1 << 15
PART = struct.Struct("<IHB")  # checksum, length, kind
FULL, LAST = 1, 4


class WandbTracker(Tracker):
    """Logs a search to Weights & Biases.

    A search is a group, each arm a run in it with its parameters as the config and a
    step per epoch; an arm that is paused and revived stays one run.

    Parameters
    ----------
    project : str, default "risingsearch"
        The project.
    entity : str, optional
        User or team; by default as W&B has it.
    mode : {"online", "offline"}, optional
        "offline" writes to the folder only, for ``wandb sync`` to send later; by
        default as W&B has it, from ``WANDB_MODE``, say.
    folder : path, default "."
        In which W&B makes its folder ``wandb``.

    Raises
    ------
    MissingDependencyError
        When a search begins, if W&B is not installed.

    Examples
    --------
    >>> WandbTracker(project="digits", mode="offline").project
    'digits'
    """

    package = "wandb"

    def __init__(
        self,
        project: str = "risingsearch",
        *,
        entity: str | None = None,
        mode: str | None = None,
        folder: str | Path = ".",
    ) -> None:
        super().__init__()
        if mode is not None:
            checked_choice("mode", mode, ("online", "offline"))
        self.project, self.entity = project, entity
        self.mode = mode
        self.folder = Path(folder).absolute()

    def open(self, search: SearchFacts) -> SearchLog:
        """Open the runs of a search."""
        options = {
            "project": self.project,
            "entity": self.entity,
            "mode": self.mode,
            "dir": str(self.folder),
            "group": search.search[:16],
        }
        return _WandbRuns(search, options)


class _WandbRuns:
    """The runs of a search, recognised by their ids."""

    def __init__(self, search: SearchFacts, options: dict[str, Any]) -> None:
        self._search = search
        self._options = options
        self._runs: dict[str, Any] = {}  # that are open, the last used at the end
        self._last: dict[str, int] = {}  # logged step, by run

    def write(self, epochs: list[EpochFacts]) -> None:
        """Log those of the epochs that the store does not have yet."""
        metric = self._search.metric
        for epoch in epochs:
            run = self._run(f"arm-{epoch.arm}", "arm", shown(epoch.params))
            if not epoch.is_lost:
                values = {metric: epoch.score, **numbers(epoch)}
                self._log(run, epoch.epoch, values)
            if epoch.failure:
                run.summary["failure"] = epoch.failure
            if epoch.is_best:
                best = {f"best_{metric}": epoch.score, "best_arm": epoch.arm}
                self._log(self._search_run(), epoch.number, best)

    def close(self, search: SearchFacts) -> None:
        """Say which arm has won, and finish all runs."""
        if search.best_arm is not None:
            found = self._search_run().summary
            found["best_arm"] = search.best_arm
            found["best_epoch"] = search.best_epoch
            found["best_params"] = shown(search.best_params)
        for run in self._runs.values():
            run.finish()

    def _search_run(self) -> Any:
        search = self._search
        settings = {
            "policy": search.policy,
            "direction": search.direction,
            f"budget_{search.unit}": search.budget,
            "max_epochs": search.max_epochs,
        }
        return self._run("search", "search", settings)

    def _run(self, name: str, kind: str, config: dict[str, Any]) -> Any:
        """Return an open run."""
        import wandb

        if name in self._runs:
            self._runs[name] = run = self._runs.pop(name)
            return run
        if len(self._runs) >= MOST_OPEN:
            self._runs.pop(next(iter(self._runs))).finish()
        run_id = f"{self._options['group']}-{name}"
        steps = [step for step, _ in history(Path(self._options["dir"]), run_id)]
        run = wandb.init(
            **self._options,
            id=run_id,
            name=name.replace("-", " "),
            job_type=kind,
            config=config,
            resume="allow",
            reinit="create_new",
            settings=wandb.Settings(
                silent=True,
                console="off",
                save_code=False,
                disable_git=True,
                x_disable_stats=True,
                x_disable_meta=True,
                x_save_requirements=False,
            ),
        )
        last = self._last.get(run_id, 0)
        self._last[run_id] = max(last, run.step - 1, *steps)
        self._runs[name] = run
        return run

    def _log(self, run: Any, step: int, values: dict[str, Any]) -> None:
        """Log the values of a step, unless the run has it already."""
        if step > self._last[run.id]:
            run.log(values, step=step, commit=True)
            self._last[run.id] = step


def history(folder: Path, run_id: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield what the files of a run on this machine hold: each step with its values."""
    from wandb.proto.wandb_internal_pb2 import Record

    for path in sorted(folder.glob(f"wandb/*run-*/run-{run_id}.wandb")):
        for data in _records(path.read_bytes()):
            record = Record.FromString(data)
            if record.WhichOneof("record_type") == "history":
                values = {
                    item.key or ".".join(item.nested_key): json.loads(item.value_json)
                    for item in record.history.item
                }
                yield int(values.pop("_step", record.history.step.num)), values


def _records(content: bytes) -> Iterator[bytes]:
    """Yield the records of a file, up to its end or to where a crash has torn it.

    It is a log of LevelDB: blocks of 32 KiB with records in one or more parts.
    """
    at = PART.size  # the header is as long as that of a part
    data = b""
    while at + PART.size <= len(content):
        left = BLOCK - at % BLOCK
        if left < PART.size:
            at += left
            continue
        _, length, kind = PART.unpack_from(content, at)
        at += PART.size + length
        if kind == 0 or at > len(content):
            return
        data += content[at - length : at]
        if kind in (FULL, LAST):
            yield data
            data = b""
