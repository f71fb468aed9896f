"""Nevergrad's NGOpt: full trainings."""

from __future__ import annotations

from typing import Any

import nevergrad as ng

from benchmarks.spaces.runners.asking import Arms, Job, main


def parameter(kind: str, given: list[Any]) -> Any:
    """Return a parameter of Nevergrad's."""
    if kind == "choice":
        return ng.p.Choice(given[0])
    low, high = given
    is_log = kind.startswith("log")
    made = (ng.p.Log if is_log else ng.p.Scalar)(lower=low, upper=high)
    return made.set_integer_casting() if kind.endswith("randint") else made


def search(job: Job, arms: Arms) -> None:
    """Ask for epochs without end."""
    space = ng.p.Dict(
        **{name: parameter(kind, given) for name, (kind, given) in job["space"].items()}
    )
    space.random_state.seed(job["seed"])
    n_trainings = job["budget"] // job["epochs"]
    optimizer = ng.optimizers.NGOpt(space, budget=n_trainings, num_workers=job["jobs"])
    while True:
        asked = optimizer.ask()
        optimizer.tell(asked, -max(arms.scores(asked.value, job["epochs"])))


if __name__ == "__main__":
    main(search)
