"""Attributes of a run's objects that no ``state_dict`` holds, and training changes.

The objects are compared with themselves as ``build`` has made them. Changes are
saved by the path of the owner, such as ``model.encoder``, and a name, as ``n_steps``.
"""

import inspect
import marshal
import pickle
import re
import sys
import zlib
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from functools import cache, partial
from io import IOBase
from itertools import chain
from pathlib import Path
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, NamedTuple
from weakref import ProxyTypes

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import DataLoader, Dataset, Sampler

from risingsearch.errors import SetupError
from risingsearch.fingerprint import is_installed
from risingsearch.integrations.torch.batches import Batches
from risingsearch.integrations.torch.random_states import (
    GENERATORS,
    generator_state,
    set_generator_state,
)
from risingsearch.integrations.torch.snapshots import (
    CPU,
    PLAIN,
    Node,
    data_node,
    has_state,
    is_leaf,
    leaf_node,
    restored,
    set_state,
    state_of,
)

Change = tuple[str, str, Node]
"""The path of the owner, the name of the attribute, and its value."""

STATE = "state_dict()"  # name of the whole state of an object
WEIGHTS = "weights"  # name of what an optimizer trains and no module holds
PARTS = "parts"  # name of a module's parameters, buffers and submodules

_CONTAINERS = (dict, list, tuple, set, frozenset, deque)
_FACTORIES = (bool, int, float, str, list, dict, set)
_MADE: dict[str, Callable[..., Any]] = {
    **{kind.__name__: kind for kind in (*_CONTAINERS, OrderedDict, Counter)},
    **{f"defaultdict of {kind}": partial(defaultdict, kind) for kind in _FACTORIES},
}
_OPEN = (nn.Module, Optimizer, LRScheduler, Sampler, DataLoader, Dataset, Batches)
_DEPTH = 10  # of containers in containers, for the fast comparison of long ones
_TEXTS_AND_NUMBERS = {bool, int, float, complex, str, bytes, type(None)}
_HOLDING_THEM = {dict, list, tuple, set, frozenset}
_NAMESPACES = (SimpleNamespace, Namespace)
_FRAMEWORKS = {
    "accelerate",
    "lightning",
    "lightning_fabric",
    "numpy",
    "pytorch_lightning",
    "risingsearch",
    "torch",
    "transformers",
}
_REPORTING = {"logging", "loguru", "mlflow", "rich", "tensorboardX", "tqdm", "wandb"}
_FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "PosixPath": Path,
    "WindowsPath": Path,
    "datetime": datetime.fromisoformat,
}
_HELD_BY_STATE = {
    nn.Module: {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"},
    Optimizer: {"state", "param_groups"},
    DataLoader: {"_iterator"},
}
_OF_USERS = {"training", "_hparams"}  # though the source of a framework sets them
_SAMPLED = 2**20  # numbers of a tensor or array that are compared
_LONG = 100  # items of a container in a data set, above which they are its rows


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
        self, objects: Mapping[str, Any], bases: tuple[type, ...] = ()
    ) -> None:
        self._objects = objects
        self._bases = bases
        self._built = _Walk(objects, bases)
        self._marks = {
            at: _mark(slot.value, self._built) for at, slot in self._built.slots.items()
        }
        # A wrapper may share these with its optimizer, which replaces them as it loads.
        self._shared = [
            (owner, owner.param_groups, owner.state)
            for owner in self._built.owners.values()
            if isinstance(owner, Optimizer)
        ]

    def changes(self) -> list[Change]:
        """Return the changes, as values that a safe reader takes.

        Raises
        ------
        SetupError
            If something has changed that cannot be saved; the message names it.
        """
        now = _Walk(self._objects, self._bases, self._built)
        changed: list[Change] = []
        left_out: tuple[str, ...] = ()
        written: dict[int, int] = {}
        for at, slot in now.slots.items():
            if left_out and at[0].startswith(left_out):
                continue
            if at[0] not in self._built.owners:
                raise SetupError(
                    f"the state of {at[0]} cannot be saved, because build has not made "
                    f"that {type(slot.owner).__name__}: let build return all objects"
                )
            before = self._marks.get(at)
            if _mark(slot.value, self._built) == before:
                continue
            if _is_of_process(slot.value):
                left_out += (".".join(at),)
            else:
                writer = _Writer(self._built, at, before, slot.value, written)
                node = writer.node(slot.value)
                was = self._built.slots.get(at)
                if (
                    node[0] in ("tensor", "array")
                    and (was and was.value) is not slot.value
                ):
                    node = "new", node
                changed.append((*at, node))
        gone = [at for at in self._marks if at not in now.slots and at[0] in now.owners]
        return changed + [
            (path, name, ("gone", None))
            for path, name in gone
            if name != STATE and not hasattr(now.owners[path], name)
        ]

    def restore(self, changes: list[Change], device: torch.device) -> None:
        """Give objects as they were built the attributes of a run that has trained."""
        for path, name, node in changes:
            if path not in self._built.owners:
                raise SetupError(
                    f"the checkpoint has {name!r} of {path!r}, which build has not "
                    "made: it must build the same objects from the same params"
                )
            if name == STATE:
                state = restored(node, None, path, CPU)
                set_state(self._built.owners[path], state, path)
        self._share()
        made: list[Any] = []
        for path, name, node in changes:
            if name != STATE:
                self._restore(path, name, node, device, made)

    def _share(self) -> None:
        """Give optimizers the groups and states again that wrappers share with them."""
        for optimizer, groups, state in self._shared:
            if optimizer.param_groups is not groups:
                for group, loaded in zip(groups, optimizer.param_groups, strict=True):
                    group.clear()
                    group.update(loaded)
                optimizer.param_groups = groups
                state.clear()
                state.update(optimizer.state)
                optimizer.state = state

    def _restore(
        self, path: str, name: str, node: Node, device: torch.device, made: list[Any]
    ) -> None:
        owner = self._built.owners[path]
        if node[0] == "gone":
            object.__delattr__(owner, name)
            return
        slot = self._built.slots.get((path, name))
        held = None if slot is None else slot.value
        if node[0] == "new":  # what build makes there may be a view of weights
            held = None
            node = node[1]
        near = owner.device if isinstance(owner, torch.Tensor) else device
        reader = _Reader(self._built.owners, near, f"{path}.{name}", made)
        _set(owner, name, reader.value(node, held))


def _set(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, FunctionType) and name in (cells := _cells(owner)):
        cells[name].cell_contents = value
    elif isinstance(owner, nn.Module) and name in owner._buffers:
        owner._buffers[name] = value
    elif isinstance(owner, torch.Tensor):
        setattr(owner, name, value)
    elif name != WEIGHTS and not isinstance(owner, partial):  # restored in place
        object.__setattr__(owner, name, value)


class _Slot(NamedTuple):
    owner: Any
    value: Any


class _Walk:
    """The objects that others lead to, by path, and their attributes by its name."""

    def __init__(
        self,
        objects: Mapping[str, Any],
        bases: tuple[type, ...],
        built: "_Walk | None" = None,
    ) -> None:
        self.slots: dict[tuple[str, str], _Slot] = {}
        self.owners: dict[str, Any] = {}
        self._paths: dict[int, str] = {}
        self._bases = bases
        self._built = built
        self._waiting: deque[tuple[str, Any]] = deque()
        for name, held in objects.items():
            self._find(held, name, is_saved=True)
        while self._waiting:
            path, owner = self._waiting.popleft()
            for name, value in _held_by(owner, self._bases):
                self.slots[path, name] = _Slot(owner, value)
                self._find(value, f"{path}.{name}", is_saved=False)

    def path_of(self, held: Any) -> str | None:
        """Return the path of an object that has been found, else None."""
        path = self._paths.get(id(held))
        return path if path and self.owners[path] is held else None

    def reference_to(self, held: Any) -> str | None:
        """Return the path of an object that is compared by its attributes alone."""
        return None if isinstance(held, _CONTAINERS) else self.path_of(held)

    def _find(self, held: Any, path: str, *, is_saved: bool) -> None:
        """Add the objects that a value holds; others save their states or not."""
        for at, owner in _objects_in(held, path):
            if self.path_of(owner) is None:
                own = self._add(owner, at)
                if isinstance(owner, nn.Module):
                    self._add_parts(owner, own, is_saved=is_saved)
                if not is_saved and _has_own_state(owner):
                    self.slots[own, STATE] = _Slot(owner, state_of(owner))

    def _add(self, owner: Any, path: str) -> str:
        """Return the path of an object: where it was built, if it was."""
        path = (self._built and self._built.path_of(owner)) or path
        while path in self.owners:
            path += "'"
        self.owners[path] = owner
        self._paths[id(owner)] = path
        if not isinstance(owner, torch.Tensor):
            self._waiting.append((path, owner))
        return path

    def _add_parts(self, root: nn.Module, path: str, *, is_saved: bool) -> None:
        """Add the parts of a module; those that its state leaves out are attributes."""
        state = root.state_dict()
        parts: list[tuple[str, int]] = []
        self.slots[path, PARTS] = _Slot(root, _Parts(parts))
        for prefix, module in root.named_modules(prefix=path):
            own = self.path_of(module) or self._add(module, prefix)
            parts.append((prefix, id(module)))
            tensors = {**module._parameters, **module._buffers}
            for name, held in tensors.items():
                full = f"{prefix}.{name}"
                is_weights = isinstance(held, nn.Parameter)
                parts.append((full, id(held) if is_weights else 0))
                if held is not None and full.removeprefix(f"{path}.") not in state:
                    self.slots[own, name] = _Slot(module, held)
                elif held is not None and self.path_of(held) is None:
                    at = self._add(held, full)
                    if is_weights:
                        self.slots[at, "requires_grad"] = _Slot(
                            held, held.requires_grad
                        )
                        self.slots[at, "grad"] = _Slot(held, held.grad)


class _Parts(NamedTuple):
    """Names of a module's parts, and the identities of modules and weights."""

    names: list[tuple[str, int]]


def _has_own_state(held: Any) -> bool:
    """Whether an object has a state besides the generators that are found anyway."""
    return has_state(held) and not isinstance(held, DataLoader)


def _objects_in(held: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the objects with attributes that a value is, or its containers hold."""
    if (
        isinstance(held, _Parts)
        or is_leaf(held)
        or isinstance(held, (Enum, *GENERATORS))
    ):
        return
    if isinstance(held, _CONTAINERS) and _as_bytes(held) is None:
        items = held.items() if isinstance(held, dict) else enumerate(held)
        for at, item in items:
            shown = repr(at) if isinstance(at, str | int) else type(at).__name__
            yield from _objects_in(item, f"{path}[{shown}]")
    if isinstance(held, MethodType):
        yield from _objects_in(held.__self__, path)
        yield from _objects_in(held.__func__, path)
    elif _has_attributes(held) and not isinstance(held, tuple):
        yield path, held
    elif _is_iterator(held) and next(held, None) is not None:
        root = re.split(r"[.\[]", path)[0]
        raise SetupError(
            f"{root!r} holds a {type(held).__name__} ({path}), which cannot be saved "
            "and would begin anew when its run comes back: let build return the loader "
            "and begin the iterator in train_epoch, or use Batches"
        )


def _is_iterator(held: Any) -> bool:
    kind = type(held)
    return hasattr(kind, "__next__") and not isinstance(held, (IOBase, *ProxyTypes))


def _is_of_process(held: Any) -> bool:
    """Whether it is no state of a run, such as a bar, an open file or a thread."""
    kind = type(held)
    of_run = (*_CONTAINERS, *GENERATORS, FunctionType, nn.Module, torch.Tensor)
    if isinstance(held, of_run) or not is_installed(kind.__module__):
        return False
    return _is_reporting(kind) or _is_iterator(held) or _pickled(held) is None


def _is_reporting(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _REPORTING


def _pickled(value: Any) -> tuple[int, ...] | None:
    """Return checksums of an object's pickle, whose arrays are not copied."""
    arrays: list[pickle.PickleBuffer] = []
    try:
        pickled = pickle.dumps(value, 5, buffer_callback=arrays.append)
    except Exception:  # of an object that holds threads, files or connections
        return None
    return zlib.crc32(pickled), *(zlib.crc32(array.raw()) for array in arrays)


def _has_attributes(held: Any) -> bool:
    """Whether an object is looked into: not a type, nor of an installed package."""
    if isinstance(held, (*_OPEN, *_NAMESPACES, partial)):
        return True
    if isinstance(held, (type, ModuleType)):
        return False
    of = held if isinstance(held, FunctionType) else type(held)
    if has_state(held):
        return True
    if _is_closed(of.__module__):
        return False
    # Objects of compiled packages are compared as a whole.
    return not is_installed(of.__module__) or next(_named(held), None) is not None


def _is_closed(module: str | None) -> bool:
    root = (module or "builtins").partition(".")[0]
    is_python = root in sys.stdlib_module_names and root != "__main__"
    return is_python or root in _FRAMEWORKS or root in _REPORTING


def _held_by(owner: Any, bases: tuple[type, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object that no state_dict is known to hold."""
    kind: Any = type(owner)
    left_alone = _set_by_framework(kind, bases)
    for name, value in _all_held_by(owner):
        if name not in left_alone:
            yield name, value


def _all_held_by(owner: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(owner, Batches):
        yield "loader", owner.loader
        return
    if isinstance(owner, partial):
        yield "func", owner.func
        yield "args", owner.args
        yield "keywords", owner.keywords
        return
    if isinstance(owner, FunctionType):
        for name, cell in _cells(owner).items():
            yield name, cell.cell_contents
        yield "__defaults__", owner.__defaults__
    if isinstance(owner, Optimizer):
        yield (
            WEIGHTS,
            [weights for group in owner.param_groups for weights in group["params"]],
        )
    held_by_state = {
        name
        for kind, names in _HELD_BY_STATE.items()
        if isinstance(owner, kind) and not _saves_differently(owner)
        for name in names
    }
    for name, value in _named(owner):
        if name in held_by_state:
            continue
        if name.endswith("_hooks") and isinstance(value, dict):
            yield name, list(value.values())  # the keys count all hooks of the process
        elif not isinstance(owner, Dataset | DataLoader) or not _are_rows(value):
            yield name, value


def _saves_differently(owner: Any) -> bool:
    kind = type(owner)
    return isinstance(owner, Optimizer) and kind.state_dict is not Optimizer.state_dict


def _named(owner: Any) -> Iterator[tuple[str, Any]]:
    yield from list(getattr(owner, "__dict__", {}).items())
    for kind in type(owner).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(owner, name):
                yield name, getattr(owner, name)


def _cells(function: FunctionType) -> dict[str, Any]:
    """Return the variables of other functions that a function uses."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell for name, cell in cells if cell != CellType()}


def _are_rows(value: Any) -> bool:
    """Whether an attribute of a data set is its rows, which build loads again."""
    if isinstance(value, Dataset | Sampler | nn.Module):
        return False
    if not isinstance(value, _CONTAINERS):
        has_rows = hasattr(value, "shape") or hasattr(value, "__len__")
        return (
            has_rows
            and type(value) not in PLAIN
            and is_installed(type(value).__module__)
        )
    items = value.values() if isinstance(value, dict) else value
    return len(value) > _LONG or any(map(_are_rows, items))


@cache
def _set_by_framework(kind: type, bases: tuple[type, ...]) -> frozenset[str]:
    """Return the attributes that the source of a framework sets on instances."""
    names: set[str] = set()
    if bases and issubclass(kind, bases):
        for each in kind.__mro__:
            root = each.__module__.partition(".")[0]
            if root in _FRAMEWORKS - {"torch"}:
                names.update(re.findall(r"\bself\.(\w+)", inspect.getsource(each)))
    return frozenset(names - _OF_USERS)


def _mark(value: Any, built: _Walk) -> Any:
    """Return a mark of a value, which differs from an earlier one if it has changed."""
    kind = _kind_of(value)
    if path := built.reference_to(value):
        return "same", path
    if isinstance(value, _CONTAINERS) and (plain := _as_bytes(value)):
        return kind, zlib.crc32(plain)
    if isinstance(value, torch.Tensor):
        return _mark_of_tensor(value, built)
    if isinstance(value, np.ndarray):
        step = max(1, value.size // _SAMPLED)
        sample = value.ravel()[::step]
        content = repr(sample).encode() if value.dtype.hasobject else sample.tobytes()
        return kind, value.shape, value.dtype.str, zlib.crc32(content)
    if isinstance(value, GENERATORS):
        state = generator_state(value)
        if isinstance(state, torch.Tensor):
            state = state.tolist()
        return kind, zlib.crc32(repr(state).encode())
    if isinstance(value, Enum):
        return kind, value.name
    if isinstance(value, dict):
        items = [(_mark(key, built), _mark(each, built)) for key, each in value.items()]
        return kind, items
    if isinstance(value, set | frozenset):
        return kind, sorted(repr(_mark(each, built)) for each in value)
    if isinstance(value, _CONTAINERS):
        return kind, [_mark(each, built) for each in value]
    if is_leaf(value):
        return kind, value if isinstance(value, str | bytes) else repr(value)
    if isinstance(value, BuiltinMethodType) and not isinstance(
        value.__self__, ModuleType | type
    ):
        return kind, value.__name__, _mark(value.__self__, built)
    return _mark_of_object(value)


def _as_bytes(value: Any) -> bytes | None:
    """Return the content of a container of numbers and text alone, as bytes."""
    level = [value]
    for _ in range(_DEPTH):
        kinds = set(map(type, level))
        if kinds - _TEXTS_AND_NUMBERS - _HOLDING_THEM:
            return None
        if not kinds & _HOLDING_THEM:
            return marshal.dumps(value, 2)  # a version without references
        inner = [held for held in level if type(held) in _HOLDING_THEM]
        dicts = [held.values() for held in inner if type(held) is dict]
        level = list(chain.from_iterable([*inner, *dicts]))
    return None


def _mark_of_object(value: Any) -> tuple[str, Any]:
    """Return the type of an object, and the content of one that is not looked into."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, FunctionType | type):
        return name, value.__qualname__
    root = kind.__module__.partition(".")[0]
    if _has_attributes(value) or isinstance(value, MethodType) or root in _FRAMEWORKS:
        return name, None
    return name, None if _is_reporting(kind) else _pickled(value)


def _mark_of_tensor(value: torch.Tensor, built: _Walk) -> Any:
    grad = value.grad if value.is_leaf else None
    mark = str(value.dtype), value.shape, value.requires_grad and value.is_leaf
    flat = value.detach()
    if value.layout is torch.strided and value.device.type != "meta":
        flat = flat.reshape(-1)
        step = max(1, flat.numel() // _SAMPLED)
        version = value._version if step > 1 and not value.is_inference() else 0
        sample = flat[::step].contiguous().to(CPU)
        content = zlib.crc32(sample.view(torch.uint8).numpy())
    else:
        version = value._version
        content = 0
    return (*mark, version, content, None if grad is None else _mark(grad, built))


class _Writer:
    """Turns the present value of an attribute into a node."""

    def __init__(
        self,
        built: _Walk,
        at: tuple[str, str],
        before: Any,
        value: Any,
        written: dict[int, int],
    ) -> None:
        self._built = built
        self._path, self._name = at
        self._value = value
        self._written = written  # numbers of the values that were written, by identity
        self._kinds = set(_texts(before))  # that build makes there, with others

    def node(self, value: Any) -> Node:
        """Return a value as it is saved; raise a SetupError if that cannot be done."""
        if self._name == STATE:
            return data_node(value)
        if self._name == PARTS or self._name.endswith("_hooks"):
            raise self._refused("some are new, replaced or gone")
        if path := self._built.reference_to(value):
            return "same", path
        if type(value) in PLAIN:
            return leaf_node(value)
        if id(value) in self._written:
            return "shared", self._written[id(value)]
        node = self._new_node(value)
        self._written[id(value)] = len(self._written)
        return node

    def _new_node(self, value: Any) -> Node:
        kind = _kind_of(value)
        if is_leaf(value):
            return leaf_node(value)
        # What build makes inside of a container may be gone from there by then.
        can_be_built = not isinstance(value, _CONTAINERS) or value is self._value
        is_known = kind in _MADE and is_installed(type(value).__module__)
        is_made = is_known or (can_be_built and kind in self._kinds)
        if is_made and isinstance(value, GENERATORS):
            return "generator", data_node(generator_state(value))
        if is_made and isinstance(value, Enum):
            return "enum", value.name
        if kind in _FROM_TEXT:
            return "text", (kind, str(value))
        if is_made and isinstance(value, dict):
            pairs = [[self.node(key), self.node(each)] for key, each in value.items()]
            return "pairs", (kind, pairs)
        if is_made and isinstance(value, _CONTAINERS):
            longest = getattr(value, "maxlen", None)
            return "items", (kind, longest, [self.node(each) for each in value])
        raise self._refused(f"now it holds a {type(value).__qualname__}")

    def _refused(self, how: str) -> SetupError:
        return SetupError(
            f"{self._path.partition('.')[0]!r} changes while its run trains: "
            f"{self._path}.{self._name} is in no state_dict and cannot be saved "
            f"({how}), so it would begin anew when the run comes back: keep there "
            "numbers, text, tensors, arrays, or lists and dicts of these, or let its "
            "owner have it in state_dict and load_state_dict"
        )


class _Reader:
    """Turns a node into a value, in place of the built one where that is possible."""

    def __init__(
        self,
        owners: Mapping[str, Any],
        device: torch.device,
        path: str,
        made: list[Any],
    ) -> None:
        self._owners = owners
        self._device = device
        self._path = path
        self._made = made  # values in the order in which they were written

    def value(self, node: Node, held: Any) -> Any:
        """Return the value of a node; ``held`` is the one that build has made there."""
        kind, content = node
        if kind == "same":
            return self._owners[content]
        if kind == "shared":
            return self._made[content]
        value = self._new_value(node, held)
        if kind != "value":
            self._made.append(value)
        return value

    def _new_value(self, node: Node, held: Any) -> Any:
        kind, content = node
        if kind == "generator":
            set_generator_state(held, restored(content, None, self._path, CPU))
            return held
        if kind == "enum":
            return type(held)[content]
        if kind == "text":
            return _FROM_TEXT[content[0]](content[1])
        if kind == "pairs":
            return self._dict(content, held)
        if kind == "items":
            return self._items(content, held)
        return restored(node, held, self._path, self._device)

    def _dict(self, content: tuple[str, list[Any]], held: Any) -> Any:
        kind, pairs = content
        before = dict(held) if isinstance(held, dict) else {}
        after = {}
        for key_node, node in pairs:
            key = self.value(key_node, None)
            after[key] = self.value(node, before.get(key))
        made: Any = held if _kind_of(held) == kind else _MADE[kind]()
        made.clear()
        made.update(after)
        return made

    def _items(self, content: tuple[str, int | None, list[Node]], held: Any) -> Any:
        kind, longest, nodes = content
        is_held = type(held).__name__ == kind
        old = list(held) if is_held and not isinstance(held, set | frozenset) else []
        old += [None] * (len(nodes) - len(old))
        values = [
            self.value(node, each) for node, each in zip(nodes, old, strict=False)
        ]
        if not is_held:
            return deque(values, longest) if kind == "deque" else _MADE[kind](values)
        if isinstance(held, tuple | frozenset):
            return held._make(values) if hasattr(held, "_make") else type(held)(values)
        held.clear()
        held.update(values) if isinstance(held, set) else held.extend(values)
        return held


def _kind_of(value: Any) -> str:
    kind = type(value)
    if kind is defaultdict and value.default_factory in _FACTORIES:
        return f"defaultdict of {value.default_factory}"
    return kind.__name__


def _texts(mark: Any) -> Iterator[str]:
    if isinstance(mark, str):
        yield mark
    elif isinstance(mark, tuple | list):
        for each in mark:
            yield from _texts(each)
