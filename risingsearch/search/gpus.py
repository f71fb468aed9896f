"""GPUs of each worker, assigned by environment variables, and workers that have them.

No GPU is queried itself: the devices are those that this process may see.
"""

import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import takewhile
from multiprocessing import get_context
from typing import Literal, NamedTuple

from risingsearch.checks import checked_float, checked_int, shown
from risingsearch.errors import InvalidParameterError
from risingsearch.search.processes import SingleProcesses, end_with_parent

MASKS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
"""Variables that limit the devices visible to NVIDIA's and AMD's runtimes."""
LISTING = ("nvidia-smi", "-L")
LONGEST = 60.0  # seconds that it may take
MOST_WORKERS = 1000  # workers of one search on one machine
PARTITION = "MIG-"  # how the names of NVIDIA's partitions of a GPU begin
_GPU = re.compile(r"^GPU (\d+): .*\(UUID: (\S+)\)", re.MULTILINE)
_PARTITION = re.compile(rf"\s+MIG .*\(UUID: ({PARTITION}\S+)\)")
_DEVICE = re.compile(r"\d+|(GPU|MIG)-\S+", re.ASCII)
ROUNDING = 1e-9
_STARTING = threading.Lock()


class GpuPlacement(NamedTuple):
    """The variables of each worker, and the GPUs that it has, where it is given any."""

    variables: list[dict[str, str]]
    gpus: list[list[str]]


class Devices(NamedTuple):
    """GPUs that are visible to this process."""

    names: list[str]
    origin: str  # where the names come from, for messages
    masks: Sequence[str] = MASKS[:1]  # by which a process sees only some of them
    variables: Mapping[str, str] = {}  # without which the names mean others


def is_divisible(gpus: float) -> bool:
    """Return whether so many GPUs can be those of a worker: whole ones, or a share."""
    return gpus <= 1.0 or not gpus % 1.0


def placed(
    workers: int | Literal["auto"],
    gpus: float | None,
    environment: Sequence[Mapping[str, str]] = (),
    most_workers: int = MOST_WORKERS,
) -> GpuPlacement:
    """Return the variables and the GPUs of each worker, spread over all GPUs."""
    if gpus is None:
        assert workers != "auto"
        return GpuPlacement([dict(each) for each in environment or [{}] * workers], [])
    devices = visible_devices()
    names = devices.names
    whole = max(1, int(gpus))
    ends = range(whole, len(names) + 1, whole)
    groups = [names[end - whole : end] for end in ends]
    room = len(groups) * (int(1.0 / gpus + ROUNDING) if gpus < 1.0 else 1)
    n_workers = max(1, min(room, most_workers)) if workers == "auto" else workers
    if not names:
        raise InvalidParameterError(
            f"gpus is {gpus:g}, and no GPU is seen here ({devices.origin}): "
            "search without gpus, or where there are some"
        )
    if n_workers > room:
        raise InvalidParameterError(
            f"{n_workers} workers have no room where gpus is {gpus:g}: "
            f"{len(names)} can be seen here ({devices.origin}); lower gpus or the "
            "number of workers"
        )
    if whole > 1 and any(name.startswith(PARTITION) for name in names):
        raise InvalidParameterError(
            "a process uses one partition (MIG) of a GPU at most, and gpus is "
            f"{gpus:g}: lower it to 1"
        )
    assigned = [groups[worker % len(groups)] for worker in range(n_workers)]
    given = environment or [{}] * n_workers
    variables = [
        {**each, **devices.variables, **dict.fromkeys(devices.masks, ",".join(group))}
        for each, group in zip(given, assigned, strict=True)
    ]
    return GpuPlacement(variables, assigned)


def variables_of_workers(
    gpus: float,
    name: str,
    n_workers: int | None,
) -> list[dict[str, str]]:
    """Return the variables of each worker; None stands for as many as have room."""
    gpus = checked_float("gpus", gpus, 0.0, MOST_WORKERS, open_low=True)
    if not is_divisible(gpus):
        raise InvalidParameterError(
            "gpus must be a whole number, or less than 1 where workers share one; got "
            f"{gpus:g}"
        )
    if n_workers is None:
        return placed("auto", gpus).variables
    return placed(checked_int(name, n_workers, 1, MOST_WORKERS), gpus).variables


def gpus_text(gpus: Sequence[Sequence[str]]) -> str:
    """Return the GPUs of each worker as text."""
    each = (f"worker {k}: {' and '.join(names)}" for k, names in enumerate(gpus, 1))
    return ", ".join(each)


def visible_devices() -> Devices:
    """Return the devices that a variable names, or else that NVIDIA's driver lists."""
    masks = {mask: os.environ[mask] for mask in MASKS if mask in os.environ}
    if not masks:
        return _listed()
    settings = " and ".join(f"{mask}={value}" for mask, value in masks.items())
    if len(set(masks.values())) > 1:
        raise InvalidParameterError(
            f"{settings} name different GPUs: set one of them alone, or both alike"
        )
    names = (name.strip() for name in next(iter(masks.values())).split(","))
    return Devices(list(takewhile(_DEVICE.fullmatch, names)), settings, list(masks))


def _listed() -> Devices:
    """Return the devices that the driver lists, in its own order.

    They go by their numbers, which most programs expect, unless one is partitioned:
    then numbers do not name the partitions.
    """
    command = " ".join(LISTING)
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
        return Devices([], f"{MASKS[0]} is not set, and there is no {LISTING[0]}")
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stdout", None) or error)
        return Devices([], f"{command} fails: {shown(said.strip())}")
    gpus = _GPU.split(listed)[1:]  # number, name and lines of each
    numbers = gpus[::3]
    partitions = [_PARTITION.findall(lines) for lines in gpus[2::3]]
    if not any(partitions):
        order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        return Devices(numbers, command, variables=order)
    each = zip(gpus[1::3], partitions, strict=True)
    return Devices([name for gpu, parts in each for name in parts or [gpu]], command)


class GpuPool(SingleProcesses):
    """Worker processes with separate GPUs, or shares of one.

    Good for a search that trains several arms at once on the GPUs of a machine: it is
    an ``executor`` for ``RisingSearch`` and ``RisingSearchCV``. With less than a whole
    GPU each, workers are spread over all GPUs before they share them.

    A worker sees its GPUs alone, by ``CUDA_VISIBLE_DEVICES``. CUDA reads that variable
    once in every process, where it is first used, so a worker has it from its first
    instruction to its last; it is set in this process while the worker starts, and then
    restored. Workers share the visible devices: those that the variable
    names, or those that ``nvidia-smi -L`` lists. On AMD it is ``HIP_VISIBLE_DEVICES``.

    Parameters
    ----------
    gpus : float, default 1.0
        GPUs of each worker: a whole number, or the share of one. 0.5 are two workers on
        a GPU; nothing divides its memory between them. A budget in GPU-hours
        counts it too, not the ``gpus`` of the trainable.
    max_workers : int, optional
        How many workers there are, from 1 to 1000; by default as many as have room.

    Raises
    ------
    InvalidParameterError
        If no GPU is seen here, or there are fewer than the workers need.

    Notes
    -----
    Workers are started at once, by ``spawn``, since CUDA does not survive a fork: the
    trainable is defined in a module, and a script that makes a pool does so below
    ``if __name__ == "__main__":``. One that dies is replaced.

    Examples
    --------
    >>> import os
    >>> os.environ["CUDA_VISIBLE_DEVICES"] = "2,3"  # as a cluster sets it
    >>> with GpuPool(gpus=0.5, max_workers=1) as pool:
    ...     pool.submit(os.getenv, "CUDA_VISIBLE_DEVICES").result()
    '2'
    >>> os.environ.pop("CUDA_VISIBLE_DEVICES")
    '2,3'
    """

    def __init__(self, gpus: float = 1.0, max_workers: int | None = None) -> None:
        super().__init__(variables_of_workers(gpus, "max_workers", max_workers))
        self.gpus = gpus
        self.start()

    def _started(self, slot: int) -> ProcessPoolExecutor:
        """Return a pool of one process, which is started with the slot's variables."""
        worker = ProcessPoolExecutor(
            1,
            mp_context=get_context("spawn"),
            initializer=end_with_parent,
            initargs=(os.getpid(),),
        )
        with _STARTING, _set(self._slots.variables[slot]):
            self._first[slot] = worker.submit(int)  # with which the process is started
        return worker


@contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process, and leave them as they were before."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
