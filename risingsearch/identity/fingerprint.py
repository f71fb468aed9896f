"""Digests of values by their content, and the source text of the user's own modules.

A digest is the same in every process: neither an address nor the order of a set
counts. A function or class counts by its name, where its module has it under that
name, because its code is then in the module's source text; any other by its own text,
and by the values that it holds. An estimator counts by what a clone of it keeps.
"""

import ast
import glob
import hashlib
import inspect
import linecache
import re
import sys
import sysconfig
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from enum import Enum
from functools import cache, cached_property, lru_cache, partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError
from risingsearch.json_values import Json, plain

NEW = "+"
"""Ends a digest that earlier releases computed from other things."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_OWN_MODULE = re.compile(r"^risingsearch\.([a-z0-9_]+\.)*")
_LEAVES = (type(None), bool, int, float, complex, str, bytes)
WRAPPERS = (
    MethodType,
    staticmethod,
    classmethod,
    property,
    cached_property,
    type(cache(repr)),
)
"""Wrappers of functions and classes, and below it their attributes that hold these."""

WRAPPED = (
    "__func__",
    "__self__",
    "__wrapped__",
    "__origin__",
    "fget",
    "fset",
    "fdel",
    "func",
)
_SKLEARN = "sklearn.base"  # where the usual way to clone an estimator is defined
_REQUESTS = "_metadata_request"
_KEPT = {_REQUESTS, "_sklearn_output_config"}
"""Attributes of an estimator that its clones keep, beside its parameters."""
_Place = tuple[str, int, int]  # a function's name, line and column
_READS = {"get", "items", "keys", "values"}
_FIRST_SEEN: WeakKeyDictionary[FunctionType, dict[bool, bytes]] = WeakKeyDictionary()
"""Digests of the values that functions hold and change, as they were at first."""


def digest(value: object, *, in_process: bool = False) -> str:
    """Return a digest of the content of a value.

    Parameters
    ----------
    value : object
        Any value; one that can be neither read nor copied counts by its text.
    in_process : bool, default False
        Whether the digest is compared in this process alone. Values then differ where
        it cannot be known that they are the same.

    Returns
    -------
    str
        32 digits, and ``NEW`` if earlier releases computed it from other things.

    Examples
    --------
    >>> digest({"a", "b"}) == digest({"b", "a"})
    True
    >>> digest(lambda x: x + 1) == digest(lambda x: x + 2)
    False
    """
    return Digester(in_process=in_process).whole(value)


def without_addresses(text: str) -> str:
    """Return the repr of an object without its address in memory."""
    return _ADDRESS.sub("", text)


def without_own_modules(name: str) -> str:
    """Return the name of a class or function; modules of this package may move."""
    return _OWN_MODULE.sub("", name)


class Digester:
    """Digests several values, each object once; of one in itself the depth counts."""

    def __init__(self, *, in_process: bool = False) -> None:
        self._in_process = in_process
        self._is_new = False  # whether earlier releases computed this digest otherwise
        self._keeps_fitted = False  # of estimators, whose clones do not
        self._depths: dict[int, int] = {}  # of the objects that are being digested
        # With the object, because ids are used again.
        self._done: dict[tuple[int, bool], tuple[object, bytes, bool]] = {}

    def whole(self, value: object) -> str:
        """Return the digest of a value as text."""
        self._is_new = False
        try:
            digest = self._of(value).hex()[:32]
        except RecursionError:
            raise InvalidParameterError(
                f"{shown(value)} is nested too deeply to be compared: make it flat"
            ) from None
        if self._is_new:
            digest += NEW
        return digest

    def _of(self, value: object) -> bytes:
        value = plain(value)
        if type(value) in _LEAVES:
            return _hashed(type(value).__name__, _bytes_of(value))
        address = id(value)
        if address in self._depths:
            return _hashed("itself", str(self._depths[address]))
        key = address, self._keeps_fitted
        if key not in self._done:
            others_are_new = self._is_new
            self._is_new = False
            self._depths[address] = len(self._depths)
            try:
                content = self._content(value)
            finally:
                del self._depths[address]
            self._done[key] = value, content, self._is_new
            self._is_new = others_are_new
        _, content, is_new = self._done[key]
        self._is_new |= is_new
        return content

    def _content(self, value: object) -> bytes:
        """Return the digest of an object, by its text if it cannot be read."""
        try:
            return _hashed(*self._parts(value))
        except RecursionError:
            raise
        except Exception:  # it may be any, of objects that cannot be copied
            kind = type(value)
            text = uuid.uuid4().hex if self._in_process else _text_of(value)
            attributes = getattr(value, "__dict__", None)
            parts = map(self._of, (kind, text, attributes))
            return _hashed(kind.__name__, *parts)

    def _parts(self, value: Any) -> Iterator[bytes | str | memoryview]:
        """Yield the kind of a value, and digests or bytes of its parts."""
        kind = type(value)
        yield kind.__name__
        if kind in (tuple, list):
            yield from map(self._of, value)
        elif kind in (set, frozenset):
            yield from sorted(map(self._of, value))
        elif kind is dict:
            items = [self._of(key) + self._of(value[key]) for key in value]
            yield from sorted(items)
        elif isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
            yield f"{value.dtype} {value.shape}"
            if value.dtype.hasobject:
                yield self._of(value.tolist())
            else:
                flat = np.ascontiguousarray(value).reshape(-1)
                yield flat.view(np.uint8).data
        elif isinstance(value, ModuleType):
            yield value.__name__
        elif isinstance(value, FunctionType | type):
            yield from self._code_parts(value)
        elif hasattr(value, "untyped_storage"):  # a tensor, whose pickle is a file
            torch = sys.modules["torch"]
            numbers = value.detach().cpu().contiguous().flatten()
            yield f"{value.dtype} {value.shape}"
            yield numbers.view(dtype=torch.uint8).numpy().tobytes()
        else:
            yield from self._state_parts(value)

    def _state_parts(self, value: object) -> Iterator[bytes]:
        """Yield the digests of the parts of an object."""
        kind = type(value)
        if isinstance(value, Enum):
            yield from map(self._of, (kind, value.value))
        elif value is np.random.mtrand._rand:
            yield self._of(kind)  # numpy's own generator, which every draw changes
        elif isinstance(params := _params_of(value), dict):
            yield from self._estimator_parts(value, params)
        else:
            with self._keeping_fitted():
                yield from map(self._of, _copied_parts(value))

    def _estimator_parts(self, estimator: object, params: Json) -> Iterator[bytes]:
        """Yield the digests of all that a clone keeps of an estimator."""
        yield self._of(type(estimator))
        clones = getattr(type(estimator), "__sklearn_clone__", None)
        stays_fitted = getattr(clones, "__module__", _SKLEARN) != _SKLEARN
        with self._keeping_fitted() if stays_fitted else nullcontext():
            yield self._of(params)
            kept = kept_by_clones(estimator, fitted=self._keeps_fitted)
            if kept:
                self._is_new = True
                yield self._of(kept)

    @contextmanager
    def _keeping_fitted(self) -> Iterator[None]:
        """Count fitted estimators as they are, because copies of them stay fitted."""
        before = self._keeps_fitted
        self._keeps_fitted = True
        try:
            yield
        finally:
            self._keeps_fitted = before

    def _code_parts(self, owner: FunctionType | type) -> Iterator[bytes | str]:
        """Yield the name of a function or class, and the digests of its parts."""
        yield name_of(owner)
        is_package = is_installed(owner.__module__)
        is_local = "<" in owner.__qualname__
        if _is_under_its_name(owner) or (is_package and not is_local):
            was_package = is_installed(owner.__module__, _is_in_usual)
            self._is_new |= not (is_package and was_package)
            return
        self._is_new = True
        with self._keeping_fitted():
            if isinstance(owner, FunctionType):
                yield from self._function_parts(owner)
            else:
                yield self._of(owner.__bases__)
                yield self._of(_class_attributes(owner))

    def _function_parts(self, function: FunctionType) -> Iterator[bytes]:
        """Yield the digests of a function's text and of the values that it holds."""
        code = function.__code__
        tree = syntax_tree(code)
        if tree is None:
            yield self._of(_outline(code))
        else:
            yield self._of(ast.unparse(tree))
        yield self._of(str(inspect.getargs(code)))
        if self._in_process and tree is None:
            used = {name: function.__globals__.get(name) for name in names_in(code)}
            yield self._of((hash(code), used))
        first_seen = _FIRST_SEEN.setdefault(function, {})
        digest = first_seen.get(self._in_process)
        if digest is None:
            digest = self._of((cells(function), defaults_of(function), vars(function)))
            if changes_what_it_holds(function):
                first_seen[self._in_process] = digest
        yield digest


def name_of(owner: FunctionType | type) -> str:
    """Return the name of a class or function, without modules of this package."""
    return without_own_modules(f"{owner.__module__}.{owner.__qualname__}")


def is_in_packages(file: str) -> bool:
    """Return whether a file belongs to Python, or was put there by an installer."""
    if _is_in_usual(file):
        return True
    for folder in filter(None, sys.path):
        is_inside = file.startswith((f"{folder}/", f"{folder}\\"))
        if is_inside and _holds_packages(folder):
            return True
    return False


def _is_in_usual(file: str) -> bool:
    """Return whether a file is in a folder that Python itself uses.

    Earlier releases took the modules of such folders alone for installed ones.
    """
    names = ("site-packages", "dist-packages", sysconfig.get_path("stdlib"))
    return any(name in file for name in names)


def is_installed(
    module: str | None, is_in_packages: Callable[[str], bool] = is_in_packages
) -> bool:
    """Return whether a module is one of Python, or of an installed package."""
    if module is None or module == "__main__" or module not in sys.modules:
        return False
    file = getattr(sys.modules[module], "__file__", None)
    is_here = module.partition(".")[0] == "risingsearch"
    return file is None or is_here or is_in_packages(file)


@cache
def _holds_packages(folder: str) -> bool:
    return bool(glob.glob("*.dist-info", root_dir=folder))


def _is_under_its_name(owner: FunctionType | type) -> bool:
    """Return whether its module has a function or class under its name."""
    named: object = sys.modules.get(owner.__module__)
    for name in owner.__qualname__.split("."):
        named = getattr(named, name, None)
    return named is owner


def _class_attributes(owner: type) -> dict[str, object]:
    """Return the attributes of a class, but for those that Python gives every class."""
    methods = (FunctionType, *WRAPPERS)
    return {
        name: value
        for name, value in vars(owner).items()
        if isinstance(value, methods) or not name.startswith(("__", "_abc_"))
    }


def cells(function: FunctionType) -> list[object]:
    """Return the values in a function's closure."""
    contents = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # it is not filled yet
            contents.append(cell.cell_contents)
    return contents


def defaults_of(function: FunctionType) -> dict[str, object]:
    """Return the defaults of a function's arguments, by their names."""
    parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.default is not parameter.empty
    }


def changes_what_it_holds(function: FunctionType) -> bool:
    """Return whether a function may change its defaults or its closure, as a memo."""
    code = function.__code__
    tree = syntax_tree(code)
    if tree is None:
        return False
    names = {function.__name__, *code.co_freevars, *defaults_of(function)}
    for node in ast.walk(tree):
        for part in _changed_by(node):
            if isinstance(part, ast.Nonlocal) or getattr(part, "id", None) in names:
                return True
    return False


def _changed_by(node: ast.AST) -> Sequence[ast.AST]:
    """Return the parts of a node whose values it may change."""
    match node:
        case ast.Nonlocal():
            return [node]
        case ast.Subscript(value=owner) | ast.Attribute(value=owner):
            if not isinstance(node.ctx, ast.Load):
                return [owner]
        case ast.Call(func=ast.Attribute(value=owner, attr=method)):
            if method not in _READS:
                return [*node.args, owner]
            return node.args
        case ast.Call():
            return node.args
    return []


def syntax_tree(code: CodeType) -> ast.AST | None:
    """Return the source of a function, of a lambda its body; None if it is not found.

    The name and the first line tell functions apart, and lambdas the begin of the body:
    others may stand in the same line.
    """
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename))
    begin = (code.co_firstlineno, 0)
    if code.co_name == "<lambda>":
        begin = _begin_of_body(code)
    with suppress(SyntaxError, ValueError):
        return _functions_in(text).get((code.co_name, *begin))
    return None


def _begin_of_body(code: CodeType) -> tuple[int, int]:
    """Return the line and the column where a lambda's body begins."""
    return min(
        (line, column)
        for line, _, column, end in code.co_positions()
        if line and column is not None and end
    )


@lru_cache(maxsize=8)
def _functions_in(text: str) -> dict[_Place, ast.AST]:
    """Return the functions of a source, by their names and where they begin."""
    functions: dict[_Place, ast.AST] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Lambda):
            body = node.body
            functions["<lambda>", body.lineno, body.col_offset] = body
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = [part.lineno for part in (*node.decorator_list, node)]
            functions[node.name, lines[0], 0] = node
    return functions


def _outline(code: CodeType) -> tuple[object, ...]:
    """Return the names and constants of a function, for one without a source."""
    consts = (_outline(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.co_name, code.co_names, code.co_varnames, tuple(consts)


def names_in(code: CodeType) -> set[str]:
    """Return the names of globals and attributes that a function uses."""
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            names |= names_in(const)
    return names


def _params_of(value: object) -> Any:
    """Return the parameters of an estimator; of anything else, no dict."""
    if not hasattr(value, "get_params"):
        return None
    return value.get_params(deep=False)


def kept_by_clones(estimator: object, *, fitted: bool = False) -> Json:
    """Return the attributes that clones have beside the parameters."""
    attributes = getattr(estimator, "__dict__", {})
    names = _KEPT
    if fitted:
        names = attributes.keys() - _params_of(estimator).keys()
    kept = {name: attributes[name] for name in attributes.keys() & names}
    if _REQUESTS in kept:
        kept[_REQUESTS] = kept[_REQUESTS]._serialize()
    return kept


def _copied_parts(value: object) -> tuple[object, ...]:
    """Return the parts of an object that a copy of it has."""
    if isinstance(value, WRAPPERS):
        return tuple(getattr(value, name, None) for name in WRAPPED)
    if isinstance(value, partial):
        keywords = sorted(value.keywords.items())
        return value.func, value.args, tuple(keywords)
    reduced = value.__reduce_ex__(4)
    if isinstance(reduced, str):
        return type(value), reduced
    make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    if isinstance(state, dict):
        # A cached property is computed from the rest, as soon as it is asked for.
        state = {
            name: part
            for name, part in state.items()
            if name != "_sklearn_version" and not _is_cached(type(value), name)
        }
    return make, arguments, state, list(items or ()), dict(pairs or ())


def _is_cached(kind: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(kind, name, None), cached_property)


def _bytes_of(leaf: object) -> bytes:
    """Return a plain value of Python as bytes."""
    if isinstance(leaf, bytes):
        return leaf
    if isinstance(leaf, str):
        return leaf.encode(errors="surrogatepass")
    if type(leaf) is int:  # it may have more digits than Python writes in decimals
        return hex(leaf).encode()
    return repr(leaf).encode()


def _text_of(value: object) -> str:
    """Return the text of an object, alike in every process."""
    try:
        return without_addresses(repr(value))
    except Exception:  # it may be any, of the object's own
        return "?"


def _hashed(*parts: bytes | str | memoryview) -> bytes:
    content = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            part = part.encode()
        content.update(len(part).to_bytes(8, "big"))
        content.update(part)
    return content.digest()
