"""One live line on a terminal, and nothing elsewhere."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from risingsearch.errors import missing

if TYPE_CHECKING:
    from risingsearch.scheduler import Scheduler


class Progress:
    """Budget used, best score and its arm, arms by status, time left.

    Parameters
    ----------
    scheduler : Scheduler
        Whose progress is shown.
    enabled : bool
        Show it, if standard error is a terminal.

    Raises
    ------
    MissingDependencyError
        If it is enabled and tqdm is not installed.
    """

    def __init__(self, scheduler: Scheduler, *, enabled: bool) -> None:
        self._scheduler = scheduler
        self._bar: Any = None
        if enabled:
            try:
                from tqdm import tqdm
            except ModuleNotFoundError as error:
                raise missing("tqdm", extra="cli") from error
            self._bar = tqdm(
                total=scheduler.budget,
                initial=scheduler.spent,
                unit=" epochs" if scheduler.unit == "epochs" else " s",
                disable=None,
                bar_format="{percentage:3.0f}%|{bar:20}| {n:.6g}/{total:.6g}{unit} "
                "[{elapsed}<{remaining}]{postfix}",
            )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self) -> None:
        """Bring the line up to date."""
        if self._bar is None or self._bar.disable:
            return
        scheduler = self._scheduler
        counts = Counter(scheduler.statuses())
        parts = [f"{counts[name]} {name}" for name in ("running", "paused", "finished")]
        if counts["failed"]:
            parts.append(f"{counts['failed']} failed")
        if scheduler.best_arm is not None:
            best = f"best {scheduler.best_score:.4f} (arm {scheduler.best_arm})"
            parts.insert(0, best)
        self._bar.set_postfix_str(", ".join(parts), refresh=False)
        self._bar.update(scheduler.spent - self._bar.n)
