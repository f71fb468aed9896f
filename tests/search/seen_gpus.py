"""Training functions that say which GPUs they see, for workers to import."""

import os
import time
from pathlib import Path

MASK = "CUDA_VISIBLE_DEVICES"
AT_IMPORT = os.environ.get(MASK)
"""What a module finds that asks for its device where it is imported."""


def together(folder, number, n_jobs):
    """Return process and GPUs of a job, once so many run at the same time."""
    Path(folder, str(number)).touch()
    while len(list(Path(folder).iterdir())) < n_jobs:
        time.sleep(0.01)
    return os.getpid(), os.environ[MASK]


def seen():
    return os.getpid(), os.environ[MASK], AT_IMPORT


def start(params, seed):
    return {"epochs": 0, **params}


def train(state):
    if state["top"] == 0.0:
        msg = "out of memory"
        raise RuntimeError(msg)
    state["epochs"] += 1
    score = state["top"] * (1 - 0.5 ** state["epochs"])
    return {"score": score, "process": os.getpid(), "gpu": int(os.environ[MASK])}
