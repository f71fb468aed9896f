"""DEHB: differential evolution in the brackets of Hyperband."""

from __future__ import annotations

from dehb import DEHB

from benchmarks.spaces.runners.asking import Arms, Job, main
from benchmarks.spaces.runners.config_space import params_of, space_of


def search(job: Job, arms: Arms) -> None:
    """Ask for epochs without end."""
    space = space_of(job)
    optimizer = DEHB(
        cs=space,
        dimensions=len(space),
        min_fidelity=1,
        max_fidelity=job["epochs"],
        seed=job["seed"],
        n_workers=1,
    )
    while True:
        asked = optimizer.ask()
        n_epochs = max(1, round(asked["fidelity"]))
        score = max(arms.scores(params_of(job, asked["config"]), n_epochs))
        optimizer.tell(asked, {"fitness": -score, "cost": n_epochs})


if __name__ == "__main__":
    main(search)
