"""A search on a Slurm cluster, in a folder, which a test starts."""

import os
import sys
import time
from pathlib import Path

from distributed import Client

from risingsearch import RisingSearch
from risingsearch.integrations.dask import slurm

BUDGET = 24
FREE = 6  # epochs before all others wait for the file "go"
N_JOBS = 3  # one more than there are slots


class Patient:
    """Rises to ``top``, notes its epochs, and waits for leave after some of them."""

    def __init__(self, folder):
        self.folder = folder

    def start(self, params, seed):
        return {"epochs": 0, **params}

    def train(self, state):
        notes = self.folder / "notes.txt"
        while (
            notes.exists()
            and len(notes.read_text().splitlines()) >= FREE
            and not (self.folder / "go").exists()
        ):
            time.sleep(0.1)
        state["epochs"] += 1
        with open(notes, "a") as file:
            file.write(f"{state['arm']} {state['epochs']}\n")
        return state["top"] * (1 - 0.5 ** state["epochs"])


def main(folder):
    from dask_jobqueue import SLURMCluster  # which takes Ctrl-C from who collects this

    cluster = SLURMCluster(
        cores=1,
        processes=1,
        memory="400MB",
        log_directory=str(folder / "logs"),
        local_directory=str(folder / "local"),
        job_script_prologue=[f"export PYTHONPATH={os.environ['PYTHONPATH']}"],
        scheduler_options={"dashboard_address": ":0", "host": "127.0.0.1"},
    )
    with cluster, Client(cluster) as client:
        slurm.LOOK_EVERY = "1s"
        slurm.keep_jobs(cluster, N_JOBS)
        RisingSearch(
            Patient(folder),
            [{"arm": arm, "top": 0.5 + arm / 40} for arm in range(8)],
            budget=BUDGET,
            max_epochs=8,
            seed=0,
            executor=client,
            run_dir=folder / "run",
        ).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
