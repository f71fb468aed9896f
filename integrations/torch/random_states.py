"""The global random states that a training loop draws from, one set for every run."""

# NumPy's old global state is what many training loops draw from.
# ruff: noqa: NPY002

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch


def seed_all(seed: int) -> None:
    """Seed Python, NumPy and torch on every device."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def random_states() -> dict[str, Any]:
    """Return all global random states as plain values and tensors."""
    kind, keys, *rest = np.random.get_state()
    states: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": (kind, np.asarray(keys).tolist(), *rest),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    if torch.backends.mps.is_available():
        states["mps"] = torch.mps.get_rng_state()
    return states


def set_random_states(states: dict[str, Any]) -> None:
    """Put back what ``random_states`` returned, on the devices that are here."""
    random.setstate(states["python"])
    kind, keys, *rest = states["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), *rest))
    torch.set_rng_state(states["torch"])
    for device, state in enumerate(states.get("cuda", ())):
        if device < torch.cuda.device_count():
            torch.cuda.set_rng_state(state, device)
    if "mps" in states and torch.backends.mps.is_available():
        torch.mps.set_rng_state(states["mps"])


@contextlib.contextmanager
def kept_random_states() -> Iterator[None]:
    """Leave the global random states as they were, whatever happens inside."""
    before = random_states()
    try:
        yield
    finally:
        set_random_states(before)
