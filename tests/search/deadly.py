"""A configuration that kills the process in which it trains."""

import os
import signal
from pathlib import Path

CANDIDATES = [{"arm": arm, "top": 0.2 + arm / 10} for arm in range(6)]
INNOCENT, GUILTY = 2, 3


class Deadly:
    """Notes each epoch in a file; an arm kills its process in its second epoch.

    With ``together`` the innocent arm is in training then, in another worker.
    """

    def __init__(self, folder, *, together=False):
        self.folder = Path(folder)
        self.meeting = self.folder / "meeting"
        if together:
            os.mkfifo(self.meeting)

    def start(self, params, seed):
        return {"epochs": 0, **params}

    def train(self, state):
        arm, epoch = state["arm"], state["epochs"] + 1
        with (self.folder / "trained").open("a") as file:
            file.write(f"{arm} {epoch}\n")
        if (arm, epoch) == (GUILTY, 2):
            if self.meeting.exists():
                self.meeting.open().read(1)
                self.meeting.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        if (arm, epoch) == (INNOCENT, 2) and self.meeting.exists():
            self.meeting.write_text("I train")
            signal.pause()
        state["epochs"] = epoch
        return state["top"] * (1 - 1 / (1 + epoch))


def trained(folder):
    """Return (arm, epoch) of all that has trained, in this order."""
    lines = Path(folder, "trained").read_text().splitlines()
    return [tuple(map(int, line.split())) for line in lines]
