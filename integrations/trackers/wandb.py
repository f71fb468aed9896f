"""Weights & Biases: a group for a search, a run for each arm, a step for each epoch."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from risingsearch.arms import EpochFacts, SearchFacts
from risingsearch.checks import checked_choice
from risingsearch.integrations.trackers.background import Log
from risingsearch.integrations.trackers.tracker import (
    Tracker,
    numbers,
    require,
    shown,
)
from risingsearch.integrations.trackers.wandb_files import steps_in

MOST_OPEN = 32
"""Runs that are open at the same time; another one closes the one used least lately."""


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
        When a search begins, where W&B is not installed.

    Examples
    --------
    >>> WandbTracker(project="digits", mode="offline").project
    'digits'
    """

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

    def check(self) -> None:
        """Raise a MissingDependencyError where W&B is missing."""
        require("wandb")

    def open(self, search: SearchFacts) -> Log:
        """Open the runs of a search."""
        options = {
            "project": self.project,
            "entity": self.entity,
            "mode": self.mode,
            "dir": str(self.folder),
            "group": search.search[:16],
        }
        return _Runs(search, options)


class _Runs(Log):
    """The runs of a search; their ids say which they are."""

    def __init__(self, search: SearchFacts, options: dict[str, Any]) -> None:
        self._metric = search.metric
        self._search = search
        self._options = options
        self._runs: dict[str, Any] = {}  # that are open, the last used at the end
        self._logged: dict[str, set[int]] = {}  # steps, by run

    def write(self, epochs: list[EpochFacts]) -> None:
        """Log those of the epochs that the store does not have yet."""
        of_arm = sorted(epochs, key=lambda epoch: epoch.arm)
        for arm, told in groupby(of_arm, key=lambda epoch: epoch.arm):
            self._write_arm(arm, list(told))
        search = self._search_run()
        for epoch in epochs:
            if epoch.is_best:
                best = {f"best_{self._metric}": epoch.score, "best_arm": epoch.arm}
                self._log(search, epoch.number, best)
        search.summary["budget_left"] = epochs[-1].budget_left

    def close(self, search: SearchFacts) -> None:
        """Say which arm has won, and finish all runs."""
        if search.best_arm is not None:
            found = self._search_run().summary
            found["best_arm"] = search.best_arm
            found["best_epoch"] = search.best_epoch
            found["best_params"] = shown(search.best_params)
        for run in self._runs.values():
            run.finish()

    def _write_arm(self, arm: int, epochs: list[EpochFacts]) -> None:
        run = self._opened(f"arm-{arm}", "arm", shown(epochs[0].params))
        for epoch in epochs:
            if not epoch.is_lost:
                values = {self._metric: epoch.score, **numbers(epoch)}
                self._log(run, epoch.epoch, values)
        if epochs[-1].failure:
            run.summary["failure"] = epochs[-1].failure

    def _search_run(self) -> Any:
        search = self._search
        settings = {
            "policy": search.policy,
            "direction": search.direction,
            f"budget_{search.unit}": search.budget,
            "max_epochs": search.max_epochs,
        }
        return self._opened("search", "search", settings)

    def _opened(self, name: str, kind: str, config: dict[str, Any]) -> Any:
        """Return a run, the oldest one finished where too many are open."""
        import wandb

        if name in self._runs:
            self._runs[name] = run = self._runs.pop(name)
            return run
        if len(self._runs) >= MOST_OPEN:
            self._runs.pop(next(iter(self._runs))).finish()
        run_id = f"{self._options['group']}-{name}"
        earlier = steps_in(Path(self._options["dir"]), run_id)
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
        self._logged.setdefault(run_id, set()).update(earlier, range(run.step))
        self._runs[name] = run
        return run

    def _log(self, run: Any, step: int, values: dict[str, Any]) -> None:
        logged = self._logged[run.id]
        if step not in logged:
            run.log(values, step=step, commit=True)
            logged.add(step)
