"""Where a sweep is tracked: the names and options of trackers, as YAML has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field

from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.space import Strict
from risingsearch.search.callbacks import Callback

Name = Annotated[str, Field(min_length=1)]


class MLflowSetting(Strict):
    """The arguments of ``MLflowTracker``."""

    tracking_uri: Name | None = None
    experiment: Name | None = None
    registered_model: Name | None = None


class TensorBoardSetting(Strict):
    """The arguments of ``TensorBoardTracker``."""

    folder: Path | None = None


class WandbSetting(Strict):
    """The arguments of ``WandbTracker``."""

    project: Name | None = None
    entity: Name | None = None
    mode: Literal["online", "offline"] | None = None
    folder: Path | None = None


class TrackerSetting(Strict):
    """The trackers of a sweep, each with its options."""

    mlflow: MLflowSetting | None = None
    tensorboard: TensorBoardSetting | None = None
    wandb: WandbSetting | None = None

    def options(self, cwd: Path) -> dict[str, dict[str, Any]]:
        """Return the arguments by the names of trackers; folders are from ``cwd``."""
        uri = None if self.mlflow is None else self.mlflow.tracking_uri
        if uri is not None and urlsplit(uri).password is not None:
            msg = (
                "tracker.mlflow.tracking_uri has a password, and a sweep is kept in "
                "its run directory: give it in the variable MLFLOW_TRACKING_URI"
            )
            raise InvalidParameterError(msg)
        given = {
            name: setting.model_dump(exclude_none=True)
            for name, setting in self
            if setting is not None
        }
        for options in given.values():
            if "folder" in options:
                options["folder"] = cwd / options["folder"]
        return given


def as_mapping(value: Any) -> Any:
    """Return a name, or a list of names and mappings, as one mapping to options."""
    if value is None or isinstance(value, TrackerSetting):
        return value
    merged: dict[Any, Any] = {}
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, (str, dict)):
            msg = f"a tracker is a name, or a mapping of it to its options; got {one!r}"
            raise ValueError(msg)
        named = {one: {}} if isinstance(one, str) else one
        merged |= {
            name: {} if given is None else given for name, given in named.items()
        }
    return merged


Made = Callable[[dict[str, dict[str, Any]]], Sequence[Callback]]
"""Makes trackers of their arguments."""
