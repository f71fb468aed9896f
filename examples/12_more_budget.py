"""
More budget, after the fact
===========================

A search with a run directory can be killed at any time, and goes on where it was. A
finished one takes more budget: no epoch is trained twice.
"""

import tempfile

from risingsearch import Functions, RisingSearch


def start(params, seed):
    return {"epochs": 0, **params}


def train(state):
    state["epochs"] += 1
    return state["end"] * state["epochs"] / (state["epochs"] + state["pace"])


candidates = [{"end": 0.5 + 0.05 * k, "pace": 1 + 7 * k % 10} for k in range(10)]
run_dir = tempfile.mkdtemp()
search = RisingSearch(
    Functions(start, train),
    candidates,
    budget=30,
    max_epochs=30,
    seed=0,
    run_dir=run_dir,
)
result = search.run()
print(f"after {result.n_epochs} epochs: {result.best_score:.3f}, {result.best_params}")
result.plot_allocation()

# %%
# Another day, another process:

search = RisingSearch.resume(run_dir, Functions(start, train))
search.extend(60)
result = search.run()
print(f"after {result.n_epochs} epochs: {result.best_score:.3f}, {result.best_params}")
result.plot_allocation()

# %%
# Why the others wait, in the words of the search.

for arm in search.explain():
    print(arm.arm, arm.status, arm.epochs, arm.reason)
