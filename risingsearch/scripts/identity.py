"""Which keys of a sweep are fixed for its run, and which may change."""
# The search's definition is compared with the journal's. How and where scripts run may
# change; `resume` finds the last in a file, which is private to its user: the values of
# `environment` may be secrets. The journal, which people pass on, holds their names.

import json
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from risingsearch.errors import RunDirError
from risingsearch.identity.comparison import first_difference
from risingsearch.json_values import Json
from risingsearch.scripts.sweep import Sweep, checked_sweep
from risingsearch.storage.files import make_folder, read_digested, write_digested
from risingsearch.storage.run_directory import damage_as_error, saved_header

FILE = "sweep.json"
MAY_CHANGE = {  # keys of a sweep that do not define the search; neither does the folder
    "command",
    "workers",
    "gpus",
    "launcher",
    "max_alive",
    "timeout",
    "epoch_timeout",
    "patience",
    "target_score",
    "environment",
    "tracker",
    "checkpoints",
}
GPUS = "gpus"  # in that file: which each worker has had last, where they are given any
ONLY_AT_FIRST = {"prior"}  # keys that are read when a run begins, and then kept in it
OF_THE_SCORE = {"metric", "report_file"}
"""Keys that say where scores are found: until one has been, they may be wrong."""
DEFINING = set(Sweep.model_fields) - MAY_CHANGE - ONLY_AT_FIRST - OF_THE_SCORE
ENVIRONMENT = "environment"

Identity = Mapping[str, Any]
"""A sweep, the names of its environment, and where its scripts run."""


def described(sweep: Sweep, cwd: Path) -> Json:
    """Return the sweep and its folder as JSON values without secrets."""
    settings = sweep.model_dump(
        mode="json", exclude_defaults=True, exclude={"environment", *ONLY_AT_FIRST}
    )
    names = [sorted(variables) for variables in sweep.environment]
    recorded = {ENVIRONMENT: names} if names else {}
    return {"sweep": settings, "cwd": str(cwd), **recorded}


def begun_with(run_dir: Path) -> Identity:
    """Return the sweep that a run was begun with."""
    header = saved_header(run_dir)
    with damage_as_error(run_dir):
        identity: Identity = dict(header["settings"].get("fingerprint") or {})
    if not {"sweep", "cwd"} <= identity.keys():
        raise RunDirError(
            f"{run_dir} is not the run of a sweep: to continue it, run the Python "
            "program that began it again"
        )
    return identity


def save(run_dir: Path, sweep: Sweep, cwd: Path, gpus: list[list[str]]) -> None:
    """Write the sweep of this ``run`` with its environment, and each worker's GPUs."""
    kept = described(sweep, cwd)
    if sweep.environment:
        kept[ENVIRONMENT] = sweep.environment
    if gpus:
        kept[GPUS] = gpus
    path = run_dir / FILE
    try:
        make_folder(run_dir)
        write_digested(path, json.dumps(kept).encode())
    except OSError as error:
        raise RunDirError(
            f"{path} cannot be written ({error.strerror}): make room or change the "
            "permissions, and run the sweep again"
        ) from error


def last(run_dir: Path) -> Identity:
    """Return the sweep of the last ``run``, its ``environment`` with the values."""
    begun_with(run_dir)  # it is the run of a sweep
    path = run_dir / FILE
    try:
        saved: Identity = json.loads(read_digested(path))
    except (OSError, ValueError) as error:
        raise RunDirError(
            f"{path}, its last sweep, cannot be read ({error}): continue with "
            f"risingsearch run SWEEP.yaml --run-dir {run_dir}, which writes it anew"
        ) from error
    return saved


def check_same(sweep: Sweep, begun: Identity, run_dir: Path, keys: set[str]) -> None:
    """Raise a RunDirError where these keys define another search than was begun."""
    was = checked_sweep(begun["sweep"], str(run_dir))
    differs = first_difference(
        was.model_dump(mode="json", include=keys),
        sweep.model_dump(mode="json", include=keys),
    )
    if differs is None:
        return
    name, before, now, also = differs
    advice = "put it back to continue, or begin another search with --run-dir"
    if name.startswith("budget"):
        advice = (
            f"put it back, and add to it with risingsearch resume {run_dir} --budget +N"
        )
    msg = f"{name} is {now} in the sweep, and {run_dir} was begun with {before}"
    raise RunDirError(f"{msg}: {advice}{also}")


def warn_of_changes(run_dir: Path, before: Identity, sweep: Sweep, cwd: Path) -> None:
    """Warn of changes since the last ``run``."""
    command = before["sweep"]["command"]
    folder = before["cwd"]
    names = described(sweep, cwd).get(ENVIRONMENT, [])
    environment = before.get(ENVIRONMENT, [])
    changes = {
        f"the command {sweep.command}, before {command}": command != sweep.command,
        f"its scripts in {cwd}, before in {folder}": Path(folder).absolute()
        != cwd.absolute(),
        "other values of environment than before": environment
        not in (names, sweep.environment),
    }
    for change, is_new in changes.items():
        if is_new:
            msg = f"{run_dir} continues with {change}"
            warnings.warn(msg, RuntimeWarning, stacklevel=4)


def last_identity(run_dir: Path) -> Identity:
    """Return the sweep of the last ``run``, or of the first if that is lost."""
    begun = begun_with(run_dir)
    with suppress(RunDirError):
        return last(run_dir)
    return begun
