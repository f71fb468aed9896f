"""What of a run's objects is saved, and how it comes back."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, MutableMapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from risingsearch.errors import StateError

PLAIN = (bool, int, float, str, type(None), torch.Tensor)


def snapshot(objects: Mapping[str, Any]) -> dict[str, Any]:
    """Return copies of the states of all objects that have one, tensors on the CPU.

    These are objects with ``state_dict``, random generators (also those of a
    ``DataLoader``), and numbers, texts and tensors themselves.
    """
    states = {}
    for name, owner in objects.items():
        for part, held in _parts(name, owner):
            states[part] = _on_cpu(_state(held))
    return states


def restore(objects: MutableMapping[str, Any], states: Mapping[str, Any]) -> None:
    """Give objects that were built anew the states of those of a snapshot.

    Raises
    ------
    StateError
        If other objects were built than the snapshot is of.
    """
    parts = {
        part: held
        for name, owner in objects.items()
        for part, held in _parts(name, owner)
    }
    if parts.keys() != states.keys():
        msg = (
            f"the checkpoint has the states of {sorted(states)}, and build returned "
            f"{sorted(parts)}: it must build the same objects from the same params"
        )
        raise StateError(msg)
    for part, held in parts.items():
        state = copy.deepcopy(states[part])
        if isinstance(held, torch.Generator):
            held.set_state(state)
        elif isinstance(held, np.random.Generator):
            held.bit_generator.state = state
        elif isinstance(held, random.Random):
            held.setstate(state)
        elif isinstance(held, torch.Tensor):
            objects[part] = state.to(held.device)
        elif isinstance(held, PLAIN):
            objects[part] = state
        else:
            held.load_state_dict(state)


def _parts(name: str, owner: Any) -> list[tuple[str, Any]]:
    """Return what of an object has a state, by name."""
    if isinstance(owner, (*PLAIN, torch.Generator, np.random.Generator, random.Random)):
        return [(name, owner)]
    if hasattr(owner, "state_dict") and hasattr(owner, "load_state_dict"):
        return [(name, owner)]
    if isinstance(owner, DataLoader):
        sampler = getattr(owner.sampler, "generator", None)
        generators = {"generator": owner.generator, "sampler.generator": sampler}
        return [
            (f"{name}.{part}", generator)
            for part, generator in generators.items()
            if generator is not None
        ]
    return []


def _state(held: Any) -> Any:
    if isinstance(held, torch.Generator):
        return held.get_state()
    if isinstance(held, np.random.Generator):
        return held.bit_generator.state
    if isinstance(held, random.Random):
        return held.getstate()
    if isinstance(held, PLAIN):
        return held
    return held.state_dict()


def _on_cpu(state: Any) -> Any:
    """Return a deep copy whose tensors are on the CPU and share no memory."""
    if isinstance(state, torch.Tensor):
        return state.detach().to("cpu", copy=True)
    if isinstance(state, Mapping):
        return {key: _on_cpu(value) for key, value in state.items()}
    if isinstance(state, list):
        return [_on_cpu(value) for value in state]
    if type(state) is tuple:
        return tuple(_on_cpu(value) for value in state)
    if isinstance(state, np.generic):  # a learning rate from a distribution, say
        return state.item()
    return copy.deepcopy(state)
