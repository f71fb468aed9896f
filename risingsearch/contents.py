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
from types import CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError
from risingsearch.json_values import SHOWN, as_json, from_json, plain

DIGEST, TEXT, OBJECT, PARTS = "$digest", "text", "$object", "parts"
"""Keys of values that JSON cannot hold: compared by the first, named by the others."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_OWN_MODULE = re.compile(r"^risingsearch\.([a-z0-9_]+\.)*")
_LONGEST = 300  # characters of a value in a message
_SAME = 30  # of them before the first difference
_NUMBERS = (int, float, complex, Decimal, Fraction, np.generic)
_LEAVES = (type(None), bool, int, float, complex, str, bytes)
_OF_C = (type(len), np.ufunc, type(np.dot))  # functions without code of Python
_FIXED = (str, bytes, *_NUMBERS, FunctionType, type, type(None), *_OF_C, ModuleType)
_DATA = (str, bytes, *_NUMBERS, tuple, frozenset, np.ndarray, Enum)
_PLAIN = (*_DATA, *_FIXED)
_METHODS = (staticmethod, classmethod, property, cached_property, type(cache(repr)))
_WRAPPERS = (MethodType, *_METHODS, type(ClassVar[int]))  # around one of these
_WRAPPED: tuple[str, ...] = ("__func__", "__self__", "__wrapped__", "__origin__")
_WRAPPED += ("fget", "fset", "fdel", "func")
_FUNCTIONS = (FunctionType, partial, *_WRAPPERS)
_CODE = (*_DATA, *_FUNCTIONS, list, dict, set, type, type(None), CodeType, ModuleType)
_FOLLOWING = ("candidates", "len(candidates)", "scoring")  # from other settings
_TYPED = ("candidates", "estimator")  # where 1 and 1.0 are different values
_NAMES = ("GLOBAL", "DEREF", "ATTR")  # of values that outlive a call
_BESIDE = ("__init__", "__repr__", "__eq__", "__hash__")  # no use while running
_IN_PLACE, _OF_OBJECT = "in place", "of an object"
_GETS = ("LOAD_METHOD", "LOAD_ATTR")
_WRITES = {"STORE_SUBSCR": 2, "DELETE_SUBSCR": 2, "STORE_SLICE": 3}
"""Steps that write into a value, and its place on the stack from the top."""
_PARTS_OF = {"BINARY_SUBSCR": 2, "BINARY_SLICE": 3, "GET_ITER": 1, "FOR_ITER": 1}
"""The same, of those that get a part of it."""
_VIEWS = ("T", "flat", "real", "imag", "__dict__")
_WRITERS = {"at", "copyto", "delattr", "fill_diagonal", "heapify", "heappop", "vars"}
_WRITERS |= {"heappush", "insort", "place", "put", "put_along_axis", "putmask"}
_WRITERS |= {"setattr", "shuffle"}
_OWN_WRITERS = {"add", "append", "clear", "discard", "extend", "fill", "insert", "pop"}
_OWN_WRITERS |= {"partition", "popitem", "put", "remove", "resize", "reverse", "sort"}
_OWN_WRITERS |= {"setdefault", "update"}
_MOST_BYTES = 2**26  # of an array that code uses, and that is compared by its values
_MOST_ITEMS = 2**16  # the same, of all lists, tuples, dicts and sets together


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
    parts = {name: _described_function(params[name]) for name in names}
    return {"class": named(type(owner)), **parts}


def _described_function(value: Any) -> Any:
    """Return a value as JSON; a function's defaults one by one, before its code."""
    defaults = _defaults_of(value) if isinstance(value, FunctionType) else {}
    parts = {name: described(one) for name, one in defaults.items()}
    return parts | {"code": described(value)} if parts else described(value)


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
        if (was != now or name in _TYPED) and _content(was) != _content(now)
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
        return repr(value)  # 1, 1.0 and True may mean different things
    value = value.get("$dict", value)
    if OBJECT in value:
        return _OWN_MODULE.sub("", value[OBJECT]), value.get(DIGEST)
    if DIGEST in value:
        return value[DIGEST]
    if SHOWN in value:
        return _content(value.get(PARTS, value[SHOWN]))
    one = plain(from_json(value))
    if not isinstance(one, dict):
        return repr(one)
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

    Arrays, lists, dicts, sets and attributes of the user's objects count with what is
    in them, unless the code changes them; of other objects the class counts. A
    trainable with ``code`` names the values whose functions these are.
    """
    if hasattr(trainable, "code"):
        return _Digester(in_code=True).whole(trainable.code)
    inside = [*getattr(trainable, "__dict__", {}).values()]
    inside += (getattr(trainable, name, None) for name in ("save", "load"))
    functions = (one for one in inside if isinstance(one, _FUNCTIONS))
    given = type(trainable), trainable.start, trainable.train, *functions
    return _Digester(_CODE, in_code=True).whole(tuple(filter(_is_own, given)))


def _is_own(value: Any) -> bool:
    """Return whether a class or a function, perhaps in a partial, is the user's."""
    inner = value.func if isinstance(value, partial) else value
    return not _is_installed(getattr(inner, "__module__", None))


def _has_own_attributes(value: Any) -> bool:
    """Return whether only code of the user changes the attributes of an object."""
    kinds = type(value).__mro__[:-1]
    own = kinds and not any(_is_installed(kind.__module__) for kind in kinds)
    return bool(own) or kinds == (SimpleNamespace,)


class _Digester:
    """Digests values; of one that contains itself, the depth counts.

    Of values of other ``kinds`` the class alone counts. A function or class of the
    user counts by its number, in the order in which they are met; its body is digested
    afterwards. What it uses counts if it is plain, and ``in_code`` in any case.
    """

    def __init__(self, kinds: tuple[Any, ...] = (object,), in_code: bool = False):
        self._kinds = self._of_value = kinds
        self._in_code = in_code
        self._depths: dict[int, int] = {}  # of the values that are being digested
        self._done: dict[int, tuple[Any, bytes]] = {}  # with the value: ids are reused
        self._met: list[Any] = []  # functions and classes of the user, and objects
        self._numbers: dict[int, int] = {}  # of these
        self._changed: set[Any] = set()  # by these functions, which does not count
        self._items_left = 0  # of containers that code uses

    def whole(self, value: Any) -> str:
        """Return the digest of a value, and of all that its functions use."""
        try:
            parts = self._with_bodies(value)
            if self._changed:  # all of it is known by now
                parts = self._with_bodies(value)
        except RecursionError:
            msg = f"{shown(value)} is nested too deeply to be compared: make it flat"
            raise InvalidParameterError(msg) from None
        return (_hashed(*parts) if self._met else parts[0]).hex()[:32]

    def _with_bodies(self, value: Any) -> list[bytes]:
        self._met, self._numbers, self._done = [], {}, {}
        self._kinds, self._items_left = self._of_value, _MOST_ITEMS
        parts = [self.of(value)]
        self._done = {}
        if self._in_code:
            self._kinds = _CODE
        return parts + [self.of(self._body(one)) for one in self._met]  # which grows

    def _body(self, one: Any) -> tuple[Any, ...]:
        """Return the values and the code that make a function, class or object."""
        kinds = (object,) if self._in_code else _PLAIN
        if isinstance(one, type):
            own = {k: v for k, v in vars(one).items() if k[:2] != "__"}
            if issubclass(one, Enum):
                own = {k: v.value for k, v in one.__members__.items()}
            data = _items(self._kept(own, "ATTR"), object if self._in_code else _DATA)
            methods = _items(vars(one), (*_METHODS, FunctionType, type))
            return one.__qualname__, data, one.__bases__, methods
        if not isinstance(one, FunctionType):
            return type(one), _items(self._kept(_attributes(one), "ATTR", _OF_OBJECT))
        known = one.__globals__
        used = {k: known.get(k) for k in _names(one.__code__) if k[:2] != "__"}
        used |= {k: v.__name__ for k, v in used.items() if isinstance(v, _OF_C)}
        cells = (self._kept({id(c): v}, "CELL").get(id(c)) for c, v in _cells(one))
        return (
            tuple(self._code(one.__code__, one.__doc__)),
            tuple(cells),
            _items(self._kept(_defaults_of(one), id(one.__code__))),
            _items(self._kept(used, id(known)), kinds),
        )

    def _kept(self, values: Mapping[Any, Any], *scopes: Any) -> dict[Any, Any]:
        """Return the values that no code changes, by names in these scopes."""

        def stays(name: Any, value: Any) -> bool:
            keys: set[Any] = {(scope, name) for scope in scopes}
            if not isinstance(value, _FIXED):
                keys |= {(_IN_PLACE, *key) for key in keys}
            return self._changed.isdisjoint(keys)

        return {name: value for name, value in values.items() if stays(name, value)}

    def of(self, value: Any) -> bytes:
        """Return the digest of a value."""
        value = plain(value)
        if type(value) in _LEAVES:
            return _hashed(*self._parts(value))
        key = id(value)
        if key in self._done:
            return self._done[key][1]
        if key in self._depths:
            return _hashed("itself", str(self._depths[key]).encode())
        self._depths[key] = len(self._depths)
        try:
            found = _hashed(*self._parts(value))
        finally:
            del self._depths[key]
        self._done[key] = value, found
        return found

    def _parts(self, value: Any) -> Iterator[Any]:
        """Yield the kind of a value, and digests or bytes of its parts."""
        kind = type(value)
        yield kind.__name__
        if not issubclass(kind, self._kinds):
            yield self._number(value) if _has_own_attributes(value) else self.of(kind)
        elif value is None or kind in (bool, int, float, complex):
            yield (hex(value) if kind is int else repr(value)).encode()
        elif kind in (str, bytes):
            yield value.encode(errors="surrogatepass") if kind is str else value
        elif kind in (tuple, list, set, frozenset, dict):
            yield from self._items_of(value)
        elif isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
            yield f"{value.dtype} {value.shape}".encode()
            if value.dtype.hasobject:
                yield self.of(value.tolist())
            elif self._kinds == (object,) or value.nbytes <= _MOST_BYTES:
                yield np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
        elif isinstance(value, ModuleType):
            yield value.__name__.encode()
        elif isinstance(value, FunctionType | type):
            is_installed = _is_installed(value.__module__)
            yield _name_of(value).encode() if is_installed else self._number(value)
        elif isinstance(value, Enum):
            yield from (self.of(kind), self.of(value.value))
        elif isinstance(value, CodeType):
            yield from self._code(value)
        elif hasattr(value, "untyped_storage"):  # a tensor, whose pickle is a file
            flat = value.detach().cpu().contiguous().flatten()
            yield f"{value.dtype} {value.shape}".encode()
            yield flat.view(dtype=sys.modules["torch"].uint8).numpy().tobytes()
        else:
            yield from map(self.of, _state_of(value))

    def _items_of(self, value: Any) -> Iterator[bytes]:
        """Yield the digests of a container's items, of too many their number."""
        if self._kinds != (object,):
            if len(value) > self._items_left:
                yield str(len(value)).encode()
                return
            self._items_left -= len(value)
        if isinstance(value, tuple | list):
            yield from map(self.of, value)
        elif isinstance(value, dict):
            ordered = sorted(value, key=_label)
            yield from sorted(self.of(key) + self.of(value[key]) for key in ordered)
        else:
            yield from sorted(map(self.of, sorted(value, key=_label)))

    def _number(self, one: Any) -> bytes:
        """Return the number of a function, class or object, whose body follows."""
        number = self._numbers.setdefault(id(one), len(self._met))
        if number == len(self._met):
            self._met.append(one)
            self._changed |= _changed_by(one)
        return str(number).encode()

    def _code(self, code: CodeType, doc: str | None = None) -> Iterator[bytes]:
        yield code.co_code
        n_arguments = code.co_argcount + code.co_kwonlyargcount
        names = code.co_names, code.co_varnames[:n_arguments]
        consts = (one for one in code.co_consts if one is None or one != doc)
        yield self.of((*consts, names))


def _label(one: Any) -> str:
    """Return the text that sorts an item of a set before its digest does."""
    return one if type(one) is str else getattr(one, "__qualname__", type(one).__name__)


def _attributes(one: Any) -> dict[str, Any]:
    """Return the attributes of an object, but for those that are made when asked."""
    slots = (getattr(kind, "__slots__", ()) for kind in type(one).__mro__)
    names = [*getattr(one, "__dict__", ())]
    for own in slots:
        names += [own] if isinstance(own, str) else own
    kept = (
        k for k in names if not isinstance(getattr(type(one), k, 0), cached_property)
    )
    return {name: getattr(one, name, None) for name in kept}


def _cells(function: FunctionType) -> Iterator[tuple[Any, Any]]:
    """Yield the cells of a function's closure, with their values."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            yield cell, cell.cell_contents


def _defaults_of(function: Any) -> dict[str, Any]:
    """Return the defaults of a function's arguments, by their names."""
    values = function.__defaults__ or ()
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    given = zip(names[len(names) - len(values) :], values, strict=True)
    return dict(given) | (function.__kwdefaults__ or {})


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
    """Return the globals, cells, attributes and defaults that a function changes."""
    if not isinstance(one, FunctionType):
        return set()
    code, known = one.__code__, id(one.__globals__)
    cells = dict(zip(code.co_freevars, map(id, one.__closure__ or ()), strict=True))
    found: set[Any] = set()
    for kind, name, in_place in _changes(code):
        keys = {"GLOBAL": (known, name), "DEREF": ("CELL", cells.get(name))}
        key = (keys | {"FAST": (id(code), name)}).get(kind, (kind, name))
        found.add((_IN_PLACE, *key) if in_place else key)
    return found


def _changes(code: CodeType) -> Iterator[tuple[str, str, bool]]:
    """Yield the names that code sets anew, or changes in place, with their kinds."""
    steps = list(dis.get_instructions(code))
    written: set[str] = set()  # by their local names
    for i in reversed(range(len(steps))):
        how, _, kind = steps[i].opname.partition("_")
        name = steps[i].argval
        if kind == "ATTR" and code.co_name in _BESIDE:
            continue
        if how in ("STORE", "DELETE") and kind in _NAMES:
            owner = steps[i - 1]  # of an attribute; no class, if a variable but "cls"
            is_local = owner.opname[:9] == "LOAD_FAST" and owner.argval != "cls"
            yield (_OF_OBJECT if kind == "ATTR" and is_local else kind), name, False
        elif how != "LOAD" or kind not in (*_NAMES, "FAST"):
            continue
        elif _is_written(steps, i, written, code.co_consts):
            written |= {name} if kind == "FAST" else set()
            yield kind, name, True
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _changes(inner)


def _is_written(
    steps: Sequence[dis.Instruction], i: int, written: set[str], consts: Sequence[Any]
) -> bool:
    """Return whether a value that is loaded, or a part of it, is changed in place."""
    j, place = _use_of(steps, i)
    step = steps[j]
    if step.opname in _WRITES:  # "+=" has moved the new value to the bottom
        return place == _WRITES[step.opname] + (steps[j - 1].opname == "SWAP")
    if step.opname == "BINARY_OP":
        return place == 2 and step.argrepr[-1:] == "="
    if step.opname == "STORE_FAST":
        return step.argval in written
    if step.opname in _GETS:
        return step.argval in _OWN_WRITERS
    k = i
    while k > 0 and steps[k].opname == "LOAD_ATTR":
        k -= 1
    takes = steps[k - 1]  # f(name) or f(one.name)
    if takes.opname in ("LOAD_GLOBAL", *_GETS) and takes.argval in _WRITERS:
        return True
    # In Python 3.11 and 3.12 the names of arguments are a constant.
    names = steps[i + 1].argval if step.opname != "KW_NAMES" else consts[step.arg or 0]
    return isinstance(names, tuple) and "out" in names


def _use_of(steps: Sequence[dis.Instruction], i: int) -> tuple[int, int]:
    """Return the step that takes the value of another, and its place from the top."""
    place = 1
    for j in range(i + 1, len(steps)):
        step = steps[j]
        if place == 1 and step.opname in _GETS:
            if step.argval not in _VIEWS:
                break
        elif place == _PARTS_OF.get(step.opname):
            place = 1
        else:
            effect = dis.stack_effect(step.opcode, step.arg, jump=False)
            if effect <= 0 and place + effect <= 1:
                break
            place += effect
    return j, place


def _names(code: CodeType) -> set[Any]:
    """Return the names of globals that code uses."""
    steps = dis.get_instructions(code)
    own = {one.argval for one in steps if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return own.union(*map(_names, inner))


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
