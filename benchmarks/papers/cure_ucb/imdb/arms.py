"""The arms of the IMDB experiment: which learners play, and what they have in common.

The update rules and settings are those of the published experiment (Metelli et al.
2022).
"""

from __future__ import annotations

from typing import NamedTuple

BOUND = 2.0
"""Where online gradient descent caps its weights."""

PUBLISHED, SCIKIT_LEARN, TORCH = "as published", "scikit-learn", "PyTorch"


class Arm(NamedTuple):
    """A learner: its name in the figures, its rule, and what the rule needs."""

    name: str
    rule: str
    step: float = 0.001
    hidden: tuple[int, ...] = ()


ARMS = {
    "lr0003": Arm("logistic regression", "logistic", 0.003),
    "ogd01": Arm("gradient descent", "gradient", 0.1),
    "ada005": Arm("Adagrad", "adagrad", 0.05),
    "nn1": Arm("network 1", "network", hidden=(1,)),
    "nn2": Arm("network 2", "network", hidden=(2,)),
    "nn6": Arm("network 2-2", "network", hidden=(2, 2)),
    "nn7": Arm("network 2-2-2", "network", hidden=(2, 2, 2)),
    "nn11": Arm("network 1-1-2", "network", hidden=(1, 1, 2)),
}
"""By the codes of the recorded curves."""
