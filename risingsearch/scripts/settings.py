"""Parts of a sweep's file: its metric, its prior, its trackers and its launcher."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from risingsearch.errors import InvalidParameterError, needed
from risingsearch.json_values import Json
from risingsearch.priors import Source
from risingsearch.scripts.readers import SCORE, has_alternatives, pattern_of
from risingsearch.search.callbacks import Callback

with needed("pydantic", "cli"):
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

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
            raise ValueError(
                f"it is not a regular expression of Python ({error})"
            ) from error
        if SCORE not in pattern.groupindex and pattern.groups != 1:
            raise ValueError(
                "it has {number} once, as in 'accuracy: {number}', or one group, or "
                f"one with the name score, (?P<score>...); this has {pattern.groups}"
            )
        if has_alternatives(pattern):
            raise ValueError(
                "a | outside of parentheses separates two patterns, of which one has "
                r"no number: write \| where the script prints |"
            )
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


def prior_as_mappings(value: object) -> Any:
    """Return a path, a mapping of one search or a list of them as mappings."""
    if value is None:
        return None
    listed = value if isinstance(value, list | tuple) else [value]
    return [{"path": item} if isinstance(item, str) else item for item in listed]


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
        uri = None
        if self.mlflow is not None:
            uri = self.mlflow.tracking_uri
        if uri is not None and urlsplit(uri).password is not None:
            raise InvalidParameterError(
                "tracker.mlflow.tracking_uri has a password, and a sweep is kept in "
                "its run directory: give it in the variable MLFLOW_TRACKING_URI"
            )
        named = {
            name: setting.model_dump(exclude_none=True)
            for name, setting in self
            if setting is not None
        }
        for options in named.values():
            if "folder" in options:
                options["folder"] = cwd / options["folder"]
        return named


def trackers_as_mapping(value: object) -> Any:
    """Return a name, or a list of names and mappings, as one mapping to options."""
    if value is None or isinstance(value, TrackerSetting):
        return value
    merged: Json = {}
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, (str, dict)):
            raise ValueError(
                f"a tracker is a name, or a mapping of it to its options; got {item!r}"
            )
        named = {item: {}} if isinstance(item, str) else item
        merged |= {
            name: {} if options is None else options for name, options in named.items()
        }
    return merged


MakeTrackers = Callable[[dict[str, dict[str, Any]]], Sequence[Callback]]
"""Makes trackers from their arguments."""


OWN = re.compile(
    "--(array|chdir|error|help|job-name|(no-)?requeue|open-mode|output|parsable|test-only|"
    "usage|version|wait|wrap)"
)
"""Options of sbatch that the search sets itself, or that would interfere with it."""
_GPUS = re.compile(r"(?:[^\s:,=]+:)?([1-9]\d*)", re.ASCII)


def _as_text(value: object) -> Any:
    if type(value) in (int, str):
        return str(value)
    raise ValueError("it is text, or a whole number")


Text = Annotated[Name, BeforeValidator(_as_text)]


class SlurmSetting(Strict):
    """Resources of every job; keys left out have the defaults of the cluster."""

    partition: Name | None = None
    account: Name | None = None
    qos: Name | None = None
    time: Text | None = None
    mem: Text | None = None
    cpus_per_task: int | None = Field(default=None, ge=1, strict=True)
    gpus: Text | None = None
    requeue: bool | None = Field(default=None, strict=True)
    options: list[str] = []

    @field_validator("gpus")
    @classmethod
    def _are_gpus(cls, value: str | None) -> str | None:
        if value is not None and not _GPUS.fullmatch(value):
            raise ValueError("it is a whole number above 0, or text such as 'a100:1'")
        return value

    @field_validator("options")
    @classmethod
    def _are_options(cls, value: list[str]) -> list[str]:
        for option in value:
            if OWN.fullmatch(option.partition("=")[0]):
                raise ValueError(
                    f"{option!r} is not yours to give: the search decides on it"
                )
        return value

    @property
    def n_gpus(self) -> int | None:
        """How many GPUs a job has; None where none are asked for."""
        if self.gpus is None:
            return None
        return int(self.gpus.rpartition(":")[2])

    def arguments(self, gpus: int | None = None) -> list[str]:
        """Return the arguments of sbatch; ``gpus`` where the setting has none."""
        named = self.model_dump(exclude={"requeue", "options"}, exclude_none=True)
        if gpus is not None:
            named.setdefault("gpus", gpus)
        words = [f"--{name.replace('_', '-')}={v}" for name, v in named.items()]
        if self.requeue is not None:
            words.append("--requeue" if self.requeue else "--no-requeue")
        return words + self.options


class LauncherSetting(Strict):
    """Where the scripts of a sweep run: on this machine, or as jobs of Slurm."""

    slurm: SlurmSetting | None = None


def launcher_as_mapping(value: object) -> Any:
    """Return the name of a launcher, or a mapping of it to its keys, as a mapping."""
    if isinstance(value, LauncherSetting):
        return value
    if value == "local":
        return {}
    if value in ("slurm", {"slurm": None}):
        return {"slurm": {}}
    if isinstance(value, dict):
        return value
    raise ValueError(
        "it is local, slurm, or a mapping such as {slurm: {partition: gpu}}"
    )
