"""Changes by training in a run's objects that no ``state_dict`` holds.

All that ``build`` makes is walked, and compared with itself as it was made. Changes are
saved by the path of the owner, such as ``model.encoder``, and a name, as ``n_steps``;
what cannot be saved is an error that names it.
"""

import io
import pickle
import zlib
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import partial
from operator import getitem
from pathlib import Path
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

from risingsearch.errors import SetupError
from risingsearch.identity.fingerprint import is_installed
from risingsearch.integrations.torch.random_states import GENERATORS, generator_state
from risingsearch.integrations.torch.snapshots import (
    CONTAINERS,
    CPU,
    MAKERS,
    PLAIN,
    Maker,
    Node,
    NodeReader,
    data_node,
    is_leaf,
    kind_of,
    leaf_node,
    set_state,
)
from risingsearch.integrations.torch.walk import (
    FRAMEWORKS,
    PARTS,
    REPORTING,
    STATE,
    WEIGHTS,
    Walk,
    cells_of,
    is_of_process,
    package_of,
    pickled,
)

Change = tuple[str, str, Node]
"""The path of the owner, the name of the attribute, and its value."""

_GONE: Node = ("gone", None)
_SAMPLED = 2**20  # numbers of a tensor or array that are compared


class Attributes:
    """The attributes of objects as they were built, to find changes by training.

    Parameters
    ----------
    objects : mapping of str to object
        Objects by name, or containers of them, whose ``state_dict`` others save.
    bases : tuple of type
        Classes of a framework, which sets attributes of their instances itself.

    Raises
    ------
    SetupError
        If an object holds an iterator, whose position cannot be saved.
    """

    def __init__(
        self, objects: Mapping[str, object], bases: tuple[type, ...] = ()
    ) -> None:
        self._objects = objects
        self._bases = bases
        self._built = Walk(objects, bases)
        self._types: dict[str, type] = {}  # enumerations and named tuples among them
        self._marks = {
            at: self._mark(value, self._types)
            for at, value in self._built.attributes.items()
        }

    def changes(self) -> list[Change]:
        """Return the changes, as values that a safe reader takes.

        Raises
        ------
        SetupError
            If something has changed that cannot be saved; the message names it.
        """
        now = Walk(self._objects, self._bases, self._built)
        writer = _Writer(self._built, self._types)
        changes: list[Change] = []
        for (path, name), value in now.attributes.items():
            if path not in self._built.owners:
                kind = type(now.owners[path]).__name__
                raise SetupError(
                    f"the state of {path} cannot be saved, because build has not made "
                    f"that {kind}: let build return all objects"
                )
            is_changed = self._mark(value, {}) != self._marks.get((path, name))
            if is_changed and not is_of_process(value):
                changes.append((path, name, writer.written(path, name, value)))
        for path, name in self._marks:
            is_gone = (path, name) not in now.attributes and path in now.owners
            if is_gone and name != STATE and not hasattr(now.owners[path], name):
                changes.append((path, name, _GONE))
        return changes

    def restore(self, changes: list[Change], device: torch.device) -> None:
        """Give objects as they were built the attributes of a run that has trained."""
        owners = self._built.owners
        makers = {name: _maker(kind) for name, kind in self._types.items()}
        reader = NodeReader(device, owners, makers)
        # States first, because loading one may set attributes.
        for path, name, node in sorted(changes, key=lambda change: change[1] != STATE):
            if path not in owners:
                raise SetupError(
                    f"the checkpoint has {name!r} of {path!r}, which build has not "
                    "made: it must build the same objects from the same params"
                )
            if name == STATE:
                set_state(owners[path], node, path)
            elif node == _GONE:
                object.__delattr__(owners[path], name)
            else:
                built = self._built.attributes.get((path, name))
                value = reader.value(node, built, f"{path}.{name}")
                _set(owners[path], name, value)

    def _mark(self, value: object, types: dict[str, type]) -> int:
        """Return a checksum of a value that tells changes; note the types in it."""
        file = io.BytesIO()
        _Marker(file, self._built, types).dump(value)
        return zlib.crc32(file.getbuffer())


def _maker(kind: Any) -> Maker:
    """Return the maker of a named tuple from items, or of a member from its name."""
    return partial(getitem, kind) if issubclass(kind, Enum) else kind._make


def _set(owner: object, name: str, value: Any) -> None:
    if isinstance(owner, FunctionType) and name in cells_of(owner):
        cells_of(owner)[name].cell_contents = value
    elif isinstance(owner, nn.Module) and name in owner._buffers:
        owner._buffers[name] = value
    elif isinstance(owner, torch.Tensor):
        is_tensor = isinstance(value, torch.Tensor)
        setattr(owner, name, value.to(owner.device) if is_tensor else value)
    elif name != WEIGHTS and not isinstance(owner, partial):  # restored in place
        object.__setattr__(owner, name, value)


class _Marker(pickle.Pickler):
    """Pickles a value to compare it, in which objects count by their paths."""

    def __init__(self, file: io.BytesIO, built: Walk, types: dict[str, type]) -> None:
        super().__init__(file)
        self._built = built
        self._types = types

    def reducer_override(self, value: Any) -> Any:
        """Return a tuple for a value that is not pickled as it is."""
        content = None if value is tuple else self._content(value)
        if content is None:
            return NotImplemented
        return (tuple, (content,))

    def _content(self, value: Any) -> tuple[object, ...] | None:
        kind = type(value)
        path = self._built.reference_to(value)
        if path is not None:
            return "same", path
        if isinstance(value, torch.Tensor):
            return _content_of_tensor(value)
        if isinstance(value, np.ndarray):
            sample = value.ravel()[:: max(1, value.size // _SAMPLED)]
            is_object = value.dtype.hasobject
            content = repr(sample).encode() if is_object else sample.tobytes()
            return value.shape, value.dtype.str, content
        if isinstance(value, type | FunctionType | ModuleType):
            return kind.__name__, getattr(value, "__qualname__", value.__name__)
        if isinstance(value, Enum) or hasattr(value, "_make"):
            self._types[kind.__name__] = kind
        if isinstance(value, Enum):
            return kind.__name__, value.name
        pickled_by_parts = (*CONTAINERS, MethodType, BuiltinMethodType)
        if is_leaf(value) or isinstance(value, pickled_by_parts):
            return None
        is_compared = package_of(kind) not in FRAMEWORKS | REPORTING
        checksum = pickled(value) if is_compared else None
        return kind.__module__, kind.__qualname__, checksum


def _content_of_tensor(value: torch.Tensor) -> tuple[object, ...]:
    kind = str(value.dtype), tuple(value.shape)
    trained = None
    if value.is_leaf:
        trained = (value.requires_grad, value.grad)
    step = max(1, value.numel() // _SAMPLED)
    is_dense = value.layout is torch.strided and value.device.type != "meta"
    is_whole = is_dense and step == 1
    version = 0 if is_whole or value.is_inference() else value._version
    if not is_dense:
        return kind, trained, version
    sample = value.detach().reshape(-1)[::step].contiguous().to(CPU)
    return kind, trained, version, sample.view(torch.uint8).numpy().tobytes()


class _Writer:
    """Turns the present values of attributes into nodes."""

    def __init__(self, built: Walk, types: dict[str, type]) -> None:
        self._built = built
        self._types = types
        self._written: dict[int, int] = {}  # numbers of the values, by identity

    def written(self, path: str, name: str, value: object) -> Node:
        """Return a value as it is saved; raise a SetupError if that cannot be done."""
        if name == STATE:
            return data_node(value)
        built = self._built.attributes.get((path, name))
        try:
            if name == PARTS or name.endswith("_hooks"):
                raise TypeError("some are new, replaced or gone")
            node = self._node(value, built)
        except TypeError as error:
            raise SetupError(
                f"{path.partition('.')[0]!r} changes while its run trains: "
                f"{path}.{name} is in no state_dict and cannot be saved ({error}), so "
                "it would begin anew when the run comes back: keep there numbers, "
                "text, tensors, arrays, or lists and dicts of these, or let its owner "
                "have it in state_dict and load_state_dict"
            ) from None
        is_array = isinstance(value, torch.Tensor | np.ndarray)
        is_replaced = value is not built and (is_array or self._is_made_anew(value))
        return ("new", node) if is_replaced else node

    def _node(self, value: object, built: object = None) -> Node:
        if type(value) in PLAIN:
            return leaf_node(value)
        path = self._built.reference_to(value)
        if path is not None:
            return "same", path
        if id(value) in self._written:
            return "shared", self._written[id(value)]
        node = self._new_node(value, built)
        self._written[id(value)] = len(self._written)
        return node

    def _new_node(self, value: object, built: object) -> Node:
        kind = kind_of(value)
        if is_leaf(value):
            return leaf_node(value)
        if type(value) in GENERATORS and getattr(value, "device", CPU) == CPU:
            return "random", (kind, data_node(generator_state(value)))
        if self._is_made_anew(value) or type(value) is type(built):
            if isinstance(value, dict):
                items = value.items()
                pairs = [[self._node(key), self._node(item)] for key, item in items]
                return "pairs", (kind, pairs)
            if isinstance(value, CONTAINERS):
                nodes = [self._node(item) for item in value]
                return "items", (kind, getattr(value, "maxlen", None), nodes)
            if isinstance(value, Enum) and value.name in type(value).__members__:
                return "text", (kind, value.name)
            if isinstance(value, Path | datetime):
                return "text", (kind, str(value))
        raise TypeError(f"now it holds a {type(value).__qualname__}")

    def _is_made_anew(self, value: object) -> bool:
        """Whether a value can be made without one of its type that was built."""
        kind = type(value)
        is_python = kind_of(value) in MAKERS and is_installed(kind.__module__)
        return is_python or self._types.get(kind.__name__) is kind
