"""Parts of a sweep's file: its metric, its prior and its trackers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from risingsearch.errors import InvalidParameterError, missing
from risingsearch.priors import Source
from risingsearch.scripts.readers import SCORE, pattern_of
from risingsearch.search.callbacks import Callback

try:
    from pydantic import BaseModel, ConfigDict, Field, field_validator
except ModuleNotFoundError as error:
    raise missing("pydantic", "cli") from error

Name = Annotated[str, Field(min_length=1)]


class Strict(BaseModel):
    """A part of a sweep: no keys but its fields, and finite numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PlainMetric(Strict):
    """A score that a pattern finds in the output of a script, and its name."""

    regex: str
    name: Name | None = None

    @field_validator("regex")
    @classmethod
    def _finds_a_number(cls, value: str) -> str:
        try:
            pattern = pattern_of(value)
        except (re.error, RecursionError, OverflowError) as error:
            msg = f"it is not a regular expression of Python ({error})"
            raise ValueError(msg) from error
        if SCORE not in pattern.groupindex and pattern.groups != 1:
            msg = (
                "it has {number} once, as in 'accuracy: {number}', or one group, or "
                f"one with the name score, (?P<score>...); this has {pattern.groups}"
            )
            raise ValueError(msg)
        return value

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled expression."""
        return pattern_of(self.regex)


class EarlierSetting(Strict):
    """An earlier search: where it is, and which of its columns is the score."""

    path: Name
    score: Name | None = None
    direction: Literal["maximize", "minimize"] | None = None
    name: Name | None = None

    def source(self, folder: Path) -> Source:
        """As a search takes it; a path is from this folder."""
        where = self.path if "://" in self.path else folder / self.path
        return Source(where, self.score, self.direction, self.name)


def prior_as_mappings(value: Any) -> Any:
    """Return a path, a mapping of one search or a list of them as mappings."""
    if value is None:
        return None
    given = list(value) if isinstance(value, (list, tuple)) else [value]
    return [{"path": one} if isinstance(one, str) else one for one in given]


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


def trackers_as_mapping(value: Any) -> Any:
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


MakeTrackers = Callable[[dict[str, dict[str, Any]]], Sequence[Callback]]
"""Makes trackers from their arguments."""
