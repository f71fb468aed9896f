"""An experiment to be killed and started again: ``python driver.py FOLDER ADDRESS``."""

import json
import logging
import os
import sys
import time
from pathlib import Path

import ray
from ray import tune

from risingsearch.integrations.ray import RisingScheduler
from risingsearch.integrations.trackers import TensorBoardTracker


class Trainable(tune.Trainable):
    def setup(self, config):
        self.top, self.epoch = config["top"], 0

    def step(self):
        time.sleep(0.02)
        self.epoch += 1
        driver = ray.get_runtime_context().get_job_id()
        with (FOLDER / "trained").open("a") as file:
            file.write(f"{driver} {self.trial_id} {self.epoch}\n")
        return {"score": self.top * (1 - 1 / (self.epoch + 1)), "epoch": self.epoch}

    def save_checkpoint(self, folder):
        Path(folder, "epoch").write_text(str(self.epoch))

    def load_checkpoint(self, folder):
        self.epoch = int(Path(folder, "epoch").read_text())

    def reset_config(self, config):
        self.setup(config)
        return True


if __name__ == "__main__":
    FOLDER = Path(sys.argv[1])
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    ray.init(
        address=sys.argv[2],
        log_to_driver=False,
        logging_level=logging.ERROR,
        runtime_env={"env_vars": {"PYTHONPATH": str(Path(__file__).parent)}},
    )
    path = str(FOLDER / "experiment")
    if tune.Tuner.can_restore(path):
        tuner = tune.Tuner.restore(path, trainable=Trainable)
    else:
        tracker = TensorBoardTracker(FOLDER / "runs")
        tuner = tune.Tuner(
            Trainable,
            param_space={"top": tune.uniform(0.0, 1.0)},
            tune_config=tune.TuneConfig(
                num_samples=4,
                metric="score",
                mode="max",
                reuse_actors=True,
                scheduler=RisingScheduler(
                    18, 6, epochs_per_job=3, n_jobs=2, seed=0, callbacks=[tracker]
                ),
            ),
            run_config=tune.RunConfig(
                name="experiment",
                storage_path=str(FOLDER),
                checkpoint_config=tune.CheckpointConfig(num_to_keep=1),
                verbose=0,
            ),
        )
    results = tuner.fit()
    found = {
        "trials": len(results),
        "errors": results.num_errors,
        "last": {r.metrics["trial_id"]: r.metrics["score"] for r in results},
    }
    print(json.dumps(found))
