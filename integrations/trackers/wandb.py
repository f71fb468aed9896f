"""Weights & Biases: a group for a search, a run for each arm, a step for each epoch."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from risingsearch.arms import SearchFacts
from risingsearch.checks import checked_choice, kept_path
from risingsearch.integrations.trackers.tracker import (
    SEARCH_RUN,
    SearchLog,
    Tracker,
    shown,
)

QUIET: dict[str, object] = {
    "silent": True,
    "console": "off",
    "save_code": False,
    "disable_git": True,
    "x_disable_stats": True,
    "x_disable_meta": True,
    "x_save_requirements": False,
}
MOST_OPEN = 32
"""Runs that are open at the same time; the least recently used one makes room."""


class _WandbRuns(SearchLog):
    """The runs of a search, recognised by their ids."""

    def connect(self) -> None:
        self._runs: dict[str, Any] = {}  # that are open, the last used at the end

    def open_run(self, run: str) -> int:
        # The last step is W&B's, or all so far if the files of the run are here.
        if any(self.tracker.folder.glob(f"wandb/offline-run-*-{self._id(run)}")):
            steps = {SEARCH_RUN: 0}
            for epoch in self.search.earlier:
                steps |= {
                    f"arm-{epoch.arm}": epoch.epoch,
                    SEARCH_RUN: epoch.number,
                }
            return steps.get(run, 0)
        return int(self._opened(run).step) - 1

    def log(
        self,
        run: str,
        step: int,
        values: Mapping[str, float],
    ) -> None:
        self._opened(run).log(
            dict(values),
            step=step,
            commit=True,
        )

    def fail(self, run: str, failure: str) -> None:
        self._opened(run).summary["failure"] = failure

    def close(self, search: SearchFacts) -> None:
        if search.best_arm is not None:
            summary = self._opened(SEARCH_RUN).summary
            summary["best_arm"] = search.best_arm
            summary["best_epoch"] = search.best_epoch
            summary["best_params"] = shown(search.best_params)
        for run in self._runs.values():
            run.finish()

    def _id(self, run: str) -> str:
        return f"{self.search.search[:16]}-{run}"

    def _opened(self, run: str) -> Any:
        import wandb

        if run not in self._runs:
            if len(self._runs) >= MOST_OPEN:
                self._runs.pop(next(iter(self._runs))).finish()
            self._runs[run] = wandb.init(
                project=self.tracker.project,
                entity=self.tracker.entity,
                mode=self.tracker.mode,
                dir=str(self.tracker.folder),
                group=self.search.search[:16],
                id=self._id(run),
                name=run.replace("-", " "),
                job_type=run.partition("-")[0],
                config=self.params[run],
                resume="allow",
                reinit="create_new",
                settings=wandb.Settings(**QUIET),
            )
        self._runs[run] = opened = self._runs.pop(run)
        return opened


@dataclass(eq=False)
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
    InvalidParameterError
        If the mode is another.
    MissingDependencyError
        If wandb is not installed, when the search begins.

    Examples
    --------
    >>> WandbTracker(project="digits", mode="offline").project
    'digits'
    """

    package = "wandb"
    runs = _WandbRuns
    project: str = "risingsearch"
    _: KW_ONLY
    entity: str | None = None
    mode: str | None = None
    folder: str | Path = "."

    def __post_init__(self) -> None:
        if self.mode is not None:
            checked_choice("mode", self.mode, ("online", "offline"))
        self.folder = kept_path("folder", self.folder)
