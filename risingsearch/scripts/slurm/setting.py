"""Resources of a Slurm job: keys of a sweep, as the arguments of sbatch."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from risingsearch.scripts.settings import Strict

MOST_CPUS = 1_000_000
LONGEST_MINUTES = 10**7
OWN = (
    "array",
    "chdir",
    "error",
    "help",
    "job-name",
    "no-requeue",
    "open-mode",
    "output",
    "parsable",
    "requeue",
    "test-only",
    "usage",
    "version",
    "wait",
    "wrap",
)
"""Options of sbatch that the search sets itself, or that would interfere with it."""
_TIME = re.compile(r"\d+|\d+:\d\d|\d+:\d\d:\d\d|\d+-\d+(:\d\d){0,2}", re.ASCII)
_MEMORY = re.compile(r"\d+[KMGT]?", re.ASCII)
_GPUS = re.compile(r"(?:[^\s:,=]+:)?([1-9]\d*)", re.ASCII)
_OPTION = re.compile(r"--([a-z][a-z-]*)(=.*)?", re.ASCII | re.DOTALL)

Name = Annotated[str, Field(min_length=1)]


class SlurmSetting(Strict):
    """Resources of every job; keys left out have the defaults of the cluster."""

    partition: Name | None = None
    account: Name | None = None
    qos: Name | None = None
    time: Annotated[str | int, Field(union_mode="left_to_right")] | None = None
    mem: Annotated[str | int, Field(union_mode="left_to_right")] | None = None
    cpus_per_task: int | None = Field(default=None, ge=1, le=MOST_CPUS, strict=True)
    gpus: Annotated[str | int, Field(union_mode="left_to_right")] | None = None
    requeue: bool | None = Field(default=None, strict=True)
    options: list[str] = Field(default_factory=list)

    @field_validator("time", "mem", "gpus", mode="before")
    @classmethod
    def _is_no_truth(cls, value: Any) -> Any:
        if isinstance(value, bool | float):
            msg = "it is text, or a whole number"
            raise ValueError(msg)
        return value

    @field_validator("time")
    @classmethod
    def _is_a_time(cls, value: str | int | None) -> str | int | None:
        text = str(value)
        if value is not None and (not _TIME.fullmatch(text) or _is_zero(text)):
            msg = (
                "it is a whole number of minutes above 0, or text such as '00:30:00' "
                "or '1-12:00:00'"
            )
            raise ValueError(msg)
        return value

    @field_validator("mem")
    @classmethod
    def _is_memory(cls, value: str | int | None) -> str | int | None:
        if value is not None and not _MEMORY.fullmatch(str(value)):
            msg = "it is a whole number of megabytes, or text such as '8G'"
            raise ValueError(msg)
        return value

    @field_validator("gpus")
    @classmethod
    def _are_gpus(cls, value: str | int | None) -> str | int | None:
        if value is not None and not _GPUS.fullmatch(str(value)):
            msg = "it is a whole number above 0, or text such as 'a100:1'"
            raise ValueError(msg)
        return value

    @field_validator("options")
    @classmethod
    def _are_options(cls, value: list[str]) -> list[str]:
        for option in value:
            form = _OPTION.fullmatch(option)
            if form is None:
                msg = (
                    f"{option!r} is no option: write each as one text, such as "
                    "'--constraint=a100'"
                )
                raise ValueError(msg)
            if any(own.startswith(form[1]) for own in OWN):
                msg = f"{option!r} is not yours to give: the search decides on it"
                raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _gives_nothing_twice(self) -> SlurmSetting:
        for option in self.options:
            form = _OPTION.fullmatch(option)
            assert form is not None
            for name, value in self._named.items():
                if value is not None and name.startswith(form[1]):
                    msg = (
                        f"{name.replace('-', '_')} and the option {option!r} ask for "
                        "the same: leave out one of them"
                    )
                    raise ValueError(msg)
        return self

    @property
    def n_gpus(self) -> int | None:
        """How many GPUs a job has; None where none are asked for."""
        found = None if self.gpus is None else _GPUS.fullmatch(str(self.gpus))
        return None if found is None else int(found[1])

    @property
    def _named(self) -> dict[str, str | int | None]:
        """Values of the keys, by the names of sbatch's options."""
        return {
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "time": self.time,
            "mem": self.mem,
            "cpus-per-task": self.cpus_per_task,
            "gpus": self.gpus,
        }

    def arguments(self, gpus: int | None = None) -> list[str]:
        """Return the arguments of sbatch; ``gpus`` where the setting has none.

        >>> SlurmSetting(partition="long", time=30, requeue=True).arguments(gpus=1)
        ['--partition=long', '--time=30', '--gpus=1', '--requeue']
        """
        named = self._named | ({"gpus": gpus} if self.gpus is None else {})
        given = [f"--{name}={v}" for name, v in named.items() if v is not None]
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


def _is_zero(text: str) -> bool:
    return not text.strip("0:-")
