"""Seeds of a search, all derived from one entropy."""

from typing import Any

import numpy as np

from risingsearch.space import Configurations, Space


class Seeds:
    """All seeds of a search, derived from one entropy."""

    def __init__(self, entropy: int | None) -> None:
        root = np.random.SeedSequence(entropy)
        self.entropy = root.entropy
        self._order, policy, self._arms, self._candidates = root.spawn(4)
        self.of_policy = int(policy.generate_state(1)[0])

    def order(self, n_arms: int) -> np.ndarray[Any, Any]:
        """Return the order in which arms are opened."""
        return np.random.default_rng(self._order).permutation(n_arms)

    def of_candidates(self) -> np.random.Generator:
        """Return the generator that configurations are drawn with."""
        return np.random.default_rng(self._candidates)

    def more_configurations(self, space: Space, n: int) -> Configurations:
        """Return as many configurations again where ``n`` have been drawn."""
        return space.draw(n, np.random.default_rng(_child(self._candidates, n)))

    def of_arm(self, arm: int) -> int:
        """Return the seed of an arm, whenever it is opened."""
        return int(_child(self._arms, arm).generate_state(1)[0])


def _child(seeds: np.random.SeedSequence, n: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seeds.entropy, spawn_key=(*seeds.spawn_key, n))
