"""The search behind ``example_run``: it writes every kind of event once, at least.

``python example_search.py`` records it again, once a format was changed on purpose.
"""

import shutil
from pathlib import Path

from risingsearch import Budget, Functions, RisingSearch
from risingsearch.scheduling.events import Ended, Repeated

RUN = Path(__file__).with_name("example_run")
CANDIDATES = [{"top": 0.5}, {"top": -1.0}, {"top": 0.9, "size": (2, 3)}, {"top": 0.1}]


def start(params, seed):
    return {"epochs": 0, **params}


def train(state):
    state["epochs"] += 1
    if state["top"] < 0.0:
        raise ValueError("too hot")
    return {"score": state["top"] * (1 - 0.5 ** state["epochs"]), "loss": 0.25}


TRAINABLE = Functions(start, train)


def write(folder):
    """Write the run directory."""
    search = RisingSearch(
        TRAINABLE,
        CANDIDATES,
        policy="round-robin",
        budget=Budget(wall_seconds=3600),
        max_epochs=2,
        seed=0,
        shuffle=False,
        target_score=0.4,
        run_dir=folder,
    )
    search.run()  # which stops
    log, scheduler = search._log, search.scheduler
    with log.held():
        search.stop_when()
        job = scheduler.ask()
        log.begin(job, here=True)
        log.died([job.id])
        log.begin(job, here=True)
        log.release()
        log._change(Ended(arms=[0]))
        log.record_repeat(
            Repeated(arm=2, number=0, scores=(0.5,), elapsed=0.25, cost=0.25)
        )
        search.resize(2)
        log.use_up(3600.0)
        search.extend(Budget(wall_seconds=60))
        log.save_state()


if __name__ == "__main__":
    shutil.rmtree(RUN, ignore_errors=True)
    write(RUN)
    (RUN / "lock").unlink()
