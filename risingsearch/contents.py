"""Values compared by their content, alike in every process.

Neither the address of an object, nor the order of a set, nor a text that is cut counts.
Functions and classes of a user count by their code, those of an installed package by
their names.
"""

import dis
import hashlib
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache, cached_property, partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from risingsearch.checks import shown
from risingsearch.json_values import SHOWN, as_json, from_json, plain

DIGEST, TEXT, OBJECT, PARTS = "$digest", "text", "$object", "parts"
"""Keys of values that JSON cannot hold: compared by the first, named by the others."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_OWN_MODULE = re.compile(r"^risingsearch\.([a-z0-9_]+\.)*")
_LONGEST = 300  # characters of a value in a message
_SAME = 30  # of them before the first difference
_NUMBERS = (int, float, complex, Decimal, Fraction, np.generic)
_DATA = (str, bytes, *_NUMBERS, tuple, frozenset, np.ndarray)
_PLAIN = (*_DATA, FunctionType, type, type(None))
_CONTAINERS = (list, dict, set)
_METHODS = (staticmethod, classmethod, property, cached_property, type(cache(repr)))
_WRAPPERS = (MethodType, *_METHODS)  # of functions, in one of these attributes
_WRAPPED = ("__func__", "__self__", "__wrapped__", "fget", "fset", "fdel", "func")
_FUNCTIONS = (FunctionType, partial, *_WRAPPERS)
_CODE = (*_PLAIN, *_FUNCTIONS, CodeType, ModuleType)
_FOLLOWING = ("candidates", "len(candidates)", "scoring")  # from other settings
_NAMES = ("GLOBAL", "DEREF", "ATTR")  # of values that outlive a call
_FUNCTION_LOADS = ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD")
_BESIDE = ("__init__", "__repr__", "__eq__", "__hash__")  # no use while running
_PASSED_ON, _OF_OBJECT = "passed on", "of an object"
_WRITES = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
_READS = ("BINARY_", "COMPARE_", "CONTAINS_", "DICT_", "GET_", "LIST_", "POP_", "TO_")
_READERS = {"all", "any", "copy", "count", "enumerate", "get", "index", "items", "keys"}
_READERS |= {"len", "list", "max", "min", "range", "sorted", "sum", "tuple", "values"}
_WRITERS = {"copyto", "fill", "partition", "put", "resize", "shuffle", "sort"}
_MOST_BYTES = 2**26  # of an array that code uses, and that is compared by its values


def described(value: Any) -> Any:
    """Return a value as JSON; long values, and those that it cannot hold, by digest."""
    try:
        saved = as_json(plain(value))
        if len(str(saved)) <= _LONGEST:
            return saved
    except (TypeError, ValueError, RecursionError):
        pass
    return {DIGEST: digest(value), TEXT: without_addresses(shown(value))}


def described_parts(owner: Any) -> Any:
    """Return an object as JSON, its parameters one by one, the innermost first."""
    if not hasattr(owner, "get_params"):
        return described(owner)
    params = owner.get_params(deep=True)
    names = sorted(params, key=lambda name: (-name.count("__"), name))
    return {"class": named(type(owner)), **{k: described(params[k]) for k in names}}


def named(owner: Any) -> dict[str, str]:
    """Return a class, a function or an object by its name and digest."""
    kind = owner if hasattr(owner, "__qualname__") else type(owner)
    return {OBJECT: _name_of(kind), DIGEST: digest(owner)}


def without_addresses(text: str) -> str:
    """Return the repr of an object without its address in memory."""
    return _ADDRESS.sub("", text)


def first_difference(
    saved: Mapping[str, Any], current: Mapping[str, Any]
) -> tuple[str, str, str, str] | None:
    """Return where settings first differ, both values as text, and a note on others."""
    found = [
        _deepest(name, was, now)
        for name, was, now in _pairs(saved, current)
        if was != now and _content(was) != _content(now)
    ]
    if not found:
        return None
    (where, was, now), *others = found
    names = [name for name, *_ in others if name.partition("[")[0] not in _FOLLOWING]
    also = f"; others differ too: {', '.join(names)}" if names else ""
    return where, *_distinguished(_text(was), _text(now)), also


def _pairs(
    saved: Mapping[str, Any], current: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield all settings with both values, those of the fingerprint one by one."""
    for name in sorted(dict.fromkeys([*current, *saved]), key=_causes_first):
        was, now = saved.get(name), current.get(name)
        if name == "fingerprint" and isinstance(now, dict):
            yield from _pairs(was or {}, now)
        else:
            yield name, was, now


def _causes_first(name: str) -> tuple[bool, bool, bool]:
    """Sort causes of others to the front, the seed and the candidates to the end."""
    first = name in ("fingerprint", "space", "policy")
    return name == "candidates", name == "seed", not first


def _content(value: Any) -> Any:
    """Return the compared part of a described value; numpy's numbers as Python's."""
    if isinstance(value, list):
        return [_content(one) for one in value]
    if not isinstance(value, dict):
        return value
    value = value.get("$dict", value)
    if OBJECT in value:
        return _OWN_MODULE.sub("", value[OBJECT]), value.get(DIGEST)
    if DIGEST in value:
        return value[DIGEST]
    if SHOWN in value:
        return _content(value.get(PARTS, value[SHOWN]))
    one = plain(from_json(value))
    if isinstance(one, bool | int | float | str):
        return one if one == one else "nan"  # which differs from itself
    return {name: _content(one) for name, one in value.items()}


def _deepest(name: str, was: Any, now: Any) -> tuple[str, Any, Any]:
    """Return the first difference between two values, deep inside them."""
    was, now = (
        one.get(PARTS, one) if isinstance(one, dict) and SHOWN in one else one
        for one in (was, now)
    )
    dicts = isinstance(was, dict) and isinstance(now, dict)
    if dicts and not any(key[:1] == "$" for key in was):  # JSON for something else
        for key in dict.fromkeys([*now, *was]):
            if _content(was.get(key)) != _content(now.get(key)):
                return _deepest(f"{name}.{key}", was.get(key), now.get(key))
    if isinstance(was, list) and isinstance(now, list):
        for i, (one, other) in enumerate(zip(was, now, strict=False)):
            if _content(one) != _content(other):
                return _deepest(f"{name}[{i}]", one, other)
        return f"len({name})", len(was), len(now)
    return name, was, now


def _text(value: Any) -> str:
    content = value.get("$dict", value) if isinstance(value, dict) else {}
    for name in (TEXT, OBJECT, SHOWN):
        if name in content and (name != TEXT or DIGEST in content):
            return str(content[name])
    return repr(from_json(value))


def _distinguished(was: str, now: str) -> tuple[str, str]:
    """Return two texts, cut so that they show their difference."""
    if was == now:
        return _cut(was, 0), f"{_cut(now, 0)}, whose content differs"
    same = next((i for i, (a, b) in enumerate(zip(was, now)) if a != b), 0)  # noqa: B905
    begin = max(0, same - _SAME) if max(len(was), len(now)) > _LONGEST else 0
    return _cut(was, begin), _cut(now, begin)


def _cut(text: str, begin: int) -> str:
    end = "..." if len(text) > begin + _LONGEST else ""
    return f"{'...' if begin else ''}{text[begin : begin + _LONGEST]}{end}"


def digest(value: Any) -> str:
    """Return a digest of the content of a value."""
    return _Digester().whole(value)


def code_digest(trainable: Any) -> str:
    """Return a digest of a trainable's functions, with the values that they use.

    Lists, dicts and sets count where all code only reads them, and so do attributes of
    objects of the user, but for the trainable's own, which may tell where it runs; of
    what is inside them, numbers, texts and arrays.
    """
    inside = [*getattr(trainable, "__dict__", {}).values()]
    inside += (getattr(trainable, name, None) for name in ("save", "load"))
    functions = (one for one in inside if isinstance(one, _FUNCTIONS))
    given = type(trainable), trainable.start, trainable.train, *functions
    return _Digester(_CODE).whole(tuple(filter(_is_own, given)))


def _is_own(value: Any) -> bool:
    """Return whether a class or a function, perhaps in a partial, is the user's."""
    inner = value.func if isinstance(value, partial) else value
    return not _is_installed(getattr(inner, "__module__", None))


def _has_own_attributes(value: Any) -> bool:
    """Return whether only code of the user changes the attributes of an object."""
    kinds = () if isinstance(value, _CODE) else type(value).__mro__[:-1]
    return bool(kinds) and not any(_is_installed(kind.__module__) for kind in kinds)


class _Used(NamedTuple):
    """A container or an object that counts by its content."""

    value: Any


class _Digester:
    """Digests values; of one that contains itself, the depth counts.

    Of values of other ``kinds`` the class alone counts. What a function or class uses
    is digested apart, and once: functions may call each other in many ways.
    """

    def __init__(self, kinds: tuple[type, ...] = (object,)) -> None:
        self._depths: dict[int, int] = {}  # of the values that are being digested
        self._kinds = kinds
        self._met: list[Any] = []  # functions and classes of the user
        self._changed: set[Any] = set()  # by these functions, which does not count

    def whole(self, value: Any) -> str:
        """Return the digest of a value, and of all that its functions use."""
        parts = self._with_bodies(value)
        if self._changed:  # all of it is known by now
            self._met.clear()
            parts = self._with_bodies(value)
        return (_hashed(*parts) if self._met else parts[0]).hex()[:32]

    def _with_bodies(self, value: Any) -> list[bytes]:
        # The value first: its functions are met by then, and meet the others.
        return [self.of(value), *sorted({self.of(self._body(k)) for k in self._met})]

    def _body(self, one: Any) -> tuple[Any, ...]:
        """Return the values and the code that a function or class uses."""
        if isinstance(one, type):
            return *one.__bases__, _items(vars(one), (*_METHODS, FunctionType, type))
        known, names = one.__globals__, _names(one.__code__, "LOAD_GLOBAL")
        kept = (name for name in names if (id(known), name) not in self._changed)
        used = {k: self._used(known.get(k), (id(known), k)) for k in kept}
        kinds = _PLAIN if self._kinds == (object,) else (object,)
        return *self._cells(one), _items(used, kinds)

    def _used(self, value: Any, key: Any) -> Any:
        """Return a value that code uses; by its content, if it counts so."""
        if self._kinds == (object,):
            return value
        is_read = (_PASSED_ON, key) not in self._changed
        counts = is_read if type(value) in _CONTAINERS else _has_own_attributes(value)
        return _Used(value) if counts else value

    def _cells(self, function: FunctionType) -> Iterator[Any]:
        """Yield the values in a function's closure, None for those that change."""
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # not filled yet
                is_kept = id(cell) not in self._changed
                yield self._used(cell.cell_contents, id(cell)) if is_kept else None

    def _signature(self, value: Any) -> Iterator[bytes]:
        """Yield the marks of a function or a class, without all that it uses."""
        if isinstance(value, type):
            kept = (k for k in vars(value) if k[:2] != "__" and k not in self._changed)
            own = {k: vars(value)[k] for k in kept}
            if self._kinds != (object,) and issubclass(value, Enum):
                own = {one.name: one.value for one in value}
            yield value.__qualname__.encode()
            yield self.of(_items(own, _DATA))
            return
        yield from self._code(value.__code__, value.__doc__)
        data = (one for one in self._cells(value) if isinstance(one, _DATA))
        yield self.of((*data, value.__defaults__, _items(value.__kwdefaults__ or {})))

    def of(self, value: Any) -> bytes:
        """Return the digest of a value."""
        value = plain(value)
        key = id(value)
        if key in self._depths:
            return _hashed("itself", str(self._depths[key]).encode())
        self._depths[key] = len(self._depths)
        try:
            return _hashed(*self._parts(value))
        finally:
            del self._depths[key]

    def _parts(self, value: Any) -> Iterator[Any]:
        """Yield the kind of a value, and digests or bytes of its parts."""
        kind = type(value)
        yield kind.__name__
        if not issubclass(kind, self._kinds):
            yield self.of(kind)
        elif kind is _Used:
            yield from self._content(value.value)
        elif value is None or kind in (bool, int, float, complex):
            yield (hex(value) if kind is int else repr(value)).encode()
        elif kind in (str, bytes):
            yield value.encode(errors="surrogatepass") if kind is str else value
        elif kind in (tuple, list):
            yield from map(self.of, value)
        elif kind in (set, frozenset):
            yield from sorted(map(self.of, value))
        elif kind is dict:
            yield from sorted(self.of(key) + self.of(value[key]) for key in value)
        elif isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
            yield f"{value.dtype} {value.shape}".encode()
            if value.dtype.hasobject:
                flat = tuple(value.ravel().tolist())  # as code's lists do not count
                yield self.of(value.tolist() if self._kinds == (object,) else flat)
            elif self._kinds == (object,) or value.nbytes <= _MOST_BYTES:
                yield np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
        elif isinstance(value, ModuleType):
            yield value.__name__.encode()
        elif isinstance(value, FunctionType | type) and _is_installed(value.__module__):
            yield _name_of(value).encode()
        elif isinstance(value, FunctionType | type):
            if all(one is not value for one in self._met):
                self._met.append(value)
                self._changed |= _changed_by(value)
            yield from self._signature(value)
        elif isinstance(value, CodeType):
            yield from self._code(value)
        elif hasattr(value, "untyped_storage"):  # a tensor, whose pickle is a file
            flat = value.detach().cpu().contiguous().flatten()
            yield f"{value.dtype} {value.shape}".encode()
            yield flat.view(dtype=sys.modules["torch"].uint8).numpy().tobytes()
        else:
            yield from map(self.of, _state_of(value))

    def _content(self, value: Any) -> Iterator[bytes]:
        """Yield the digests of a container's items, or of attributes that stay."""
        yield self.of(type(value))
        if isinstance(value, dict):
            yield from sorted(self.of(key) + self.of(value[key]) for key in value)
        elif isinstance(value, list | set):
            yield self.of(tuple(value) if type(value) is list else frozenset(value))
        else:
            own = (k for c in type(value).__mro__ for k in getattr(c, "__slots__", ()))
            kept = {
                name: getattr(value, name, None)
                for name in (*own, *getattr(value, "__dict__", ()))
                if self._changed.isdisjoint((name, (_OF_OBJECT, name)))
            }
            lists = {k: v for k, v in kept.items() if type(v) in _CONTAINERS}
            kept |= {k: self._used(v, k) for k, v in lists.items()}
            yield self.of(_items(kept, _DATA))

    def _code(self, code: CodeType, doc: str | None = None) -> Iterator[bytes]:
        yield code.co_code
        n_arguments = code.co_argcount + code.co_kwonlyargcount
        names = code.co_names, code.co_varnames[:n_arguments]
        consts = (one for one in code.co_consts if one is None or one != doc)
        yield self.of((*consts, names))


def _hashed(*parts: Any) -> bytes:
    content = hashlib.sha256()
    for part in parts:
        one = part.encode() if isinstance(part, str) else part
        content.update(len(one).to_bytes(8, "big"))
        content.update(one)
    return content.digest()


def _state_of(value: Any) -> tuple[Any, ...]:
    """Return the parts of an object, as far as they can be known."""
    if isinstance(value, _WRAPPERS):
        return tuple(getattr(value, name, None) for name in _WRAPPED)
    if isinstance(value, partial):
        return value.func, value.args, _items(value.keywords)
    kind = type(value)
    if value is np.random.mtrand._rand:
        return (kind,)  # numpy's own, which every draw changes
    if kind.__name__ == "FrozenEstimator":  # it stays as it was fitted
        return kind, vars(value.estimator)
    if hasattr(value, "get_params"):  # clones have nothing else, in any release
        return kind, value.get_params(deep=False)
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:  # it may be any, of what cannot be copied
        return kind, without_addresses(repr(value)), getattr(value, "__dict__", None)
    if isinstance(reduced, str):
        return kind, reduced
    make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    if isinstance(state, dict):
        state = {name: state[name] for name in state if name != "_sklearn_version"}
    return make, arguments, state, list(items or ()), dict(pairs or ())


def _changed_by(one: Any) -> set[Any]:
    """Return the globals, cells of closures and attributes that a function changes.

    And, as ``(_PASSED_ON, one)``, those that something else could change.
    """
    if isinstance(one, type):
        return set()
    code, known = one.__code__, id(one.__globals__)
    cells = dict(zip(code.co_freevars, one.__closure__ or (), strict=True))
    found: set[Any] = set()
    for kind, name, changes in _uses(code):
        keys = {"GLOBAL": (known, name), "DEREF": id(cells.get(name))}
        key = (keys | {_OF_OBJECT: (kind, name)}).get(kind, name)
        found.add(key if changes else (_PASSED_ON, key))
    return found


def _uses(code: CodeType) -> Iterator[tuple[str, str, bool]]:
    """Yield the names in code that are not only read, and whether it changes them."""
    steps = list(dis.get_instructions(code))
    written: set[str] = set()  # by their local names
    for i in reversed(range(len(steps))):
        how, _, kind = steps[i].opname.partition("_")
        name = steps[i].argval
        if kind == "ATTR" and code.co_name in _BESIDE:
            continue
        if how == "STORE" and kind in _NAMES:
            owner = steps[i - 1]  # of an attribute; no class, if a variable but "cls"
            is_local = owner.opname[:9] == "LOAD_FAST" and owner.argval != "cls"
            yield (_OF_OBJECT if kind == "ATTR" and is_local else kind), name, True
        elif how == "LOAD" and kind in (*_NAMES, "FAST"):
            step, k = _user_of(steps[i + 1 :]), i
            while k > 0 and steps[k].opname == "LOAD_ATTR":
                k -= 1
            near = (*steps[k - 1 : k], step)  # f(name), f(one.name), or name.f
            calls = {one.argval for one in near if one.opname in _FUNCTION_LOADS}
            # In Python 3.11 and 3.12 the names of arguments are a constant.
            last = step.arg if step.opname == "KW_NAMES" else None
            names = steps[i + 1].argval if last is None else code.co_consts[last]
            changes = (
                step.opname in _WRITES
                or not calls.isdisjoint(_WRITERS)
                or (isinstance(names, tuple) and "out" in names)
                or (step.opname == "STORE_FAST" and step.argval in written)
            )
            reads = step.opname.startswith(_READS) or not calls.isdisjoint(_READERS)
            if kind == "FAST":
                written |= {name} if changes else set()
            elif changes or not reads:
                yield kind, name, changes
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _uses(inner)


def _user_of(steps: Sequence[dis.Instruction]) -> dis.Instruction:
    """Return the step that takes the top of the stack as it was before these."""
    depth = 1
    for step in steps:
        effect = dis.stack_effect(step.opcode, step.arg, jump=False)
        if depth == 1 and step.opname in _FUNCTION_LOADS[1:]:
            break
        if effect <= 0 and depth + effect <= 1:
            break
        depth += effect
    return step


def _names(code: CodeType, operation: str) -> set[Any]:
    """Return the names that a function uses in one kind of operation."""
    steps = dis.get_instructions(code)
    own = {step.argval for step in steps if step.opname == operation}
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return own.union(*(_names(one, operation) for one in inner))


def _items(values: Mapping[str, Any], kinds: Any = object) -> tuple[Any, ...]:
    """Return the items whose values are of some kinds, by their names."""
    return tuple(sorted((k, v) for k, v in values.items() if isinstance(v, kinds)))


def _name_of(owner: Any) -> str:
    """Return the name of a class or function, without modules of this package."""
    return _OWN_MODULE.sub("", f"{owner.__module__}.{owner.__qualname__}")


@cache
def _is_installed(module: str | None) -> bool:
    """Return whether a module is one of Python, or of an installed package."""
    if module is None or module == "__main__":
        return False
    found = sys.modules.get(module)
    file = getattr(found, "__file__", None)
    if file is None:
        return found is not None
    installed = ("site-packages", "dist-packages", sysconfig.get_path("stdlib"))
    return module.startswith("risingsearch.") or any(part in file for part in installed)
