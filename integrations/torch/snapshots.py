"""Save the states of a run's objects, and restore them in objects built again."""

import copy
import io
from collections import OrderedDict, deque
from collections.abc import Collection, Mapping
from itertools import chain, repeat
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
CONTAINERS = (dict, OrderedDict, list, tuple, set)
CPU = torch.device("cpu")

Node = tuple[str, Any]
"""A kind and its content: plain values, CPU tensors, and containers of nodes."""


def snapshot(objects: Mapping[str, Any]) -> dict[str, Node]:
    """Return copies of the values and states of all objects, tensors on the CPU."""
    return {name: _object_node(held) for name, held in objects.items()}


def restore(
    objects: dict[str, Any],
    saved: Mapping[str, Node],
    device: torch.device,
    replaced: Collection[str] = (),
) -> None:
    """Restore a snapshot in objects that were built again, in place if possible."""
    # Other objects may share built values, but not those that the loop has replaced.
    if objects.keys() != saved.keys():
        raise SetupError(
            f"the checkpoint has {sorted(saved)}, and build returned "
            f"{sorted(objects)}: it must build the same objects from the same params"
        )
    for name, node in saved.items():
        held = None if name in replaced else objects[name]
        objects[name] = restored(copy.deepcopy(node), held, name, device)


def is_value(held: Any) -> bool:
    """Whether it can be saved without an object that ``build`` makes."""
    if type(held) in CONTAINERS:
        items = held.values() if isinstance(held, dict) else held
        return all(is_value(item) for item in items)
    return is_leaf(held) and not isinstance(held, nn.Parameter)


def _object_node(held: Any) -> Node:
    if has_state(held):
        return "state", data_node(state_of(held))
    kind = type(held).__name__
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


def is_leaf(held: Any) -> bool:
    """Whether a value is saved as a whole: a number, text, tensor or array."""
    if type(held) is np.ndarray or isinstance(held, np.generic):
        return not held.dtype.hasobject
    return type(held) in PLAIN or isinstance(held, torch.Tensor)


def leaf_node(held: Any) -> Node:
    """Return the node of a number, text, tensor or array."""
    if isinstance(held, torch.Tensor):
        grad = held.grad if held.is_leaf else None
        return "tensor", {
            "data": held.detach().to("cpu", copy=True),
            "on_cpu": held.device == CPU,
            "requires_grad": held.is_leaf and held.requires_grad,
            "grad": None if grad is None else grad.detach().to("cpu", copy=True),
        }
    if isinstance(held, np.ndarray | np.generic):
        file = io.BytesIO()
        np.save(file, held, allow_pickle=False)
        kind = "array" if isinstance(held, np.ndarray) else "number"
        return kind, torch.frombuffer(file.getbuffer(), dtype=torch.uint8)
    return "value", held


def restored(node: Node, held: Any, name: str, device: torch.device) -> Any:
    """Return ``held`` with the saved values, or its replacement; None: not built."""
    kind, content = node
    if kind == "value":
        return content
    if kind == "tensor":
        tensor: torch.Tensor = content["data"]
        if _fits(held, tensor, torch.Tensor) and held.is_leaf:
            held.detach().copy_(tensor)
            tensor = held
        elif not content["on_cpu"]:
            tensor = tensor.to(device)
        _set_gradient(tensor, content["requires_grad"], content["grad"])
        return tensor
    if kind in ("array", "number"):
        array = np.load(io.BytesIO(content.numpy().tobytes()), allow_pickle=False)
        if kind == "number":
            return array[()]
        if not (_fits(held, array, np.ndarray) and held.flags.writeable):
            return array
        held[...] = array
        return held
    if kind == "built" and held is not None:
        return held
    if kind == "state" and has_state(held):
        set_state(held, restored(content, None, name, CPU), name)
        return held
    return _restored_container(kind, content, held, name, device)


def _fits(held: Any, saved: Any, kind: type[Any]) -> bool:
    if not isinstance(held, kind):
        return False
    return bool(held.shape == saved.shape and held.dtype == saved.dtype)


def _restored_container(
    kind: str, content: Any, held: Any, name: str, device: torch.device
) -> Any:
    if type(held).__name__ != kind:
        made = next((each for each in CONTAINERS if each.__name__ == kind), None)
        if made is None:
            raise SetupError(
                f"the state of {name} cannot be given to {held!r:.100}, which build "
                "returned there: it must build the same objects from the same params"
            )
        held = made()
    if isinstance(held, dict):
        items = {
            key: restored(node, held.get(key), f"{name}[{key!r}]", device)
            for key, node in content.items()
        }
        held.clear()
        held.update(items)
        return held
    old = () if isinstance(held, set) else held
    values = [
        restored(node, item, f"{name}[{i}]", device)
        for i, (node, item) in enumerate(
            zip(content, chain(old, repeat(None)), strict=False)
        )
    ]
    if isinstance(held, tuple):
        return type(held)._make(values) if hasattr(held, "_make") else tuple(values)
    held.clear()
    held.update(values) if isinstance(held, set) else held.extend(values)
    return held


def has_state(held: Any) -> bool:
    """Whether an object has a state to be saved, besides its parts."""
    if isinstance(held, (*GENERATORS, DataLoader)):
        return True
    has_both = hasattr(held, "state_dict") and hasattr(held, "load_state_dict")
    return has_both and not isinstance(held, type)


def state_of(held: Any) -> Any:
    """Return the state of an object that has one."""
    if isinstance(held, GENERATORS):
        return generator_state(held)
    if isinstance(held, nn.Module):
        state = held.state_dict()
        return {"state": state, "versions": getattr(state, "_metadata", {})}
    if hasattr(held, "state_dict"):
        return held.state_dict()
    return [generator_state(generator) for generator in generators_of(held)]


def set_state(held: Any, state: Any, name: str) -> None:
    """Give an object the state that another of its kind had."""
    if isinstance(held, GENERATORS):
        set_generator_state(held, state)
    elif isinstance(held, nn.Module):
        weights = OrderedDict(state["state"])
        weights._metadata = state.get("versions", {})  # type: ignore[attr-defined]
        held.load_state_dict(weights)
        # Older checkpoints have these here, others among the attributes.
        modes = state.get("training", ())
        for module, training in zip(held.modules(), modes, strict=False):
            module.training = training
        gradients = state.get("weights", ())
        for parameter, saved in zip(held.parameters(), gradients, strict=False):
            _set_gradient(parameter, *saved)
    elif isinstance(held, torch.optim.Optimizer):
        try:
            held.load_state_dict(state)
        except ValueError as error:  # torch says that its groups are others
            raise SetupError(
                f"{name}: {error}; let build add all parameter groups from the start, "
                "such as with a learning rate of 0, or with requires_grad False"
            ) from error
    elif hasattr(held, "state_dict"):
        held.load_state_dict(state)
    else:
        for generator, its in zip(generators_of(held), state, strict=True):
            set_generator_state(generator, its)


def _set_gradient(
    leaf: torch.Tensor, requires_grad: bool, grad: torch.Tensor | None
) -> None:
    if leaf.requires_grad != requires_grad:
        leaf.requires_grad_(requires_grad)
    leaf.grad = None if grad is None else grad.to(leaf.device)
