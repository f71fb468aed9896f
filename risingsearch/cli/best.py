"""The command that prints the best configuration of a run, to be used again."""

from __future__ import annotations

import argparse
import io
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from risingsearch.cli.options import add_run_command, count, one_line
from risingsearch.cli.printing import print_json
from risingsearch.cli.status import RunView
from risingsearch.errors import InvalidParameterError, needed

if TYPE_CHECKING:
    from risingsearch.arms import Configuration
    from risingsearch.scripts.sweep import Sweep
    from risingsearch.scripts.trainable import Launch

PLAIN = re.compile(r"(?!(?i:true|false|null|inf|nan)\Z)[A-Za-z_][A-Za-z0-9_./-]*")
"""Texts that Hydra reads as such without quotes."""
SPECIAL = re.compile(r"(\\*)('|\$\{|\Z)")
"""A quote or an interpolation, and the backslashes before it: only those count."""


def add_best(commands: object) -> None:
    """Add the command to a parser's."""
    best = add_run_command(
        commands,
        "best",
        _best,
        "print the command that trains the best configuration of a run again",
    )
    best.description += " With an option, print the values of its parameters instead."
    forms = best.add_mutually_exclusive_group()
    for form, does in {
        "yaml": "as YAML",
        "json": "as JSON",
        "args": "as arguments, such as --lr=0.1",
        "hydra": "as overrides of Hydra, such as lr=0.1",
    }.items():
        forms.add_argument(
            f"--{form}",
            dest="form",
            action="store_const",
            const=form,
            help=does,
        )
    forms.add_argument(
        "--epochs",
        type=count,
        metavar="N",
        help="epochs of the command (default: the max_epochs of the search)",
    )


def _best(arguments: argparse.Namespace) -> None:
    run = RunView(arguments.run_dir)
    params = _best_params(run)
    if arguments.form is None:
        print(_command(run, arguments.epochs))
    else:
        FORMS[arguments.form](params)
    if not run.is_over:
        print(
            f"risingsearch: the best so far: {one_line(run.progress_text())}",
            file=sys.stderr,
        )


def _best_params(run: RunView) -> Configuration:
    """Return the best configuration, or raise an error where it is not known."""
    from risingsearch.json_values import AS_TEXT

    result = run.result
    if result.best_arm is None:
        raise InvalidParameterError(
            f"{run.path} has no finite score yet, so no best configuration: look again "
            "when an epoch has one"
        )
    if AS_TEXT in result.best_params:
        raise InvalidParameterError(
            f"{run.path} holds values that are no JSON: result.best_params of "
            "RisingSearch.resume, in Python, has them"
        )
    values: Configuration = _native(result.best_params)
    return values


def _native(value: Any) -> Any:
    """Return a value with lists and numbers that every format knows."""
    if isinstance(value, dict):
        return {str(name): _native(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_native(item) for item in value]
    return value.item() if hasattr(value, "item") else value


def _command(run: RunView, n_epochs: int | None) -> str:
    """Return the command of a sweep for its best configuration, for a shell."""
    if not run.is_of_sweep:
        raise InvalidParameterError(
            f"{run.path} was begun in Python, without a command: print the values by "
            "--yaml, --json, --args or --hydra"
        )
    from risingsearch.scripts.sweep import checked_sweep
    from risingsearch.scripts.trainable import Launch, ScriptRun

    sweep = checked_sweep(run.last["sweep"], str(run.path))
    result = run.result
    assert result.best_arm is not None
    best = result.arms[result.best_arm]
    assert best.seed is not None
    again = ScriptRun(best.arm, dict(best.params), best.seed)
    to_epoch = n_epochs or sweep.max_epochs
    cwd = Path(run.last["cwd"])
    if cwd.absolute() != Path.cwd():
        print(f"risingsearch: its scripts ran in {cwd}", file=sys.stderr)
    return in_shell(sweep, Launch.of(sweep.command, again, 0, to_epoch, Path()))


def in_shell(sweep: Sweep, launch: Launch) -> str:
    """Return a line for a shell, with the variables that the script may need."""
    from risingsearch.scripts.trainable import variable

    variables = [
        f"{name}={launch.variables[name]}"
        for name in map(variable, sweep.fields_in_variables())
    ]
    return shlex.join([*(["env", *variables] if variables else []), *launch.command])


def _print_yaml(params: Configuration) -> None:
    with needed("ruamel.yaml", "cli"):
        from ruamel.yaml import YAML

    text = io.StringIO()
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.version = (1, 1)  # it is read as the same by parsers of 1.1 and of 1.2
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    yaml.dump(dict(params), text)
    print(text.getvalue().partition("---\n")[2], end="")


def _print_arguments(params: Configuration) -> None:
    print(shlex.join(f"--{name}={value}" for name, value in params.items()))


def _print_hydra(params: Configuration) -> None:
    print(shlex.join(f"{name}={for_hydra(value)}" for name, value in params.items()))


def for_hydra(value: Any) -> str:
    r"""Return a value as the grammar of Hydra's overrides writes it.

    Examples
    --------
    >>> print(for_hydra([1e-05, True, None, "relu", "1e-05", "it's"]))
    [1e-05,true,null,relu,'1e-05','it\'s']
    """
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case list():
            return f"[{','.join(map(for_hydra, value))}]"
        case dict():
            items = (f"{name}:{for_hydra(item)}" for name, item in value.items())
            return f"{{{','.join(items)}}}"
        case str() if PLAIN.fullmatch(value) is None:
            return f"'{SPECIAL.sub(_escaped, value)}'"
        case _:
            return str(value)


def _escaped(match: re.Match[str]) -> str:
    backslashes, special = match.groups()
    return 2 * backslashes + (special and f"\\{special}")


FORMS: dict[str, Callable[[Configuration], None]] = {
    "yaml": _print_yaml,
    "json": print_json,
    "args": _print_arguments,
    "hydra": _print_hydra,
}
