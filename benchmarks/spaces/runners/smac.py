"""SMAC3 in the brackets of Hyperband."""

from __future__ import annotations

from smac import MultiFidelityFacade, Scenario
from smac.runhistory.dataclasses import TrialValue

from benchmarks.spaces.runners.asking import Arms, Job, main
from benchmarks.spaces.runners.config_space import params_of, space_of


def search(job: Job, arms: Arms) -> None:
    """Ask for epochs without end."""
    scenario = Scenario(
        space_of(job),
        deterministic=True,
        n_trials=job["budget"],  # no trial has less than an epoch
        min_budget=1,
        max_budget=job["epochs"],
        seed=job["seed"],
    )
    facade = MultiFidelityFacade(scenario, lambda config, seed, budget: 0.0)
    while True:
        asked = facade.ask()
        n_epochs = max(1, round(asked.budget))
        score = max(arms.scores(params_of(job, asked.config), n_epochs))
        facade.tell(asked, TrialValue(cost=-score))


if __name__ == "__main__":
    main(search)
