"""A sweep file of W&B, as one for ``risingsearch run``: nothing is guessed silently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from risingsearch.errors import InvalidParameterError
from risingsearch.scripts import wandb_command, wandb_parameters
from risingsearch.scripts.sweep import checked_sweep
from risingsearch.scripts.trainable import FIELDS
from risingsearch.scripts.wandb_command import Argument
from risingsearch.scripts.wandb_parameters import Note

WITHOUT_EQUAL = {
    "apiVersion": "it is W&B's own",
    "controller": "this computer decides",
    "description": "it decides nothing",
    "entity": "nothing is sent anywhere",
    "kind": "it is W&B's own",
    "name": "a run is named after its directory",
    "project": "nothing is sent anywhere",
    "scheduler": "scripts are started here",
    "early_terminate": "the policy decides after every epoch who trains on; "
    "policy: hyperband is the nearest to it",
}
"""Keys that are left out, and why."""
REFUSED = {
    "image_uri": "give a program or a command",
    "job": "give a program or a command",
    "metrics": "a search has one metric",
}
USED = {"command", "method", "metric", "parameters", "program", "run_cap"}
METHODS = ("bayes", "custom", "grid", "random")
EPOCHS = "epochs"


def imported(
    given: Any,
    note: Note,
    *,
    budget: int | None,
    max_epochs: int | None,
    regex: str | None = None,
) -> dict[str, Any]:
    """Return the sweep that a file of W&B describes, and note what was chosen.

    ``budget`` and ``max_epochs`` are not in such a file; a parameter ``epochs`` with
    one value stands for the latter. A ``regex`` finds the score in plain output.
    """
    _check_keys(given)
    for name in sorted(given.keys() & WITHOUT_EQUAL.keys()):
        note(f"{name}: left out, {WITHOUT_EQUAL[name]}")
    parameters = wandb_parameters.translated(given.get("parameters"), note)
    max_epochs = _max_epochs(parameters.get(EPOCHS), max_epochs, note)
    arguments = list(_arguments(parameters, note))
    parameters = _renamed(parameters)
    command, flags = wandb_command.translated(
        given.get("command"), given.get("program"), arguments
    )
    _note_passing(given.get("command"), flags, note)
    run_cap = given.get("run_cap")
    sweep = {
        "command": command,
        "parameters": parameters | flags,
        **_metric(given.get("metric"), regex, note),
        "budget": _budget(budget, run_cap, max_epochs),
        "max_epochs": max_epochs,
        **_candidates(given.get("method"), run_cap, note),
        "resume": False,
    }
    note(
        "resume: false, the process of a script is kept and paused, as W&B's scripts "
        "train in one go; set it to true where yours goes on from {checkpoint_dir}"
    )
    checked_sweep(sweep, "the imported sweep").draw()
    return sweep


def _check_keys(given: Any) -> None:
    if not isinstance(given, Mapping):
        msg = "a sweep of W&B is a mapping with method, parameters, metric and so on"
        raise InvalidParameterError(msg)
    for name in given:
        if name in REFUSED:
            msg = f"{name} has no equal here: {REFUSED[name]}"
            raise InvalidParameterError(msg)
        if name not in USED | WITHOUT_EQUAL.keys():
            msg = f"{name} is no key of a sweep of W&B"
            raise InvalidParameterError(msg)


def _max_epochs(parameter: Any, given: int | None, note: Note) -> int | None:
    """Return the epochs of a full training, which a parameter may have said."""
    if parameter is None:
        if given is None:
            msg = "give --max-epochs N, the epochs of a full training: W&B has no key"
            raise InvalidParameterError(msg)
        return given
    if given is None:
        given = parameter.get("value")
        if type(given) is not int:
            msg = (
                "parameters.epochs has no single whole number, and here the search "
                "decides for how long each trains: give --max-epochs N"
            )
            raise InvalidParameterError(msg)
    note(
        f"parameters.epochs: no parameter any more, but max_epochs {given}; the script "
        "is told it as before"
    )
    return given


def _budget(budget: int | None, run_cap: Any, max_epochs: int | None) -> int:
    if budget is not None:
        return budget
    hint = ""
    if isinstance(run_cap, int) and max_epochs is not None:
        hint = (
            f"; {run_cap} runs in full, as run_cap has it, are {run_cap * max_epochs}"
        )
    msg = f"give --budget N, the epochs over all configurations: W&B has no key{hint}"
    raise InvalidParameterError(msg)


def _arguments(
    parameters: Mapping[str, Any], note: Note, prefix: str = ""
) -> Iterator[Argument]:
    """Yield all parameters; those with a taken name are fields of another name."""
    for name, parameter in parameters.items():
        full = f"{prefix}{name}"
        if "type" not in parameter:
            inside = parameter["parameters"]
            note(
                f"parameters.{full}: nested, which W&B passes as one argument; here "
                f"each in it is one, such as {full}.{next(iter(inside))}"
            )
            yield from _arguments(inside, note, f"{full}.")
        elif full == EPOCHS:
            yield Argument(full, EPOCHS)
        elif "." in name:
            note(f"parameters.{full}: nested where parameters are passed as JSON")
            yield Argument(full, full, parameter)
        elif full in FIELDS:
            note(f"parameters.{full}: called {full}_ here, where {full} is taken")
            yield Argument(full, f"{full}_", parameter)
        else:
            yield Argument(full, full, parameter)


def _renamed(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{name}_" if name in FIELDS else name: parameter
        for name, parameter in parameters.items()
        if name != EPOCHS
    }


def _note_passing(command: Any, flags: Mapping[str, Any], note: Note) -> None:
    for name, parameter in flags.items():
        note(f"parameters.{name}: added, {parameter['value']} where it is set")
    if wandb_command.passes_parameters(command):
        note(
            "command: a script that reads wandb.config has to read its arguments "
            "instead, or the variable RISINGSEARCH_PARAMS"
        )
    else:
        note(
            "command: it passes no parameters; the script has to read them from the "
            "variable RISINGSEARCH_PARAMS, instead of wandb.config"
        )


def _metric(metric: Any, regex: str | None, note: Note) -> dict[str, Any]:
    if not isinstance(metric, Mapping) or not isinstance(metric.get("name"), str):
        msg = "metric must have a name, which the search needs: {name: val_loss}"
        raise InvalidParameterError(msg)
    known = {"name", "goal", "target", "impute", "impute_while_running"}
    if more := sorted(map(str, metric.keys() - known)):
        msg = f"metric.{more[0]} is no key of W&B, which has {', '.join(sorted(known))}"
        raise InvalidParameterError(msg)
    goal = metric.get("goal", "minimize")
    if "goal" not in metric:
        note("metric.goal: minimize, W&B's default")
    for name in ("impute", "impute_while_running"):
        if name in metric:
            note(f"metric.{name}: left out, it has no equal here")
    target = {}
    if "target" in metric:
        target["target_score"] = metric["target"]
        note("metric.target: target_score, the search ends once an epoch is as good")
    name = metric["name"]
    if regex is not None:
        note(f"metric: {name} is what the pattern finds in the output, epoch by epoch")
        return {"metric": {"regex": regex}, "direction": goal, **target}
    note(
        f'metric: the script has to print a line such as {{"epoch": 1, "{name}": 0.5}} '
        "after every epoch; where it prints other text, give --regex PATTERN"
    )
    return {"metric": name, "direction": goal, **target}


def _candidates(method: Any, run_cap: Any, note: Note) -> dict[str, Any]:
    if method not in METHODS:
        msg = f"method must be one of {', '.join(METHODS)}; got {method!r}"
        raise InvalidParameterError(msg)
    if run_cap is not None:
        note(
            f"run_cap: {run_cap} candidates; the policy opens those that it has use for"
        )
    drawn = "candidates are drawn at random"
    if method == "grid":
        note("method: grid, in no order; the policy decides how long each one trains")
        return {"candidates": "all" if run_cap is None else run_cap}
    if method == "bayes":
        note(f"method: {drawn}, and a model of the scores proposes which to open")
    else:
        note(f"method: {drawn}, and the policy decides how many to open")
    return {} if run_cap is None else {"candidates": run_cap}
