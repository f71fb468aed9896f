"""Train one slice of one arm on the node of a Slurm job, given the slice's folder."""

import json
import math
import signal
import sys
import tempfile
import time
from pathlib import Path

import psutil

from risingsearch.errors import RisingSearchError, RunDirError, ScriptError, SetupError
from risingsearch.json_values import Json
from risingsearch.scripts.slurm.slices import SliceOutcome, SlurmSlice, SubmittedSlice
from risingsearch.scripts.trainable import CommandTrainable, ScriptRun
from risingsearch.storage.files import read_digested


def main(folder: Path) -> None:
    """Train a slice, and leave its outcome."""
    submitted = SubmittedSlice(folder)
    # The script is ended, and no outcome is left.
    signal.signal(signal.SIGTERM, lambda *_: _end(submitted))
    if not submitted.is_open:
        print("the search does not wait for this slice any more")
        return
    if submitted.has_trained:
        print("this slice is trained: a job that was started again has nothing to do")
        return
    submitted.note()
    outcome = outcome_of(*submitted.spec)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # trained epochs are kept first
    submitted.note(outcome=outcome._asdict())


def outcome_of(facts: Json, part: SlurmSlice) -> SliceOutcome:
    """Train a slice and return its outcome."""
    began = psutil.Process().create_time()
    try:
        with tempfile.TemporaryDirectory(prefix="risingsearch-") as markers:
            trainable = trainable_of(facts, part.slot, Path(markers))
            trainable.arms[part.seed] = part.arm
            run = ScriptRun(
                part.arm,
                part.params,
                part.seed,
                part.epoch,
            )
            before = _since(began)
            attempt = trainable.attempt(run, part.begin, part.to_epoch)
    except Exception as error:
        is_ours = isinstance(error, RisingSearchError)
        kind: type[RisingSearchError] = SetupError if is_ours else ScriptError
        if isinstance(error, RunDirError | ScriptError):
            kind = type(error)
        text = str(error) if is_ours else f"{type(error).__name__}: {error}"
        return SliceOutcome(
            _since(began),
            [],
            error=kind.__name__,
            message=text,
            n_reported=getattr(error, "n_reported", None),
        )
    startup = None if math.isnan(attempt.startup) else before + attempt.startup
    results = attempt.results
    work = attempt.work.name
    return SliceOutcome(
        _since(began),
        results,
        work,
        startup=startup,
    )


def trainable_of(
    facts: Json,
    slot: int,
    markers: Path,
) -> CommandTrainable:
    """Return a trainable that trains here as it would beside the search."""
    options = dict(facts)
    command = options.pop("command")
    folder = Path(options.pop("folder"))
    variables = {}
    private = options.pop("environment")
    if private is not None:  # the file with the values, which are secret
        try:
            variables = json.loads(read_digested(Path(private)))["environment"][slot]
        except (OSError, ValueError) as error:
            msg = f"{private}, with the variables of jobs, cannot be read ({error})"
            raise SetupError(msg) from error
    return CommandTrainable(
        command,
        folder,
        slots=[variables],
        markers=markers,
        **options,
    )


def _since(began: float) -> float:
    return max(0.0, time.time() - began)


def _end(submitted: SubmittedSlice) -> None:
    submitted.note(signalled_to_end=True)
    sys.exit("the job was told to end")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
