"""
On paper: your own curves
=========================

If you have kept the scores of past runs, epoch by epoch, searches can be replayed on
them: which policy and which budget would have been enough? The runs here are made up,
eighty of twenty epochs, some of which start late.
"""

import numpy as np
from matplotlib import pyplot as plt

from risingsearch.simulation import search_recorded

rng = np.random.default_rng(0)
height = rng.uniform(0.6, 0.95, size=(80, 1))
pace = rng.uniform(1.0, 8.0, size=(80, 1))
delay = rng.choice([0.0, 4.0], size=(80, 1), p=[0.8, 0.2])
epochs = np.arange(1, 21)
curves = height * (1 - np.exp(-np.maximum(epochs - delay, 0.2) / pace))
curves += rng.normal(0.0, 0.01, curves.shape)
plt.plot(epochs, curves.T, color="0.7", lw=0.7)
plt.xlabel("epoch")
plt.ylabel("score")
plt.show()

# %%
# Every policy is played in twenty random orders of the runs, with each budget. So few
# searches are over before the policies would be compiled.

policies = ["auto", "asha", "random-search"]
budgets = [20, 60, 180]
found = search_recorded(curves, policies, budgets, n_runs=20, compiled=False)
for name, scores in zip(found.policies, found.score.mean(axis=-1).T, strict=True):
    plt.plot(budgets, scores, "o-", label=name)
plt.axhline(found.best, color="0.5", ls=":", label="best recorded score")
plt.xscale("log")
plt.xticks(budgets, budgets)
plt.xlabel("budget in epochs (all curves in full: 1600)")
plt.ylabel("best score found, mean of 20 runs")
plt.legend()
plt.show()
