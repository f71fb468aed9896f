"""The source text of the user's own modules, and the changes in it."""

import ast
import base64
import hashlib
import importlib.util
import linecache
import os
import re
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from itertools import accumulate
from types import FunctionType, ModuleType

import numpy as np

from risingsearch.identity.fingerprint import (
    WRAPPED,
    WRAPPERS,
    cells,
    defaults_of,
    is_in_packages,
    is_installed,
    names_in,
    syntax_tree,
)

_MOST_VALUES = 2**16  # that are looked through for functions and classes of the user
_HASH_BYTES = 3  # of a line, which four characters write
_HASH = re.compile(".{4}")
_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.ndarray, np.generic)


def code_of(*objects: object) -> dict[str, str]:
    """Return the user's source text that objects reach, by the names of its files.

    The imports of the modules in which their functions and classes stand are followed,
    and none is run. What stands in no file, as in a notebook, counts by the function.

    Parameters
    ----------
    *objects : object
        Trainables, estimators, callbacks and all others with functions of the user.

    Returns
    -------
    dict of str to str
        The hashes of the lines, four characters each, by the name of the file.

    Examples
    --------
    >>> code_of(len, {"rate": 0.1})
    {}
    """
    code = _UserCode()
    queue = deque(objects)
    met: dict[int, object] = {}  # with the values, because ids are used again
    while queue and len(met) < _MOST_VALUES:
        value = queue.popleft()
        if not isinstance(value, _PLAIN) and id(value) not in met:
            met[id(value)] = value
            try:
                queue += code.add(value)
            except Exception:  # it may be any, of attributes that are made when asked
                continue
    return code.lines


def changed_files(saved: dict[str, str], current: dict[str, str]) -> list[str]:
    """Return the names of files that have changed, with the number of their lines.

    Parameters
    ----------
    saved : dict of str to str
        An earlier result of ``code_of``.
    current : dict of str to str
        The result now. A file that only one has, or that has another name, is no
        change alone: it may have been reached by what else the process had imported.

    Returns
    -------
    list of str
        Such as ``"model.py (3 lines)"``, or ``"model.py (gone)"``.

    Examples
    --------
    >>> changed_files({"a.py": "Ab1xCd2y"}, {"a.py": "Ab1xEf3z"})
    ['a.py (1 line)']
    """
    names = [n for n in saved | current if saved.get(n) != current.get(n)]
    kept = set(current.values())  # perhaps under another name
    are_kept = all(saved[name] in kept for name in names if name in saved)
    if are_kept or current.keys().isdisjoint(names):
        return []
    changes = {name: _change(saved.get(name), current.get(name)) for name in names}
    return [f"{name} ({changes[name]})" for name in sorted(changes)]


def _change(was: str | None, now: str | None) -> str:
    """Return in words how far the lines of a file differ."""
    if now is None:
        return "gone"
    before = Counter(_HASH.findall(was or ""))
    after = Counter(_HASH.findall(now))
    n_lines = max((before - after).total(), (after - before).total(), 1)
    return f"{n_lines:,} line{'s' if n_lines > 1 else ''}"


def _hashes(lines: Iterable[str]) -> str:
    digests = (hashlib.sha256(line.rstrip().encode()).digest() for line in lines)
    return base64.b64encode(b"".join(each[:_HASH_BYTES] for each in digests)).decode()


class _UserCode:
    """Code of the user, as far as it has been reached."""

    def __init__(self) -> None:
        self.lines: dict[str, str] = {}
        self._has_file: dict[str, bool] = {}  # by the name of a module

    def add(self, value: object) -> list[object]:
        """Add the code of a value; return the values that it leads to."""
        if isinstance(value, ModuleType):
            self._add_module(value.__name__)
            return []
        if not isinstance(value, FunctionType | type):
            return [type(value), *_inside(value)]
        is_own = not is_installed(value.__module__)
        if isinstance(value, type):
            if is_own:
                self._add_module(value.__module__)
            return [*value.__mro__, *(vars(value).values() if is_own else ())]
        inside = [*cells(value), *defaults_of(value).values(), *vars(value).values()]
        if is_own and not self._add_module(value.__module__):
            inside += self._add_function(value)
        return inside

    def _add_function(self, function: FunctionType) -> list[object]:
        """Add the text of a function without a file; return the values that it uses."""
        code = function.__code__
        tree = syntax_tree(code)
        if tree is None:
            return []
        name = function.__qualname__
        lines = _hashes(ast.unparse(tree).splitlines())
        self.lines[name] = self.lines.get(name, "") + lines
        used = (function.__globals__.get(each) for each in names_in(code))
        return [
            each for each in used if isinstance(each, FunctionType | type | ModuleType)
        ]

    def _add_module(self, name: str) -> bool:
        """Add the file of a user's module with all that it imports, if there is one."""
        queue = [name]
        while queue:
            module = queue.pop()
            if module in self._has_file:
                continue
            file = _File.of(module)
            self._has_file[module] = file is not None
            if file is not None:
                self.lines[file.name] = _hashes(file.lines)
                queue += file.imports()
                known = getattr(sys.modules.get(module), "__dict__", {}).values()
                queue += [
                    each.__name__ for each in known if isinstance(each, ModuleType)
                ]
        return self._has_file[name]


def _inside(value: object) -> list[object]:
    """Return the values in another one."""
    if isinstance(value, dict):
        return [*value.values()]
    if isinstance(value, tuple | list | set | frozenset):
        return [*value]
    if isinstance(value, partial):
        return [
            value.func,
            value.args,
            value.keywords,
        ]
    if isinstance(value, WRAPPERS):
        return [getattr(value, name, None) for name in WRAPPED]
    names: list[str] = []
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    in_slots = [getattr(value, name, None) for name in names]
    return [*getattr(value, "__dict__", {}).values(), *in_slots]


@dataclass(frozen=True)
class _File:
    """The file of a module of the user."""

    name: str
    package: str
    lines: list[str]

    @classmethod
    def of(cls, module: str) -> "_File | None":
        """Return the file of a module; None if it has none, or is installed."""
        loaded = sys.modules.get(module)
        namespace = getattr(loaded, "__dict__", {})
        spec = namespace.get("__spec__") if loaded else _spec_of(module)
        path = namespace.get("__file__") if loaded else spec and spec.origin
        if not path or is_installed(module) or is_in_packages(path):
            return None
        linecache.checkcache(path)
        lines = linecache.getlines(path, namespace)
        if not lines:
            return None
        stem = os.path.splitext(os.path.basename(path))[0]
        if module == "__main__":
            module = spec.name if spec else stem
        package = namespace.get("__package__") or (spec and spec.parent) or ""
        name = module.replace(".", "/") + ("/__init__" if stem == "__init__" else "")
        return cls(f"{name}.py", package, lines)

    def imports(self) -> Iterator[str]:
        """Yield the names of modules that it imports, and of their packages."""
        try:
            tree = ast.parse("".join(self.lines))
        except (SyntaxError, ValueError):  # it is not written in Python's own syntax
            return
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                parts = self.package.split(".")
                above = parts[: len(parts) - node.level + 1] if node.level else []
                base = ".".join([*above, *filter(None, [node.module])])
                names = [f"{base}.{alias.name}" for alias in node.names]
            for name in names:
                yield from accumulate(name.split("."), "{}.{}".format)


def _spec_of(name: str) -> ModuleSpec | None:
    """Find a module that is not imported, without importing its packages."""
    package = name.rpartition(".")[0]
    try:
        if not package:
            return importlib.util.find_spec(name)
        known = sys.modules.get(package)
        above = known.__spec__ if known else _spec_of(package)
        places = above and above.submodule_search_locations
        if places:
            return PathFinder.find_spec(name, places)
        return None
    except (ImportError, ValueError, AttributeError):
        return None
