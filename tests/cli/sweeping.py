"""A sweep over a script in bash, and what tests of such sweeps share."""

import json
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from risingsearch.cli.main import main

BASH = """#!/usr/bin/env bash
# The state is a number in a file; every epoch brings it closer to the top.
set -eu
state="$RISINGSEARCH_CHECKPOINT_DIR/state"
if [[ -e $state ]]; then read -r epoch < "$state"; else epoch=0; fi
for ((i = 0; i < RISINGSEARCH_EPOCHS; i++)); do
    epoch=$((epoch + 1))
    echo "$epoch" > "$state"
    echo "arm $1 at epoch $epoch"
    echo "{\\"epoch\\": $epoch, \\"score\\": $((1000 * $1 * epoch / (epoch + 2)))}"
done
"""
PROGRAM = "import sys; from risingsearch.cli.main import main; sys.exit(main())"
BASH_SWEEP = """
epochs_per_job: 4
command: [bash, train.sh, "{top}"]
parameters:
  top: {type: int, low: 1, high: 50}
budget: 24
max_epochs: 8
deterministic: true
seed: 0
"""
BY_EPOCH = BASH_SWEEP.replace("epochs_per_job: 4", "epochs_per_job: 1")


def told(capsys):
    return json.loads(capsys.readouterr().out)


def json_of(capsys, *arguments):
    """Return what a command that succeeds prints with ``--json``."""
    assert main([*arguments, "--json"]) == 0
    return told(capsys)


def exported(run_dir, capsys):
    """Return all epochs but their seconds."""
    capsys.readouterr()
    assert main(["export", str(run_dir), "--format", "json"]) == 0
    return [row | {"seconds": None} for row in told(capsys)]


@contextmanager
def started(*arguments):
    """Yield a process that is killed at the latest when its test has failed."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def wait_for(process, run_dir, n_events):
    journal = Path(run_dir, "journal.jsonl")
    ended = False
    while not journal.exists() or len(journal.read_text().splitlines()) <= n_events:
        assert not ended, process.stderr.read()
        ended = process.poll() is not None
        time.sleep(0.01)


def still_alive():
    found = []
    for pid in map(int, Path("pids").read_text().split()):
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
    return found
