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
    generator_in,
    generator_state,
    loader_state,
    set_generator_state,
    set_loader_state,
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

Maker = Callable[[Any], object]
"""A function that makes a value of a kind from its items, or from its text."""

_FACTORIES = (bool, int, float, str, list, dict, set)
MAKERS: dict[str, Maker] = {
    "PosixPath": Path,
    "WindowsPath": Path,
    "datetime": datetime.fromisoformat,
}
MAKERS |= {kind.__name__: kind for kind in (*CONTAINERS, OrderedDict, Counter)}
MAKERS |= {f"defaultdict of {kind}": partial(defaultdict, kind) for kind in _FACTORIES}


def snapshot(objects: Mapping[str, object]) -> dict[str, Node]:
    """Return copies of the values and states of all objects, tensors on the CPU."""
    return {name: _object_node(value) for name, value in objects.items()}


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
    reader = NodeReader(device)
    for name, node in saved.items():
        built = None if name in replaced else objects[name]
        objects[name] = reader.value(node, built, name)


def is_value(value: object) -> bool:
    """Whether it can be saved without an object that ``build`` makes."""
    if type(value) in (dict, OrderedDict, list, tuple, set):
        return all(map(is_value, items_of(value)))
    return is_leaf(value) and not isinstance(value, nn.Parameter)


def items_of(container: Any) -> Collection[Any]:
    """Return the values of a dict, and any other container as it is."""
    return container.values() if isinstance(container, dict) else container


def _object_node(value: object) -> Node:
    kind = type(value).__name__
    if has_state(value):
        return "state", data_node(state_of(value))
    if isinstance(value, dict):
        return kind, {key: _object_node(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | deque):
        return kind, [_object_node(item) for item in value]
    if is_leaf(value):
        return leaf_node(value)
    return ("built", None)


def data_node(value: Any) -> Node:
    """Return the node of a state, which contains no objects."""
    if isinstance(value, Mapping):
        return "dict", {key: data_node(item) for key, item in value.items()}
    if type(value) in (list, tuple) and not all(type(x) in PLAIN for x in value):
        return type(value).__name__, [data_node(item) for item in value]
    if is_leaf(value):
        return leaf_node(value)
    return ("value", copy.deepcopy(value))


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
        kind = "number"
        if isinstance(value, np.ndarray):
            kind = "array"
        return kind, torch.frombuffer(file.getbuffer(), dtype=torch.uint8)
    return "value", value


def kind_of(value: object) -> str:
    """Return the name of a value's type; of a defaultdict with its factory."""
    if type(value) is defaultdict and value.default_factory in _FACTORIES:
        return f"defaultdict of {value.default_factory}"
    return type(value).__name__


class NodeReader:
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
        makers: Mapping[str, Maker] | None = None,
    ) -> None:
        self._device = device
        self._owners = owners or {}
        self._makers = {**MAKERS, **(makers or {})}
        self._made: list[object] = []  # in the order in which they were written

    def value(self, node: Node, built: object, name: str) -> Any:
        """Return the value of a node; ``built`` is the one that ``build`` has made."""
        kind, content = node
        if kind == "value":
            return copy.deepcopy(content)
        if kind == "same":
            return self._owners[content]
        if kind == "shared":
            return self._made[content]
        if kind == "new":  # what build makes there others may share
            return self.value(content, None, name)
        value = self._value_made(kind, content, built, name)
        self._made.append(value)
        return value

    def _value_made(self, kind: str, content: Any, built: Any, name: str) -> object:
        if kind == "tensor":
            return self._tensor(content, built)
        if kind == "array":
            return _array(content, built)
        if kind == "number":
            return _array(content, None)[()]
        if kind == "built" and built is not None:
            return built
        if kind in ("state", "generator") and has_state(built):
            set_state(built, content, name)
            return built
        if kind == "random":
            kind, state = content
            return generator_in(kind, NodeReader(CPU).value(state, None, name))
        if kind == "enum":  # as earlier releases wrote it
            return type(built)[content]
        if kind == "text":
            kind, text = content
            return self._makers[kind](text)
        if kind == "pairs":
            kind, pairs = content
            return self._dict(kind, pairs, built, name)
        if kind == "items":
            kind, maxlen, nodes = content
            return self._items(kind, nodes, built, name, maxlen)
        if isinstance(content, dict):
            pairs = [(("value", key), node) for key, node in content.items()]
            return self._dict(kind, pairs, built, name)
        return self._items(kind, content, built, name)

    def _tensor(self, content: dict[str, Any], built: Any) -> object:
        tensor: torch.Tensor = content["data"]
        if _is_alike(built, tensor) and built.is_leaf:
            built.detach().copy_(tensor)
            tensor = built
        else:
            device = self._device
            if content["on_cpu"]:
                device = CPU
            tensor = tensor.to(device, copy=True)
        _set_gradient(tensor, content["requires_grad"], content["grad"])
        return tensor

    def _dict(
        self, kind: str, pairs: list[tuple[Node, Node]], built: Any, name: str
    ) -> object:
        is_in_place = self._fits(kind, built, name)
        before = built if isinstance(built, dict) else {}
        items = {}
        for key_node, node in pairs:
            key = self.value(key_node, None, name)
            items[key] = self.value(node, before.get(key), f"{name}[{key!r}]")
        if not is_in_place:
            return self._makers[kind](items)
        built.clear()
        built.update(items)
        return built

    def _items(
        self,
        kind: str,
        nodes: list[Node],
        built: Any,
        name: str,
        maxlen: int | None = None,
    ) -> object:
        is_in_place = self._fits(kind, built, name)
        old = built if is_in_place and not isinstance(built, set | frozenset) else ()
        values = [
            self.value(node, item, f"{name}[{i}]")
            for i, (node, item) in enumerate(
                zip(nodes, chain(list(old), repeat(None)), strict=False)
            )
        ]
        if not is_in_place:
            made = self._makers[kind](values)
            if isinstance(made, deque):
                return deque(values, maxlen)
            return made
        if isinstance(built, tuple | frozenset):
            return getattr(built, "_make", type(built))(values)
        built.clear()
        built.update(values) if isinstance(built, set) else built.extend(values)
        return built

    def _fits(self, kind: str, built: object, name: str) -> bool:
        """Whether the built value is of a kind; if not, it must be one with a maker."""
        fits = kind in (kind_of(built), type(built).__name__)
        if not fits and kind not in self._makers:
            raise SetupError(
                f"the state of {name} cannot be given to {built!r:.100}, which build "
                "returned there: it must build the same objects from the same params"
            )
        return fits


def _array(content: torch.Tensor, built: Any) -> Any:
    array = np.load(io.BytesIO(content.numpy().tobytes()), allow_pickle=False)
    if _is_alike(built, array) and built.flags.writeable:
        built[...] = array
        return built
    return array


def _is_alike(built: Any, saved: Any) -> bool:
    is_array = isinstance(built, torch.Tensor | np.ndarray)
    return is_array and built.shape == saved.shape and built.dtype == saved.dtype


def has_state(owner: object) -> bool:
    """Whether an object has a state to be saved, besides its parts."""
    if isinstance(owner, (*GENERATORS, DataLoader)):
        return True
    has_both = hasattr(owner, "state_dict") and hasattr(owner, "load_state_dict")
    return has_both and not isinstance(owner, type)


def state_of(owner: Any) -> object:
    """Return the state of an object that has one."""
    if isinstance(owner, GENERATORS):
        return generator_state(owner)
    if isinstance(owner, nn.Module):
        state = owner.state_dict()
        return {"state": state, "versions": getattr(state, "_metadata", {})}
    if hasattr(owner, "state_dict"):
        return owner.state_dict()
    return loader_state(owner)


def set_state(owner: Any, node: Node, name: str) -> None:
    """Give an object the state that another of its kind had."""
    state = NodeReader(CPU).value(node, None, name)
    if isinstance(owner, GENERATORS):
        set_generator_state(owner, state)
    elif isinstance(owner, nn.Module):
        _set_state_of_module(owner, state, name)
    elif isinstance(owner, torch.optim.Optimizer):
        _set_state_of_optimizer(owner, state, name)
    elif hasattr(owner, "state_dict"):
        owner.load_state_dict(state)
    else:
        set_loader_state(owner, state)


def _set_state_of_module(module: nn.Module, state: dict[str, Any], name: str) -> None:
    weights = OrderedDict(state["state"])
    weights._metadata = state.get("versions", {})  # type: ignore[attr-defined]
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:  # torch says which names and shapes are others
        why = " ".join(str(error).split())
        raise SetupError(
            f"{name}: {why} Let build make all weights and buffers, in the shapes that "
            "training gives them"
        ) from error
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
