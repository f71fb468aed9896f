"""Turn a sweep file of W&B into one for ``run``; every choice is noted."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from risingsearch.cli.options import add_command, check_file, count, one_line, writing
from risingsearch.errors import InvalidParameterError

Note = Callable[[str], None]
"""Takes a sentence on a choice."""
LEFT_OUT = "apiVersion controller description early_terminate entity kind name project"
USED = {"command", "method", "metric", "parameters", "program", "run_cap"}
METHODS = ("bayes", "grid", "random")
DISTRIBUTIONS = {
    "constant": ("choice", {"value": "values"}),
    "categorical": ("choice", {"values": "values"}),
    "int_uniform": ("int", {"min": "low", "max": "high"}),
    "uniform": ("uniform", {"min": "low", "max": "high"}),
    "q_uniform": ("uniform", {"min": "low", "max": "high", "q": "step"}),
    "log_uniform_values": ("log-uniform", {"min": "low", "max": "high"}),
    "normal": ("normal", {"mu": "mu", "sigma": "sigma"}),
}
"""The distributions of a sweep: the type here, and the keys there and here."""
SWITCHES = ("yes", "no", "on", "off")
"""Words that W&B may take for true and false."""
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
NOTES = (
    "command: a script that reads wandb.config has to read its arguments instead, or "
    "the variable RISINGSEARCH_PARAMS",
    "metric: after every epoch the script has to print {printed}",
    "method: {method}; the policy decides which candidates are opened, and trains how "
    "long",
    "resume: false, the process of a script is kept and paused, as W&B's scripts train "
    "in one go; set it to true if yours resumes from {{checkpoint_dir}}",
)


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
    parser.add_argument(
        "--regex",
        metavar="PATTERN",
        help="finds the metric in the output, such as 'val_loss: {number}' "
        "(default: the script prints JSON)",
    )


def _import(arguments: argparse.Namespace) -> None:
    path = arguments.wandb
    check_file(path)
    from risingsearch.scripts.yaml_files import dump_yaml, read_yaml

    def note(sentence: str) -> None:
        print(one_line(f"{path}: {sentence}"), file=sys.stderr)

    content = read_yaml(path)
    try:
        numbers = arguments.budget, arguments.max_epochs
        sweep = imported(content, note, *numbers, arguments.regex)
    except InvalidParameterError as error:
        raise InvalidParameterError(f"{path}: {error}") from error
    if arguments.out is None:
        print(dump_yaml(sweep), end="")
        return
    with writing(arguments.out):
        arguments.out.write_text(dump_yaml(sweep), encoding="utf-8")


def imported(
    content: Any,
    note: Note,
    budget: int | None,
    max_epochs: int | None,
    regex: str | None = None,
) -> dict[str, Any]:
    """Return the sweep that a file of W&B describes, with notes on choices made."""
    from risingsearch.scripts.sweep import checked_sweep
    from risingsearch.scripts.trainable import FIELDS

    content = _mapping("the file", content)
    for name in content:
        if name in LEFT_OUT.split():
            note(f"{name}: left out, it has no equal here")
        elif name not in USED:
            raise InvalidParameterError(f"{name} has no equal here: leave it out")
    parameters = {
        name: _parameter(f"parameters.{name}", parameter, note)
        for name, parameter in _mapping("parameters", content.get("parameters")).items()
    }
    fields = {}
    for name in parameters:
        fields[name] = f"{name}_" if name in {*FIELDS} - {"epochs"} else name
        if name != fields[name]:
            note(f"parameters.{name}: called {name}_ here, where {name} is taken")
    command = _command(content, fields)
    metric = _metric(content.get("metric"))
    method = content.get("method")
    if method not in METHODS:
        msg = f"method must be one of {', '.join(METHODS)}; got {method!r}"
        raise InvalidParameterError(msg)
    one = (parameters.pop("epochs", None) or {}).get("values", [])
    if max_epochs is None and len(one) == 1:
        max_epochs = one[0]
    if budget is None or max_epochs is None:
        msg = "give --budget N and --max-epochs N: W&B has no keys for them"
        raise InvalidParameterError(msg)
    name = metric["metric"]
    printed = f'a line such as {{"epoch": 1, "{name}": 0.5}}; or give --regex'
    if regex is not None:
        metric["metric"] = {"regex": regex, "name": name}
        printed = f"a line in which {regex!r} finds {name}"
    for sentence in NOTES:
        note(sentence.format(printed=printed, method=method))
    candidates = content.get("run_cap") or ("all" if method == "grid" else None)
    sweep = {
        "command": command,
        "parameters": {fields[name]: one for name, one in parameters.items()},
        **metric,
        "budget": budget,
        "max_epochs": max_epochs,
        **({"candidates": candidates} if candidates is not None else {}),
        "resume": False,
    }
    checked_sweep(sweep, "the imported sweep").draw()
    return sweep


def _mapping(place: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not value:
        msg = f"{place} must be a mapping, and not empty; got {value!r}"
        raise InvalidParameterError(msg)
    return value


def _metric(value: Any) -> dict[str, Any]:
    metric = _mapping("metric", value)
    if "name" not in metric or set(metric) - {"name", "goal", "target"}:
        msg = f"metric must have a name, and no keys but goal and target; got {metric}"
        raise InvalidParameterError(msg)
    target = {"target_score": metric["target"]} if "target" in metric else {}
    direction = metric.get("goal", "minimize")
    return {"metric": metric["name"], "direction": direction, **target}


def _parameter(place: str, content: Any, note: Note) -> dict[str, Any]:
    """Return a parameter of a sweep that is drawn as by W&B."""
    content = _mapping(place, content)
    kind = content.get("distribution") or _implied(content)
    type_, keys = DISTRIBUTIONS.get(kind, ("", {}))
    if not type_ or set(content) - {*keys, "distribution"}:
        raise InvalidParameterError(
            f"{place} has no equal here: it has a value, values, or one of the "
            f"distributions {', '.join(DISTRIBUTIONS)} and its keys; got {content!r}"
        )
    if kind == "q_uniform":
        note(f"{place}: from min in steps of q; W&B rounds to the multiples of q")
    for value in content.get("values", [content.get("value")]):
        if str(value).lower() in SWITCHES:
            note(f"{place}: {value} is text; write true or false if it is a switch")
    values = {here: content.get(key, DEFAULTS.get(key)) for key, here in keys.items()}
    if kind == "constant":
        values = {"values": [values["values"]]}
    if kind == "q_uniform" and all(isinstance(v, int) for v in values.values()):
        type_ = "int"
    return {"type": type_, **values}


def _implied(content: Mapping[str, Any]) -> str:
    """Return the distribution that W&B takes if none is named."""
    if "value" in content:
        return "constant"
    if "values" in content:
        return "categorical"
    ends = [type(content.get(end)) for end in ("min", "max")]
    return "int_uniform" if ends == [int, int] else "uniform"


def _command(content: Mapping[str, Any], fields: Mapping[str, str]) -> list[str]:
    """Return the command with a field for each value of W&B."""
    macros: dict[str, str | None] = {**MACROS, "${program}": content.get("program")}
    words: list[str] = []
    for word in map(str, content.get("command", USUAL)):
        if form := FORMS.get(word):
            for flag, field in fields.items():
                words += [one.format(flag=flag, field=f"{{{field}}}") for one in form]
            continue
        passed = macros.get(word, word)
        if passed is None or ("${" in word and word not in macros):
            raise InvalidParameterError(
                f"command: {word} has no equal here, or no program: there are "
                f"{', '.join([*macros, *FORMS])}"
            )
        words.append(passed.replace("{", "{{").replace("}", "}}"))
    return words
