"""Objects without a state, which would begin anew when their run comes back."""

import sys
import weakref
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import partial
from io import IOBase
from itertools import chain
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from risingsearch.errors import SetupError
from risingsearch.integrations.torch.batches import Batches
from risingsearch.integrations.torch.random_states import (
    GENERATORS,
    generator_state,
    generators_of,
)
from risingsearch.integrations.torch.snapshots import has_state, is_value

Marks = list[Any]
"""Differs from an earlier list if an object has changed; tensors by identity."""

_PLAIN = (int, float, complex, np.generic, str, bytes, Enum, type(None))
_CONTAINERS = (list, tuple, set, deque)
_FIXED = (Dataset, ModuleType, type, torch.autocast)
_SAMPLED = 2**20  # numbers of an array that are compared
_LONG = 100  # items of a list of rows, among which no generator is looked for


def marks_of(objects: Mapping[str, Any]) -> dict[str, Marks]:
    """Return the marks of all objects that have no state, by name."""
    # What objects with a state hold is theirs, but for the generators of a module and
    # of a loader's data set.
    covered: set[int] = set()
    stateless: dict[str, list[Any]] = {}
    for name, held in objects.items():
        for one in _in_containers(held):
            covered.add(id(one))
            if left_out := list(_generators_left_out(one, covered)):
                stateless.setdefault(name, []).extend(left_out)
            if isinstance(one, nn.Module):
                covered.update(map(id, (*one.modules(), *one.parameters())))
                covered.update(map(id, one.buffers()))
            elif not (has_state(one) or is_value(one) or isinstance(one, nn.Parameter)):
                stateless.setdefault(name, []).append(one)
                covered.discard(id(one))
    for name, held in stateless.items():
        for one in chain(held, *(_attributes(one) for one in held)):
            if hasattr(type(one), "__next__") and not isinstance(one, IOBase):
                raise SetupError(
                    f"{name!r} holds a {type(one).__name__}, which cannot be saved and "
                    "would begin anew when its run comes back: let build return the "
                    "loader and begin the iterator in train_epoch, or use Batches"
                )
    return {name: list(_marks(held, covered)) for name, held in stateless.items()}


def check_unchanged(before: Mapping[str, Marks], after: Mapping[str, Marks]) -> None:
    """Raise a SetupError if an object without a state has changed."""
    for name, marks in after.items():
        if before.get(name, []) != marks:
            raise SetupError(
                f"{name!r} changes while its run trains and has no state_dict and "
                "load_state_dict for it, so it would begin anew when the run comes "
                "back: give it both, or let build return its tensors, values and "
                "random generators by name"
            )


class _Same(weakref.ref):  # type: ignore[type-arg]
    """Reference to a tensor that equals another if it is the same tensor."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        mine = self()
        return mine is not None and isinstance(other, _Same) and mine is other()


def _in_containers(held: Any) -> Iterator[Any]:
    if not isinstance(held, (dict, *_CONTAINERS)):
        yield held
        return
    for item in held.values() if isinstance(held, dict) else held:
        yield from _in_containers(item)


def _generators_left_out(held: Any, covered: set[int]) -> Iterator[Any]:
    """Yield the generators in a module or a data set: no state contains them."""
    if not isinstance(held, (nn.Module, DataLoader, Dataset, Batches)):
        return
    seen: set[int] = set()
    waiting = [held]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, (torch.Tensor, type)):
            continue
        seen.add(id(one))
        if isinstance(one, GENERATORS):
            yield one
        elif isinstance(one, DataLoader):
            covered.update(map(id, generators_of(one)))
            waiting += [one.dataset, one.collate_fn]
        elif isinstance(one, (dict, *_CONTAINERS)):
            rows = one.values() if isinstance(one, dict) else one
            waiting += rows if len(one) <= _LONG else ()
        elif isinstance(one, nn.Module) and _saves_more(one):
            waiting += one.children()
        elif isinstance(one, (nn.Module, Dataset)):
            waiting += vars(one).values()
        else:
            waiting += _attributes(one)


def _saves_more(module: nn.Module) -> bool:
    kind = type(module)
    return (kind.get_extra_state, kind.state_dict) != (
        nn.Module.get_extra_state,
        nn.Module.state_dict,
    )


def _marks(held: list[Any], covered: set[int]) -> Iterator[Any]:
    seen, waiting = set(covered), list(held)
    while waiting:
        one = waiting.pop()
        if isinstance(one, _PLAIN):
            yield one if isinstance(one, (str, bytes)) else repr(one)
            continue
        if isinstance(one, _FIXED) or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, torch.Tensor):
            yield _Same(one), 0 if one.is_inference() else one._version
        elif isinstance(one, np.ndarray):
            step = max(1, one.size // _SAMPLED)
            yield one.shape, one.dtype.str, zlib.crc32(one.ravel()[::step].tobytes())
        elif isinstance(one, GENERATORS):
            state = generator_state(one)
            is_bytes = isinstance(state, torch.Tensor)
            yield state.numpy().tobytes() if is_bytes else repr(state)
        elif isinstance(one, nn.Module):
            waiting += [*one.parameters(), *one.buffers()]
        elif isinstance(one, (dict, *_CONTAINERS)):
            waiting += one.values() if isinstance(one, dict) else one
        else:
            waiting += _attributes(one)


def _attributes(held: Any) -> list[Any]:
    """Return an object's attributes; none for those of the standard library."""
    if isinstance(held, MethodType | BuiltinMethodType):
        return [held.__self__]
    if isinstance(held, partial):
        return [held.func, *held.args, *held.keywords.values()]
    if isinstance(held, FunctionType):
        cells = [cell for cell in held.__closure__ or () if cell != CellType()]
        return [cell.cell_contents for cell in cells] + [*(held.__defaults__ or ())]
    kind = type(held)
    if isinstance(held, _FIXED) or (
        kind.__module__.partition(".")[0] in sys.stdlib_module_names
        and kind is not SimpleNamespace
    ):
        return []
    slots = getattr(kind, "__slots__", ())
    names = (slots,) if isinstance(slots, str) else slots
    return [*getattr(held, "__dict__", {}).values()] + [
        getattr(held, name, None) for name in names if name != "__dict__"
    ]
