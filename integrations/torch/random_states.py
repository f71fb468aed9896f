"""Random states of training loops: a separate set for every run."""

# NumPy's old global state is what many training loops draw from.
# ruff: noqa: NPY002

import contextlib
import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Sampler

from risingsearch.errors import SetupError

GENERATORS = torch.Generator, np.random.Generator, np.random.RandomState, random.Random
Generator = Any
"""A generator of random numbers, of one of these types."""
States = dict[str, Any]
"""States of random generators, by name."""

_TRAINING = threading.Lock()


def seed_all(seed: int) -> None:
    """Seed Python, NumPy and torch on every device."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def random_states() -> States:
    """Return all global random states as plain values and tensors."""
    states: States = {
        "python": random.getstate(),
        "numpy": _without_arrays(np.random.get_state(legacy=False)),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    if torch.backends.mps.is_available():
        states["mps"] = torch.mps.get_rng_state()
    return states


def set_random_states(states: States) -> None:
    """Restore the result of ``random_states``, on the devices that are here."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    for device, state in enumerate(states.get("cuda", ())):
        if device < torch.cuda.device_count():
            torch.cuda.set_rng_state(state, device)
    if "mps" in states and torch.backends.mps.is_available():
        torch.mps.set_rng_state(states["mps"])


@contextlib.contextmanager
def kept_random_states() -> Iterator[None]:
    """Restore the global random states at the end of the block."""
    before = random_states()
    try:
        yield
    finally:
        set_random_states(before)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Raise a SetupError if another thread of the process is training."""
    if not _TRAINING.acquire(blocking=False):
        raise SetupError(
            "threads share torch's random states: use an executor of processes"
        )
    try:
        yield
    finally:
        _TRAINING.release()


def generator_state(generator: Generator) -> object:
    """Return the state of a generator of torch, NumPy or Python, without arrays."""
    if isinstance(generator, np.random.Generator):
        return _without_arrays(generator.bit_generator.state)
    if isinstance(generator, np.random.RandomState):
        return _without_arrays(generator.get_state(legacy=False))
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    return generator.getstate()


def set_generator_state(generator: Generator, state: Any) -> None:
    """Restore the result of ``generator_state``."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.set_state(state)


def generator_in(kind: str, state: Any) -> Generator:
    """Return a new generator of a type, by its name, in the state of another."""
    generator: Generator
    if kind == "RandomState":
        generator = np.random.RandomState()
    elif kind == "Random":
        generator = random.Random()
    elif isinstance(state, torch.Tensor):
        generator = torch.Generator()
    else:
        generator = np.random.Generator(getattr(np.random, state["bit_generator"])())
    set_generator_state(generator, state)
    return generator


def _generators_of(loader: DataLoader) -> list[Generator]:
    """Return the generators of a loader and its samplers; refuse persistent workers."""
    if loader.persistent_workers:
        raise SetupError(
            "a loader's workers have states: build it without persistent_workers"
        )
    generators = [loader.generator, *_drawn_from(loader.sampler)]
    generators += _drawn_from(loader.batch_sampler)
    by_identity = {id(each): each for each in generators if each is not None}
    return list(by_identity.values())


def loader_state(loader: DataLoader) -> list[object]:
    """Return the states of the generators of a loader and its samplers."""
    return [generator_state(generator) for generator in _generators_of(loader)]


def set_loader_state(loader: DataLoader, states: list[object]) -> None:
    """Restore the result of ``loader_state``."""
    for generator, state in zip(_generators_of(loader), states, strict=True):
        set_generator_state(generator, state)


def _without_arrays(state: object) -> object:
    if isinstance(state, dict):
        return {key: _without_arrays(value) for key, value in state.items()}
    if isinstance(state, np.ndarray):
        return state.tolist()
    return state


def _drawn_from(sampler: object) -> Iterator[Generator]:
    for value in getattr(sampler, "__dict__", {}).values():
        if isinstance(value, GENERATORS):
            yield value
        elif isinstance(value, Sampler):
            yield from _drawn_from(value)
