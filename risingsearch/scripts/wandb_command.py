"""The command of a W&B sweep, as that of a sweep here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from risingsearch.errors import InvalidParameterError

USUAL = ["${env}", "${interpreter}", "${program}", "${args}"]
"""What W&B runs where a sweep has no command."""
ENV = "/usr/bin/env"
INTERPRETER = "python"
FORMS: dict[str, Sequence[str]] = {
    "args": ["--{flag}={field}"],
    "args_no_equals": ["--{flag}", "{field}"],
    "args_no_hyphens": ["{flag}={field}"],
    "args_append_hydra": ["+{flag}={field}"],
    "args_override_hydra": ["++{flag}={field}"],
}
"""How macros pass a parameter."""
FLAGS = "args_no_boolean_flags"
JSON = "args_json"
PASSING = {*FORMS, FLAGS, JSON}
ELSEWHERE = {
    "args_json_file": "pass ${args_json}, or read the variable RISINGSEARCH_PARAMS",
    "envvar": "the script inherits its environment: have it read the variable",
}
_MACRO = re.compile(r"\$\{([^}]*)\}")
_VARIABLE = re.compile(r"\$\{(envvar):[A-Z0-9_]*\}")


class Argument(NamedTuple):
    """A parameter: what the script calls it, and the field that has its value."""

    flag: str
    field: str
    parameter: Mapping[str, Any] | None = None  # None where it is no parameter here


def translated(
    command: Any, program: Any, arguments: Sequence[Argument]
) -> tuple[list[str], dict[str, Any]]:
    """Return the command, and parameters that it needs besides: flags that are set.

    Examples
    --------
    >>> translated(None, "train.py", [Argument("lr", "lr")])
    (['/usr/bin/env', 'python', 'train.py', '--lr={lr}'], {})
    """
    if command is None:
        command = USUAL
    if not isinstance(command, list) or not command:
        msg = f"command must be a list, and not empty; got {command!r}"
        raise InvalidParameterError(msg)
    words: list[str] = []
    flags: dict[str, Any] = {}
    for word in map(str, command):
        macro = _MACRO.fullmatch(word)
        if macro and macro[1] == FLAGS:
            words += [_flag(argument, flags) for argument in arguments]
        elif macro and macro[1] in FORMS:
            for argument in arguments:
                words += _filled(FORMS[macro[1]], argument)
        else:
            words.append(_word(word, macro, program))
    return words, flags


def passes_parameters(command: Any) -> bool:
    """Return whether the script gets its parameters by the command."""
    macros = [_MACRO.fullmatch(str(word)) for word in command or USUAL]
    return any(macro and macro[1] in PASSING for macro in macros)


def _filled(form: Sequence[str], argument: Argument) -> list[str]:
    field = f"{{{argument.field}}}"
    return [part.format(flag=argument.flag, field=field) for part in form]


def _word(word: str, macro: re.Match[str] | None, program: Any) -> str:
    variable = _VARIABLE.search(word)
    if macro is None and variable is None:
        return _escaped(word)
    name = variable[1] if variable else (macro[1] if macro else "")
    if name == "program":
        if not isinstance(program, str) or not program:
            msg = f"program must be the path of a script; got {program!r}"
            raise InvalidParameterError(msg)
        return _escaped(program)
    if name in (known := {"env": ENV, "interpreter": INTERPRETER, JSON: "{params}"}):
        return known[name]
    hint = ELSEWHERE.get(name, f"W&B has {', '.join([*USUAL, '${args_json}'])}, ...")
    msg = f"command: {word} has no equal here: {hint}"
    raise InvalidParameterError(msg)


def _escaped(word: str) -> str:
    return word.replace("{", "{{").replace("}", "}}")


def _flag(argument: Argument, flags: dict[str, Any]) -> str:
    """Return an argument; a true or false is one that is there or not."""
    parameter = argument.parameter or {}
    values = parameter.get("values", [parameter.get("value")])
    are_flags = [isinstance(value, bool) for value in values]
    if not any(are_flags):
        return _filled(FORMS["args"], argument)[0]
    if not all(are_flags):
        msg = (
            f"parameters.{argument.field} is true or false among other values, and "
            f"${{{FLAGS}}} passes these otherwise: give it values of one kind"
        )
        raise InvalidParameterError(msg)
    name = f"{argument.field}_flag"
    when = {argument.field: True}
    flags[name] = {"type": "fixed", "value": f"--{argument.flag}", "when": when}
    return f"{{{name}}}"
