"""The searches whose directories lie beside this file, and how they were written.

``python tests/formats/recorded.py FOLDER`` writes such directories with the release
that is installed, for a format that changes. Those that are here stay as they are:
``flat_layout`` is from before the modules of the package moved into folders, and
``first_keys`` a sweep, with ``timeout`` and ``retries`` besides, from before these were
called ``epoch_timeout`` and ``max_failures``.
"""

import json
import os
import pathlib
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from recorded_models import Counting, LastUnopened, Rising, height

from risingsearch import Budget, RisingSearch, RisingSearchCV, Scheduler
from risingsearch.policies import ThompsonGaussian
from risingsearch.scheduling.proposers import GaussianProcessProposer
from risingsearch.scripts.run import run_sweep
from risingsearch.scripts.sweep import checked_sweep

CANDIDATES = [
    {"top": ((7 * i) % 24 + 1) / 32.0, "speed": (5 * i) % 8 / 1.0} for i in range(24)
]
FAILING = [
    {**params, "breaks_at": 2} if i % 5 == 1 else params
    for i, params in enumerate(CANDIDATES[:12])
]
NO_JSON = [{**params, "kind": 1j} for params in CANDIDATES[:6]]


PROPOSER = GaussianProcessProposer([[p["top"], p["speed"] / 8.0] for p in CANDIDATES])
SEARCHES = {
    "auto": (CANDIDATES, {"budget": 40, "max_epochs": 6, "seed": 1}),
    "seconds": (
        CANDIDATES[:8],
        {"budget": Budget(seconds=1e9), "max_epochs": 5, "seed": 2, "n_jobs": 1},
    ),
    "failures": (
        FAILING,
        {
            "policy": "successive-halving",
            "policy_params": {"eta": 3},
            "budget": 36,
            "max_epochs": 9,
            "direction": "minimize",
            "max_failures": 1,
            "seed": 3,
        },
    ),
    "threads": (
        CANDIDATES,
        {
            "policy": "asha",
            "budget": 40,
            "max_epochs": 9,
            "order": "ask",
            "n_jobs": 3,
            "seed": 4,
        },
    ),
    "objects": (
        CANDIDATES,
        {
            "policy": ThompsonGaussian,
            "proposer": LastUnopened(),
            "budget": 40,
            "max_epochs": 6,
            "seed": 5,
        },
    ),
    "proposer": (
        CANDIDATES,
        {"proposer": PROPOSER, "budget": 40, "max_epochs": 6, "seed": 8},
    ),
    "pickled": (NO_JSON, {"budget": 24, "max_epochs": 6, "seed": 6}),
}
SCHEDULERS = {
    "auto": {"n_arms": 30, "budget": 50, "max_epochs": 6, "seed": 1},
    "cure-ucb": {
        "policy": "cure-ucb",
        "n_arms": 5,
        "budget": 40,
        "objective": "sum",
        "score_range": (0.0, 1.0),
    },
    "ask": {
        "policy": "hyperband",
        "n_arms": 20,
        "budget": 40,
        "max_epochs": 9,
        "order": "ask",
        "n_jobs": 3,
        "seed": 2,
    },
    "cost": {
        "n_arms": 12,
        "budget": Budget(cost=30.0),
        "max_epochs": 6,
        "direction": "minimize",
        "seed": 3,
    },
    "draws": {
        "policy": "epsilon-greedy",
        "policy_params": {"epsilon": 0.5},
        "n_arms": 8,
        "budget": 40,
        "seed": 4,
    },
}
SWEEP = {
    "command": ["python3", "train.py", "{checkpoint_dir}", "{top}", "{to_epoch}"],
    "parameters": {"top": {"type": "choice", "values": [k / 16 for k in range(1, 13)]}},
    "budget": 24,
    "max_epochs": 6,
    "workers": 2,
    "seed": 7,
}
IN_FLIGHT = 3
BEFORE_SAVING = 12  # jobs told
KILLED_AT = 75  # writes


def search(name, run_dir=None, **changes):
    """Return one of the searches."""
    candidates, arguments = SEARCHES[name]
    return RisingSearch(
        Rising(), candidates, run_dir=run_dir, **{**arguments, **changes}
    )


def classifier_search(run_dir=None):
    """Return a scikit-learn search, and its data."""
    X = np.arange(40.0).reshape(40, 1) % 2
    model = RisingSearchCV(
        Counting(),
        {"speed": [1, 2, 3, 4]},
        budget=12,
        max_epochs=5,
        cv=[(np.arange(20), np.arange(20, 40))],
        random_state=0,
        refit="best",
        run_dir=run_dir,
    )
    return model, X, X[:, 0].astype(int)


def scheduler(name):
    """Return one of the schedulers."""
    return Scheduler(**SCHEDULERS[name])


def play(at, jobs, most=None):
    """Tell a scheduler the oldest of up to three jobs, until so many are told.

    Return the jobs that it asked for on the way.
    """
    asked, n_told = [], 0
    while n_told != most:
        while len(jobs) < IN_FLIGHT and (job := at.ask()) is not None:
            jobs.append(job)
            asked.append([job.arm, job.from_epoch, job.n_epochs, job.id])
        if not jobs:
            break
        job = jobs.pop(0)
        epochs = range(job.from_epoch + 1, job.from_epoch + job.n_epochs + 1)
        scores = [height(CANDIDATES[job.arm % 24], epoch) for epoch in epochs]
        if job.arm % 7 == 3 and job.from_epoch > 1:
            at.fail(job, "broken", scores[:-1], 1.0)
        elif job.arm % 7 == 4 and job.n_epochs > 1:
            at.tell(job, scores[:-1], 1.0)
        else:
            at.tell(job, scores, float(job.n_epochs))
        n_told += 1
    return asked


def stopping_after(n_jobs):
    """Return a callback that stops a search after so many jobs."""
    told = []

    def callback(search, report):
        told.append(report)
        if len(told) == n_jobs:
            search.stop()

    return callback


def outcome_of(result):
    """Return what must come out again, as JSON values."""
    history = getattr(result, "history_", None) or result.history
    names = ("arm", "epoch", "score", "reason")
    return [[row[name] for name in names] for row in history]


def write(folder):
    """Write all directories, half-way, and what the searches come to."""
    for name in SEARCHES:
        with ThreadPoolExecutor(3) as threads:
            more = {"executor": threads} if name == "threads" else {}
            whole = search(name, folder / name, **more).run()
            shutil.rmtree(folder / name)
            more["callbacks"] = [stopping_after(8)]
            search(name, folder / name, **more).run()
        write_expected(folder / name, whole)
    states = {}
    for name in SCHEDULERS:
        at, jobs = scheduler(name), []
        play(at, jobs, BEFORE_SAVING)
        state = json.loads(json.dumps(at.state_dict()))
        told = [job.id for job in jobs]
        states[name] = {"state": state, "jobs": told, "asked": play(at, jobs)}
    (folder / "scheduler_states.json").write_text(json.dumps(states))
    model, X, y = classifier_search(folder / "sklearn")
    model.fit(X, y)
    write_expected(folder / "sklearn", model)
    os.chdir(pathlib.Path(__file__).parent)
    write_sweep(folder / "sweep")


def write_sweep(folder):
    """Write a sweep that was killed half-way."""
    whole, _ = run_sweep(checked_sweep(SWEEP, ""), folder, pathlib.Path())
    shutil.rmtree(folder)
    pid = os.fork()
    if pid == 0:
        sync, left = os.fsync, iter(range(KILLED_AT))

        def killing(descriptor):
            sync(descriptor)
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        os.fsync = killing
        run_sweep(checked_sweep(SWEEP, ""), folder, pathlib.Path())
    os.waitpid(pid, 0)
    for arm in (folder / "arms").iterdir():  # what holds paths and process numbers
        (arm / "log.txt").unlink()
        (arm / "running.json").unlink(missing_ok=True)
        for training in arm.glob("training-*"):
            shutil.rmtree(training)
    write_expected(folder, whole)


def write_expected(folder, result):
    """Write what a search must come to when it is resumed."""
    (folder / "expected.json").write_text(json.dumps(outcome_of(result)))


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]).absolute())
