"""Optuna: trials that pause and come back, within an exact budget of epochs.

``RisingSampler`` and ``RisingPruner`` make each trial of a study a slice of an arm;
an objective calls ``arm`` to resume where the arm was paused.
"""

from risingsearch.errors import needed

with needed("optuna", "optuna", of=("optuna",)):
    import optuna  # noqa: F401 - what the rest of the package needs

from risingsearch.integrations.optuna.arms import TrialArm, arm, ask
from risingsearch.integrations.optuna.pruner import RisingPruner
from risingsearch.integrations.optuna.results import (
    ArmResult,
    arm_results,
    arms,
    best_arm,
    finalize,
)
from risingsearch.integrations.optuna.sampler import RisingSampler

__all__ = [
    "ArmResult",
    "RisingPruner",
    "RisingSampler",
    "TrialArm",
    "arm",
    "arm_results",
    "arms",
    "ask",
    "best_arm",
    "finalize",
]
