"""Resources of a Slurm job: keys of a sweep, as the arguments of sbatch."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from risingsearch.scripts.settings import Name, Strict

OWN = re.compile(
    "--(array|chdir|error|help|job-name|(no-)?requeue|open-mode|output|parsable|test-only|"
    "usage|version|wait|wrap)"
)
"""Options of sbatch that the search sets itself, or that would interfere with it."""
_GPUS = re.compile(r"(?:[^\s:,=]+:)?([1-9]\d*)", re.ASCII)


def _as_text(value: Any) -> Any:
    if type(value) in (int, str):
        return str(value)
    msg = "it is text, or a whole number"
    raise ValueError(msg)


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
    options: list[str] = Field(default_factory=list)

    @field_validator("gpus")
    @classmethod
    def _are_gpus(cls, value: str | None) -> str | None:
        if value is not None and not _GPUS.fullmatch(value):
            msg = "it is a whole number above 0, or text such as 'a100:1'"
            raise ValueError(msg)
        return value

    @field_validator("options")
    @classmethod
    def _are_options(cls, value: list[str]) -> list[str]:
        for option in value:
            if OWN.fullmatch(option.partition("=")[0]):
                msg = f"{option!r} is not yours to give: the search decides on it"
                raise ValueError(msg)
        return value

    @property
    def n_gpus(self) -> int | None:
        """How many GPUs a job has; None where none are asked for."""
        found = None if self.gpus is None else _GPUS.fullmatch(self.gpus)
        return None if found is None else int(found[1])

    def arguments(self, gpus: int | None = None) -> list[str]:
        """Return the arguments of sbatch; ``gpus`` where the setting has none."""
        named = self.model_dump(exclude={"requeue", "options"}, exclude_none=True)
        if gpus is not None:
            named.setdefault("gpus", gpus)
        given = [f"--{name.replace('_', '-')}={v}" for name, v in named.items()]
        if self.requeue is not None:
            given.append("--requeue" if self.requeue else "--no-requeue")
        return given + self.options


class LauncherSetting(Strict):
    """Where the scripts of a sweep run: on this machine, or as jobs of Slurm."""

    slurm: SlurmSetting | None = None


def launcher_as_mapping(value: Any) -> Any:
    """Return the name of a launcher, or a mapping of it to its keys, as a mapping."""
    if isinstance(value, LauncherSetting):
        return value
    if value == "local":
        return {}
    if value == "slurm" or value == {"slurm": None}:
        return {"slurm": {}}
    if isinstance(value, dict):
        return value
    msg = "it is local, slurm, or a mapping such as {slurm: {partition: gpu}}"
    raise ValueError(msg)
