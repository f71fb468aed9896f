"""The online learners of the IMDB experiment as PyTorch models."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.papers.cure_ucb.imdb.arms import BOUND, Arm


class TorchLearner:
    """A model and its optimizer; one step per review."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model = model
        self.optimizer = optimizer

    def predict(self, counts: NDArray[np.float64]) -> NDArray[np.bool_]:
        with torch.no_grad():
            logits = self.model(_tensor(counts))[:, 0]
        positive: NDArray[np.bool_] = (logits > 0).numpy()
        return positive

    def learn(self, counts: NDArray[np.float64], labels: NDArray[np.uint8]) -> None:
        for row, label in zip(_tensor(counts), _tensor(labels)[:, None], strict=True):
            self.optimizer.zero_grad()
            binary_cross_entropy_with_logits(self.model(row), label).backward()
            self.step()

    def step(self) -> None:
        """Take one step against the gradient of a review."""
        self.optimizer.step()


class ShrinkingSteps(TorchLearner):
    """Online gradient descent: the steps shrink, and the weights stay bounded."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        super().__init__(model, optimizer)
        self.first = optimizer.param_groups[0]["lr"]
        self.t = 0

    def step(self) -> None:
        self.t += 1
        group = self.optimizer.param_groups[0]
        group["lr"] = self.first / math.sqrt(self.t)
        self.optimizer.step()
        with torch.no_grad():
            for weights in group["params"]:
                weights.clamp_(-BOUND, BOUND)


def make_torch_learner(arm: Arm, n_words: int, seed: int) -> TorchLearner:
    """Return the model and the optimizer of an arm, with its settings."""
    torch.set_num_threads(1)  # a step is too small for more, and games fill the cores
    if arm.rule == "network":
        network = _network(n_words, arm.hidden, seed)
        adam = torch.optim.Adam(network.parameters(), arm.step, fused=True)
        return TorchLearner(network, adam)
    model = nn.Linear(n_words, 1, bias=False)
    nn.init.constant_(model.weight, 1 / n_words)
    if arm.rule == "adagrad":
        return TorchLearner(model, torch.optim.Adagrad(model.parameters(), arm.step))
    descent = torch.optim.SGD(model.parameters(), arm.step)
    kind = ShrinkingSteps if arm.rule == "gradient" else TorchLearner
    return kind(model, descent)


def _network(n_words: int, hidden: tuple[int, ...], seed: int) -> nn.Module:
    """Return a network whose weights are drawn as scikit-learn draws them."""
    generator = torch.Generator().manual_seed(seed)
    layers: list[nn.Module] = []
    for n_in, n_out in zip((n_words, *hidden), (*hidden, 1), strict=True):
        layer = nn.Linear(n_in, n_out)
        gain = 1.0 if len(layers) < 2 * len(hidden) else 1 / math.sqrt(3)
        for weights in (layer.weight, layer.bias):
            limit = gain * math.sqrt(6 / (n_in + n_out))
            nn.init.uniform_(weights, -limit, limit, generator)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _tensor(values: NDArray[np.float64] | NDArray[np.uint8]) -> torch.Tensor:
    return torch.from_numpy(values.astype(np.float32))
