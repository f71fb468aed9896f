"""Kill a sweep at random moments of its work, resume it, and print what came of it.

``python -m tests.scripts.killing FOLDER SEED...`` forks: nothing is imported twice.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path

import psutil

from risingsearch.scripts.run import resume_sweep, run_sweep
from risingsearch.scripts.sweep import checked_sweep
from risingsearch.scripts.trainable import CommandTrainable
from risingsearch.storage.journal import read
from tests.search.killing import forked

SCRIPT = """
echo $$ >> pids
setsid sleep 600 > /dev/null 2>&1 &
echo $! >> pids
state="$RISINGSEARCH_CHECKPOINT_DIR/state"
if [ -e "$state" ]; then read -r epoch < "$state"; else epoch=0; fi
for i in $(seq $RISINGSEARCH_EPOCHS); do
    epoch=$((epoch + 1))
    echo "$RISINGSEARCH_ARM $epoch" >> trained
    echo $epoch > "$state"
    echo "{\\"epoch\\": $epoch, \\"score\\": $epoch}"
done
"""
SWEEP = {
    "command": ["sh", "train.sh"],
    "parameters": {"a": {"type": "int", "low": 1, "high": 99}},
    "budget": 8,
    "candidates": 4,
    "max_epochs": 4,
    "seed": 0,
    "deterministic": True,
    "workers": 2,
    "environment": [{"GPU": "0"}, {"GPU": "1"}],
}
POINTS = [
    (subprocess.Popen, "__init__"),
    (os, "open"),
    (os, "write"),
    (os, "fsync"),
    (os, "replace"),
    (os, "unlink"),
    (os, "killpg"),
]


def kill_at(number: int) -> list[int]:
    """Kill this process before or after the call of that number; return the counter."""
    numbers, lock = count(), threading.Lock()
    last = [0]

    def step():
        with lock:
            last[0] = next(numbers)
            if last[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)

    def killing(call):
        def wrapped(*args, **kwargs):
            step()
            result = call(*args, **kwargs)
            step()
            return result

        return wrapped

    for owner, name in POINTS:
        setattr(owner, name, killing(getattr(owner, name)))
    return last


def numbers_in(name: str) -> list[list[int]]:
    """Return the numbers in each whole line of a file."""
    text = Path(name).read_text() if Path(name).exists() else ""
    return [[int(word) for word in line.split()] for line in text.split("\n")[:-1]]


def alive() -> list[int]:
    """Return which of all processes of scripts still run."""
    found = []
    for [pid] in numbers_in("pids"):
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except psutil.NoSuchProcess:
            pass
    return found


def told() -> list[list[int]]:
    """Return (arm, epoch, score) of every epoch in the journal."""
    journal = Path("run", "journal.jsonl")
    return [
        [event["job"][0], event["job"][1] + i + 1, score]
        for event in (read(journal).events if journal.exists() else [])
        if event["event"] in ("result", "failed")
        for i, score in enumerate(event["scores"])
    ]


def resume() -> None:
    """Go on; before the first script starts, nothing of before may run."""
    train = CommandTrainable.train_epochs
    lock = threading.Lock()

    def checked(self, run, n_epochs):
        with lock:
            if not Path("survivors").exists():
                Path("survivors").write_text(json.dumps(alive()))
        return train(self, run, n_epochs)

    CommandTrainable.train_epochs = checked
    go_on()


def go_on() -> None:
    if Path("run", "journal.jsonl").exists():
        resume_sweep(Path("run"))
    else:
        run_sweep(checked_sweep(SWEEP, ""), Path("run"))


def whole() -> None:
    last = kill_at(-1)
    go_on()
    Path("calls").write_text(str(last[0]))


def case(number: int) -> dict:
    """Return what comes of a sweep that is killed at a call, and then resumed."""

    def killed():
        kill_at(number)
        go_on()

    ended = forked(killed)
    before, n_before = told(), len(numbers_in("trained"))
    if not ended:
        forked(resume)
    survivors = Path("survivors")
    return {
        "killed": not ended,
        "told": before,
        "trained_again": numbers_in("trained")[n_before:],
        "survivors": json.loads(survivors.read_text()) if survivors.exists() else [],
        "left": alive(),
        "markers": [str(path) for path in Path("run").rglob("running.json")],
        "history": sorted(told()),
    }


def fresh(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.chdir(folder)
    Path("train.sh").write_text(SCRIPT)


def main() -> None:
    """Print one line of JSON per seed."""
    folder = Path(sys.argv[1])
    fresh(folder / "whole")
    forked(whole)
    n_calls = int(Path("calls").read_text())
    for seed in map(int, sys.argv[2:]):
        fresh(folder / str(seed))
        found = case(random.Random(seed).randrange(n_calls))
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
