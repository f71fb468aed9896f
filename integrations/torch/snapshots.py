"""States and values as nodes, which a safe reader takes, and values of nodes again."""

import copy
import io
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from risingsearch.errors import SetupError
from risingsearch.integrations.torch.random_states import (
    GENERATORS,
    generator_state,
    generators_of,
    set_generator_state,
)

PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    torch.dtype,
    torch.device,
    torch.Size,
)
CONTAINERS = (dict, list, tuple, set, frozenset, deque)
CPU = torch.device("cpu")

Node = tuple[str, Any]
"""A kind and its content: plain values, CPU tensors, and containers of nodes."""

Makers = Mapping[str, Callable[[Any], object]]
"""What makes a value of a kind from its items, or from its text."""

_FACTORIES = (bool, int, float, str, list, dict, set)
MAKERS: dict[str, Callable[[Any], object]] = {
    "PosixPath": Path,
    "WindowsPath": Path,
    "datetime": datetime.fromisoformat,
}
MAKERS |= {kind.__name__: kind for kind in (*CONTAINERS, OrderedDict, Counter)}
MAKERS |= {f"defaultdict of {kind}": partial(defaultdict, kind) for kind in _FACTORIES}


def snapshot(objects: Mapping[str, object]) -> dict[str, Node]:
    """Return copies of the values and states of all objects, tensors on the CPU."""
    return {name: _object_node(held) for name, held in objects.items()}


def restore(
    objects: dict[str, object],
    saved: Mapping[str, Node],
    device: torch.device,
    replaced: Collection[str],
) -> None:
    """Restore a snapshot in objects that were built again, in place if possible."""
    # Other objects may share built values, but not those that the loop has replaced.
    if objects.keys() != saved.keys():
        raise SetupError(
            f"the checkpoint has {sorted(saved)}, and build returned "
            f"{sorted(objects)}: it must build the same objects from the same params"
        )
    reader = Reader(device)
    for name, node in saved.items():
        held = None if name in replaced else objects[name]
        objects[name] = reader.value(node, held, name)


def is_value(value: Any) -> bool:
    """Whether it can be saved without an object that ``build`` makes."""
    if type(value) in (dict, OrderedDict, list, tuple, set):
        return all(map(is_value, items_of(value)))
    return is_leaf(value) and not isinstance(value, nn.Parameter)


def items_of(container: Any) -> Collection[Any]:
    """Return the values of a dict, and any other container as it is."""
    return container.values() if isinstance(container, dict) else container


def _object_node(held: object) -> Node:
    kind = type(held).__name__
    if has_state(held):
        return "state", data_node(state_of(held))
    if isinstance(held, dict):
        return kind, {key: _object_node(item) for key, item in held.items()}
    if isinstance(held, list | tuple | set | deque):
        return kind, [_object_node(item) for item in held]
    return leaf_node(held) if is_leaf(held) else ("built", None)


def data_node(value: Any) -> Node:
    """Return the node of a state, which contains no objects."""
    if isinstance(value, Mapping):
        return "dict", {key: data_node(item) for key, item in value.items()}
    if type(value) in (list, tuple) and not all(type(x) in PLAIN for x in value):
        return type(value).__name__, [data_node(item) for item in value]
    return leaf_node(value) if is_leaf(value) else ("value", copy.deepcopy(value))


def is_leaf(value: object) -> bool:
    """Whether a value is saved as a whole: a number, text, tensor or array."""
    if type(value) is np.ndarray or isinstance(value, np.generic):
        return not value.dtype.hasobject
    return type(value) in PLAIN or isinstance(value, torch.Tensor)


def leaf_node(value: object) -> Node:
    """Return the node of a number, text, tensor or array."""
    if isinstance(value, torch.Tensor):
        grad = value.grad if value.is_leaf else None
        return "tensor", {
            "data": value.detach().to("cpu", copy=True),
            "on_cpu": value.device == CPU,
            "requires_grad": value.is_leaf and value.requires_grad,
            "grad": None if grad is None else grad.detach().to("cpu", copy=True),
        }
    if isinstance(value, np.ndarray | np.generic):
        file = io.BytesIO()
        np.save(file, value, allow_pickle=False)
        kind = "array" if isinstance(value, np.ndarray) else "number"
        return kind, torch.frombuffer(file.getbuffer(), dtype=torch.uint8)
    return "value", value


def kind_of(value: object) -> str:
    """Return the name of a value's type; of a defaultdict with what it makes."""
    if type(value) is defaultdict and value.default_factory in _FACTORIES:
        return f"defaultdict of {value.default_factory}"
    return type(value).__name__


class Reader:
    """Makes values of nodes, in place of those that ``build`` has made if it can.

    Parameters
    ----------
    device : torch.device
        For tensors that were not on the CPU.
    owners : mapping of str to object, optional
        Objects of ``build`` by path, which nodes may refer to.
    makers : mapping of str to callable, optional
        Makes values of more kinds.
    """

    def __init__(
        self,
        device: torch.device,
        owners: Mapping[str, object] | None = None,
        makers: Makers | None = None,
    ) -> None:
        self._device = device
        self._owners = owners or {}
        self._makers = {**MAKERS, **(makers or {})}
        self._made: list[object] = []  # in the order in which they were written

    def value(self, node: Node, held: object, name: str) -> Any:
        """Return the value of a node; ``held`` is what ``build`` has made there."""
        kind, content = node
        if kind == "value":
            return copy.deepcopy(content)
        if kind == "same":
            return self._owners[content]
        if kind == "shared":
            return self._made[content]
        if kind == "new":  # what build makes there others may share
            return self.value(content, None, name)
        value = self._value_made(kind, content, held, name)
        self._made.append(value)
        return value

    def _value_made(self, kind: str, content: Any, held: Any, name: str) -> object:
        if kind == "tensor":
            return self._tensor(content, held)
        if kind == "array":
            return _array(content, held)
        if kind == "number":
            return _array(content, None)[()]
        if kind == "built" and held is not None:
            return held
        if kind in ("state", "generator") and has_state(held):
            set_state(held, content, name)
            return held
        if kind == "enum":  # as earlier releases wrote it
            return type(held)[content]
        if kind == "text":
            kind, text = content
            return self._makers[kind](text)
        if kind == "pairs":
            kind, pairs = content
            return self._dict(kind, pairs, held, name)
        if kind == "items":
            kind, maxlen, nodes = content
            return self._items(kind, nodes, held, name, maxlen)
        if isinstance(content, dict):
            pairs = [(("value", key), node) for key, node in content.items()]
            return self._dict(kind, pairs, held, name)
        return self._items(kind, content, held, name)

    def _tensor(self, content: dict[str, Any], held: Any) -> object:
        tensor: torch.Tensor = content["data"]
        if _is_alike(held, tensor) and held.is_leaf:
            held.detach().copy_(tensor)
            tensor = held
        else:
            device = CPU if content["on_cpu"] else self._device
            tensor = tensor.to(device, copy=True)
        _set_gradient(tensor, content["requires_grad"], content["grad"])
        return tensor

    def _dict(
        self, kind: str, pairs: list[tuple[Node, Node]], held: Any, name: str
    ) -> object:
        is_in_place = self._fits(kind, held, name)
        before = held if isinstance(held, dict) else {}
        items = {}
        for key_node, node in pairs:
            key = self.value(key_node, None, name)
            items[key] = self.value(node, before.get(key), f"{name}[{key!r}]")
        if not is_in_place:
            return self._makers[kind](items)
        held.clear()
        held.update(items)
        return held

    def _items(
        self,
        kind: str,
        nodes: list[Node],
        held: Any,
        name: str,
        maxlen: int | None = None,
    ) -> object:
        is_in_place = self._fits(kind, held, name)
        old = held if is_in_place and not isinstance(held, set | frozenset) else ()
        values = [
            self.value(node, item, f"{name}[{i}]")
            for i, (node, item) in enumerate(
                zip(nodes, chain(list(old), repeat(None)), strict=False)
            )
        ]
        if not is_in_place:
            made = self._makers[kind](values)
            return deque(values, maxlen) if isinstance(made, deque) else made
        if isinstance(held, tuple | frozenset):
            return getattr(held, "_make", type(held))(values)
        held.clear()
        held.update(values) if isinstance(held, set) else held.extend(values)
        return held

    def _fits(self, kind: str, held: object, name: str) -> bool:
        """Whether the built value is of a kind; if not, it must be one with a maker."""
        fits = kind in (kind_of(held), type(held).__name__)
        if not fits and kind not in self._makers:
            raise SetupError(
                f"the state of {name} cannot be given to {held!r:.100}, which build "
                "returned there: it must build the same objects from the same params"
            )
        return fits


def _array(content: torch.Tensor, held: Any) -> Any:
    array = np.load(io.BytesIO(content.numpy().tobytes()), allow_pickle=False)
    if _is_alike(held, array) and held.flags.writeable:
        held[...] = array
        return held
    return array


def _is_alike(held: Any, saved: Any) -> bool:
    is_array = isinstance(held, torch.Tensor | np.ndarray)
    return is_array and held.shape == saved.shape and held.dtype == saved.dtype


def has_state(held: object) -> bool:
    """Whether an object has a state to be saved, besides its parts."""
    if isinstance(held, (*GENERATORS, DataLoader)):
        return True
    has_both = hasattr(held, "state_dict") and hasattr(held, "load_state_dict")
    return has_both and not isinstance(held, type)


def state_of(held: Any) -> object:
    """Return the state of an object that has one."""
    if isinstance(held, GENERATORS):
        return generator_state(held)
    if isinstance(held, nn.Module):
        state = held.state_dict()
        return {"state": state, "versions": getattr(state, "_metadata", {})}
    if hasattr(held, "state_dict"):
        return held.state_dict()
    return [generator_state(generator) for generator in generators_of(held)]


def set_state(held: Any, node: Node, name: str) -> None:
    """Give an object the state that another of its kind had."""
    state = Reader(CPU).value(node, None, name)
    if isinstance(held, GENERATORS):
        set_generator_state(held, state)
    elif isinstance(held, nn.Module):
        _set_state_of_module(held, state)
    elif isinstance(held, torch.optim.Optimizer):
        _set_state_of_optimizer(held, state, name)
    elif hasattr(held, "state_dict"):
        held.load_state_dict(state)
    else:
        for generator, its in zip(generators_of(held), state, strict=True):
            set_generator_state(generator, its)


def _set_state_of_module(module: nn.Module, state: dict[str, Any]) -> None:
    weights = OrderedDict(state["state"])
    weights._metadata = state.get("versions", {})  # type: ignore[attr-defined]
    module.load_state_dict(weights)
    # Older checkpoints have these here, others among the attributes.
    modes = state.get("training", ())
    for part, training in zip(module.modules(), modes, strict=False):
        part.training = training
    gradients = state.get("weights", ())
    for parameter, saved in zip(module.parameters(), gradients, strict=False):
        _set_gradient(parameter, *saved)


def _set_state_of_optimizer(
    optimizer: torch.optim.Optimizer, state: object, name: str
) -> None:
    groups = optimizer.param_groups
    states = optimizer.state
    try:
        optimizer.load_state_dict(state)
    except ValueError as error:  # torch says that its groups are others
        raise SetupError(
            f"{name}: {error}; let build add all parameter groups from the start, "
            "such as with a learning rate of 0, or with requires_grad False"
        ) from error
    if optimizer.param_groups is groups:
        return
    # A wrapper may share these, which torch has replaced.
    for group, loaded in zip(groups, optimizer.param_groups, strict=True):
        group.clear()
        group.update(loaded)
    optimizer.param_groups = groups
    states.clear()
    states.update(optimizer.state)
    optimizer.state = states


def _set_gradient(
    leaf: torch.Tensor, requires_grad: bool, grad: torch.Tensor | None
) -> None:
    if leaf.requires_grad != requires_grad:
        leaf.requires_grad_(requires_grad)
    leaf.grad = None if grad is None else grad.to(leaf.device, copy=True)
