"""Trackers: a search in MLflow, TensorBoard or Weights & Biases, while it runs.

Each is a callback, for every interface of a search; it imports its tracker when a
search begins, and says how to install it if it is missing.
"""

from risingsearch.integrations.trackers.mlflow import MLflowTracker
from risingsearch.integrations.trackers.tensorboard import TensorBoardTracker
from risingsearch.integrations.trackers.tracker import Tracker
from risingsearch.integrations.trackers.wandb import WandbTracker

__all__ = [
    "MLflowTracker",
    "TensorBoardTracker",
    "Tracker",
    "WandbTracker",
]
