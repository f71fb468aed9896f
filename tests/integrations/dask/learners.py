"""What the tests train in worker processes, which import this by name."""

import os
import pickle
import signal
import time
from pathlib import Path

from risingsearch.errors import SetupError


class Learner:
    """Rises to ``top``, and notes in a folder what was trained, and in which process.

    Parameters
    ----------
    folder : path
        Where the notes are.
    data : object, optional
        Travels along.
    """

    def __init__(self, folder, data=None):
        self.folder = Path(folder)
        self.data = data

    def start(self, params, seed):
        return {"epochs": 0, "seed": seed, **params}

    def train(self, state):
        epoch = state["epochs"] + 1
        arm = state["arm"]
        self.note(f"begun {arm} {epoch}")
        if epoch == state.get("dies_at") and not self.was_noted(f"died {arm}"):
            if not state.get("always"):
                self.note(f"died {arm}")
            os.kill(os.getpid(), signal.SIGKILL)
        if epoch == state.get("cancelled_at") and not self.was_noted(f"died {arm}"):
            self.note(f"died {arm}")
            os.killpg(0, signal.SIGTERM)
            time.sleep(3600)
        if epoch == state.get("fails_at"):
            raise ValueError(f"arm {arm} diverged")
        if epoch == state.get("lacks_at"):
            raise SetupError("the data set has moved")
        if "meets" in state:
            self.wait_for_processes(state["meets"])
        time.sleep(state.get("seconds", 0.0))
        state["epochs"] = epoch
        self.note(f"ended {arm} {epoch}")
        return {"score": state["top"] * (1 - 0.5**epoch), "own_epoch": epoch}

    def note(self, what):
        with open(self.folder / f"{os.getpid()}.txt", "a") as file:
            file.write(f"{what}\n")

    def notes(self):
        files = self.folder.glob("*.txt")
        return [line for file in files for line in file.read_text().splitlines()]

    def was_noted(self, what):
        return what in self.notes()

    def wait_for_processes(self, n):
        """Wait until so many processes have trained."""
        while len(list(self.folder.glob("*.txt"))) < n:
            time.sleep(0.1)


class Travelling(Learner):
    """Notes where it arrives too, and where a checkpoint of it is loaded."""

    def __setstate__(self, state):
        vars(self).update(state)
        self.note("arrived")

    def save(self, state, path):
        Path(path).write_bytes(pickle.dumps(state))

    def load(self, path):
        self.note("loaded")
        return pickle.loads(Path(path).read_bytes())


def arms(n, **more):
    return [{"arm": i, "top": 0.5 + i / (2 * n), **more} for i in range(n)]
