"""The parameters of a W&B sweep, as those of a sweep here.

What each distribution draws is in the schema and the source of W&B's package sweeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.parameter import exact

Note = Callable[[str], None]
"""Takes a sentence on what was chosen."""
NEEDED = object()
KEYS: dict[str, dict[str, Any]] = {
    "constant": {"value": NEEDED},
    "categorical": {"values": NEEDED},
    "categorical_w_probabilities": {"values": NEEDED, "probabilities": NEEDED},
    "int_uniform": {"min": NEEDED, "max": NEEDED},
    "uniform": {"min": NEEDED, "max": NEEDED},
    "q_uniform": {"min": NEEDED, "max": NEEDED, "q": 1.0},
    "log_uniform": {"min": NEEDED, "max": NEEDED},
    "log_uniform_values": {"min": NEEDED, "max": NEEDED},
    "inv_log_uniform": {"min": NEEDED, "max": NEEDED},
    "inv_log_uniform_values": {"min": NEEDED, "max": NEEDED},
    "q_log_uniform": {"min": NEEDED, "max": NEEDED, "q": 1.0},
    "q_log_uniform_values": {"min": NEEDED, "max": NEEDED, "q": 1.0},
    "normal": {"mu": 0.0, "sigma": 1.0},
    "q_normal": {"mu": 0.0, "sigma": 1.0, "q": 1.0},
    "log_normal": {"mu": 0.0, "sigma": 1.0},
    "q_log_normal": {"mu": 0.0, "sigma": 1.0, "q": 1.0},
    "beta": {"a": 1.0, "b": 1.0},
    "q_beta": {"a": 1.0, "b": 1.0, "q": 1.0},
}
"""What each distribution takes, with its defaults."""


def translated(given: Any, note: Note, prefix: str = "") -> dict[str, Any]:
    """Return the parameters, nested as they are.

    Examples
    --------
    >>> given = {"lr": {"min": 0.1, "max": 1.0}, "layers": {"min": 1, "max": 4}}
    >>> for name, parameter in translated(given, print).items():
    ...     print(name, parameter)
    lr {'type': 'uniform', 'low': 0.1, 'high': 1.0}
    layers {'type': 'int', 'low': 1, 'high': 4}
    """
    if not isinstance(given, Mapping) or not given:
        where = f"parameters.{prefix}parameters" if prefix else "parameters"
        msg = f"{where} must be a mapping, and not empty; got {given!r}"
        raise InvalidParameterError(msg)
    found = {}
    for name, parameter in given.items():
        place = f"parameters.{prefix}{name}"
        if not isinstance(parameter, Mapping):
            msg = f"{place} must be a mapping, such as {{value: {parameter!r}}}"
            raise InvalidParameterError(msg)
        if set(parameter) == {"parameters"}:
            inside = translated(parameter["parameters"], note, f"{prefix}{name}.")
            found[name] = {"parameters": inside}
        else:
            kind, settings = _settings(place, parameter)
            found[name] = _translated(place, kind, settings, note)
    return found


def _settings(place: str, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a parameter's distribution, and all that it takes."""
    kind = given.get("distribution", _implied(given))
    if kind is None:
        msg = f"{place} has no distribution, value, values, or min and max"
        raise InvalidParameterError(msg)
    if kind not in KEYS:
        msg = f"{place} has the distribution {kind!r}; W&B has {', '.join(KEYS)}"
        raise InvalidParameterError(msg)
    settings = {**KEYS[kind], **given}
    settings.pop("distribution", None)
    if more := sorted(map(str, settings.keys() - KEYS[kind])):
        msg = (
            f"{place}.{more[0]} is no key of {kind}, which has {', '.join(KEYS[kind])}"
        )
        raise InvalidParameterError(msg)
    for key, value in settings.items():
        if value is NEEDED:
            msg = f"{place}.{key} is missing, which {kind} needs"
            raise InvalidParameterError(msg)
        if key not in ("value", "values", "probabilities") and not _is_number(value):
            msg = f"{place}.{key} must be a number; got {value!r}"
            raise InvalidParameterError(msg)
    if not settings.get("q", 1) > 0:
        msg = f"{place}.q must be greater than 0; got {settings['q']!r}"
        raise InvalidParameterError(msg)
    return kind, settings


def _implied(given: Mapping[str, Any]) -> str | None:
    """Return the distribution that W&B takes where none is named."""
    if "value" in given:
        return "constant"
    if "values" in given:
        with_shares = "probabilities" in given
        return "categorical_w_probabilities" if with_shares else "categorical"
    if not {"min", "max"} <= given.keys():
        return None
    whole = all(isinstance(given[end], int) for end in ("min", "max"))
    return "int_uniform" if whole else "uniform"


def _is_number(value: Any) -> bool:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and math.isfinite(value)


def _translated(
    place: str, kind: str, settings: Mapping[str, Any], note: Note
) -> dict[str, Any]:
    if kind == "constant":
        return {"type": "fixed", **settings}
    if kind.startswith("categorical"):
        return {"type": "choice", **settings}
    if "min" not in settings:
        return _spread(place, kind, settings, note)
    low, high = settings["min"], settings["max"]
    if not low < high:
        msg = f"{place}: min must be below max; got {low!r} and {high!r}"
        raise InvalidParameterError(msg)
    if kind in ("log_uniform", "q_log_uniform", "inv_log_uniform"):
        ends = (-high, -low) if kind == "inv_log_uniform" else (low, high)
        low, high = (_power(place, kind, end) for end in ends)
        note(f"{place}: min and max of {kind} are exponents of e: {low:g} to {high:g}")
    if kind == "int_uniform":
        return {"type": "int", "low": low, "high": high}
    logarithmic = "log_uniform" in kind
    if "q" in settings:
        return _multiples(place, (low, high), settings["q"], note, log=logarithmic)
    return {
        "type": "log-uniform" if logarithmic else "uniform",
        "low": low,
        "high": high,
    }


def _power(place: str, kind: str, exponent: float) -> float:
    if abs(exponent) > 700:
        msg = (
            f"{place}: min and max of {kind} are exponents of e, and {exponent:g} is "
            f"none that a number can hold; values are those of {kind}_values"
        )
        raise InvalidParameterError(msg)
    return math.exp(exponent)


def _multiples(
    place: str, ends: tuple[float, float], q: float, note: Note, *, log: bool
) -> dict[str, Any]:
    """Return the multiples of a step from one end to the other."""
    first = math.ceil(exact(ends[0]) / exact(q))
    last = math.floor(exact(ends[1]) / exact(q))
    if first > last:
        msg = f"{place}: no multiple of q {q!r} lies between min and max"
        raise InvalidParameterError(msg)
    whole = isinstance(q, int)
    low, high = (k * q if whole else float(k * exact(q)) for k in (first, last))
    if first == last:
        note(f"{place}: {low!r}, the only multiple of q between min and max")
        return {"type": "fixed", "value": low}
    how = "the multiple below what is drawn" if log else "each as likely"
    note(
        f"{place}: multiples of {q!r} from {low!r} to {high!r}, {how}; W&B rounds to "
        "the nearest, which can be outside of min and max"
    )
    if whole:
        scale = {"log": True} if log else {}
        return {"type": "int", "low": low, "high": high, **scale, "step": q}
    kind = "log-uniform" if log else "uniform"
    return {"type": kind, "low": low, "high": high, "step": q}


def _spread(
    place: str, kind: str, settings: Mapping[str, Any], note: Note
) -> dict[str, Any]:
    shape = {key: value for key, value in settings.items() if key != "q"}
    if "q" in settings:
        shape["step"] = q = settings["q"]
        if isinstance(q, float) and q.is_integer():
            note(f"{place}: multiples of {q:g} are whole numbers, {q:g} and not {q}")
    if shape.get("sigma") == 0 and "q" not in settings:
        value = math.exp(shape["mu"]) if "log" in kind else shape["mu"]
        note(f"{place}: always {value!r}, since sigma is 0")
        return {"type": "fixed", "value": value}
    return {"type": kind.removeprefix("q_").replace("_", "-"), **shape}
