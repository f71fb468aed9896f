"""Values as JSON that can be compared: digests, and their differences in words."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from types import FunctionType
from typing import Any

from risingsearch.checks import shown
from risingsearch.identity.fingerprint import (
    NEW,
    Digester,
    changes_what_it_holds,
    defaults_of,
    digest,
    kept_by_clones,
    name_of,
    without_addresses,
    without_own_modules,
)
from risingsearch.json_values import SHOWN, as_json, from_json, plain

# Keys of values that JSON cannot hold: compared by the first, named by the others.
DIGEST = "$content"
TEXT = "text"
OBJECT = "$object"
PARTS = "parts"

OLD_DIGEST = "$digest"
"""The key of digests by releases that counted functions by their bytecode."""

Difference = tuple[str, object, object]
"""The name of a setting, its saved value, and the current one."""

_DIGESTS = {DIGEST, OLD_DIGEST}
_LONGEST = 300  # characters of a value in a message
_SAME = 30  # of them before the first difference
_FOLLOWING = ("candidates", "len(candidates)", "scoring")  # from other settings
_TYPED = ("candidates", "estimator")  # where 1 and 1.0 are different values


def described(value: object, digester: Digester | None = None) -> Any:
    """Return a value as JSON; long values, and those that it cannot hold, by digest."""
    try:
        saved = as_json(plain(value))
        if len(str(saved)) <= _LONGEST:
            return saved
    except (TypeError, ValueError, RecursionError):
        pass
    content = (digester or Digester()).whole(value)
    return {
        DIGEST: content,
        TEXT: without_addresses(shown(value)),
    }


def described_parts(owner: object) -> object:
    """Return an object as JSON, its parameters one by one, the innermost first."""
    if not hasattr(owner, "get_params"):
        return described(owner)
    params = owner.get_params(deep=True)
    names = sorted(
        params,
        key=lambda name: (-name.count("__"), name),
    )
    digester = Digester()
    parts = {name: _described_function(params[name], digester) for name in names}
    kind = named(type(owner))
    kept = kept_by_clones(owner)
    if kept:
        content = digester.whole((type(owner), kept))
        kind[DIGEST] = content.rstrip(NEW) + NEW
    return {"class": kind, **parts}


def _described_function(value: object, digester: Digester) -> object:
    """Return a value as JSON; a function's defaults one by one, before its code."""
    if not isinstance(value, FunctionType) or changes_what_it_holds(value):
        return described(value, digester)
    parts = {
        name: described(default, digester)
        for name, default in defaults_of(value).items()
    }
    code = described(value, digester)
    if not parts:
        return code
    return parts | {"code": code}


def named(owner: object) -> dict[str, str]:
    """Return a class, a function or an object by its name and digest."""
    kind: Any = owner
    if not hasattr(owner, "__qualname__"):
        kind = type(owner)
    return {OBJECT: name_of(kind), DIGEST: digest(owner)}


def adopted(saved: Any, current: Any) -> Any:
    """Return a value that an earlier release saved, as this one saves it.

    Where that release computed the digest from other things, such as the bytecode of
    functions, the text alone is compared.
    """
    if isinstance(saved, list) and isinstance(current, list):
        known = current[: len(saved)]
        pairs = zip_longest(saved, known)
        return [adopted(was, now) for was, now in pairs]
    if not isinstance(saved, dict) or not isinstance(current, dict):
        return saved
    saved = _entries(saved)
    current = _entries(current)
    if DIGEST not in current:
        return {name: adopted(was, current.get(name)) for name, was in saved.items()}
    code = saved.get("code", saved)  # of a function, beside its defaults
    whole = _entries(code)
    if OLD_DIGEST not in whole:
        return saved
    if whole[OLD_DIGEST] == current[DIGEST]:
        return current
    if NEW in current[DIGEST] and _text(whole) == _text(current):
        return current
    return saved


def _entries(value: Any) -> Any:
    """Return the entries of a dict that is saved as JSON; none of anything else."""
    if not isinstance(value, dict):
        return {}
    return value.get("$dict", value)


def first_difference(
    saved: Mapping[str, object],
    current: Mapping[str, object],
) -> tuple[str, str, str, str] | None:
    """Return where settings first differ, both values as text, and a note on others."""
    differences = []
    for name, was, now in _pairs(saved, current):
        may_differ = was != now or name in _TYPED
        if may_differ and _content(was) != _content(now):
            differences.append(_deepest(name, was, now))
    if not differences:
        return None
    (where, was, now), *others = differences
    names = []
    for name, *_ in others:
        setting = name.partition("[")[0]
        if setting not in _FOLLOWING:
            names.append(name)
    also = ""
    if names:
        also = f"; others differ too: {', '.join(names)}"
    before, after = _distinguished(_text(was), _text(now))
    return where, before, after, also


def _pairs(
    saved: Mapping[str, Any], current: Mapping[str, object]
) -> Iterator[Difference]:
    """Yield all settings with both values, those of the fingerprint one by one."""
    for name in sorted({**current, **saved}, key=_causes_first):
        was = saved.get(name)
        now = current.get(name)
        if name == "fingerprint" and isinstance(now, dict):
            yield from _pairs(was or {}, now)
        else:
            yield name, was, now


def _causes_first(name: str) -> tuple[bool, bool, bool]:
    """Sort causes of others to the front, the seed and the candidates to the end."""
    first = name in ("fingerprint", "space", "policy")
    return name == "candidates", name == "seed", not first


def _content(value: Any) -> object:
    """Return the compared part of a described value; numpy's numbers as Python's."""
    if isinstance(value, list):
        return [_content(item) for item in value]
    if not isinstance(value, dict):
        return repr(plain(value))  # 1, 1.0 and True may mean different things
    value = _entries(value)
    if OBJECT in value:
        return without_own_modules(value[OBJECT]), value.get(DIGEST)
    if DIGEST in value:
        return value[DIGEST]
    if SHOWN in value:
        return _content(value.get(PARTS, value[SHOWN]))
    read = plain(from_json(value))
    if isinstance(read, dict):
        return {name: _content(item) for name, item in read.items()}
    return repr(read)


def _deepest(name: str, was: object, now: object) -> Difference:
    """Return the first difference between two values, deep inside them."""
    was = _parts(was)
    now = _parts(now)
    whole: Difference = (name, was, now)
    inner: list[Difference] = []
    if isinstance(was, list) and isinstance(now, list):
        whole = (f"len({name})", len(was), len(now))
        for i, pair in enumerate(zip(was, now, strict=False)):
            inner.append((f"{name}[{i}]", *pair))
    elif isinstance(was, dict) and isinstance(now, dict):
        is_marked = any(key[:1] == "$" for key in was)  # JSON for something else
        if not is_marked:
            keys = now | was
            inner = [(f"{name}.{key}", was.get(key), now.get(key)) for key in keys]
    for place, before, after in inner:
        if _content(before) != _content(after):
            return _deepest(place, before, after)
    return whole


def _parts(value: Any) -> Any:
    """Return the parts of a value that is saved as text; any other as it is."""
    if isinstance(value, dict) and SHOWN in value:
        return value.get(PARTS, value)
    return value


def _text(value: object) -> str:
    content = _entries(value)
    names = [OBJECT, SHOWN]
    if _DIGESTS & content.keys():
        names.insert(0, TEXT)
    for name in names:
        if name in content:
            return without_own_modules(str(content[name]))
    return repr(from_json(value))


def _distinguished(was: str, now: str) -> tuple[str, str]:
    """Return two texts, cut so that they show their difference."""
    if was == now:
        return _cut(was, 0), f"{_cut(now, 0)}, whose content differs"
    begin = 0
    longest = max(len(was), len(now))
    if longest > _LONGEST:
        same = _length_in_common(was, now)
        begin = max(0, same - _SAME)
    return _cut(was, begin), _cut(now, begin)


def _length_in_common(was: str, now: str) -> int:
    """Return how far two texts are alike; 0 if one only continues the other."""
    for i, (a, b) in enumerate(zip(was, now, strict=False)):
        if a != b:
            return i
    return 0


def _cut(text: str, begin: int) -> str:
    end = begin + _LONGEST
    part = text[begin:end]
    if begin:
        part = "..." + part
    if end < len(text):
        part += "..."
    return part
