"""
Ray Tune: a scheduler in the place of ASHA
==========================================

``RisingScheduler`` decides which trial trains next, within an exact number of epochs;
the rest of the experiment is as before. The trials here solve a linear system step by
step, with two parameters that have to fit each other.
"""

import json
from pathlib import Path

import numpy as np
import ray
from ray import tune

from risingsearch.integrations.ray import RisingScheduler
from risingsearch.plotting import plot_allocation


class Descent(tune.Trainable):
    def setup(self, config):
        rng = np.random.default_rng(0)
        self.A, self.b = rng.normal(size=(40, 5)), rng.normal(size=40)
        self.reset_config(config)

    def reset_config(self, config):  # what reuse_actors calls
        self.config = config
        self.x, self.v = np.zeros(5), np.zeros(5)
        return True

    def step(self):
        gradient = self.A.T @ (self.A @ self.x - self.b) / 40
        self.v = self.config["momentum"] * self.v - self.config["rate"] * gradient
        self.x = self.x + self.v
        return {"error": float(np.square(self.A @ self.x - self.b).mean())}

    def save_checkpoint(self, folder):
        state = {"x": self.x.tolist(), "v": self.v.tolist()}
        Path(folder, "state.json").write_text(json.dumps(state))

    def load_checkpoint(self, folder):
        state = json.loads(Path(folder, "state.json").read_text())
        self.x, self.v = np.array(state["x"]), np.array(state["v"])


ray.init(
    num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
)
scheduler = RisingScheduler(budget=40, max_epochs=15, seed=0)
tuner = tune.Tuner(
    Descent,
    param_space={
        "rate": tune.loguniform(1e-4, 1.0),
        "momentum": tune.uniform(0.0, 0.95),
    },
    tune_config=tune.TuneConfig(
        metric="error",
        mode="min",
        num_samples=20,
        reuse_actors=True,
        scheduler=scheduler,
    ),
    run_config=tune.RunConfig(
        storage_path=str(Path("ray-results").absolute()), verbose=0
    ),
)
results = tuner.fit()
ray.shutdown()
best = results.get_best_result(scope="all")
print(f"{scheduler.n_epochs} epochs, error {scheduler.best_score:.3f}: {best.config}")

# %%
# The scheduler keeps the same history as every other search.

plot_allocation(scheduler.history, direction="minimize", metric="error")
