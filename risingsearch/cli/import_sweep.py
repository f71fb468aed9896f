"""Turn a sweep file of W&B into one for ``run``; every choice is noted."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from risingsearch.cli.options import add_command, count, one_line, writing
from risingsearch.errors import InvalidParameterError

Note = Callable[[str], None]
"""Takes a sentence on a choice."""
LEFT_OUT = "apiVersion controller description early_terminate entity kind name project"
USED = {"command", "method", "metric", "parameters", "program", "run_cap"}
METHODS = ("bayes", "grid", "random")
KEYS = {
    "constant": {"value"},
    "categorical": {"values"},
    "int_uniform": {"min", "max"},
    "uniform": {"min", "max"},
    "q_uniform": {"min", "max", "q"},
    "log_uniform": {"min", "max"},
    "log_uniform_values": {"min", "max"},
    "normal": {"mu", "sigma"},
}
"""The distributions of a sweep, and the keys that each takes."""
DEFAULTS = {"q": 1, "mu": 0.0, "sigma": 1.0}
USUAL = ["${env}", "${interpreter}", "${program}", "${args}"]
"""Command that W&B runs if a sweep has none."""
FORMS = {
    "${args}": ["--{flag}={field}"],
    "${args_no_equals}": ["--{flag}", "{field}"],
    "${args_no_hyphens}": ["{flag}={field}"],
}
"""How a macro passes a parameter."""
MACROS = {"${env}": "/usr/bin/env", "${interpreter}": "python"}


def add_import(commands: Any) -> None:
    """Add the command to a parser's."""
    parser = add_command(
        commands, "import-sweep", _import, "turn a sweep file of W&B into one for run"
    )
    parser.description += (
        " Choices are noted on standard error; without -o it is printed."
    )
    parser.add_argument("wandb", type=Path, metavar="WANDB.yaml")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE")
    parser.add_argument(
        "--budget", type=count, metavar="N", help="epochs over all configurations"
    )
    parser.add_argument(
        "--max-epochs", type=count, metavar="N", help="epochs of a full training"
    )


def _import(arguments: argparse.Namespace) -> None:
    from risingsearch.scripts.yaml_files import dump_yaml, read_yaml

    path = arguments.wandb

    def note(sentence: str) -> None:
        print(one_line(f"{path}: {sentence}"), file=sys.stderr)

    given = read_yaml(path)
    try:
        sweep = imported(given, note, arguments.budget, arguments.max_epochs)
    except InvalidParameterError as error:
        raise InvalidParameterError(f"{path}: {error}") from error
    if arguments.out is None:
        print(dump_yaml(sweep), end="")
        return
    with writing(arguments.out):
        arguments.out.write_text(dump_yaml(sweep), encoding="utf-8")


def imported(
    given: Any, note: Note, budget: int | None, max_epochs: int | None
) -> dict[str, Any]:
    """Return the sweep that a file of W&B describes, and note what was chosen.

    ``budget`` and ``max_epochs`` are not in such a file; a parameter ``epochs`` with
    one value stands for the latter.
    """
    from risingsearch.scripts.sweep import checked_sweep
    from risingsearch.scripts.trainable import FIELDS

    given = _checked("the file", given)
    for name in given:
        if name in LEFT_OUT.split():
            note(f"{name}: left out, it has no equal here")
        elif name not in USED:
            raise InvalidParameterError(f"{name} has no equal here: leave it out")
    parameters = {
        name: _parameter(f"parameters.{name}", parameter, note)
        for name, parameter in _checked("parameters", given.get("parameters")).items()
    }
    fields = {}
    for name in parameters:
        fields[name] = f"{name}_" if name in {*FIELDS} - {"epochs"} else name
        if name != fields[name]:
            note(f"parameters.{name}: called {name}_ here, where {name} is taken")
    command = _command(given, fields)
    note(
        "command: a script that reads wandb.config has to read its arguments instead, "
        "or the variable RISINGSEARCH_PARAMS"
    )
    max_epochs = _max_epochs(parameters.pop("epochs", None), max_epochs, note)
    if budget is None:
        msg = "give --budget N, the epochs over all configurations: W&B has no key"
        raise InvalidParameterError(msg)
    sweep = {
        "command": command,
        "parameters": {fields[name]: one for name, one in parameters.items()},
        **_metric(_checked("metric", given.get("metric")), note),
        "budget": budget,
        "max_epochs": max_epochs,
        **_candidates(given.get("method"), given.get("run_cap"), note),
        "resume": False,
    }
    note(
        "resume: false, the process of a script is kept and paused, as W&B's scripts "
        "train in one go; set it to true if yours resumes from {checkpoint_dir}"
    )
    checked_sweep(sweep, "the imported sweep").draw()
    return sweep


def _checked(place: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or not given:
        msg = f"{place} must be a mapping, and not empty; got {given!r}"
        raise InvalidParameterError(msg)
    return given


def _parameter(place: str, given: Any, note: Note) -> dict[str, Any]:
    """Return a parameter of a sweep that is drawn as by W&B."""
    if not isinstance(given, Mapping):
        msg = f"{place} must be a mapping, such as {{value: {given!r}}}"
        raise InvalidParameterError(msg)
    kind = given.get("distribution") or _implied(given)
    if kind not in KEYS or set(given) - KEYS[kind] - {"distribution"}:
        msg = (
            f"{place} has no equal here: it has a value, values, or one of the "
            f"distributions {', '.join(KEYS)} and its keys; got {dict(given)}"
        )
        raise InvalidParameterError(msg)
    settings = {key: given.get(key, DEFAULTS.get(key)) for key in sorted(KEYS[kind])}
    if kind == "constant":
        return {"type": "choice", "values": [settings["value"]]}
    if kind == "categorical":
        return {"type": "choice", "values": settings["values"]}
    if not all(type(value) in (int, float) for value in settings.values()):
        msg = f"{place}: {', '.join(settings)} must be numbers; got {settings}"
        raise InvalidParameterError(msg)
    if kind == "normal":
        return {"type": "normal", **settings}
    low, high = settings["min"], settings["max"]
    if kind == "q_uniform":
        note(f"{place}: from min in steps of q; W&B rounds to the multiples of q")
        whole = all(isinstance(value, int) for value in settings.values())
        name = "int" if whole else "uniform"
        return {"type": name, "low": low, "high": high, "step": settings["q"]}
    if kind == "log_uniform":
        low, high = math.exp(min(low, 700)), math.exp(min(high, 700))
        note(f"{place}: min and max of {kind} are exponents of e: {low:g} to {high:g}")
    name = "log-uniform" if kind.startswith("log") else kind.removesuffix("_uniform")
    return {"type": name, "low": low, "high": high}


def _implied(given: Mapping[str, Any]) -> str:
    """Return the distribution that W&B takes if none is named."""
    if "value" in given:
        return "constant"
    if "values" in given:
        return "categorical"
    ends = [type(given.get(end)) for end in ("min", "max")]
    return "int_uniform" if ends == [int, int] else "uniform"


def _command(given: Mapping[str, Any], fields: Mapping[str, str]) -> list[str]:
    """Return the command with a field for each value of W&B."""
    command = given.get("command", USUAL)
    if not isinstance(command, list) or not command:
        msg = f"command must be a list, and not empty; got {command!r}"
        raise InvalidParameterError(msg)
    words: list[str] = []
    for word in map(str, command):
        form = FORMS.get(word)
        if form is None:
            words.append(_word(word, given.get("program")))
            continue
        for flag, field in fields.items():
            words += [part.format(flag=flag, field=f"{{{field}}}") for part in form]
    return words


def _word(word: str, program: Any) -> str:
    macros = {**MACROS, "${program}": program}
    if "${" in word and not isinstance(macros.get(word), str):
        msg = (
            f"command: {word} has no equal here, or no program: there are "
            f"{', '.join([*macros, *FORMS])}"
        )
        raise InvalidParameterError(msg)
    return str(macros.get(word, word)).replace("{", "{{").replace("}", "}}")


def _max_epochs(parameter: Any, given: int | None, note: Note) -> int:
    """Return the epochs of a full training, which a parameter may have said."""
    if given is None:
        values = (parameter or {}).get("values", [])
        if len(values) != 1 or type(values[0]) is not int:
            msg = (
                "give --max-epochs N, the epochs of a full training: W&B has no key, "
                "and parameters.epochs has no single whole number"
            )
            raise InvalidParameterError(msg)
        given = int(values[0])
    if parameter is not None:
        note(f"parameters.epochs: not a parameter any more, but max_epochs {given}")
    return given


def _metric(metric: Mapping[str, Any], note: Note) -> dict[str, Any]:
    name = metric.get("name")
    if not isinstance(name, str) or set(metric) - {"name", "goal", "target"}:
        msg = f"metric must have a name, and no keys but goal and target; got {metric}"
        raise InvalidParameterError(msg)
    target = {"target_score": metric["target"]} if "target" in metric else {}
    note(
        "metric: after every epoch the script has to print a line such as "
        f'{{"epoch": 1, "{name}": 0.5}}; if it prints other text, set metric.regex'
    )
    return {"metric": name, "direction": metric.get("goal", "minimize"), **target}


def _candidates(method: Any, run_cap: Any, note: Note) -> dict[str, Any]:
    if method not in METHODS:
        msg = f"method must be one of {', '.join(METHODS)}; got {method!r}"
        raise InvalidParameterError(msg)
    note(f"method: {method}; the policy decides what is opened, and trains how long")
    if run_cap is not None:
        note(f"run_cap: {run_cap} candidates; the policy opens as many as it needs")
        return {"candidates": run_cap}
    return {"candidates": "all"} if method == "grid" else {}
