"""Which GPUs each worker gets, told to what runs there by variables.

Nothing is asked of a GPU itself: the devices are those that this process may see.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

from risingsearch.checks import checked_float, checked_int, shown
from risingsearch.errors import InvalidParameterError

MASKS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
"""Variables by which NVIDIA's and AMD's runtimes are told what they may see."""
LISTING = ("nvidia-smi", "-L")
LONGEST = 60.0  # seconds that it may take
MOST_WORKERS = 1000
"""Workers of one search on one machine."""
PARTITION = "MIG-"
"""How the names of NVIDIA's partitions of a GPU begin."""
_GPU = re.compile(r"GPU (\d+): .*\(UUID: (\S+)\)")
_PARTITION = re.compile(rf"\s+MIG .*\(UUID: ({PARTITION}\S+)\)")
_DEVICE = re.compile(r"\d+|(GPU|MIG)-\S+", re.ASCII)
ROUNDING = 1e-9


class Placement(NamedTuple):
    """The variables of each worker, and the GPUs that it has, where it is given any."""

    variables: list[dict[str, str]]
    gpus: list[list[str]]


class Devices(NamedTuple):
    """What this process may see."""

    names: list[str]
    masks: Sequence[str]  # by which a process sees only some of them
    origin: str  # in words
    variables: Mapping[str, str]  # without which the names mean others


def is_divisible(gpus: float) -> bool:
    """Return whether so many GPUs can be those of a worker: whole ones, or a share."""
    return gpus <= 1.0 or not gpus % 1.0


def placed(
    workers: int | Literal["auto"],
    gpus: float | None,
    environment: Sequence[Mapping[str, str]] = (),
    most_workers: int = MOST_WORKERS,
) -> Placement:
    """Return what each worker gets.

    With less than a whole GPU each, workers are spread over all GPUs before they share
    them; with "auto" there are as many as have room.

    Raises
    ------
    InvalidParameterError
        If there are more workers than the GPUs have room for.
    """
    if gpus is None:
        assert workers != "auto"
        return Placement([dict(each) for each in environment or [{}] * workers], [])
    devices = visible_devices()
    whole = max(1, int(gpus))
    n_groups = len(devices.names) // whole
    room = n_groups * (int(1.0 / gpus + ROUNDING) if gpus < 1.0 else 1)
    n_workers = max(1, min(room, most_workers)) if workers == "auto" else workers
    if n_workers > room:
        raise _too_many(n_workers, gpus, devices)
    if whole > 1 and any(name.startswith(PARTITION) for name in devices.names):
        msg = (
            "a process uses one partition (MIG) of a GPU at most, and gpus is "
            f"{gpus:g}: lower it to 1"
        )
        raise InvalidParameterError(msg)
    groups = [devices.names[k * whole : (k + 1) * whole] for k in range(n_groups)]
    given = [groups[worker % n_groups] for worker in range(n_workers)]
    own = environment or [{}] * n_workers
    variables = [
        {**each, **devices.variables, **dict.fromkeys(devices.masks, ",".join(names))}
        for each, names in zip(own, given, strict=True)
    ]
    return Placement(variables, given)


def variables_of_workers(
    gpus: float, name: str, n_workers: int | None
) -> list[dict[str, str]]:
    """Return the variables of each worker, where Python code asks for them.

    ``name`` is what the code calls their number; None stands for as many as have room.
    """
    gpus = checked_float("gpus", gpus, 0.0, MOST_WORKERS, open_low=True)
    if not is_divisible(gpus):
        msg = (
            "gpus must be a whole number, or less than 1 where workers share one; got "
            f"{gpus:g}"
        )
        raise InvalidParameterError(msg)
    if n_workers is None:
        return placed("auto", gpus).variables
    return placed(checked_int(name, n_workers, 1, MOST_WORKERS), gpus).variables


def in_words(gpus: Sequence[Sequence[str]]) -> str:
    """Return which worker has which GPUs.

    >>> in_words([["0"], ["1"]])
    'worker 1: 0, worker 2: 1'
    """
    each = (f"worker {k}: {' and '.join(names)}" for k, names in enumerate(gpus, 1))
    return ", ".join(each)


def visible_devices() -> Devices:
    """Return the devices that this process may see.

    Those that a variable names, if there is one, else those that NVIDIA's driver lists.

    Raises
    ------
    InvalidParameterError
        If variables contradict each other, or one names a device twice.
    """
    masks = {mask: os.environ[mask] for mask in MASKS if mask in os.environ}
    given = " and ".join(f"{mask}={value}" for mask, value in masks.items())
    if len(set(masks.values())) > 1:
        msg = f"{given} name different GPUs: set one of them alone, or both alike"
        raise InvalidParameterError(msg)
    if not masks:
        return _listed()
    names = _named(next(iter(masks.values())))
    if len(set(names)) < len(names):
        msg = (
            f"{given} names a GPU twice: name each once; where gpus is 0.5, two "
            "workers share one"
        )
        raise InvalidParameterError(msg)
    return Devices(names, list(masks), given, {})


def _named(mask: str) -> list[str]:
    """Return the devices up to the first that is none, as the runtimes read it.

    >>> _named("2, GPU-8f3c"), _named("0,-1,1"), _named("none")
    (['2', 'GPU-8f3c'], ['0'], [])
    """
    names = (name.strip() for name in mask.split(","))
    return list(takewhile(_DEVICE.fullmatch, names))


def _listed() -> Devices:
    """Return the devices that the driver lists, in its own order.

    They go by their numbers, which most programs expect, unless one is partitioned:
    then numbers do not name the partitions.
    """
    masks, listing = MASKS[:1], " ".join(LISTING)
    try:
        listed = subprocess.run(
            LISTING,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LONGEST,
            check=True,
        ).stdout
    except FileNotFoundError:
        missing = f"{masks[0]} is not set, and there is no nvidia-smi"
        return Devices([], masks, missing, {})
    except (OSError, subprocess.SubprocessError) as error:
        output = getattr(error, "stdout", None) or error
        return Devices([], masks, f"{listing} fails: {shown(str(output).strip())}", {})
    numbers, names, is_partitioned = [], [], False
    for line in listed.splitlines():
        if gpu := _GPU.match(line):
            numbers.append(gpu[1])
            names.append([gpu[2]])
            whole = True
        elif (part := _PARTITION.match(line)) and names:
            names[-1] = [part[1]] if whole else [*names[-1], part[1]]
            whole, is_partitioned = False, True
    if is_partitioned:
        return Devices([name for each in names for name in each], masks, listing, {})
    return Devices(numbers, masks, listing, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})


def _too_many(workers: int, gpus: float, devices: Devices) -> InvalidParameterError:
    if not devices.names:
        return InvalidParameterError(
            f"gpus is {gpus:g}, and no GPU is seen here ({devices.origin}): search "
            "without gpus, or where there are some"
        )
    seen = f"{len(devices.names)} can be seen here ({devices.origin})"
    if workers == 1:
        msg = f"1 worker has no room where gpus is {gpus:g}: {seen}; lower gpus"
    else:
        msg = (
            f"{workers} workers have no room where gpus is {gpus:g}: {seen}; lower "
            "gpus, or have as many workers as there is room for"
        )
    return InvalidParameterError(msg)
