"""Program of a Slurm job: trains one slice of one arm on the node of the job.

``python -m risingsearch.scripts.slurm.job FOLDER NUMBER`` with the folder of the batch
and the number of the slice, which is that of the element in an array of jobs.
"""

from __future__ import annotations

import math
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from risingsearch.errors import RisingSearchError, ScriptError, SetupError
from risingsearch.scripts import private_files
from risingsearch.scripts.slurm.batches import (
    SliceOutcome,
    SlurmSlice,
    SubmittedSlice,
    read_batch,
)
from risingsearch.scripts.trainable import CommandTrainable, ScriptRun

NUMBER = "SLURM_ARRAY_TASK_ID"


def main(folder: Path, number: int) -> None:
    """Train a slice, and leave its outcome."""
    submitted = SubmittedSlice(folder, number)
    # The script is ended, and no outcome is left.
    signal.signal(signal.SIGTERM, lambda *_: _end(submitted))
    if not submitted.is_open:
        print("the search does not wait for this slice any more")
        return
    if submitted.has_trained:
        print("this slice is trained: a job that was started again has nothing to do")
        return
    submitted.note_begin()
    facts, slices = read_batch(folder)
    outcome = outcome_of(facts, slices[number])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # trained epochs are kept first
    submitted.leave(outcome)


def outcome_of(facts: dict[str, Any], part: SlurmSlice) -> SliceOutcome:
    """Train a slice and return its outcome."""
    began = psutil.Process().create_time()
    try:
        with tempfile.TemporaryDirectory(prefix="risingsearch-") as markers:
            trainable = trainable_of(facts, part.slot, Path(markers))
            trainable.arms[part.seed] = part.arm
            run = ScriptRun(part.arm, part.params, part.seed, part.epoch)
            before = _since(began)
            attempt = trainable.attempt(run, part.begin, part.to_epoch)
    except ScriptError as error:
        return _failed(began, ScriptError, str(error))
    except RisingSearchError as error:
        return _failed(began, SetupError, str(error))
    except Exception as error:
        return _failed(began, ScriptError, f"{type(error).__name__}: {error}")
    startup = None if math.isnan(attempt.startup) else before + attempt.startup
    results, work = attempt.results, attempt.work.name
    return SliceOutcome(_since(began), results, work, startup=startup)


def trainable_of(facts: dict[str, Any], slot: int, markers: Path) -> CommandTrainable:
    """Return a trainable that trains here as it would beside the search."""
    metric = facts["metric"]
    variables = {}
    if facts["environment"] is not None:  # the file with the values, which are secret
        saved = private_files.load(Path(facts["environment"]), "the variables of jobs")
        variables = saved["environment"][slot]
    return CommandTrainable(
        facts["command"],
        Path(facts["arms"]),
        metric=re.compile(metric["regex"]) if isinstance(metric, dict) else metric,
        report_file=facts["report_file"],
        slots=[variables],
        timeout=facts["timeout"],
        cwd=Path(facts["cwd"]),
        cost=facts["cost"],
        markers=markers,
    )


def _failed(began: float, kind: type[Exception], message: str) -> SliceOutcome:
    return SliceOutcome(_since(began), [], error=kind.__name__, message=message)


def _since(began: float) -> float:
    return max(0.0, time.time() - began)


def _end(submitted: SubmittedSlice) -> None:
    submitted.note_told()
    sys.exit("the job was told to end")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2] if sys.argv[2:] else os.environ[NUMBER]))
