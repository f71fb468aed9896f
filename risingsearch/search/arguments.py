"""The arguments of a search as JSON values, to tell later whether they are the same."""

from __future__ import annotations

import base64
import pickle
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from risingsearch.arms import Budget
from risingsearch.errors import InvalidParameterError
from risingsearch.json_values import as_json, from_json

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_SHOWN, _OBJECT = "$shown", "$object"


def settings_of(
    candidates: Sequence[Mapping[str, Any]], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return candidates and arguments as JSON values that can be compared.

    What JSON cannot hold is shown as text among the candidates; a policy or a proposer
    is named by its class.

    Raises
    ------
    InvalidParameterError
        If another argument holds what JSON cannot.
    """
    shown = [_shown(params) for params in candidates]
    settings: dict[str, Any] = {"candidates": shown}
    for name, value in arguments.items():
        if name in ("policy", "proposer") and not isinstance(value, str | None):
            owner = value if hasattr(value, "__qualname__") else type(value)
            settings[name] = {_OBJECT: f"{owner.__module__}.{owner.__qualname__}"}
        elif isinstance(value, Budget):
            settings[name] = asdict(value)
        else:
            try:
                settings[name] = as_json(value)
            except TypeError as error:
                msg = f"with a run_dir {name} is saved as JSON: {error}"
                raise InvalidParameterError(msg) from error
    return settings


def pickled_candidates(
    settings: Mapping[str, Any], candidates: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return the candidates as pickled text, None where the settings hold them.

    Raises
    ------
    InvalidParameterError
        If they cannot be pickled.
    """
    if not any(_SHOWN in params for params in settings["candidates"]):
        return None
    try:
        pickled = pickle.dumps(list(candidates))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        msg = f"with a run_dir candidates that JSON cannot hold are pickled: {error}"
        raise InvalidParameterError(msg) from error
    return base64.b64encode(pickled).decode()


def arguments_of(header: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments of a saved search, the candidates among them.

    Raises
    ------
    InvalidParameterError
        If a policy or proposer was an object, and is not ``given``.
    """
    settings = dict(header["settings"])
    shown, pickled = settings.pop("candidates"), header["candidates"]
    arguments: dict[str, Any] = {
        "candidates": from_json(shown)
        if pickled is None
        else pickle.loads(base64.b64decode(pickled))
    }
    for name, value in settings.items():
        if isinstance(value, dict) and _OBJECT in value:
            if given.get(name) is None:
                msg = (
                    f"the search was made with an object as {name}, a "
                    f"{value[_OBJECT]}: give {name} to resume it"
                )
                raise InvalidParameterError(msg)
            arguments[name] = given[name]
        elif name == "budget" and isinstance(value, dict):
            arguments[name] = Budget(**value)
        else:
            arguments[name] = from_json(value)
    return arguments


def _shown(params: Mapping[str, Any]) -> Any:
    try:
        return as_json(dict(params))
    except TypeError:
        return {_SHOWN: without_addresses(repr(dict(params)))}


def without_addresses(text: str) -> str:
    """Return the repr of an object without where it is in memory.

    >>> without_addresses("<function loss at 0x7f3a>")
    '<function loss>'
    """
    return _ADDRESS.sub("", text)
