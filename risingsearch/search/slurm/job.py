"""Train one slice of one arm on the node of a Slurm job, given the slice's folder."""

import os
import pickle
import signal
import sys
import time
from pathlib import Path

from risingsearch.errors import needed
from risingsearch.json_values import Json
from risingsearch.search.slurm.slices import Slice
from risingsearch.search.training import Outcome, run_task
from risingsearch.storage.files import read_digested

with needed("psutil", "slurm"):
    import psutil


def main(folder: Path) -> None:
    """Train a slice, and leave its outcome."""
    submitted = Slice(folder)
    # Scripts are ended, and no outcome is left.
    signal.signal(signal.SIGTERM, lambda *_: _end(submitted))
    if not submitted.is_open:
        print("the search does not wait for this slice any more")
        return
    if submitted.trained:
        print("this slice is trained: a job that was started again has nothing to do")
        return
    submitted.note()
    end, left = trained(submitted)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # trained epochs are kept first
    submitted.note_end(end, left)


def trained(submitted: Slice) -> tuple[Outcome | Exception, Json | None]:
    """Train a slice; return its outcome or error, and the files of a script, if any."""
    try:
        parcel = submitted.parcel
        os.environ.update(parcel.variables)
        trainable = pickle.loads(read_digested(parcel.trainable))
        before = _seconds()
        outcome = run_task(trainable, parcel.task)
    except Exception as error:
        return error, None
    startup = before + (outcome.startup or 0.0)
    outcome = outcome._replace(elapsed=_seconds(), startup=startup)  # of the allocation
    return outcome, getattr(trainable, "left", None)


def _seconds() -> float:
    """Return how long this job has run."""
    began: float = psutil.Process().create_time()
    return max(0.0, time.time() - began)


def _end(submitted: Slice) -> None:
    submitted.note(signalled_to_end=True)
    sys.exit("the job was told to end")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
