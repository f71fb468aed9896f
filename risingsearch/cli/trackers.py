"""The trackers that a sweep names."""

from __future__ import annotations

from typing import Any

from risingsearch.integrations.trackers import (
    MLflowTracker,
    TensorBoardTracker,
    Tracker,
    WandbTracker,
)

TRACKERS: dict[str, type[Tracker]] = {
    "mlflow": MLflowTracker,
    "tensorboard": TensorBoardTracker,
    "wandb": WandbTracker,
}


def made_trackers(options: dict[str, dict[str, Any]]) -> list[Tracker]:
    """Return the trackers, or raise what is missing to log with them."""
    trackers = [TRACKERS[name](**given) for name, given in options.items()]
    for tracker in trackers:
        tracker.check()
    return trackers
