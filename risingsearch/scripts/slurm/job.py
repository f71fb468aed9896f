"""What a job of Slurm runs: one slice of one arm, on the node where it was placed.

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
from risingsearch.scripts.slurm.batches import Batch, Outcome, Slice
from risingsearch.scripts.trainable import CommandTrainable, ScriptRun

NUMBER = "SLURM_ARRAY_TASK_ID"


def main(folder: Path, number: int) -> None:
    """Train a slice, and leave what has come of it."""
    batch = Batch(folder)
    # What runs is ended, and nothing is left.
    signal.signal(signal.SIGTERM, lambda *_: _end(batch, number))
    if not batch.is_open(number):
        print("nobody waits for this slice any more")
        return
    before = batch.outcome(number)
    if before is not None and before.error is None:
        print("this slice is through: a job that was started again has nothing to do")
        return
    batch.note_begin(number)
    facts, slices = batch.read()
    outcome = outcome_of(facts, slices[number])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what is paid for is kept first
    batch.leave(number, outcome)


def outcome_of(facts: dict[str, Any], part: Slice) -> Outcome:
    """Return what comes of a slice."""
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
    return Outcome(_since(began), results, work, startup=startup)


def trainable_of(facts: dict[str, Any], slot: int, markers: Path) -> CommandTrainable:
    """Return what trains here as it would beside the search."""
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


def _failed(began: float, kind: type[Exception], message: str) -> Outcome:
    return Outcome(_since(began), [], error=kind.__name__, message=message)


def _since(began: float) -> float:
    return max(0.0, time.time() - began)


def _end(batch: Batch, number: int) -> None:
    batch.note_told(number)
    sys.exit("the job was told to end")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2] if sys.argv[2:] else os.environ[NUMBER]))
