"""Shared parts of the commands: options, parsing of values, texts for display."""

from __future__ import annotations

import argparse
import contextlib
import math
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from risingsearch.budget import Budget

from risingsearch.errors import InvalidParameterError

PATHS = {
    "bash": "_shtab_compgen_files",
    "zsh": "_files",
    "tcsh": "f",
    "fish": "(__fish_complete_path (commandline -ct))",
}
"""The words of shtab for the completion of a path, in each shell."""


def add_command(commands: Any, name: str, run: object, does: str) -> Any:
    """Add a command to a parser's, and return its own parser."""
    description = f"{does[0].upper()}{does[1:]}."
    parser = commands.add_parser(
        name,
        help=does,
        description=description,
    )
    parser.set_defaults(run=run)
    return parser


def add_run_command(
    commands: object,
    name: str,
    run: object,
    does: str,
    nargs: str | None = None,
) -> Any:
    """Add a command about the run in a directory, and return its own parser."""
    parser = add_command(commands, name, run, does)
    run_dir = parser.add_argument(
        "run_dir",
        type=run_path,
        metavar="RUN",
        nargs=nargs,
        help="directory of a run, such as runs/sweep",
    )
    run_dir.complete = PATHS
    return parser


def run_path(text: str) -> Path:
    """Return the path of a run; raise an error about a file, such as a sweep's."""
    path = Path(text)
    if path.is_file():
        raise argparse.ArgumentTypeError(
            f"{text} is a file; give the directory of its run, as runs/{path.stem}"
        )
    return path


def sweep_path(text: str) -> Path:
    """Return the path of a sweep; raise an error about a directory, such as a run's."""
    if Path(text).is_dir():
        raise argparse.ArgumentTypeError(
            f"{text} is a directory; a run continues by: risingsearch resume {text}"
        )
    return Path(text)


def add_json(parser: argparse.ArgumentParser, help: str = "print JSON") -> None:
    """Add ``--json`` to a command."""
    parser.add_argument(
        "--json",
        action="store_true",
        help=help,
    )


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add ``--seed`` to a command."""
    parser.add_argument(
        "--seed",
        type=partial(whole, low=0),
        default=0,
        metavar="N",
        help="seed of everything random, from 0 (default: 0)",
    )


def whole(text: str, low: int, high: int | None = None) -> int:
    """Return a whole number that is at least ``low``, and at most ``high``."""
    if not text.isdecimal() or int(text) < low or (high and int(text) > high):
        most = ""
        if high is not None:
            most = f" and at most {high}"
        raise argparse.ArgumentTypeError(
            f"must be a whole number of at least {low}{most}; got {text!r}"
        )
    return int(text)


count = partial(whole, low=1)


def count_or_auto(text: str) -> int | str:
    """Return a whole number of at least 1, or ``auto``."""
    return text if text == "auto" else count(text)


def counts(text: str) -> list[int]:
    """Return the different whole numbers of a list with commas, in their order."""
    return sorted({count(number.strip()) for number in text.split(",")})


def distance(text: str) -> float:
    """Return a finite number of at least 0."""
    with contextlib.suppress(ValueError):
        if 0.0 <= float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number of at least 0; got {text!r}")


def seconds(text: str) -> float:
    """Return a finite number above 0."""
    with contextlib.suppress(ValueError):
        if 0.0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"must be seconds above 0; got {text!r}")


def amount(text: str, sign: str = "") -> float | Budget:
    """Return a finite number above 0, in the unit of a sweep's budget, or a time."""
    from risingsearch.budget import Budget

    number = text.removeprefix(sign)
    if text.startswith(sign) and not number.startswith("+"):
        with contextlib.suppress(ValueError):
            if 0.0 < float(number) < math.inf:
                return float(number)
        with contextlib.suppress(ValueError):
            return Budget.of(number)
    forms = ", ".join(f"{sign}{form}" for form in ("100", "8h", "8wall-h", "20gpu-h"))
    raise argparse.ArgumentTypeError(f"must be an amount such as {forms}; got {text!r}")


class Increase(NamedTuple):
    """A budget as the amount to be added to it."""

    amount: float | Budget


def budget_or_increase(text: str) -> float | Budget | Increase:
    """Return a budget, or with a plus sign the amount to be added to one."""
    if text.startswith("+"):
        return Increase(amount(text, "+"))
    return amount(text)


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Show a warning as an error is shown, without its line of the source."""
    usual = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: (
        f"risingsearch: {one_line(str(message))}\n"
    )
    try:
        yield
    finally:
        warnings.formatwarning = usual


def one_line(text: str) -> str:
    """Return a text on one line, without control characters."""
    return "".join(
        character if character.isprintable() else "?"
        for character in " ".join(text.split())
    )


def check_file(path: Path) -> None:
    """Raise an error if a file cannot be read, before a package is missed for it."""
    try:
        path.open("rb").close()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise InvalidParameterError(f"{path} cannot be read ({problem})") from error


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Return the error about a file that cannot be written."""
    if path.is_dir():
        raise InvalidParameterError(
            f"{path} cannot be written (it is a folder): name a file"
        )
    try:
        yield
    except OSError as error:
        raise InvalidParameterError(
            f"{path} cannot be written ({error.strerror})"
        ) from error
