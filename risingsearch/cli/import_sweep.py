"""The command that turns a sweep file of W&B into one for ``run``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from risingsearch.cli.options import add_command, count, one_line, writing
from risingsearch.errors import InvalidParameterError


def add_import(commands: Any) -> None:
    """Add the command to a parser's."""
    parser = add_command(
        commands, "import-sweep", _import, "turn a sweep file of W&B into one for run"
    )
    parser.description += " What has no equal here, and what was chosen, is said."
    parser.add_argument("wandb", type=Path, metavar="WANDB.yaml")
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="(default: standard output)"
    )
    parser.add_argument(
        "--budget", type=count, metavar="N", help="epochs over all configurations"
    )
    parser.add_argument(
        "--max-epochs",
        type=count,
        metavar="N",
        help="epochs of a full training (default: the value of a parameter epochs)",
    )
    parser.add_argument(
        "--regex",
        metavar="PATTERN",
        help="finds the score in what the script prints, with a group around it",
    )


def _import(arguments: argparse.Namespace) -> None:
    from risingsearch.scripts.wandb_sweep import imported
    from risingsearch.scripts.yaml_files import dump_yaml, read_yaml

    path = arguments.wandb

    def note(sentence: str) -> None:
        print(one_line(f"{path}: {sentence}"), file=sys.stderr)

    given = read_yaml(path)
    try:
        sweep = imported(
            given,
            note,
            budget=arguments.budget,
            max_epochs=arguments.max_epochs,
            regex=arguments.regex,
        )
    except InvalidParameterError as error:
        raise InvalidParameterError(f"{path}: {error}") from error
    if arguments.out is None:
        print(dump_yaml(sweep), end="")
        return
    with writing(arguments.out):
        arguments.out.write_text(dump_yaml(sweep), encoding="utf-8")
