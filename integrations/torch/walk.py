"""All objects that a ``build`` makes, by path, and their attributes by name.

A path is that of names, such as ``model.encoder`` or ``callbacks[0].held``. Looked into
are objects of the user's own classes and functions, those with a state, and those of
other packages that show attributes.
"""

import inspect
import pickle
import re
import sys
import zlib
from argparse import Namespace
from collections import deque
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache, partial
from io import IOBase
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any
from weakref import ProxyTypes

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import DataLoader, Dataset, Sampler

from risingsearch.errors import SetupError
from risingsearch.identity.fingerprint import is_installed
from risingsearch.integrations.torch.batches import Batches
from risingsearch.integrations.torch.random_states import GENERATORS
from risingsearch.integrations.torch.snapshots import (
    CONTAINERS,
    PLAIN,
    has_state,
    items_of,
    state_of,
)

STATE = "state_dict()"  # name of the whole state of an object
WEIGHTS = "weights"  # name of what an optimizer trains and no module holds
PARTS = "parts"  # name of a module's parameters, buffers and submodules

FRAMEWORKS = {
    "accelerate",
    "lightning",
    "lightning_fabric",
    "pytorch_lightning",
    "risingsearch",
    "torch",
    "transformers",
}
REPORTING = {"logging", "loguru", "mlflow", "rich", "tensorboardX", "tqdm", "wandb"}
_CLOSED = FRAMEWORKS | REPORTING | {"numpy"} | sys.stdlib_module_names - {"__main__"}
_OPEN = (
    nn.Module,
    Optimizer,
    LRScheduler,
    Sampler,
    Dataset,
    SimpleNamespace,
    Namespace,
    partial,
)
_HELD_BY_STATE = {
    nn.Module: {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"},
    DataLoader: {"_iterator"},
    Batches: {"n_batches", "_n_delivered", "_begin", "_iterator"},
}
_OF_USERS = {"training", "_hparams"}  # though the source of a framework sets them
_ALL_PLAIN = frozenset(PLAIN)  # compared at once, as lists of numbers may be long
_LONG = 100  # items of a container in a data set, above which they are its rows


class Walk:
    """The objects that others lead to, by path, and their attributes.

    Parameters
    ----------
    objects : mapping of str to object
        Where to begin.
    bases : tuple of type
        Classes of a framework, which sets attributes of their instances itself.
    built : Walk, optional
        An earlier walk, whose objects keep their paths.

    Raises
    ------
    SetupError
        If an object holds an iterator, whose position cannot be saved.
    """

    def __init__(
        self,
        objects: Mapping[str, object],
        bases: tuple[type, ...],
        built: "Walk | None" = None,
    ) -> None:
        self.attributes: dict[tuple[str, str], Any] = {}  # by path and name
        self.owners: dict[str, object] = {}
        self._paths: dict[int, str] = {}  # of owners, by identity
        self._built = built
        self._waiting: deque[str] = deque()
        for name, value in objects.items():
            self._find(value, name, is_saved=True)
        while self._waiting:
            path = self._waiting.popleft()
            owner = self.owners[path]
            for name, value in _attributes_of(owner, bases).items():
                self.attributes[path, name] = value
                self._find(value, f"{path}.{name}", is_saved=False)

    def path_of(self, value: object) -> str | None:
        """Return the path of an object that was found, else None."""
        return self._paths.get(id(value))

    def reference_to(self, value: object) -> str | None:
        """Return the path of an object that is compared by its attributes alone."""
        if isinstance(value, CONTAINERS):
            return None
        return self.path_of(value)

    def _find(self, value: object, path: str, *, is_saved: bool) -> None:
        """Add the objects that a value holds; others save their states or not."""
        for at, owner in _objects_in(value, path):
            is_new = self._built is not None and self._built.path_of(owner) is None
            is_value = isinstance(owner, GENERATORS) or is_of_process(owner)
            if self.path_of(owner) is not None or (is_new and is_value):
                continue
            own_path = self._add(owner, at)
            if isinstance(owner, nn.Module):
                self._add_parts(owner, own_path)
            # A loader's state is that of generators, which are found anyway.
            if not is_saved and has_state(owner) and not isinstance(owner, DataLoader):
                self.attributes[own_path, STATE] = state_of(owner)

    def _add(self, owner: object, path: str) -> str:
        """Return the path of an object: where it was built, if it was."""
        path = (self._built and self._built.path_of(owner)) or path
        while path in self.owners:
            path += "'"
        self.owners[path] = owner
        self._paths[id(owner)] = path
        self._waiting.append(path)
        return path

    def _add_parts(self, root: nn.Module, path: str) -> None:
        """Add the parts of a module; those that its state leaves out are attributes."""
        state = root.state_dict()
        # The names of all parts, and the identities of modules and weights.
        parts: list[tuple[str, int]] = []
        self.attributes[path, PARTS] = parts
        for prefix, module in root.named_modules(prefix=path):
            module_path = self.path_of(module) or self._add(module, prefix)
            parts.append((prefix, id(module)))
            for name, tensor in {**module._parameters, **module._buffers}.items():
                full = f"{prefix}.{name}"
                is_weights = isinstance(tensor, nn.Parameter)
                parts.append((full, id(tensor) if is_weights else 0))
                if tensor is None:
                    continue
                if full.removeprefix(f"{path}.") not in state:
                    self.attributes[module_path, name] = tensor
                elif self.path_of(tensor) is None:
                    self._add(tensor, full)


def _objects_in(value: Any, path: str) -> Iterator[tuple[str, object]]:
    """Yield the objects to look into that a value is, or its containers hold."""
    is_container = isinstance(value, CONTAINERS)
    if is_container and not _ALL_PLAIN.issuperset(map(type, items_of(value))):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for at, item in items:
            if type(item) not in PLAIN:
                shown = repr(at) if isinstance(at, str | int) else type(at).__name__
                yield from _objects_in(item, f"{path}[{shown}]")
    if type(value) in CONTAINERS:  # without attributes
        return
    if isinstance(value, MethodType | BuiltinMethodType):
        yield from _objects_in(value.__self__, path)
        yield from _objects_in(getattr(value, "__func__", None), path)
    elif is_looked_into(value):
        yield path, value
    elif _is_iterator(value) and next(value, None) is not None:
        root = re.split(r"[.\[]", path)[0]
        raise SetupError(
            f"{root!r} holds a {type(value).__name__} ({path}), which cannot be saved "
            "and would begin anew when its run comes back: let build return the loader "
            "and begin the iterator in train_epoch, or use Batches"
        )


def is_looked_into(value: object) -> bool:
    """Whether the attributes of an object count, instead of the object as a whole."""
    if isinstance(value, (type, tuple, Enum, ModuleType, torch.Tensor)):
        return False
    if isinstance(value, _OPEN) or has_state(value):
        return True
    owner = value if isinstance(value, FunctionType) else type(value)
    if package_of(owner) in _CLOSED:
        return False
    # Objects of compiled packages show nothing.
    return not is_installed(owner.__module__) or bool(_shown_by(value))


def package_of(owner: type | FunctionType) -> str:
    """Return the package that a class or a function is from."""
    return (owner.__module__ or "builtins").partition(".")[0]


def is_of_process(value: object) -> bool:
    """Whether it is no state of a run, such as a bar, an open file or a thread."""
    kind = type(value)
    of_run = (*CONTAINERS, *GENERATORS, FunctionType, MethodType, nn.Module, type)
    if isinstance(value, (*of_run, torch.Tensor)) or not is_installed(kind.__module__):
        return False
    is_reporting = package_of(kind) in REPORTING
    return is_reporting or _is_iterator(value) or pickled(value) is None


def pickled(value: object) -> int | None:
    """Return a checksum of an object's pickle, None where there is none."""
    try:
        return zlib.crc32(pickle.dumps(value))
    except Exception:  # of an object that holds threads, files or connections
        return None


def _is_iterator(value: object) -> bool:
    is_one = hasattr(type(value), "__next__")
    return is_one and not isinstance(value, (IOBase, *ProxyTypes))


def _attributes_of(owner: object, bases: tuple[type, ...]) -> dict[str, Any]:
    """Return the attributes of an object that no state_dict is known to hold."""
    if isinstance(owner, nn.Parameter):
        of_all = {"requires_grad": owner.requires_grad, "grad": owner.grad}
        return _shown_by(owner) | of_all
    if isinstance(owner, GENERATORS):
        return {}
    if isinstance(owner, partial):
        return {"func": owner.func, "args": owner.args, "keywords": owner.keywords}
    attributes = _shown_by(owner)
    if isinstance(owner, FunctionType):
        for name, cell in cells_of(owner).items():
            attributes[name] = cell.cell_contents
        attributes["__defaults__"] = owner.__defaults__
        attributes["__kwdefaults__"] = owner.__kwdefaults__
    if isinstance(owner, Optimizer):
        attributes[WEIGHTS] = [
            weights for group in owner.param_groups for weights in group["params"]
        ]
    kind: Any = type(owner)
    left_out = _held_by_state(owner) | _set_by_framework(kind, bases)
    has_rows = isinstance(owner, Dataset | DataLoader)
    return {
        # The keys count all hooks of the process.
        name: list(value.values()) if name.endswith("_hooks") else value
        for name, value in attributes.items()
        if name not in left_out and not (has_rows and _are_rows(value))
    }


def _shown_by(owner: object) -> dict[str, Any]:
    """Return the attributes of an object in its ``__dict__`` and in slots."""
    state = object.__getstate__(owner)
    parts = state if isinstance(state, tuple) else (state,)
    return {name: value for part in parts if part for name, value in part.items()}


def cells_of(function: FunctionType) -> dict[str, CellType]:
    """Return the variables of other functions that a function uses."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell for name, cell in cells if cell != CellType()}


def _held_by_state(owner: object) -> set[str]:
    if isinstance(owner, Optimizer):
        is_usual = type(owner).state_dict is Optimizer.state_dict
        return {"state", "param_groups"} if is_usual else set()
    for base, names in _HELD_BY_STATE.items():
        if isinstance(owner, base):
            return names
    return set()


def _are_rows(value: Any) -> bool:
    """Whether an attribute of a data set is its rows, which build loads again."""
    if isinstance(value, Dataset | Sampler | nn.Module):
        return False
    if isinstance(value, CONTAINERS):
        return len(value) > _LONG or any(map(_are_rows, items_of(value)))
    has_rows = hasattr(value, "shape") or hasattr(value, "__len__")
    is_known = type(value) in PLAIN or not is_installed(type(value).__module__)
    return has_rows and not is_known


@cache
def _set_by_framework(kind: type, bases: tuple[type, ...]) -> set[str]:
    """Return the attributes that the source of a framework sets on instances."""
    if not (bases and issubclass(kind, bases)):
        return set()
    frameworks = FRAMEWORKS - {"torch"}
    sources = [
        inspect.getsource(each)
        for each in kind.__mro__
        if package_of(each) in frameworks
    ]
    return set(re.findall(r"\bself\.(\w+)", "\n".join(sources))) - _OF_USERS
