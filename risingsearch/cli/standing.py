"""Where a run stands, in words and as facts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from risingsearch.cli.sweeps import as_swept, facts_of, how_to_go_on

if TYPE_CHECKING:
    from risingsearch.search.following import Follower, Standing

WAITING, RUNNING, STOPPED, FINISHED = "waiting", "running", "stopped", "finished"
"""Before the first epoch; then; where no process goes on; at the end."""


def look(follower: Follower) -> Standing | None:
    """Return where a run stands; of a sweep, with what only the sweep knows."""
    standing = follower.look()
    if standing is None:
        return None
    return standing._replace(result=as_swept(standing.result, follower.path))


def state_of(standing: Standing | None) -> str:
    """Return in a word how a run is doing."""
    if standing is None:
        return WAITING
    if standing.is_done:
        return FINISHED
    if standing.is_running:
        return RUNNING
    return STOPPED if standing.result.n_epochs else WAITING


def why_ended(standing: Standing, run_dir: Path) -> str | None:
    """Return why nothing trains any more, and how to go on; None while it does."""
    state = state_of(standing)
    if state == STOPPED:
        return how_to_go_on(run_dir)
    return standing.result.stop_reason if state == FINISHED else None


def in_words(standing: Standing | None, age: float = 0.0) -> str:
    """Return what is used of the budget, and the time; ``age`` seconds have passed."""
    from risingsearch.plotting.words import duration

    if standing is None or not standing.result.history:
        return "no epoch is recorded yet"
    result = standing.result
    parts = [f"{standing.spent:,.6g} of {standing.budget:,.6g} {standing.unit}"]
    if standing.unit != "epochs":
        parts.append(f"{result.n_epochs:,} epochs")
    if state_of(standing) == RUNNING and math.isfinite(standing.seconds_left):
        left = max(0.0, standing.seconds_left - age)
        parts.append(f"about {duration(left)} left")
    if math.isfinite(result.wall_seconds):
        parts.append(f"{duration(result.wall_seconds)} by the clock")
    return ", ".join(parts)


def facts(standing: Standing | None, run_dir: Path) -> dict[str, Any]:
    """Return all that a frame shows, to be printed as JSON."""
    if standing is None:
        return {"run": str(run_dir), "state": WAITING}
    return {
        **facts_of(standing.result, run_dir),
        "stop_reason": why_ended(standing, run_dir),
        "state": state_of(standing),
        "spent": standing.spent,
        "budget": standing.budget,
        "unit": standing.unit,
        "seconds_left": standing.seconds_left if standing.is_running else None,
        "training": [one._asdict() for one in standing.training],
    }
