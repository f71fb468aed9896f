"""A search over a training script, described in a file."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from risingsearch.arms import Params
from risingsearch.budget import Budget
from risingsearch.checks import is_number, shown
from risingsearch.errors import InvalidParameterError, missing
from risingsearch.json_values import Json
from risingsearch.priors import Source
from risingsearch.scheduling.policy_choice import recommended_candidates

try:
    from pydantic import (
        BeforeValidator,
        Discriminator,
        Field,
        PlainSerializer,
        PlainValidator,
        PrivateAttr,
        Tag,
        ValidationError,
        field_validator,
        model_validator,
    )

    from risingsearch.scripts.yaml_files import problems_of, read_yaml, unusable_text
except ModuleNotFoundError as error:
    raise missing(str(error.name), "cli") from error

from risingsearch.scripts.readers import EPOCH, SCORE
from risingsearch.scripts.settings import (
    EarlierSetting,
    LauncherSetting,
    Name,
    PlainMetric,
    SlurmSetting,
    Strict,
    TrackerSetting,
    launcher_as_mapping,
    prior_as_mappings,
    trackers_as_mapping,
)
from risingsearch.scripts.space import (
    MOST_CANDIDATES,
    PARAMETERS,
    Parameter,
    Value,
    all_of,
    named_space,
    space_in,
    space_of_parameters,
)
from risingsearch.scripts.trainable import FIELDS, fields_of
from risingsearch.search.gpus import (
    MASKS,
    MOST_WORKERS,
    GpuPlacement,
    is_divisible,
    placed,
)
from risingsearch.space import Configurations, Space
from risingsearch.space.by_name import AUTO
from risingsearch.storage.object_store import checked_url

LONGEST = 1e9  # seconds, some 30 years
ALIVE_PER_WORKER = 4
Count = Annotated[int, Field(ge=1, strict=True)]
Natural = Annotated[int, Field(ge=0, strict=True)]
Number = Annotated[float, Field(strict=True)]
Seconds = Annotated[float, Field(gt=0.0, le=LONGEST, strict=True)]
Word = Annotated[  # text; a number counts as text
    str, BeforeValidator(lambda value: str(value) if is_number(value) else value)
]
TAGGED = {"parameters": 2, "metric": 1}
"""The parts of the place of an error that tell forms apart, and are no keys."""


def _read_budget(value: Any) -> Budget:
    """Return the budget that a file has as a number, a time or a mapping."""
    try:
        return (Budget.from_json if isinstance(value, dict) else Budget.of)(value)
    except InvalidParameterError as error:
        words = str(error).removeprefix("budget ").removesuffix(f"; got {shown(value)}")
        raise ValueError(words.replace("a Budget", "{hours: 8}")) from error


def _counted(most: int, *words: str) -> PlainValidator:
    """Return the check of a whole number up to ``most``, or one of these words."""

    def checked(value: object) -> Any:
        if value in words or (type(value) is int and 1 <= value <= most):
            return value
        others = " or ".join(words)
        raise ValueError(f"must be a whole number from 1 to {most:,}, or {others}")

    return PlainValidator(checked)


def _learning_rate(value: object) -> Any:
    """Check a declared learning rate; the space says whether it is one."""
    named = value if isinstance(value, dict) else {}
    are_numbers = all(isinstance(k, str) and is_number(v) for k, v in named.items())
    if (named and are_numbers) or isinstance(value, str) or value in (None, False):
        return value
    raise ValueError(
        "it is the name of a parameter, a mapping of it to a good value such as "
        "{lr: 0.01}, or false"
    )


class Sweep(Strict):
    """A search over a training script: the keys of its file."""

    command: list[Word] = Field(min_length=1)
    parameters: dict[str, Parameter] = {}
    space: dict[str, Any] | None = None
    budget: Annotated[
        Budget, PlainValidator(_read_budget), PlainSerializer(Budget.to_json)
    ]
    max_epochs: Count
    metric: Annotated[
        Annotated[str, Tag("key")] | Annotated[PlainMetric, Tag("pattern")],
        Discriminator(
            lambda value: "pattern" if isinstance(value, dict | PlainMetric) else "key"
        ),
    ] = SCORE
    direction: Literal["maximize", "minimize"] = "maximize"
    cost: Name | None = None
    report_file: Name | None = None
    candidates: Annotated[
        int | Literal["auto", "all"], _counted(MOST_CANDIDATES, "auto", "all")
    ] = "auto"
    policy: str = "auto"
    policy_params: Params = {}
    workers: Annotated[int | Literal["auto"], _counted(MOST_WORKERS, "auto")] = 1
    gpus: Annotated[float, Field(gt=0.0, le=MOST_WORKERS, strict=True)] | None = None
    launcher: Annotated[LauncherSetting, BeforeValidator(launcher_as_mapping)] = (
        LauncherSetting()
    )
    deterministic: bool = False
    environment: list[dict[str, Word]] = []
    resume: bool = True
    max_alive: Count | None = None
    timeout: Seconds | None = None
    epoch_timeout: Seconds | None = None
    epochs_per_job: Count | None = None
    max_failures: Natural = 0
    min_epochs: Count = 1
    patience: Count | None = None
    target_score: Number | None = None
    enqueue: list[dict[str, Value]] = []
    error_score: Number | None = None
    seed: Natural | None = None
    prior: Annotated[
        list[EarlierSetting] | None, BeforeValidator(prior_as_mappings)
    ] = None
    learning_rate: Annotated[
        str | dict[str, float] | Literal[False] | None, PlainValidator(_learning_rate)
    ] = None
    tracker: Annotated[TrackerSetting | None, BeforeValidator(trackers_as_mapping)] = (
        None
    )
    checkpoints: str | None = None
    _folder: Path = PrivateAttr(default_factory=Path)

    @model_validator(mode="before")
    @classmethod
    def _all_the_time(cls, value: object) -> Any:
        """Let a timeout alone be the budget."""
        if isinstance(value, dict) and "budget" not in value:
            seconds = value.get("timeout")
            if seconds is not None:
                budget = {"wall_seconds": seconds}
                return value | {"budget": budget, "timeout": None}
        return value

    @model_validator(mode="before")
    @classmethod
    def _named_space(cls, value: object) -> Any:
        """Let an estimator's name stand for its space."""
        return named_space(value) if isinstance(value, dict) else value

    @field_validator("gpus")
    @classmethod
    def _is_whole(cls, value: float | None) -> float | None:
        if value is not None and not is_divisible(value):
            raise ValueError(
                "they are a whole number, or less than 1 where workers share one"
            )
        return value

    @field_validator("report_file")
    @classmethod
    def _inside(cls, value: str | None) -> str | None:
        path = Path(value or "here")
        if path.is_absolute() or ".." in path.parts or not path.name:
            raise ValueError(
                "it is a file in the checkpoint directory, named from there"
            )
        return value

    @field_validator("metric")
    @classmethod
    def _is_a_score(cls, value: str | PlainMetric) -> str | PlainMetric:
        if value == EPOCH:
            raise ValueError(
                "epoch is the key of the epoch in each line; name another for the score"
            )
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Sweep:
        if (self.space is None) == (not self.parameters):
            raise ValueError(
                "give either parameters or space, a file of ConfigSpace or auto, to "
                "search"
            )
        self._check_names()
        self._check_enqueued()
        self._check_slurm()
        self._check_workers()
        self._check_scripts()
        if self.checkpoints is not None:
            checked_url(self.checkpoints)  # here, where the given value is not shown
        return self

    def _check_names(self) -> None:
        names = self.candidate_space.names
        if taken := [name for name in names if name in FIELDS]:
            raise ValueError(
                f"parameters.{taken[0]}: {taken[0]} is what a script is told besides "
                f"its parameters, as are {', '.join(FIELDS)}; call it otherwise"
            )
        used = (name for part in self.command for name in _checked_fields(part))
        if unknown := [name for name in used if name not in {*names, *FIELDS}]:
            raise ValueError(
                f"the command names {{{unknown[0]}}}, which is neither a parameter "
                f"nor one of {', '.join(FIELDS)}; write {{{{ for a brace"
            )
        variables = (name for each in self.environment for name in each)
        if wrong := [name for name in variables if not name or "=" in name]:
            raise ValueError(
                f"environment: {wrong[0]!r} cannot be the name of a variable"
            )

    def _check_enqueued(self) -> None:
        space = self.candidate_space
        ranges = {
            coordinate.name
            for coordinate in space.coordinates
            if not coordinate.kind.is_finite
        }
        for i, params in enumerate(self.enqueue):
            texts = [k for k in params if k in ranges and not is_number(params[k])]
            problem = space.problem_of(params, beyond=True)
            if texts and not problem:
                problem = f"{texts[0]} must be a number; got {shown(params[texts[0]])}"
            if problem:
                raise ValueError(
                    f"enqueue[{i}] is no configuration of the sweep: {problem}"
                )
            if params in self.enqueue[:i]:
                raise ValueError(
                    f"enqueue[{i}] was enqueued before: name each configuration once"
                )

    def _check_slurm(self) -> None:
        if self.launcher.slurm is None:
            return
        if self.workers == "auto":
            raise ValueError(
                "workers: auto is of one machine: say how many jobs may be in Slurm"
            )
        if self.gpus is not None and self.gpus < 1.0:
            raise ValueError(
                f"Slurm gives whole GPUs to a job: say gpus: 1; got {self.gpus:g}"
            )
        if self.checkpoints is not None:
            raise ValueError(
                "launcher: slurm excludes checkpoints: leave out one of the two"
            )

    def _check_workers(self) -> None:
        n_named = len(self.environment)
        if n_named and self.workers != n_named:
            raise ValueError(
                f"environment is for {n_named} workers, and workers is {self.workers}"
            )
        if self.n_gpus is None:
            needs = "needs gpus, those of each worker, such as gpus: 1"
            if self.workers == "auto":
                raise ValueError(f"workers: auto {needs}")
            if self.budget.gpu_hours is not None:
                raise ValueError(f"a budget in gpu_hours {needs}")
            return
        named = {name for variables in self.environment for name in variables}
        if both := sorted(named & {*MASKS}):
            raise ValueError(
                f"gpus and environment both give {both[0]}: leave out one of them"
            )

    def _check_scripts(self) -> None:
        pattern = None
        if isinstance(self.metric, PlainMetric):
            pattern = self.metric.pattern
        least = 1 if self.workers == "auto" else self.workers
        if self.max_alive is not None and (self.resume or self.max_alive < least):
            raise ValueError(
                "max_alive is at least the number of workers, and needs resume: false; "
                f"got {self.max_alive} with {self.workers} workers"
            )
        if pattern is not None and self.resume and EPOCH not in pattern.groupindex:
            raise ValueError(
                "metric.regex does not find which epoch a number is of: add resume: "
                "false, which keeps scripts alive, or {epoch} where it stands"
            )
        needs_resume = {
            "checkpoints": self.checkpoints,
            "launcher: slurm": self.launcher.slurm,
            "max_failures": self.max_failures,
        }
        for key, value in needs_resume.items():
            if value and not self.resume:
                raise ValueError(f"{key} and resume: false: leave out one of the two")

    def n_alive(self, n_workers: int) -> int:
        """Return how many processes may be alive where they are paused."""
        return self.max_alive or ALIVE_PER_WORKER * n_workers

    def placement(self) -> GpuPlacement:
        """Return how many workers there are on this machine, and the GPUs of each."""
        gpus = None if self.launcher.slurm else self.gpus  # which gives jobs theirs
        most = self.max_alive or MOST_WORKERS
        return placed(self.workers, gpus, self.environment, most)

    @property
    def n_gpus(self) -> float | None:
        """How many GPUs each worker has, where they are shared out."""
        slurm = self.launcher.slurm
        if slurm is None or slurm.gpus is None:
            return self.gpus
        return slurm.n_gpus

    @property
    def sbatch_arguments(self) -> list[str]:
        """Arguments of sbatch for every job; none without Slurm."""
        slurm = self.launcher.slurm
        gpus = None
        if self.gpus is not None:
            gpus = int(self.gpus)
        if slurm is None:
            return []
        return slurm.arguments(gpus)

    def with_budget(self, amount: float | Budget) -> Sweep:
        """Return the sweep with another budget; a number has the unit of this one."""
        settings = self.model_dump(mode="json", exclude_defaults=True)
        budget = self.budget.like(amount).to_json()
        sweep = checked_sweep(settings | {"budget": budget}, "with --budget")
        sweep._folder = self._folder
        return sweep

    def unused_parameters(self) -> list[str]:
        """Return those that scripts find in ``RISINGSEARCH_PARAMS`` at most."""
        used = {name for part in self.command for name in fields_of(part)}
        names = self.candidate_space.names
        if "params" in used:
            return []
        return [name for name in names if name not in used]

    def fields_in_variables(self) -> list[str]:
        """Return the fields that scripts may have to read from variables."""
        used = {name for part in self.command for name in fields_of(part)}
        if not self.resume and not self.unused_parameters():
            return []  # such a script needs no change for a search
        return [name for name in FIELDS if name not in used]

    def draw(self) -> Configurations:
        """Return the configurations, each once: first those that are enqueued."""
        space = self.candidate_space
        if self.candidates == "all":
            drawn = Configurations(all_of(space), None)
        else:
            rng = np.random.default_rng(None if self.seed is None else [self.seed, 1])
            drawn = space.draw(self.n_candidates, rng)
        everybody = {json.dumps(params): params for params in [*self.enqueue, *drawn]}
        most = None if self.candidates == "auto" else len(everybody)
        return Configurations(everybody.values(), drawn.space, most)

    @property
    def candidate_space(self) -> Space:
        """Space that configurations are drawn from."""
        if self.space is None:
            return space_of_parameters(self.parameters)
        return space_in(self.space)

    def earlier(self) -> list[Source] | None:
        """Return the earlier searches to learn from, not read yet."""
        if self.prior is None:
            return None
        return [setting.source(self._folder) for setting in self.prior]

    @property
    def metric_name(self) -> str:
        """Name of the score: its key, its name, or the pattern that finds it."""
        metric = self.metric
        if isinstance(metric, str):
            return metric
        return metric.name or metric.regex

    @property
    def n_candidates(self) -> int:
        """How many configurations are drawn, if not all are taken."""
        if isinstance(self.candidates, int):
            return self.candidates
        return min(recommended_candidates(**dict(self)), MOST_CANDIDATES)


def read_sweep(path: Path, changes: Json | None = None) -> Sweep:
    """Return the sweep in a YAML or JSON file, or raise an error with the place.

    ``changes`` are keys and values in the place of the file's.
    """
    content = read_yaml(path)
    source = str(path)
    if isinstance(content, dict) and changes:
        content = content | changes
        source += "".join(f" with --{key} {value}" for key, value in changes.items())
    file = content.get("space") if isinstance(content, dict) else None
    if isinstance(file, str) and file != AUTO:
        both = content.get("parameters")  # then it is refused, unread
        space = {} if both else read_yaml(path.parent / file)
        content = content | {"space": space}
    sweep = checked_sweep(content, source)
    sweep._folder = path.parent
    return sweep


FORMS: dict[str, type[Strict]] = {
    "": Sweep,
    "launcher": LauncherSetting,
    "launcher.slurm": SlurmSetting,
    "metric": PlainMetric,
    **{f"parameters.*.{kind}": form for kind, form in PARAMETERS.items()},
    "prior.*": EarlierSetting,
    "tracker": TrackerSetting,
}
KEYS = {place: list(form.model_fields) for place, form in FORMS.items()}
KEYS[""].append("estimator")  # read before all others


def checked_sweep(content: object, source: str) -> Sweep:
    """Return the sweep of plain values, or raise an InvalidParameterError."""
    if (place := unusable_text(content)) is not None:
        raise InvalidParameterError(
            f"{source}: {place!r} holds a NUL byte or half of a character, which no "
            "script can be given: leave it out"
        )
    try:
        return Sweep.model_validate(content)
    except ValidationError as error:
        problems = problems_of(error, TAGGED, KEYS)
        raise InvalidParameterError(f"{source}: {problems}") from error


def _checked_fields(part: str) -> list[str]:
    try:
        fields = list(string.Formatter().parse(part))
    except ValueError as error:
        raise ValueError(
            f"the command has {part!r} ({error}): write {{{{ and }}}} for braces"
        ) from error
    for _, name, form, conversion in fields:
        if form or conversion:
            raise ValueError(
                f"the command has {part!r}: write {{{name}}} and nothing else in it"
            )
    return fields_of(part)
