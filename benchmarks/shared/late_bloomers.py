"""Networks that warm up: the learning rate rises for a while, and then falls to zero.

A deep network needs the warm-up: without it, Adam at a high rate damages the first
layers, and the network does not recover. At the best rates, networks that warm up for
more than half of their epochs reach the highest scores, although they learn late. A
shallow network does as well without, and leads for the first few epochs.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

HIDDEN = {"shallow": [16], "deep": [64] * 8}
BATCH = 128


class WarmedNetwork:
    """A network that ``partial_fit`` trains for one epoch.

    Parameters
    ----------
    kind : {"shallow", "deep"}
        One hidden layer of 16 units, or eight of 64.
    rate : float
        The highest learning rate.
    warm_up : float
        Epochs until the rate is reached; it then falls linearly to zero.
    max_epochs : int
        Epochs until it is zero.
    seed : int
        Seed of the weights and of the order of the rows.
    """

    def __init__(
        self, kind: str, rate: float, warm_up: float, max_epochs: int, seed: int
    ) -> None:
        self.hidden = HIDDEN[kind]
        self.rate = rate
        self.warm_up = warm_up
        self.max_epochs = max_epochs
        self.seed = seed
        self.epoch = 0
        self.network: Any = None

    def partial_fit(self, X: Any, y: Any, classes: Any) -> WarmedNetwork:
        """Train one epoch more."""
        torch.set_num_threads(1)
        if self.network is None:
            self.classes = np.asarray(classes)
            self._build(X.shape[1])
        rows, targets = _tensor(X), torch.from_numpy(np.searchsorted(self.classes, y))
        order = np.random.default_rng([self.seed, self.epoch]).permutation(len(y))
        batches = torch.split(torch.from_numpy(order), BATCH)
        for number, batch in enumerate(batches, 1):
            trained = self.epoch + number / len(batches)
            for group in self.optimizer.param_groups:
                group["lr"] = self.rate * self._share(trained)
            self.optimizer.zero_grad()
            cross_entropy(self.network(rows[batch]), targets[batch]).backward()
            self.optimizer.step()
        self.epoch += 1
        return self

    def predict(self, X: Any) -> Any:
        """Return the most likely class of every row."""
        with torch.no_grad():
            return self.classes[self.network(_tensor(X)).argmax(dim=1).numpy()]

    def _build(self, n_features: int) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            sizes = [n_features, *self.hidden]
            layers: list[nn.Module] = []
            for n_in, n_out in pairwise(sizes):
                layers += [nn.Linear(n_in, n_out), nn.ReLU()]
            layers.append(nn.Linear(sizes[-1], len(self.classes)))
        self.network = nn.Sequential(*layers)
        self.optimizer = torch.optim.Adam(self.network.parameters(), fused=True)

    def _share(self, trained: float) -> float:
        """Return the learning rate after some epochs, as a share of the highest."""
        if trained < self.warm_up:
            return trained / self.warm_up
        left = (self.max_epochs - trained) / (self.max_epochs - self.warm_up)
        return max(left, 0.0)


def _tensor(values: Any) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.float32))
