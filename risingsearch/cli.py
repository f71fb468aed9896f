"""The command line: ``risingsearch policies`` and ``risingsearch demo``."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import risingsearch
from risingsearch.errors import (
    ExecutorFailedError,
    RisingSearchError,
    SearchFailedError,
)

DONE = 0
BAD_INPUT = 2
SEARCH_FAILED = 3
INTERRUPTED = 130

WIDTH = 79


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; by default those of the process.

    Returns
    -------
    int
        The exit code: 0 done, 2 bad input, 3 the search failed, 130 interrupted.

    Raises
    ------
    SystemExit
        Where argparse ends the program itself: for ``--help``, ``--version`` and
        arguments that do not parse.
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return BAD_INPUT
    try:
        arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (SearchFailedError, ExecutorFailedError) as error:
        return _failed(error, SEARCH_FAILED)
    except RisingSearchError as error:
        return _failed(error, BAD_INPUT)
    except KeyboardInterrupt:
        print("risingsearch: interrupted", file=sys.stderr)
        return INTERRUPTED
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="risingsearch",
        description="Decide which training run deserves the next epoch.",
        epilog="exit codes: 0 done, 2 bad input, 3 the search failed, 130 interrupted",
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"risingsearch {risingsearch.__version__}",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    policies = commands.add_parser(
        "policies",
        help="list the policies: what they do, where they come from, what they take",
        description="List the policies that decide which arm trains next.",
    )
    policies.add_argument("--json", action="store_true", help="print JSON")
    policies.set_defaults(run=_policies)

    demo = commands.add_parser(
        "demo",
        help="run a small search and draw where its epochs went",
        description="Run a small search and draw where its epochs went.",
    )
    demo.add_argument(
        "--out",
        type=_folder,
        default=Path(),
        metavar="DIR",
        help="folder of the figures, made if missing (default: the current one)",
    )
    demo.add_argument(
        "--seed",
        type=_seed,
        default=0,
        metavar="N",
        help="seed of everything random, from 0 (default: 0)",
    )
    demo.add_argument(
        "--json", action="store_true", help="print JSON; progress goes to stderr"
    )
    demo.set_defaults(run=_demo)
    return parser


def _folder(text: str) -> Path:
    path = Path(text)
    if path.exists() and not path.is_dir():
        msg = f"must be a folder; {text!r} is a file"
        raise argparse.ArgumentTypeError(msg)
    return path


def _seed(text: str) -> int:
    if not text.isdecimal():
        msg = f"must be a whole number of at least 0; got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _policies(arguments: argparse.Namespace) -> None:
    from risingsearch.policies import list_policies, resolve_policy

    infos = list_policies()
    if arguments.json:
        _print_json([info._asdict() for info in infos])
        return
    indent = max(len(info.name) for info in infos) + 2
    for info in infos:
        parameters = [f"{name}={value}" for name, value in info.parameters.items()]
        lines = [
            info.summary.replace("``", ""),
            f"{info.paper} ({info.provenance})",
            f"parameters: {', '.join(parameters) or 'none'}",
        ]
        column = "\n".join(textwrap.fill(line, WIDTH - indent) for line in lines)
        print(info.name + textwrap.indent(column, " " * indent)[len(info.name) :])
        print()
    print(
        f"auto is {resolve_policy('auto', 'best')}; for the largest sum of scores, "
        f"{resolve_policy('auto', 'sum')}."
    )


def _demo(arguments: argparse.Namespace) -> None:
    from risingsearch.demo import run_demo

    if not arguments.json:
        run_demo(out=arguments.out, seed=arguments.seed)
        return
    with contextlib.redirect_stdout(sys.stderr):
        result = run_demo(out=arguments.out, seed=arguments.seed)
    _print_json(result)


def _print_json(value: object) -> None:
    print(json.dumps(_strict(value), indent=2, allow_nan=False))


def _strict(value: object) -> object:
    # JSON has no infinity and no NaN: they are written as words.
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(float(value))
    return value


def _failed(error: RisingSearchError, code: int) -> int:
    message = " ".join(str(error).split())
    print(f"risingsearch: {message}", file=sys.stderr)
    return code
